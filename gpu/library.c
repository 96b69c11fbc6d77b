/*
 * library.c: looks for a shared library in this process, then by the file that the environment
 * names, then by its usual name; called by cuda.c and nccl.c. Either all its calls are found, or
 * the table stays as it was.
 */
#include "gpu/library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct place {
    void *handle;     /* may be RTLD_DEFAULT, which is NULL: so NULL does not mean "not found" */
    const char *file; /* the name of the library in errors */
    bool named;       /* true: the environment variable names this file */
};

/* Finds the library itself: a copy that this process has loaded already; otherwise, if `load`,
 * loads the file that the environment variable names, or else the usual file. RTLD_DEFAULT is the
 * handle when the functions are linked into the program itself. */
static int find_place(const struct library_spec *spec, bool load, struct place *ret_place,
                      struct hvd_err *err)
{
    const char *named = getenv(spec->variable);
    struct place place = { .handle = RTLD_DEFAULT, .file = "the one in this program" };
    const char *why;
    size_t length;

    /* A variable whose value is the usual file name counts as unset: some scripts set that
     * value. */
    if (named && (!named[0] || !strcmp(named, spec->file)))
        named = NULL;
    if (dlsym(RTLD_DEFAULT, spec->calls[0].symbol)) {
        *ret_place = place;
        return 0;
    }
    place.file = spec->file;
    place.handle = dlopen(spec->file, RTLD_NOW | RTLD_NOLOAD);
    if (!place.handle && named) {
        place.file = named;
        place.named = true;
        place.handle = dlopen(named, RTLD_NOW | RTLD_NOLOAD);
    }
    if (!place.handle && load)
        place.handle = dlopen(place.file, RTLD_NOW | RTLD_LOCAL);
    if (place.handle) {
        *ret_place = place;
        return 0;
    }

    /* The loader begins its error text with the file that it could not load. That is not always the
     * named file: it may be a file that the named file needs. */
    why = dlerror();
    if (!named)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "%s: %s; install this library, or name the path of the library in %s",
                       spec->name, why ? why : spec->file, spec->variable);
    length = strlen(named);
    if (why && !strncmp(why, named, length) && !strncmp(why + length, ": ", 2))
        why += length + 2;
    return err_set(err, HVD_E_UNSUPPORTED,
                   "%s: %s names %s: %s; correct this variable, or unset it", spec->name,
                   spec->variable, named, why ? why : "the library cannot be loaded");
}

/* Fills the table with the functions of the library (library.h). The first loop only looks whether
 * all functions exist, so a failure leaves the table unchanged. A function that may be missing
 * becomes NULL. */
int library_find(const struct library_spec *spec, bool load, void *table, struct hvd_err *err)
{
    struct place place = { .handle = NULL };
    int rc = find_place(spec, load, &place, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < spec->call_count; i++) {
        const struct library_call *call = &spec->calls[i];

        if (call->may_lack || dlsym(place.handle, call->symbol))
            continue;
        if (place.named)
            return err_set(err, HVD_E_UNSUPPORTED,
                           "%s: %s names %s, which lacks %s; correct this variable, or unset it",
                           spec->name, spec->variable, place.file, call->symbol);
        return err_set(
            err, HVD_E_UNSUPPORTED,
            "%s: %s lacks %s; install a newer library, or name the path of a newer one in %s",
            spec->name, place.file, call->symbol, spec->variable);
    }
    for (size_t i = 0; i < spec->call_count; i++) {
        void *at = dlsym(place.handle, spec->calls[i].symbol);

        memcpy((uint8_t *)table + spec->calls[i].offset, &at, sizeof(at));
    }
    return 0;
}

/* Calls `find` until it has succeeded once, and keeps its result in *slot (library.h). */
int library_once(pthread_mutex_t *lock, const void *_Atomic *slot, library_find_fn *find, void *arg,
                 struct hvd_err *err)
{
    const void *found = NULL;
    int rc = 0;

    if (atomic_load(slot))
        return 0;
    pthread_mutex_lock(lock);
    if (!atomic_load(slot)) {
        rc = find(arg, &found, err);
        if (!rc)
            atomic_store(slot, found);
    }
    pthread_mutex_unlock(lock);
    return rc;
}
