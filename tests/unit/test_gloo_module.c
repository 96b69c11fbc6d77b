/*
 * The module of the Gloo link: where it is looked for, and what is refused.
 */
#include "collectives/engine.h"
#include "collectives/link/gloo_module.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/test.h"

#include <stdlib.h>

static struct hvd_err err;

/* Looks for the module when the variable has this value; NULL: the variable is not set. */
static int find(const char *named)
{
    const struct gloo_module *module = NULL;
    int rc;

    err.text[0] = '\0';
    if (named)
        setenv(GLOO_MODULE_VARIABLE, named, 1);
    else
        unsetenv(GLOO_MODULE_VARIABLE);
    rc = gloo_module_find(&module, &err);
    unsetenv(GLOO_MODULE_VARIABLE);
    return rc ? rc : !module;
}

TEST_FLAGS(the_module_of_this_build, TEST_NO_TORTURE)
{
    const struct gloo_module *module = NULL;

    if (!gloo_here())
        return;
    CHECK_OK(t, gloo_module_find(&module, &err));
    CHECK_TEXT(t, module->version, HVD_VERSION_TEXT);
out:
    return;
}

/* The test is not beside the module, and the variable does not name the module. */
TEST(no_module)
{
    const struct {
        const char *named, *file;
    } missing[] = {
        {NULL,                           "Gloo link, libhvd-gloo.so: "             },
        { "",                            "Gloo link, libhvd-gloo.so: "             },
        { "/nonexistent/libhvd-gloo.so", "Gloo link, /nonexistent/libhvd-gloo.so: "},
        { "/etc/passwd",                 "Gloo link, /etc/passwd: "                },
        { "libc.so.6",                   "undefined symbol: hvd_gloo_module"       },
    };

    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        CHECK_CODE(t, find(missing[i].named), HVD_E_UNSUPPORTED);
        CHECK_HAS(t, err.text, missing[i].file);
        CHECK_HAS(t, err.text, "HVD_GLOO_LIBRARY, or leave out --cpu-operations gloo");
    }
out:
    return;
}

TEST(a_module_of_another_version)
{
    CHECK_CODE(t, find(OTHER_GLOO_MODULE), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "is of version 0.0.1, but libhvd is of version " HVD_VERSION_TEXT);
    CHECK_HAS(t, err.text, "HVD_GLOO_LIBRARY");
out:
    return;
}

/* An engine says it at once, not in the first round. */
TEST(an_engine_without_the_module)
{
    const struct coll_options options = { .host = "127.0.0.1", .carrier = COLL_BY_GLOO };
    struct coll_engine *engine = NULL;

    CHECK_CODE(t, coll_engine_open(&options, &engine, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "libhvd-gloo.so");
    CHECK(t, !engine);
out:
    return;
}
