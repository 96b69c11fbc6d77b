#include "worker/settings.h"

#include "tests/lib/test.h"

#include <stdlib.h>

static struct hvd_err err;
static struct coll_options options;

static void clear(void)
{
    unsetenv("HVD_CPU_OPERATIONS");
    unsetenv("HVD_FIXED_ORDER");
    unsetenv("HVD_FUSION_THRESHOLD_MB");
}

static int read_with(const char *name, const char *value)
{
    clear();
    setenv(name, value, 1);
    return settings_read(&options, &err);
}

static void what_is_not_set_is_the_default(struct test *t)
{
    clear();
    CHECK_OK(t, settings_read(&options, &err));
    CHECK_INT(t, options.carrier, ==, COLL_BY_BEST);
    CHECK(t, !options.flat && !options.fixed_order && !options.fusion_bytes && !options.host);
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", ""));
    CHECK_OK(t, read_with("HVD_FUSION_THRESHOLD_MB", ""));
    CHECK_INT(t, options.fusion_bytes, ==, 0);
out:
    clear();
}

static void each_is_read(struct test *t)
{
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", "gloo"));
    CHECK(t, options.carrier == COLL_BY_GLOO && options.flat);
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", "tcp"));
    CHECK(t, options.carrier == COLL_BY_TCP && options.flat);
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", "auto"));
    CHECK(t, options.carrier == COLL_BY_BEST && !options.flat);
    CHECK_OK(t, read_with("HVD_FIXED_ORDER", "1"));
    CHECK(t, options.fixed_order);
    CHECK_OK(t, read_with("HVD_FIXED_ORDER", "true"));
    CHECK(t, options.fixed_order);
    CHECK_OK(t, read_with("HVD_FIXED_ORDER", "0"));
    CHECK(t, !options.fixed_order);
    CHECK_OK(t, read_with("HVD_FUSION_THRESHOLD_MB", "3"));
    CHECK_INT(t, options.fusion_bytes, ==, 3 * 1024 * 1024);
    CHECK_OK(t, read_with("HVD_FUSION_THRESHOLD_MB", "0"));
    CHECK_INT(t, options.fusion_bytes, ==, 64 * 1024); /* the least that pays */
out:
    clear();
}

static void what_makes_no_sense_is_named(struct test *t)
{
    CHECK_CODE(t, read_with("HVD_CPU_OPERATIONS", "mpi"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_CPU_OPERATIONS is \"mpi\"; it may be auto, gloo or tcp");
    CHECK_CODE(t, read_with("HVD_FIXED_ORDER", "2"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_FIXED_ORDER is \"2\"; it may be 0 or 1");
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "-1"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "HVD_FUSION_THRESHOLD_MB is \"-1\"; it may be a whole number from 0 to 4096 "
               "(LIMIT_FUSION_MB)");
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "4097"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "64MB"), HVD_E_INVAL);
out:
    clear();
}

TESTS(CASE(what_is_not_set_is_the_default), CASE(each_is_read), CASE(what_makes_no_sense_is_named))
