/* Calls on memory of a GPU as a program makes them: in which memory the buffers are, and the order
 * of the calls with the work in a stream. */
#include "gpu/device.h"
#include "hvd/hvd.h"
#include "os/clock.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/test.h"
#include "worker/gpu.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COUNT       1000
#define BYTES       (COUNT * sizeof(float))
#define PATIENCE_US (100 * INT64_C(1000000))

struct program {
    struct test *t;
    hvd_state *state;
    const struct gpu_device *device;
    struct CUstream_st *stream;
    void *in, *out;     /* memory of the device */
    float *see, *got;   /* the same memory as the host sees it */
    float plain[COUNT]; /* memory of the host */
    int (*body)(struct program *program);
};

/* ---- a device, with a stream and two buffers ---- */

static int get(struct program *program, int ordinal)
{
    int rc = gpu_device_get(ordinal, &program->device, NULL);

    return rc ? rc : gpu_enter(program->device, NULL);
}

static void *memory(const struct program *program)
{
    cuda_address at = 0;
    void *as_pointer;

    if (program->device->cuda->memory_alloc(&at, BYTES))
        return NULL;
    memcpy(&as_pointer, &at, sizeof(at));
    return as_pointer;
}

static void drop(const struct program *program, void *at)
{
    cuda_address address;

    memcpy(&address, &at, sizeof(at));
    if (at)
        (void)program->device->cuda->memory_free(address);
}

/* Makes a program with a stream and two buffers on GPU 0, and calls hvd_init without an agent. 0,
 * or a code. */
static int open_program(struct program *program, struct test *t)
{
    int rc;

    memset(program, 0, sizeof(*program));
    program->t = t;
    unsetenv("HVD_AGENT");
    fake_gpu_use(2);
    fake_gpu_load();
    rc = get(program, 0);
    if (!rc && program->device->cuda->stream_create(&program->stream, CUDA_STREAM_NON_BLOCKING, 0))
        rc = HVD_E_IO;
    if (rc)
        return rc;
    program->in = memory(program);
    program->out = memory(program);
    program->see = fake_gpu_memory(program->in);
    program->got = fake_gpu_memory(program->out);
    rc = hvd_init();
    program->state = rc ? NULL : hvd_state_create();
    if (!program->state || !program->in || !program->out)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < COUNT; i++)
        program->see[i] = program->plain[i] = (float)i;
    return 0;
}

static void close_program(struct program *program)
{
    hvd_state_free(program->state);
    program->state = NULL;
    hvd_shutdown();
    if (!program->device)
        return;
    if (program->stream)
        (void)program->device->cuda->stream_destroy(program->stream);
    drop(program, program->in);
    drop(program, program->out);
    gpu_leave(program->device);
    program->device = NULL;
}

static int train(hvd_state *state, void *arg)
{
    struct program *program = arg;

    (void)state;
    return program->body(program);
}

static int run(struct program *program, int (*body)(struct program *program))
{
    program->body = body;
    return hvd_elastic_run(program->state, train, program);
}

/* ---- work of the program's own ---- */

struct gate {
    atomic_bool open, reached;
};

static void wait_at(void *arg)
{
    struct gate *gate = arg;
    int64_t until_us = clock_now_us() + PATIENCE_US;

    atomic_store(&gate->reached, true);
    while (!atomic_load(&gate->open) && clock_now_us() < until_us)
        sched_yield();
}

static void count_up(void *arg)
{
    float *numbers = arg;

    for (size_t i = 0; i < COUNT; i++)
        numbers[i] += 1;
}

static bool all_are(const float *numbers, float more)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (numbers[i] < (float)i + more || numbers[i] > (float)i + more)
            return false;
    }
    return true;
}

/* ---- calls on memory of the host, of this GPU and of another GPU ---- */

static int body_mixed(struct program *program)
{
    struct test *t = program->t;
    int rc = hvd_allreduce(program->in, program->plain, COUNT, HVD_FLOAT32, HVD_SUM);

    CHECK_CODE(t, rc, HVD_E_INVAL);
    CHECK_TEXT(t, hvd_last_error(),
               "allreduce: in is in the memory of GPU 0, and out in the memory of the host; put "
               "both in the same memory");
out:
    return rc;
}

/* A case that is one run of a program: the body, and the code that the run must return. */
#define RUN_CASE(name, flags, body, code)         \
    TEST_FLAGS(name, flags)                       \
    {                                             \
        struct program program;                   \
        CHECK_OK(t, open_program(&program, t));   \
        CHECK_CODE(t, run(&program, body), code); \
out:                                              \
        close_program(&program);                  \
    }

RUN_CASE(memory_of_two_kinds_makes_no_sense, TEST_NO_TORTURE, body_mixed, HVD_E_INVAL)

static int body_pieces(struct program *program)
{
    const hvd_piece pieces[] = {
        {program->in,     program->out,   10},
        { program->plain, program->plain, 0 },
        { program->plain, program->plain, 10}
    };
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .type = HVD_FLOAT32,
                            .pieces = pieces,
                            .piece_count = ARRAY_SIZE(pieces) };
    struct test *t = program->t;
    int rc = hvd_run(&call);

    CHECK_CODE(t, rc, HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(),
              "in the memory of GPU 0, and in of pieces[2] in the memory of the host");
out:
    return rc;
}

RUN_CASE(pieces_of_two_kinds_are_refused, TEST_NO_TORTURE, body_pieces, HVD_E_INVAL)

static int body_other_gpu(struct program *program)
{
    struct program other = { .t = program->t };
    struct test *t = program->t;
    void *at = NULL;
    int rc = hvd_broadcast(program->out, COUNT, HVD_FLOAT32, 0);

    CHECK_OK(t, rc);
    CHECK_OK(t, get(&other, 1));
    at = memory(&other);
    CHECK(t, at);
    rc = hvd_broadcast(at, COUNT, HVD_FLOAT32, 0);
    CHECK_CODE(t, rc, HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "broadcast is of GPU 1 (");
    CHECK_HAS(t, hvd_last_error(), "this process works with GPU 0");
out:
    drop(&other, at);
    if (other.device)
        gpu_leave(other.device);
    return rc;
}

RUN_CASE(a_process_works_with_one_gpu, TEST_NO_TORTURE, body_other_gpu, HVD_E_INVAL)

static int body_nothing(struct program *program)
{
    (void)program;
    return 0;
}

/* A second hvd_init begins with another GPU: the state still belongs to the first. */
TEST_FLAGS(a_state_stays_on_its_first_gpu, TEST_NO_TORTURE)
{
    struct program program;
    struct program other = { .t = t };

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, hvd_state_add(program.state, "numbers", program.in, BYTES));
    CHECK_OK(t, run(&program, body_nothing));
    CHECK_OK(t, run(&program, body_nothing));
    hvd_shutdown();
    CHECK_OK(t, hvd_init());
    CHECK_OK(t, get(&other, 1));
    CHECK_OK(t, hvd_set_stream(NULL));
    CHECK_CODE(t, run(&program, body_nothing), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "the state is of GPU 0 (");
    CHECK_HAS(t, hvd_last_error(), "this process works with GPU 1");
out:
    if (other.device)
        gpu_leave(other.device);
    close_program(&program);
}

static int body_managed(struct program *program)
{
    struct test *t = program->t;
    float *managed = fake_gpu_managed(BYTES);
    int rc;

    memcpy(managed, program->plain, BYTES);
    rc = hvd_allreduce(program->plain, managed, COUNT, HVD_FLOAT32, HVD_SUM);
    CHECK_OK(t, rc);
    CHECK(t, all_are(managed, 0));
out:
    drop(program, managed);
    return rc;
}

RUN_CASE(managed_memory_is_the_hosts, TEST_NO_TORTURE, body_managed, 0)

/* ---- the order of calls and other work ---- */

TEST_FLAGS(a_stream_is_one_of_cuda, TEST_NO_TORTURE)
{
    struct program program = { .t = t };

    CHECK_CODE(t, hvd_set_stream(HVD_NO_STREAM), HVD_E_STATE);
    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, hvd_set_stream(program.stream));
    CHECK_OK(t, hvd_set_stream(HVD_NO_STREAM));
    CHECK_OK(t, hvd_set_stream(NULL)); /* the NULL stream of the current device */
    gpu_leave(program.device);
    CHECK_CODE(t, hvd_set_stream(NULL), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "the stream does not belong to a GPU");
    CHECK_OK(t, gpu_enter(program.device, NULL));
out:
    close_program(&program);
}

/* The stand-in has one context for each device, so the test makes the library take that context for
 * another. */
TEST_FLAGS(a_stream_is_one_of_the_primary_context, TEST_NO_TORTURE)
{
    struct program program = { .t = t };
    struct gpu_device *device = NULL;
    struct CUctx_st *primary = NULL;
    struct hvd_err err = { .code = 0 };
    struct CUstream_st *set = NULL;
    struct gpu_use use;

    gpu_use_init(&use);
    CHECK_OK(t, open_program(&program, t));
    device = (struct gpu_device *)(uintptr_t)program.device;
    primary = device->context;
    device->context = (struct CUctx_st *)(uintptr_t)&program;
    CHECK_CODE(t, gpu_use_stream(&use, program.stream, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "a context that is not the primary one of GPU 0 (");
    CHECK_CODE(t, gpu_use_stream(&use, NULL, &err), HVD_E_INVAL);
    CHECK(t, !gpu_use_streamed(&use, &set));
    CHECK_CODE(t, hvd_set_stream(program.stream), HVD_E_INVAL);
    device->context = primary;
    CHECK_OK(t, hvd_set_stream(program.stream));
out:
    if (device)
        device->context = primary;
    gpu_use_release(&use);
    close_program(&program);
}

static int body_waits(struct program *program)
{
    struct test *t = program->t;
    int rc;

    fake_gpu_run(NULL, count_up, program->see);
    rc = hvd_allreduce(program->in, program->out, COUNT, HVD_FLOAT32, HVD_SUM);
    CHECK_OK(t, rc);
    CHECK(t, all_are(program->got, 1)); /* the call did not wait */
out:
    return rc;
}

RUN_CASE(without_a_stream_the_result_is_there, TEST_NO_TORTURE, body_waits, 0)

/* The call waits in the stream for earlier work (gate, count_up); later work sees its result. */
static int body_streamed(struct program *program)
{
    struct gate gate = { .open = false };
    struct test *t = program->t;
    int rc = hvd_set_stream(program->stream);

    CHECK_OK(t, rc);
    fake_gpu_run(program->stream, wait_at, &gate);
    fake_gpu_run(program->stream, count_up, program->see);
    rc = hvd_allreduce(program->in, program->out, COUNT, HVD_FLOAT32, HVD_SUM);
    CHECK_OK(t, rc);
    fake_gpu_run(program->stream, count_up, program->got);
    CHECK(t, !all_are(program->got, 2));
    atomic_store(&gate.open, true);
    CHECK_OK(t, program->device->cuda->stream_sync(program->stream));
    CHECK(t, all_are(program->got, 2));
out:
    atomic_store(&gate.open, true);
    (void)program->device->cuda->stream_sync(program->stream);
    return rc;
}

RUN_CASE(in_a_stream_a_call_is_only_queued, TEST_NO_TORTURE, body_streamed, 0)

/* A request waits for no work that the program queues after hvd_start. */
static int body_request(struct program *program)
{
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .type = HVD_FLOAT32,
                            .in = program->in,
                            .out = program->out,
                            .count = COUNT };
    struct gate gate = { .open = false };
    struct test *t = program->t;
    hvd_request *request = NULL;
    int rc = hvd_set_stream(program->stream);

    CHECK_OK(t, rc);
    fake_gpu_run(program->stream, count_up, program->see);
    CHECK_OK(t, hvd_start(&call, &request));
    fake_gpu_run(program->stream, wait_at, &gate);
    rc = hvd_wait(request);
    CHECK_OK(t, rc);
    fake_gpu_run(program->stream, count_up, program->got);
    CHECK_OK(t, hvd_set_stream(HVD_NO_STREAM)); /* this call waits for the request alone */
    CHECK_OK(t, hvd_allreduce(program->in, program->in, COUNT, HVD_FLOAT32, HVD_SUM));
    CHECK(t, all_are(program->got, 1));
    atomic_store(&gate.open, true);
    CHECK_OK(t, program->device->cuda->stream_sync(program->stream));
    CHECK(t, all_are(program->got, 2));
out:
    atomic_store(&gate.open, true);
    (void)program->device->cuda->stream_sync(program->stream);
    return rc;
}

RUN_CASE(a_request_goes_beside_the_programs_stream, TEST_NO_TORTURE, body_request, 0)

/* Several requests, and a call that waits behind them, without a stream. */
static int body_requests(struct program *program)
{
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .type = HVD_FLOAT32,
                            .prescale = 2,
                            .in = program->out,
                            .out = program->out,
                            .count = COUNT };
    struct test *t = program->t;
    hvd_request *requests[3] = { NULL };
    int rc = 0;

    memcpy(program->got, program->plain, BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, hvd_start(&call, &requests[i]));
    rc = hvd_run(&call);
    CHECK_OK(t, rc);
    CHECK(t, program->got[COUNT - 1] > 15.9F * (COUNT - 1) &&
                 program->got[COUNT - 1] < 16.1F * (COUNT - 1));
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, hvd_wait(requests[i]));
out:
    return rc;
}

TEST_FLAGS(requests_are_done_one_after_the_other, TEST_NO_TORTURE)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, run(&program, body_requests));
    close_program(&program);
    CHECK_INT(t, fake_gpu_live("memory"), ==, 0);
    CHECK_INT(t, fake_gpu_live("streams"), ==, 0);
    CHECK_INT(t, fake_gpu_live("events"), ==, 0);
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 0);
out:
    close_program(&program);
}

/* train returns while its calls are queued: they end before the library touches the memory. */
static int body_leaves_it(struct program *program)
{
    struct test *t = program->t;
    int rc = hvd_set_stream(program->stream);

    CHECK_OK(t, rc);
    fake_gpu_faults("copy:slow=100");
    rc = hvd_allreduce(program->in, program->out, COUNT, HVD_FLOAT32, HVD_SUM);
    CHECK_OK(t, rc);
out:
    return rc;
}

TEST_FLAGS(train_leaves_no_write_behind, TEST_NO_TORTURE)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, run(&program, body_leaves_it));
    CHECK(t, all_are(program.got, 0));
out:
    fake_gpu_faults(NULL);
    close_program(&program);
}

/* ---- a state that is saved ------------------------------------------------------------------- */

/* A save comes after the work that is in the program's stream; after a load the memory has the
 * bytes. */
static int body_saves(struct program *program)
{
    struct test *t = program->t;
    const char *dir = test_dir(t);
    int rc = hvd_set_stream(program->stream);

    CHECK_OK(t, rc);
    fake_gpu_run(program->stream, count_up, program->see);
    CHECK_OK(t, rc = hvd_state_save(program->state, dir));
    fake_gpu_run(program->stream, count_up, program->see);
    count_up(program->plain);
    CHECK_OK(t, rc = hvd_state_load(program->state, dir));
    CHECK(t, all_are(program->see, 1));
    CHECK(t, all_are(program->plain, 0));
    fake_gpu_faults("copy:fail");
    CHECK_CODE(t, hvd_state_save(program->state, dir), HVD_E_IO);
    CHECK_CODE(t, hvd_state_load(program->state, dir), HVD_E_IO);
    fake_gpu_faults(NULL);
    CHECK_OK(t, rc = hvd_state_load(program->state, dir));
    CHECK(t, all_are(program->see, 1));
out:
    fake_gpu_faults(NULL);
    return rc;
}

TEST_FLAGS(a_state_on_a_gpu_is_saved, TEST_NO_TORTURE)
{
    struct program program;

    CHECK_OK(t, open_program(&program, t));
    CHECK_OK(t, hvd_state_add_array(program.state, "numbers", program.in, COUNT, HVD_FLOAT32));
    CHECK_OK(t, hvd_state_add_array(program.state, "plain", program.plain, COUNT, HVD_FLOAT32));
    CHECK_OK(t, body_saves(&program)); /* before hvd_elastic_run */
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 0);
    for (size_t i = 0; i < COUNT; i++)
        program.see[i] = program.plain[i] = (float)i;
    CHECK_OK(t, run(&program, body_saves));
    close_program(&program);
    CHECK_INT(t, fake_gpu_live("streams"), ==, 0);
    CHECK_INT(t, fake_gpu_live("events"), ==, 0);
out:
    close_program(&program);
}
