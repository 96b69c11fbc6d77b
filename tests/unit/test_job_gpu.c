/* What a worker tells of its GPU when it says READY, and what HVD_GPU_OPERATIONS makes of it. */
#include "gpu/device.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define JOIN \
    HEAR(MSG_HELLO_WORKER), DO(FAKE_WELCOME), HEAR(MSG_SNAPSHOT), DO(FAKE_GRANT), HEAR(MSG_READY)
#define END HEAR(MSG_FINISHED), DO(FAKE_OVER)

static const struct fake_step trains[] = { JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END };
static const struct fake_step hangs_up[] = { HEAR(MSG_HELLO_WORKER), DO(FAKE_WELCOME),
                                             DO(FAKE_OVER) };

static struct fake_job job;

static int begin(const char *operations)
{
    fake_gpu_use(2);
    fake_gpu_load();
    setenv("HVD_GPU_OPERATIONS", operations, 1);
    return fake_job_init(&job);
}

static void end(void)
{
    unsetenv("HVD_GPU_OPERATIONS");
    fake_job_release(&job);
}

/* As the runtime does it: its context is current. */
static int use_second(struct fake_job *self)
{
    const struct gpu_device *device;
    int rc = gpu_device_get(1, &device, NULL);

    (void)self;
    return rc ? rc : gpu_enter(device, NULL);
}

static int use_stream(struct fake_job *self)
{
    const struct gpu_device *device;
    struct CUstream_st *stream = NULL;
    int rc = use_second(self);

    if (!rc)
        rc = gpu_device_get(1, &device, NULL);
    if (!rc && device->cuda->stream_create(&stream, 0, 0))
        rc = HVD_E_IO;
    if (!rc)
        gpu_leave(device);
    return rc ? rc : hvd_set_stream(stream);
}

static bool says(const char *version)
{
    return strncmp(job.agent.gpu, "gpu=GPU-", 8) == 0 &&
           strlen(job.agent.gpu) == 8 + 32 + strlen(version) &&
           strcmp(job.agent.gpu + 8 + 32, version) == 0;
}

static void who_uses_a_gpu_says_which(struct test *t)
{
    CHECK_OK(t, begin("auto"));
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK(t, says(" nccl=22809"));
out:
    end();
}

static void so_does_who_has_set_a_stream(struct test *t)
{
    CHECK_OK(t, begin("nccl"));
    job.ready = use_stream;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK(t, says(" nccl=22809"));
out:
    end();
}

static void who_uses_none_says_nothing(struct test *t)
{
    CHECK_OK(t, begin("auto"));
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK_TEXT(t, job.agent.gpu, "");
out:
    end();
}

static void without_nccl_it_is_not_even_loaded(struct test *t)
{
    bool before;

    CHECK_OK(t, begin("cpu"));
    before = fake_gpu_nccl_is_loaded(); /* by another case, if they are run in one process */
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK_TEXT(t, job.agent.gpu, "");
    CHECK(t, fake_gpu_nccl_is_loaded() == before);
out:
    end();
}

static void where_there_is_none_it_cannot_be_asked_for(struct test *t)
{
    CHECK_OK(t, begin("nccl"));
    setenv("HVD_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, hangs_up));
    CHECK_CODE(t, job.code, HVD_E_UNSUPPORTED);
    CHECK_HAS(t, hvd_last_error(), "NCCL");
    CHECK_HAS(t, hvd_last_error(), "/nowhere/libnccl.so.2");
out:
    end();
}

static void but_nobody_else_misses_it(struct test *t)
{
    CHECK_OK(t, begin("auto"));
    setenv("HVD_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK_TEXT(t, job.agent.gpu, "");
out:
    end();
}

TESTS(NO_TORTURE(where_there_is_none_it_cannot_be_asked_for), NO_TORTURE(but_nobody_else_misses_it),
      NO_TORTURE(without_nccl_it_is_not_even_loaded), NO_TORTURE(who_uses_a_gpu_says_which),
      NO_TORTURE(so_does_who_has_set_a_stream), NO_TORTURE(who_uses_none_says_nothing))
