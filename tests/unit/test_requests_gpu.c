/* A driver of the GPU that does not return: whoever calls it waits, and nobody else. */
#include "gpu/device.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_coll.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/test.h"
#include "worker/rounds_inside.h"

#include <sched.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define SELF                 7
#define COUNT                8
#define PATIENCE_US          (20 * INT64_C(1000000))

static const struct msg_member self = { .incarnation = SELF, .host = "a" };
static const struct msg_member_list members = { &self, 1 };

static struct rounds *rounds;
static struct gpu_use gpu;
static const struct gpu_device *device;
static struct CUstream_st *stream;
static cuda_address memory;
static struct hvd_err err;

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    (void)arg;
    (void)round;
    (void)outcome;
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

MUST_CHECK static int begin(void)
{
    int rc;

    fake_coll_reset();
    gpu_use_init(&gpu);
    rounds = NULL;
    stream = NULL;
    memory = 0;
    rc = find_device();
    if (!rc)
        rc = rounds_create(NULL, on_prepared, NULL, &rounds, &err);
    if (rc)
        return rc;
    rounds_use_gpu(rounds, &gpu);
    rc = gpu_use_stream(&gpu, stream, &err);
    if (!rc)
        rc = rounds_enter(rounds, SELF, 1, &members, false, &err);
    if (!rc)
        rounds_open(rounds, true);
    return rc;
}

static void end(void)
{
    fake_gpu_faults(NULL);
    fake_coll_go();
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

static hvd_call call_of(size_t count)
{
    hvd_call call = { .kind = HVD_ALLREDUCE, .count = count, .type = HVD_UINT8 };
    void *at;

    memcpy(&at, &memory, sizeof(at));
    call.in = call.out = at;
    return call;
}

/* ---- what another thread does ---- */

struct deed {
    pthread_t thread;
    void (*play)(struct deed *deed);
    hvd_request *request;
    struct hvd_err err;
    int rc;
    atomic_bool done;
};

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
    deed->play = play;
    atomic_init(&deed->done, false);
    return thread_start(&deed->thread, 0, do_it, deed);
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

/* While this is played the driver does not return, and the round is cancelled by another thread. */
static void check_cancel(struct test *t, struct deed *deed, void (*play)(struct deed *deed))
{
    struct deed cancel = { .request = NULL };
    bool began = false, cancels = false;

    fake_gpu_faults("device:hang");
    began = go(deed, play) == 0;
    CHECK(t, began && stays());
    cancels = go(&cancel, play_cancel) == 0;
    CHECK(t, cancels && is_done(&cancel));
    CHECK(t, !atomic_load(&deed->done));
out:
    fake_gpu_faults(NULL);
    fake_coll_go();
    if (began)
        pthread_join(deed->thread, NULL);
    if (cancels)
        pthread_join(cancel.thread, NULL);
}

static void in_a_start(struct test *t)
{
    struct deed deed = { .request = NULL };

    CHECK_OK(t, begin());
    check_cancel(t, &deed, play_start);
    CHECK_OK(t, deed.rc);
    CHECK_CODE(t, requests_wait(rounds, deed.request, &err), HVD_E_REVOKED);
out:
    end();
}

/* One of the host's memory is in progress, as long as the round is. */
MUST_CHECK static int start_first(hvd_request **ret_request)
{
    static uint8_t number;
    const hvd_call call = {
        .kind = HVD_ALLREDUCE, .in = &number, .out = &number, .count = 1, .type = HVD_UINT8
    };

    fake_coll_hold(1);
    return requests_start(rounds, &call, ret_request, &err);
}

static void in_a_start_behind_another(struct test *t)
{
    struct deed deed = { .request = NULL };
    hvd_request *first = NULL;

    CHECK_OK(t, begin());
    CHECK_OK(t, start_first(&first));
    check_cancel(t, &deed, play_start);
    CHECK_CODE(t, requests_wait(rounds, first, &err), HVD_E_REVOKED);
    if (!deed.rc) /* it was faster than the end of the first */
        deed.rc = requests_wait(rounds, deed.request, &err);
    CHECK_CODE(t, deed.rc, HVD_E_REVOKED);
    CHECK_OK(t, rounds_enter(rounds, SELF, 2, &members, false, &err)); /* nobody has the turn */
out:
    end();
}

static void in_a_call_behind_a_request(struct test *t)
{
    struct deed deed = { .request = NULL };
    hvd_request *first = NULL;

    CHECK_OK(t, begin());
    CHECK_OK(t, start_first(&first));
    check_cancel(t, &deed, play_run);
    CHECK_CODE(t, requests_wait(rounds, first, &err), HVD_E_REVOKED);
    CHECK_CODE(t, deed.rc, HVD_E_REVOKED);
    CHECK_OK(t, rounds_enter(rounds, SELF, 2, &members, false, &err));
out:
    end();
}

static void in_a_wait(struct test *t)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;
    struct deed deed = { .request = NULL };
    int done = 0;

    CHECK_OK(t, begin());
    play_start(&deed);
    CHECK_OK(t, deed.rc);
    while (!done && clock_now_us() < until_us)
        CHECK_OK(t, requests_test(rounds, deed.request, &done, &err));
    CHECK(t, done);
    check_cancel(t, &deed, play_wait);
    CHECK_OK(t, deed.rc);
out:
    end();
}

TESTS(NO_TORTURE(in_a_start), NO_TORTURE(in_a_start_behind_another),
      NO_TORTURE(in_a_call_behind_a_request), NO_TORTURE(in_a_wait))
