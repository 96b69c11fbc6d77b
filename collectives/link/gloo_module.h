/*
 * gloo_module.h: what libhvd-gloo.so, the module with the Gloo link (gloo_link.cc), gives to the
 * library, and how the library finds the module. libhvd itself needs no file of Gloo's: the module
 * is loaded when --cpu-operations gloo asks for it.
 */
#ifndef COLLECTIVES_LINK_GLOO_MODULE_H
#define COLLECTIVES_LINK_GLOO_MODULE_H

#include "collectives/link/link.h"

#define GLOO_MODULE_FILE     "libhvd-gloo.so"
#define GLOO_MODULE_VARIABLE "HVD_GLOO_LIBRARY" /* path of the module in another folder */
#define GLOO_MODULE_SYMBOL   "hvd_gloo_module"

struct gloo_device; /* a process has one Gloo device, which holds Gloo's thread */

struct gloo_module {
    const char *version; /* must be that of libhvd: both use the same structs */
    int (*device_open)(const char *host, struct gloo_device **ret_device,
                       struct hvd_err *err) MUST_CHECK;
    void (*device_close)(struct gloo_device *device);
    int (*link_create)(struct gloo_device *device, const struct link_spec *spec,
                       struct link **ret_link, struct hvd_err *err) MUST_CHECK;
};

/* The type of GLOO_MODULE_SYMBOL, the one function that the module exports. */
typedef const struct gloo_module *gloo_module_fn(void);

/* Loads the module: the file that HVD_GLOO_LIBRARY names; otherwise the file beside the library or
 * program that has this code; otherwise as the dynamic loader finds any library. The module is
 * never unloaded. Any thread may make this call.
 *     HVD_E_UNSUPPORTED  there is no module, it cannot be loaded, or it has another version */
int gloo_module_find(const struct gloo_module **ret_module, struct hvd_err *err) MUST_CHECK;

#endif
