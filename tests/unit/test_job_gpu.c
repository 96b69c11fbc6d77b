/* The GPU in a worker's READY, with each HVD_GPU_OPERATIONS. */
#include "gpu/device.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"

#include <stdlib.h>
#include <string.h>

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

static void end_case(struct test *t)
{
    (void)t;
    unsetenv("HVD_GPU_OPERATIONS");
    fake_job_release(&job);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(a_worker_that_uses_a_gpu_names_it, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin("auto"));
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK(t, says(" nccl=22809"));
}

TEST_FLAGS(a_worker_that_has_set_a_stream_names_its_gpu, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin("nccl"));
    job.ready = use_stream;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK(t, says(" nccl=22809"));
}

TEST_FLAGS(a_worker_without_a_gpu_names_none, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin("auto"));
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK_TEXT(t, job.agent.gpu, "");
}

TEST_FLAGS(the_library_is_loaded_for_nccl_only, TEST_NO_TORTURE)
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
}

TEST_FLAGS(a_demand_for_nccl_fails_without_its_library, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin("nccl"));
    setenv("HVD_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, hangs_up));
    CHECK_CODE(t, job.code, HVD_E_UNSUPPORTED);
    CHECK_HAS(t, hvd_last_error(), "NCCL");
    CHECK_HAS(t, hvd_last_error(), "/nowhere/libnccl.so.2");
}

TEST_FLAGS(an_automatic_choice_works_without_the_library, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin("auto"));
    setenv("HVD_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    job.ready = use_second;
    CHECK_OK(t, fake_job_play(&job, trains));
    fake_agent_stop(&job.agent);
    CHECK_OK(t, job.code);
    CHECK_TEXT(t, job.agent.gpu, "");
}
