#include "gpu/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The usual name in the variable is as good as none: scripts put it there. */
static const char *named_file(const struct library_spec *spec)
{
    const char *file = getenv(spec->variable);

    return file && file[0] && strcmp(file, spec->file) != 0 ? file : NULL;
}

/* The loader begins with the file that it could not take, which may be one that this one needs. */
static const char *without_file(const char *why, const char *file)
{
    size_t length = strlen(file);

    return !strncmp(why, file, length) && !strncmp(why + length, ": ", 2) ? why + length + 2 : why;
}

static int not_found(const struct library_spec *spec, const char *named, struct hvd_err *err)
{
    const char *why = dlerror();

    if (named)
        return err_set(err, HVD_E_UNSUPPORTED, "%s: %s names %s: %s; correct it, or unset it",
                       spec->name, spec->variable, named,
                       why ? without_file(why, named) : "it cannot be loaded");
    return err_set(err, HVD_E_UNSUPPORTED, "%s: %s; install it, or name it in %s", spec->name,
                   why ? why : spec->file, spec->variable);
}

static int lacks(const struct library_spec *spec, const char *symbol, const char *file, bool named,
                 struct hvd_err *err)
{
    if (named)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "%s: %s names %s, which lacks %s; correct it, or unset it", spec->name,
                       spec->variable, file, symbol);
    return err_set(err, HVD_E_UNSUPPORTED, "%s: %s lacks %s; install a newer one, or name it in %s",
                   spec->name, file, symbol, spec->variable);
}

struct place {
    void *handle;     /* RTLD_DEFAULT may be NULL: whether something was found is said by a code */
    const char *file; /* for people */
    bool named;       /* in the variable */
};

static int find_place(const struct library_spec *spec, bool load, struct place *ret_place,
                      struct hvd_err *err)
{
    const char *named = named_file(spec);
    struct place place = { .handle = RTLD_DEFAULT, .file = "the one in this program" };

    if (!dlsym(RTLD_DEFAULT, spec->calls[0].symbol)) {
        place.file = spec->file;
        place.handle = dlopen(spec->file, RTLD_NOW | RTLD_NOLOAD);
        if (!place.handle && named) {
            place.file = named;
            place.named = true;
            place.handle = dlopen(named, RTLD_NOW | RTLD_NOLOAD);
        }
        if (!place.handle && load)
            place.handle = dlopen(place.file, RTLD_NOW | RTLD_LOCAL);
        if (!place.handle)
            return not_found(spec, named, err);
    }
    *ret_place = place;
    return 0;
}

int library_find(const struct library_spec *spec, bool load, void *table, struct hvd_err *err)
{
    struct place place = { .handle = NULL };
    int rc = find_place(spec, load, &place, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < spec->call_count; i++) {
        const struct library_call *call = &spec->calls[i];

        if (!call->may_lack && !dlsym(place.handle, call->symbol))
            return lacks(spec, call->symbol, place.file, place.named, err);
    }
    for (size_t i = 0; i < spec->call_count; i++) {
        void *at = dlsym(place.handle, spec->calls[i].symbol);

        memcpy((uint8_t *)table + spec->calls[i].offset, &at, sizeof(at));
    }
    return 0;
}
