/*
 * library.h: finds a shared library and its functions at run time; and keeps a result that a
 * process needs to find only once.
 */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include "base/err.h"

#include <pthread.h>

struct library_call {
    const char *symbol;
    size_t offset; /* offset of the function pointer in the table */
    bool may_lack; /* true: the library may lack this function; the pointer is then NULL */
};

struct library_spec {
    const char *name;     /* the name for errors: "NCCL" */
    const char *file;     /* the file name: "libnccl.so.2" */
    const char *variable; /* an environment variable that may name another file */
    const struct library_call *calls;
    size_t call_count;
};

/* Fills the table with the functions of the library. A copy of the library that the process has
 * loaded already is always preferred, so that a process never has two copies. `load` is true: if
 * the process has no copy, the library is loaded and stays loaded. HVD_E_UNSUPPORTED: there is no
 * library, or the library lacks a function; the table is then unchanged. */
int library_find(const struct library_spec *spec, bool load, void *table,
                 struct hvd_err *err) MUST_CHECK;

/* Sets *slot to the result of `find`, unless an earlier call has set it. A result that `find` has
 * returned is kept until the process ends; after a failure the next call runs `find` again. Any
 * thread may call this function, which holds the lock while `find` runs. */
typedef int library_find_fn(void *arg, const void **ret_found, struct hvd_err *err);
int library_once(pthread_mutex_t *lock, const void *_Atomic *slot, library_find_fn *find, void *arg,
                 struct hvd_err *err) MUST_CHECK;

#endif
