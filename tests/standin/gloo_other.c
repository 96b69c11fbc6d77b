/*
 * gloo_other.c: a module of the Gloo link of another version; the library must refuse it.
 */
#include "collectives/link/gloo_module.h"

HVD_API gloo_module_fn hvd_gloo_module;

const struct gloo_module *hvd_gloo_module(void)
{
    static const struct gloo_module module = { .version = "0.0.1" };

    return &module;
}
