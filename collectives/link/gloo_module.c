/*
 * gloo_module.c: finds and loads libhvd-gloo.so, the module with the Gloo link; called by links.c
 * and engine.c. Invariants: a module of another version is never used, as it may have other
 * structs; the module is never looked for in the current folder.
 */
#include "collectives/link/gloo_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds, loads and checks the module (gloo_module.h): the file that GLOO_MODULE_VARIABLE names, or
 * a file beside this code, or what the loader finds by the module's name. */
int gloo_module_find(const struct gloo_module **ret_module, struct hvd_err *err)
{
    static const char here; /* its address tells dladdr which file has this code */
    const char *file = getenv(GLOO_MODULE_VARIABLE);
    char own[PATH_MAX], beside[PATH_MAX];
    Dl_info info;
    const struct gloo_module *module;
    gloo_module_fn *give;
    void *handle, *at;

    if (!file || !file[0]) {
        file = GLOO_MODULE_FILE;
        /* The module may be in the folder of the file that has this code: libhvd.so, or a program
         * that has linked libhvd.a. The loader may know that file by its bare name only, without a
         * folder: then dlopen searches the module by GLOO_MODULE_FILE. */
        if (dladdr(&here, &info) && strchr(info.dli_fname, '/') && realpath(info.dli_fname, own)) {
            *strrchr(own, '/') = '\0';
            if ((size_t)snprintf(beside, sizeof(beside), "%s/%s", own, GLOO_MODULE_FILE) <
                    sizeof(beside) &&
                !access(beside, F_OK))
                file = beside;
        }
    }
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    at = handle ? dlsym(handle, GLOO_MODULE_SYMBOL) : NULL;
    if (!at) {
        const char *why = dlerror();

        return err_set(err, HVD_E_UNSUPPORTED,
                       "the module of the Gloo link, %s: %s; install this file and Gloo, or name "
                       "the path of the module in the environment variable %s, or leave out "
                       "--cpu-operations gloo",
                       file, why ? why : "the file cannot be loaded", GLOO_MODULE_VARIABLE);
    }
    memcpy(&give, &at, sizeof(give)); /* ISO C has no conversion to a function's address */
    module = give();
    if (strcmp(module->version, HVD_VERSION_TEXT) != 0)
        return err_set(
            err, HVD_E_UNSUPPORTED,
            "the module of the Gloo link, %s, is of version %s, but libhvd is of version %s; "
            "install the module of the same version as libhvd, or name the path of such a module "
            "in the environment variable %s",
            file, module->version, HVD_VERSION_TEXT, GLOO_MODULE_VARIABLE);
    *ret_module = module;
    return 0;
}
