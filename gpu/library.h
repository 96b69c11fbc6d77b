/*
 * library.h: a shared library that is found at run time, and its calls.
 */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include "base/err.h"

struct library_call {
    const char *symbol;
    size_t offset; /* of its pointer in the table */
    bool may_lack; /* then it stays NULL */
};

struct library_spec {
    const char *name;     /* for people: "NCCL" */
    const char *file;     /* "libnccl.so.2" */
    const char *variable; /* of the environment, which may name another file */
    const struct library_call *calls;
    size_t call_count;
};

/* A copy that this process has already is taken before any other: there are never two. load: or one
 * is loaded, which stays. HVD_E_UNSUPPORTED: there is none, or it lacks a call; the table is then
 * untouched. */
int library_find(const struct library_spec *spec, bool load, void *table,
                 struct hvd_err *err) MUST_CHECK;

#endif
