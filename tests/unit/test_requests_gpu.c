/* A GPU driver whose call does not return: only the thread that made the call waits. A deed is the
 * call of a thread. */
#include "gpu/device.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_coll.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"
#include "worker/rounds_internal.h"

#include <sched.h>
#include <string.h>

#define SELF        7
#define COUNT       8
#define PATIENCE_US (100 * INT64_C(1000000))

static const struct msg_member self = { .incarnation = SELF, .host = "a" };
static const struct msg_member_list members = { &self, 1 };

static struct rounds *rounds;
static struct gpu_use gpu;
static const struct gpu_device *device;
static struct CUstream_st *stream;
static cuda_address memory;
static struct hvd_err err;

/* Not in the frame of a case, because the threads may run on after a CHECK that has failed. */
static struct deed {
    pthread_t thread;
    bool runs; /* the test has not yet waited for the thread */
    void (*play)(struct deed *deed);
    hvd_request *request;
    struct hvd_err err;
    int rc;
    atomic_bool done;
} caller, canceller;

static void deed_join(struct deed *deed)
{
    if (deed->runs)
        pthread_join(deed->thread, NULL);
    deed->runs = false;
}

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    (void)arg;
    (void)round;
    (void)outcome;
}

MUST_CHECK static int enter(uint64_t round, const struct msg_member_list *list)
{
    const struct rounds_order order = { .incarnation = SELF, .round = round, .members = list };

    return rounds_enter(rounds, &order, false, &err);
}

MUST_CHECK static int find_device(void)
{
    int rc;

    fake_gpu_use(1);
    fake_gpu_load();
    rc = gpu_device_get(0, &device, &err);
    if (!rc)
        rc = gpu_enter(device, &err);
    if (rc)
        return rc;
    if (device->cuda->stream_create(&stream, CUDA_STREAM_NON_BLOCKING, 0) ||
        device->cuda->memory_alloc(&memory, COUNT))
        rc = HVD_E_IO;
    gpu_leave(device);
    return rc;
}

static void begin(struct test *t)
{
    fake_coll_reset();
    gpu_use_init(&gpu);
    caller = canceller = (struct deed){ .request = NULL };
    rounds = NULL;
    stream = NULL;
    memory = 0;
    CHECK_OK(t, find_device());
    CHECK_OK(t, rounds_create(NULL, on_prepared, NULL, &rounds, &err));
    rounds_use(rounds, &gpu, NULL);
    CHECK_OK(t, gpu_use_stream(&gpu, stream, &err));
    CHECK_OK(t, enter(1, &members));
    rounds_open(rounds, true);
}

static void end(struct test *t)
{
    (void)t;
    fake_gpu_faults(NULL);
    fake_coll_go();
    deed_join(&caller);
    deed_join(&canceller);
    rounds_free(rounds);
    if (device && !gpu_enter(device, NULL)) {
        if (stream)
            (void)device->cuda->stream_destroy(stream);
        if (memory)
            (void)device->cuda->memory_free(memory);
        gpu_leave(device);
    }
    gpu_use_release(&gpu);
}
FIXTURE(begin, end)

static hvd_call call_of(size_t count)
{
    hvd_call call = { .kind = HVD_ALLREDUCE, .count = count, .type = HVD_UINT8 };
    void *at;

    memcpy(&at, &memory, sizeof(at));
    call.in = call.out = at;
    return call;
}

/* ---- calls of another thread ---- */

static void play_start(struct deed *deed)
{
    const hvd_call call = call_of(COUNT);

    deed->rc = requests_start(rounds, &call, &deed->request, &deed->err);
}

static void play_run(struct deed *deed)
{
    const hvd_call call = call_of(COUNT);

    deed->rc = requests_run(rounds, &call, &deed->err);
}

static void play_wait(struct deed *deed)
{
    deed->rc = requests_wait(rounds, deed->request, &deed->err);
}

static void play_cancel(struct deed *deed)
{
    rounds_cancel(rounds, 1);
    deed->rc = 0;
}

static void *do_it(void *arg)
{
    struct deed *deed = arg;

    deed->play(deed);
    atomic_store(&deed->done, true);
    return NULL;
}

MUST_CHECK static int go(struct deed *deed, void (*play)(struct deed *deed))
{
    int rc;

    deed->play = play;
    atomic_init(&deed->done, false);
    rc = thread_start(&deed->thread, 0, do_it, deed);
    deed->runs = !rc;
    return rc;
}

static bool is_done(const struct deed *deed)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;

    while (!atomic_load(&deed->done) && clock_now_us() < until_us)
        sched_yield();
    return atomic_load(&deed->done);
}

static bool stays(void)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;

    while (!fake_gpu_live("staying") && clock_now_us() < until_us)
        sched_yield();
    return fake_gpu_live("staying") != 0;
}

/* ---- cases ---- */

/* While `play` runs the driver does not return, and another thread cancels the round. */
static void check_cancel(struct test *t, void (*play)(struct deed *deed))
{
    fake_gpu_faults("device:hang");
    CHECK_OK(t, go(&caller, play));
    CHECK(t, stays());
    CHECK_OK(t, go(&canceller, play_cancel));
    CHECK(t, is_done(&canceller));
    CHECK(t, !atomic_load(&caller.done));
    fake_gpu_faults(NULL);
    fake_coll_go();
    deed_join(&caller);
    deed_join(&canceller);
}

TEST_FLAGS(a_cancel_ends_a_start, TEST_NO_TORTURE)
{
    check_cancel(t, play_start);
    CHECK_OK(t, caller.rc);
    CHECK_CODE(t, requests_wait(rounds, caller.request, &err), HVD_E_REVOKED);
}

/* Starts a request on host memory, which is in progress as long as the round. */
MUST_CHECK static int start_first(hvd_request **ret_request)
{
    static uint8_t number;
    const hvd_call call = {
        .kind = HVD_ALLREDUCE, .in = &number, .out = &number, .count = 1, .type = HVD_UINT8
    };

    fake_coll_hold(1);
    return requests_start(rounds, &call, ret_request, &err);
}

TEST_FLAGS(a_cancel_ends_a_start_behind_another, TEST_NO_TORTURE)
{
    hvd_request *first = NULL;

    CHECK_OK(t, start_first(&first));
    check_cancel(t, play_start);
    CHECK_CODE(t, requests_wait(rounds, first, &err), HVD_E_REVOKED);
    if (!caller.rc) /* the start was faster than the end of the first request */
        caller.rc = requests_wait(rounds, caller.request, &err);
    CHECK_CODE(t, caller.rc, HVD_E_REVOKED);
    CHECK_OK(t, enter(2, &members)); /* no thread has the ticket */
}

TEST_FLAGS(a_cancel_ends_a_call_behind_a_request, TEST_NO_TORTURE)
{
    hvd_request *first = NULL;

    CHECK_OK(t, start_first(&first));
    check_cancel(t, play_run);
    CHECK_CODE(t, requests_wait(rounds, first, &err), HVD_E_REVOKED);
    CHECK_CODE(t, caller.rc, HVD_E_REVOKED);
    CHECK_OK(t, enter(2, &members));
}

TEST_FLAGS(a_cancel_ends_a_wait, TEST_NO_TORTURE)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;
    int done = 0;

    play_start(&caller);
    CHECK_OK(t, caller.rc);
    while (!done && clock_now_us() < until_us)
        CHECK_OK(t, requests_test(rounds, caller.request, &done, &err));
    CHECK(t, done);
    check_cancel(t, play_wait);
    CHECK_OK(t, caller.rc);
}

/* ---- fusion ---- */

/* Each request keeps its place in the streams, also where the program changes its stream between
 * two of them; and memory of a GPU and of the host are not fused. */
TEST(requests_on_a_gpu_are_fused)
{
    static const struct msg_member both[] = {
        {.incarnation = SELF,      .host = "a"},
        { .incarnation = SELF + 1, .host = "a"}
    };
    static const struct msg_member_list two = { both, 2 };
    static const size_t made_of[] = { 0, 4, 2, 0 };
    static uint8_t number;
    const hvd_call on_host = {
        .kind = HVD_ALLREDUCE, .in = &number, .out = &number, .count = 1, .type = HVD_UINT8
    };
    hvd_request *requests[8] = { NULL };
    struct fake_coll_seen seen;

    rounds_use_fusion(rounds, 1 << 20);
    CHECK_OK(t, enter(2, &two));
    rounds_open(rounds, true);
    for (size_t i = 0; i < 7; i++) {
        hvd_call call = call_of(1);

        call.in = call.out = (uint8_t *)call.out + i;
        CHECK_OK(t, gpu_use_stream(&gpu, i == 3 ? HVD_NO_STREAM : stream, &err));
        CHECK_OK(t, requests_start(rounds, &call, &requests[i], &err));
    }
    CHECK_OK(t, requests_start(rounds, &on_host, &requests[7], &err));
    for (size_t i = 8; i-- > 0;)
        CHECK_OK(t, requests_wait(rounds, requests[i], &err));
    seen = fake_coll_seen();
    CHECK_INT(t, seen.ran_count, ==, ARRAY_SIZE(made_of));
    for (size_t i = 0; i < ARRAY_SIZE(made_of); i++)
        CHECK_INT(t, seen.fused[i], ==, made_of[i]);
}

/* The GPU fails before the operation: all requests of the batch end, and so does the round. */
TEST_FLAGS(a_gpu_that_fails_ends_a_batch, TEST_NO_TORTURE)
{
    static const struct msg_member both[] = {
        {.incarnation = SELF,      .host = "a"},
        { .incarnation = SELF + 1, .host = "a"}
    };
    static const struct msg_member_list two = { both, 2 };
    hvd_request *requests[4] = { NULL };

    rounds_use_fusion(rounds, 1 << 20);
    CHECK_OK(t, enter(2, &two));
    rounds_open(rounds, true);
    for (size_t i = 0; i < 4; i++) {
        hvd_call call = call_of(1);

        call.in = call.out = (uint8_t *)call.out + i;
        CHECK_OK(t, requests_start(rounds, &call, &requests[i], &err));
    }
    CHECK_OK(t, requests_wait(rounds, requests[0], &err));
    fake_gpu_faults("device:lost");
    for (size_t i = 1; i < 4; i++)
        CHECK_CODE(t, requests_wait(rounds, requests[i], &err), HVD_E_IO);
    CHECK_INT(t, rounds_failed(rounds), ==, HVD_E_IO);
}
