#include "worker/settings.h"

#include "base/time.h"
#include "tests/lib/test.h"

#include <stdlib.h>

static struct hvd_err err;
static struct coll_options options;
static enum commit_to to;

static void clear(void)
{
    unsetenv("HVD_CPU_OPERATIONS");
    unsetenv("HVD_FIXED_ORDER");
    unsetenv("HVD_FUSION_THRESHOLD_MB");
    unsetenv("HVD_GPU_OPERATIONS");
    unsetenv("HVD_GPU_TIMEOUT");
    unsetenv("HVD_COMMIT_TO");
}

static int read_with(const char *name, const char *value)
{
    clear();
    setenv(name, value, 1);
    return settings_read(&options, &err);
}

static int read_commit_to(const char *value)
{
    setenv("HVD_COMMIT_TO", value, 1);
    return settings_read_commit_to(&to, &err);
}

static void what_is_not_set_is_the_default(struct test *t)
{
    clear();
    CHECK_OK(t, settings_read(&options, &err));
    CHECK_INT(t, options.carrier, ==, COLL_BY_BEST);
    CHECK_INT(t, options.gpu, ==, COLL_GPU_AUTO);
    CHECK_INT(t, options.gpu_bound_us, ==, 0);
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
    CHECK_OK(t, read_with("HVD_GPU_OPERATIONS", "nccl"));
    CHECK_INT(t, options.gpu, ==, COLL_GPU_NCCL);
    CHECK_OK(t, read_with("HVD_GPU_OPERATIONS", "cpu"));
    CHECK_INT(t, options.gpu, ==, COLL_GPU_CPU);
    CHECK_OK(t, read_with("HVD_GPU_TIMEOUT", "1m30s"));
    CHECK_INT(t, options.gpu_bound_us, ==, 90 * TIME_S);
    CHECK_OK(t, read_commit_to("host"));
    CHECK_INT(t, to, ==, COMMIT_TO_HOST);
    CHECK_OK(t, read_commit_to("device"));
    CHECK_INT(t, to, ==, COMMIT_TO_DEVICE);
    CHECK_OK(t, read_commit_to("both"));
    CHECK_INT(t, to, ==, COMMIT_TO_BOTH);
out:
    clear();
}

static void what_makes_no_sense_is_named(struct test *t)
{
    CHECK_CODE(t, read_with("HVD_CPU_OPERATIONS", "mpi"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_CPU_OPERATIONS is \"mpi\"; it may be auto, gloo or tcp");
    CHECK_CODE(t, read_with("HVD_FIXED_ORDER", "2"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_FIXED_ORDER is \"2\"; it may be 0 or 1");
    CHECK_CODE(t, read_commit_to("disk"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_COMMIT_TO is \"disk\"; it may be both, host or device");
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "-1"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "HVD_FUSION_THRESHOLD_MB is \"-1\"; it may be a whole number from 0 to 4096 "
               "(LIMIT_FUSION_MB)");
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "4097"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "64MB"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_GPU_OPERATIONS", "rccl"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_GPU_OPERATIONS is \"rccl\"; it may be auto, nccl or cpu");
    CHECK_CODE(t, read_with("HVD_GPU_TIMEOUT", "soon"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_GPU_TIMEOUT is \"soon\"; it may be a time from 100ms to 1h");
    CHECK_CODE(t, read_with("HVD_GPU_TIMEOUT", "99ms"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_GPU_TIMEOUT", "61m"), HVD_E_INVAL);
out:
    clear();
}

TESTS(CASE(what_is_not_set_is_the_default), CASE(each_is_read), CASE(what_makes_no_sense_is_named))
