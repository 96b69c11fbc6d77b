/*
 * test_settings.c: the variables that configure a worker: defaults, each variable, and wrong
 * values, which are named.
 */
#include "worker/settings.h"

#include "base/time.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

static struct hvd_err err;
static struct coll_options options;
static enum commit_to to;

static void clear(void)
{
    unsetenv("HVD_CPU_OPERATIONS");
    unsetenv("HVD_DATA_SECURITY");
    unsetenv("HVD_FIXED_ORDER");
    unsetenv("HVD_FUSION_THRESHOLD_MB");
    unsetenv("HVD_GPU_OPERATIONS");
    unsetenv("HVD_GPU_TIMEOUT");
    unsetenv("HVD_COMMIT_TO");
    unsetenv("HVD_THREAD_AFFINITY");
    unsetenv("HVD_SLOT");
    unsetenv("HVD_DISABLE_NVTX_RANGES");
}

static const char *const launched[] = { "HVD_ALONE",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "MASTER_ADDR",
                                        "WORLD_SIZE",
                                        "SLURM_NTASKS",
                                        "LSF_PM_TASKID",
                                        "PBS_TASKNUM",
                                        "HOROVOD_SIZE",
                                        "HOROVOD_GLOO_RENDEZVOUS_ADDR" };

/* Checks a process for which a launcher has set these variables; NULL: no further variable. */
static int check_alone(const char *name, const char *value, const char *other, const char *alone)
{
    for (size_t i = 0; i < ARRAY_SIZE(launched); i++)
        unsetenv(launched[i]);
    setenv(name, value, 1);
    if (other)
        setenv(other, "0", 1);
    if (alone)
        setenv("HVD_ALONE", alone, 1);
    err = (struct hvd_err){ .code = 0 };
    return settings_check_alone(&err);
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

TEST(an_unset_variable_is_the_default)
{
    clear();
    CHECK_OK(t, settings_read(&options, &err));
    CHECK_INT(t, options.carrier, ==, COLL_BY_BEST);
    CHECK_INT(t, options.gpu, ==, COLL_GPU_AUTO);
    CHECK_INT(t, options.security, ==, LINK_SECURITY_AUTO);
    CHECK_INT(t, options.gpu_bound_us, ==, 0);
    CHECK(t, !options.flat && !options.fixed_order && !options.fusion_bytes && !options.host);
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", ""));
    CHECK_OK(t, read_with("HVD_FUSION_THRESHOLD_MB", ""));
    CHECK_INT(t, options.fusion_bytes, ==, 0);
out:
    clear();
}

TEST(each_variable_is_read)
{
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", "gloo"));
    CHECK(t, options.carrier == COLL_BY_GLOO && options.flat);
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", "tcp"));
    CHECK(t, options.carrier == COLL_BY_TCP && options.flat);
    CHECK_OK(t, read_with("HVD_CPU_OPERATIONS", "auto"));
    CHECK(t, options.carrier == COLL_BY_BEST && !options.flat);
    CHECK_OK(t, read_with("HVD_DATA_SECURITY", "encrypted"));
    CHECK_INT(t, options.security, ==, LINK_SECURITY_ENCRYPTED);
    CHECK_OK(t, read_with("HVD_DATA_SECURITY", "authenticated"));
    CHECK_INT(t, options.security, ==, LINK_SECURITY_AUTHENTICATED);
    CHECK_OK(t, read_with("HVD_DATA_SECURITY", "none"));
    CHECK_INT(t, options.security, ==, LINK_SECURITY_NONE);
    CHECK_OK(t, read_with("HVD_FIXED_ORDER", "1"));
    CHECK(t, options.fixed_order);
    CHECK_OK(t, read_with("HVD_FIXED_ORDER", "true"));
    CHECK(t, options.fixed_order);
    CHECK_OK(t, read_with("HVD_FIXED_ORDER", "0"));
    CHECK(t, !options.fixed_order);
    CHECK_OK(t, read_with("HVD_FUSION_THRESHOLD_MB", "3"));
    CHECK_INT(t, options.fusion_bytes, ==, 3 * 1024 * 1024);
    CHECK(t, !options.unfused);
    CHECK_OK(t, read_with("HVD_FUSION_THRESHOLD_MB", "0"));
    CHECK(t, options.unfused);
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

TEST(ranges_for_a_profiler_may_be_disabled)
{
    static const struct {
        const char *value;
        bool ranges;
    } cases[] = {
        {"",       true },
        { "0",     true },
        { "false", true },
        { "1",     false},
        { "true",  false},
    };
    bool ranges = false;

    clear();
    CHECK_OK(t, settings_read_ranges(&ranges, &err));
    CHECK(t, ranges);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        setenv("HVD_DISABLE_NVTX_RANGES", cases[i].value, 1);
        CHECK_OK(t, settings_read_ranges(&ranges, &err));
        CHECK(t, ranges == cases[i].ranges);
    }
    setenv("HVD_DISABLE_NVTX_RANGES", "maybe", 1);
    CHECK_CODE(t, settings_read_ranges(&ranges, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_DISABLE_NVTX_RANGES is \"maybe\"; set this variable to 0 or 1");
out:
    clear();
}

/* -2: refused */
static int core_of(const char *cores, const char *slot)
{
    int core = -2;

    clear();
    if (cores)
        setenv("HVD_THREAD_AFFINITY", cores, 1);
    if (slot)
        setenv("HVD_SLOT", slot, 1);
    return settings_read_core(&core, &err) ? -2 : core;
}

TEST(a_core_is_for_all_slots_or_for_one)
{
    CHECK_INT(t, core_of(NULL, "1"), ==, -1);
    CHECK_INT(t, core_of("", "1"), ==, -1);
    CHECK_INT(t, core_of("3", "1"), ==, 3);
    CHECK_INT(t, core_of("3,8,5", "1"), ==, 8);
    CHECK_INT(t, core_of("3,8,5", NULL), ==, 3);
    CHECK_INT(t, core_of("3,8", "2"), ==, -2);
    CHECK_TEXT(t, err.text,
               "HVD_THREAD_AFFINITY is 3,8, which has no core for slot 2; name one core for each "
               "slot of a host, or one core for all slots");
    CHECK_INT(t, core_of("3,", "0"), ==, -2);
    CHECK_TEXT(t, err.text,
               "HVD_THREAD_AFFINITY is \"3,\"; set this variable to the numbers of cores, such as "
               "3 or 0,8");
    CHECK_INT(t, core_of("1024", "0"), ==, -2);
    CHECK_INT(t, core_of("1", "x"), ==, -2);
    CHECK_TEXT(t, err.text, "HVD_SLOT is \"x\"; set this variable to the number of a slot");
out:
    clear();
}

TEST(a_senseless_value_is_named)
{
    CHECK_CODE(t, read_with("HVD_CPU_OPERATIONS", "mpi"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "HVD_CPU_OPERATIONS is \"mpi\"; set this variable to auto, gloo or tcp");
    CHECK_CODE(t, read_with("HVD_DATA_SECURITY", "tls"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "HVD_DATA_SECURITY is \"tls\"; set this variable to auto, encrypted, authenticated "
               "or none");
    CHECK_CODE(t, read_with("HVD_FIXED_ORDER", "2"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_FIXED_ORDER is \"2\"; set this variable to 0 or 1");
    CHECK_CODE(t, read_commit_to("disk"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_COMMIT_TO is \"disk\"; set this variable to both, host or device");
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "-1"), HVD_E_INVAL);
    CHECK_TEXT(
        t, err.text,
        "HVD_FUSION_THRESHOLD_MB is \"-1\"; set this variable to a whole number from 0 to 4096 "
        "(LIMIT_FUSION_MB)");
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "4097"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_FUSION_THRESHOLD_MB", "64MB"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_GPU_OPERATIONS", "rccl"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "HVD_GPU_OPERATIONS is \"rccl\"; set this variable to auto, nccl or cpu");
    CHECK_CODE(t, read_with("HVD_GPU_TIMEOUT", "soon"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "HVD_GPU_TIMEOUT is \"soon\"; set this variable to a time from 100ms to 1h");
    CHECK_CODE(t, read_with("HVD_GPU_TIMEOUT", "99ms"), HVD_E_INVAL);
    CHECK_CODE(t, read_with("HVD_GPU_TIMEOUT", "61m"), HVD_E_INVAL);
out:
    clear();
}

TEST(a_process_of_another_launcher_is_refused)
{
    CHECK_CODE(t, check_alone("OMPI_COMM_WORLD_SIZE", "2", "PMIX_RANK", NULL), HVD_E_INVAL);
    CHECK_TEXT(
        t, err.text,
        "mpirun started this process as one of 2 (OMPI_COMM_WORLD_SIZE is set), and each of "
        "these processes would train alone, as a job of one worker; start the program with "
        "\"hvd-elastic -np 2 COMMAND\" on this machine, or with \"hvd-elastic -np 2 -H "
        "HOST:SLOTS,... COMMAND\" on several machines; or set HVD_ALONE=1 to train alone in each "
        "process");
    CHECK_CODE(t, check_alone("PMI_SIZE", "3", NULL, "0"), HVD_E_INVAL);
    CHECK_CODE(t, check_alone("SLURM_STEP_NUM_TASKS", "4", "SLURM_PROCID", NULL), HVD_E_INVAL);
    CHECK(t, strstr(err.text, "srun started this process as one of 4 (SLURM_STEP_NUM_TASKS"));
    CHECK_CODE(t, check_alone("WORLD_SIZE", "8", "MASTER_ADDR", "false"), HVD_E_INVAL);
    CHECK(t, strstr(err.text, "torchrun started this process as one of 8 (WORLD_SIZE"));
    CHECK_CODE(t, check_alone("HOROVOD_SIZE", "4", "HOROVOD_GLOO_RENDEZVOUS_ADDR", NULL),
               HVD_E_INVAL);
    CHECK(t, strstr(err.text, "horovodrun started this process as one of 4 (HOROVOD_SIZE"));
    CHECK_CODE(t, check_alone("PMIX_RANK", "0", NULL, NULL), HVD_E_INVAL);
    CHECK(t, strstr(err.text, "as one of several (PMIX_RANK is set)"));
    CHECK_CODE(t, check_alone("LSF_PM_TASKID", "2", NULL, NULL), HVD_E_INVAL);
    CHECK(t, strstr(err.text, "blaunch started this process as one of several (LSF_PM_TASKID is "));
    CHECK_CODE(t, check_alone("PBS_TASKNUM", "17", NULL, "0"), HVD_E_INVAL);
    CHECK(t, strstr(err.text, "pbsdsh started this process as one of several (PBS_TASKNUM is set"));
out:
    (void)check_alone("HVD_ALONE", "1", NULL, NULL);
}

TEST(a_process_without_siblings_trains_alone)
{
    CHECK_OK(t, check_alone("HVD_ALONE", "", NULL, NULL));
    CHECK_OK(t, check_alone("OMPI_COMM_WORLD_SIZE", "1", "PMIX_RANK", NULL));
    CHECK_OK(t, check_alone("OMPI_COMM_WORLD_SIZE", "2", NULL, "1"));
    CHECK_OK(t, check_alone("PMIX_RANK", "1", NULL, "true"));
    CHECK_OK(t, check_alone("SLURM_NTASKS", "4", "SLURM_PROCID", NULL)); /* in a batch script */
    CHECK_OK(t, check_alone("WORLD_SIZE", "8", NULL, NULL));             /* no sign of a launcher */
    CHECK_OK(t, check_alone("HOROVOD_SIZE", "4", NULL, NULL));           /* of an agent */
    CHECK_OK(t, check_alone("PBS_TASKNUM", "1", NULL, NULL));            /* a job's own script */
    CHECK_OK(t, check_alone("LSF_PM_TASKID", "1", NULL, NULL));
    CHECK_OK(t, check_alone("LSF_PM_TASKID", "3", NULL, "1"));
    CHECK_OK(t, check_alone("PMI_SIZE", "many", NULL, NULL)); /* no number of processes */
    CHECK_CODE(t, check_alone("PMI_SIZE", "1", NULL, "yes"), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_ALONE is \"yes\"; set this variable to 0 or 1");
out:
    (void)check_alone("HVD_ALONE", "1", NULL, NULL);
}
