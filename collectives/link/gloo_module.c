/*
 * gloo_module.c: finds and loads libhvd-gloo.so, the module with the Gloo link; called by links.c
 * and engine.c. Invariants: a module of another version is never used, as it may have other
 * structs; the module is looked for in no folder that only happens to be the present one.
 */
#include "collectives/link/gloo_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the path of the module beside the file that has this code: libhvd.so, or a program that
 * has linked libhvd.a. false: there is no such module, or the loader has that file by its bare name
 * alone. */
static bool is_beside(char *ret_path, size_t size)
{
    static const char here;
    char file[PATH_MAX];
    Dl_info info;
    char *name;

    if (!dladdr(&here, &info) || !strchr(info.dli_fname, '/') || !realpath(info.dli_fname, file))
        return false;
    name = strrchr(file, '/');
    *name = '\0';
    return (size_t)snprintf(ret_path, size, "%s/%s", file, GLOO_MODULE_FILE) < size &&
           !access(ret_path, F_OK);
}

int gloo_module_find(const struct gloo_module **ret_module, struct hvd_err *err)
{
    const char *file = getenv(GLOO_MODULE_VARIABLE);
    char beside[PATH_MAX];
    const struct gloo_module *module;
    gloo_module_fn *give;
    void *handle, *at;

    if (!file || !file[0])
        file = is_beside(beside, sizeof(beside)) ? beside : GLOO_MODULE_FILE;
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    at = handle ? dlsym(handle, GLOO_MODULE_SYMBOL) : NULL;
    if (!at) {
        const char *why = dlerror();

        return err_set(
            err, HVD_E_UNSUPPORTED,
            "the module of the Gloo link, %s: %s; install this file and Gloo, or name its "
            "path in %s, or leave out --cpu-operations gloo",
            file, why ? why : "it cannot be loaded", GLOO_MODULE_VARIABLE);
    }
    memcpy(&give, &at, sizeof(give)); /* ISO C has no conversion to a function's address */
    module = give();
    if (strcmp(module->version, HVD_VERSION_TEXT) != 0)
        return err_set(err, HVD_E_UNSUPPORTED,
                       "the module of the Gloo link, %s, is of version %s, the library of version "
                       "%s; install the module of this library, or name its path in %s",
                       file, module->version, HVD_VERSION_TEXT, GLOO_MODULE_VARIABLE);
    *ret_module = module;
    return 0;
}
