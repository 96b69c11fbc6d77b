/* The stand-in of the CUDA driver is as strict as tests/standin/standin.h promises. A gate is a
 * kernel that does not end before the test opens the gate; the bench holds a device and what a test
 * makes on it. */
#include "gpu/device.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES       300000U
#define PATIENCE_US 60000000
#define NO_WAIT_US  20000

/* ---- one device, and the gate ---- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool reached, open;
};

static struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void gate_kernel(void *arg)
{
    struct gate *here = arg;
    int64_t until_us = clock_now_us() + PATIENCE_US;

    pthread_mutex_lock(&here->lock);
    here->reached = true;
    pthread_cond_broadcast(&here->news);
    while (!here->open && clock_now_us() < until_us)
        thread_cond_wait(&here->news, &here->lock, until_us);
    pthread_mutex_unlock(&here->lock);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.news);
    pthread_mutex_unlock(&gate.lock);
}

struct bench {
    const struct gpu_device *device;
    const struct cuda *cuda;
    cuda_address memory;
    struct CUstream_st *stream, *other;
    struct CUevent_st *event;
    uint8_t *seen; /* the memory's bytes in the host */
};

/* Makes two devices and enters the first; on that device: memory, two streams and an event. 0, or a
 * code. */
static int bench_make(struct bench *bench)
{
    *bench = (struct bench){ .device = NULL };
    if (thread_cond_init(&gate.news))
        return HVD_E_NOMEM;
    fake_gpu_use(2);
    if (gpu_device_get(0, &bench->device, NULL) || gpu_enter(bench->device, NULL))
        return HVD_E_IO;
    bench->cuda = bench->device->cuda;
    if (bench->cuda->memory_alloc(&bench->memory, BYTES) ||
        bench->cuda->stream_create(&bench->stream, CUDA_STREAM_NON_BLOCKING, 0) ||
        bench->cuda->stream_create(&bench->other, CUDA_STREAM_NON_BLOCKING, 0) ||
        bench->cuda->event_create(&bench->event, CUDA_EVENT_UNTIMED))
        return HVD_E_IO;
    bench->seen = fake_gpu_memory((void *)(uintptr_t)bench->memory);
    return 0;
}

/* Frees all objects; after that no object may be left on the device. */
static void bench_end(struct test *t, struct bench *bench)
{
    static const char *const whats[] = { "memory", "streams", "events", "pinned" };

    gate_open();
    if (!bench->device)
        return;
    fake_gpu_faults(NULL);
    if (bench->event)
        (void)bench->cuda->event_destroy(bench->event);
    if (bench->stream)
        (void)bench->cuda->stream_destroy(bench->stream);
    if (bench->other)
        (void)bench->cuda->stream_destroy(bench->other);
    (void)bench->cuda->memory_free(bench->memory);
    gpu_leave(bench->device);
    for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
        if (!t->failed && fake_gpu_live(whats[i]))
            test_fail(t, __FILE__, __LINE__, "%zu %s are left", fake_gpu_live(whats[i]), whats[i]);
}

static bool all_are(const uint8_t *bytes, size_t count, uint8_t value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* A thread that makes a call which must not return yet. */
struct waiter {
    pthread_t thread;
    struct bench *bench;
    int (*call)(struct bench *bench);
    atomic_bool ended;
    int code;
};

static void *wait_in_call(void *arg)
{
    struct waiter *waiter = arg;

    if (gpu_enter(waiter->bench->device, NULL))
        return NULL;
    waiter->code = waiter->call(waiter->bench);
    atomic_store(&waiter->ended, true);
    gpu_leave(waiter->bench->device);
    return NULL;
}

/* true: the call waits while the gate is closed, and returns once the gate is open. */
static bool waits_for_gate(struct bench *bench, int (*call)(struct bench *bench))
{
    struct waiter waiter = { .bench = bench, .call = call };
    bool early;

    if (thread_start(&waiter.thread, 0, wait_in_call, &waiter))
        return false;
    pthread_mutex_lock(&gate.lock);
    while (!gate.reached)
        pthread_cond_wait(&gate.news, &gate.lock);
    (void)thread_cond_wait(&gate.news, &gate.lock, clock_now_us() + NO_WAIT_US);
    pthread_mutex_unlock(&gate.lock);
    early = atomic_load(&waiter.ended);
    gate_open();
    pthread_join(waiter.thread, NULL);
    return !early && waiter.code == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct bench own;
static struct waiter syncing; /* its thread may wait on after a CHECK that has failed */
static bool syncs;

static void end_case(struct test *t)
{
    if (syncs) {
        fake_gpu_faults("device:lost");
        pthread_join(syncing.thread, NULL);
    }
    syncs = false;
    bench_end(t, &own);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(bytes_go_and_come, TEST_NO_TORTURE)
{
    static uint8_t out[BYTES];
    static uint8_t back[BYTES];
    const struct cuda *cuda;

    CHECK_OK(t, bench_make(&own));
    cuda = own.cuda;
    for (size_t i = 0; i < BYTES; i++)
        out[i] = (uint8_t)(i * 7);
    CHECK_OK(t, cuda->to_device(own.memory, out, BYTES, own.stream));
    CHECK_OK(t, cuda->to_host(back, own.memory, BYTES, own.stream));
    /* neither buffer is pinned, so both copies have waited */
    CHECK(t, memcmp(out, back, BYTES) == 0);
    CHECK_OK(t, cuda->fill(own.memory, 3, 1000, own.stream));
    CHECK_OK(t, cuda->on_device(own.memory + 5000, own.memory, 1000, own.stream));
    CHECK_OK(t, cuda->stream_sync(own.stream));
    CHECK(t, all_are(own.seen, 1000, 3) && all_are(own.seen + 5000, 1000, 3));
    CHECK(t, memcmp(own.seen + 6000, out + 6000, BYTES - 6000) == 0);
}

/* Allocations fail when the device has too few bytes left, and succeed again after a free. New
 * memory is not zero. */
TEST_FLAGS(memory_is_counted, TEST_NO_TORTURE)
{
    cuda_address all = 0;
    cuda_address more = 0;
    size_t total = 0;
    size_t left = 0;

    CHECK_OK(t, bench_make(&own));
    CHECK_OK(t, own.cuda->memory_info(&left, &total));
    CHECK_INT(t, total, ==, 256U << 20);
    CHECK_INT(t, left, <, total);
    CHECK_INT(t, own.cuda->memory_alloc(&more, total), ==, CUDA_OUT_OF_MEMORY);
    CHECK_OK(t, own.cuda->memory_alloc(&all, left));
    CHECK_INT(t, own.cuda->memory_alloc(&more, 1), ==, CUDA_OUT_OF_MEMORY);
    CHECK_INT(t, fake_gpu_live("memory"), ==, 2);
    CHECK_OK(t, own.cuda->memory_free(all));
    all = 0;
    CHECK_OK(t, own.cuda->memory_alloc(&more, 1));
    CHECK(t, all_are(fake_gpu_memory((void *)(uintptr_t)more), 1, 0xdb)); /* not 0 */
    CHECK(t, !fake_gpu_memory(&own));
    CHECK_OK(t, own.cuda->memory_free(more));
    if (all)
        (void)own.cuda->memory_free(all);
}

TEST_FLAGS(the_host_cannot_touch_device_memory, TEST_NO_TORTURE)
{
    pid_t child;
    int status = 0;

    CHECK_OK(t, bench_make(&own));
    child = fork();
    CHECK(t, child >= 0);
    if (child == 0) {
        volatile uint8_t *at = (uint8_t *)(uintptr_t)own.memory;

        signal(SIGSEGV, SIG_DFL);
        _exit(at[0]);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK(t, WIFSIGNALED(status));
    CHECK_INT(t, WTERMSIG(status), ==, SIGSEGV);
}

/* Memory is pinned once; each kind is freed by its own call; with a fault pinning fails. */
TEST_FLAGS(pinned_memory_is_known, TEST_NO_TORTURE)
{
    const struct cuda *cuda;
    void *host = MAP_FAILED;
    void *given = NULL;

    CHECK_OK(t, bench_make(&own));
    cuda = own.cuda;
    host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(t, host != MAP_FAILED);
    CHECK_OK(t, cuda->pin(host, BYTES, CUDA_PIN_PORTABLE));
    CHECK_INT(t, cuda->pin((char *)host + 10, 10, 0), ==, CUDA_ALREADY_PINNED);
    CHECK_OK(t, cuda->host_alloc(&given, 100, 0));
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 2);
    CHECK_INT(t, cuda->unpin(given), !=, 0);
    CHECK_OK(t, cuda->host_free(given));
    CHECK_OK(t, cuda->unpin(host));
    CHECK_INT(t, cuda->unpin(host), !=, 0);
    fake_gpu_faults("pin:fail");
    CHECK_INT(t, cuda->pin(host, BYTES, 0), ==, CUDA_OUT_OF_MEMORY);
    CHECK_INT(t, cuda->host_alloc(&given, 100, 0), ==, CUDA_OUT_OF_MEMORY);
    if (host != MAP_FAILED)
        munmap(host, BYTES);
}

/* ---- streams --------------------------------------------------------------------------------- */

TEST_FLAGS(work_is_not_done_at_once, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    fake_gpu_run(own.stream, gate_kernel, &gate);
    CHECK_OK(t, own.cuda->fill(own.memory, 9, BYTES, own.stream));
    CHECK_OK(t, own.cuda->event_record(own.event, own.stream));
    CHECK_INT(t, own.cuda->event_query(own.event), ==, CUDA_NOT_READY);
    CHECK_INT(t, own.cuda->stream_query(own.stream), ==, CUDA_NOT_READY);
    CHECK_INT(t, own.cuda->stream_query(own.other), ==, CUDA_OK);
    CHECK(t, own.seen[0] == 0xdb);
    gate_open();
    CHECK_OK(t, own.cuda->event_sync(own.event));
    CHECK(t, all_are(own.seen, BYTES, 9));
    CHECK_OK(t, own.cuda->event_query(own.event));
    CHECK_OK(t, own.cuda->stream_sync(own.stream));
    CHECK_OK(t, own.cuda->stream_query(own.stream));
}

TEST_FLAGS(streams_wait_for_events, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    CHECK_OK(t, own.cuda->stream_wait(own.other, own.event, 0)); /* the event was never recorded */
    CHECK_OK(t, own.cuda->stream_sync(own.other));
    fake_gpu_run(own.stream, gate_kernel, &gate);
    CHECK_OK(t, own.cuda->fill(own.memory, 1, BYTES, own.stream));
    CHECK_OK(t, own.cuda->event_record(own.event, own.stream));
    CHECK_OK(t, own.cuda->stream_wait(own.other, own.event, 0));
    CHECK_OK(t, own.cuda->fill(own.memory, 2, 10, own.other));
    /* the event is recorded anew and destroyed: the waits are still for its earlier state */
    CHECK_OK(t, own.cuda->event_record(own.event, own.other));
    CHECK_INT(t, own.cuda->stream_query(own.other), ==, CUDA_NOT_READY);
    CHECK_OK(t, own.cuda->event_destroy(own.event));
    own.event = NULL;
    gate_open();
    CHECK_OK(t, own.cuda->stream_sync(own.other));
    CHECK(t, all_are(own.seen, 10, 2) && all_are(own.seen + 10, BYTES - 10, 1));
}

/* Fills in the NULL stream come after earlier work of a blocking stream and before its later work;
 * a stream that does not block is not held up. */
TEST_FLAGS(null_stream_waits_for_blocking_streams, TEST_NO_TORTURE)
{
    struct CUstream_st *blocking = NULL;

    CHECK_OK(t, bench_make(&own));
    CHECK_OK(t, own.cuda->stream_create(&blocking, 0, 0));
    fake_gpu_run(blocking, gate_kernel, &gate);
    CHECK_OK(t, own.cuda->fill(own.memory, 1, BYTES, blocking));
    CHECK_OK(t, own.cuda->fill(own.memory, 2, 20, NULL));
    CHECK_OK(t, own.cuda->fill(own.memory, 3, 10, blocking));
    CHECK_INT(t, own.cuda->stream_query(NULL), ==, CUDA_NOT_READY);
    /* a stream that does not block goes on meanwhile */
    CHECK_OK(t, own.cuda->fill(own.memory, 4, 1, own.other));
    CHECK_OK(t, own.cuda->stream_sync(own.other));
    CHECK_INT(t, own.seen[0], ==, 4);
    gate_open();
    CHECK_OK(t, own.cuda->stream_sync(blocking));
    CHECK_OK(t, own.cuda->stream_sync(NULL));
    CHECK(t, all_are(own.seen, 10, 3) && all_are(own.seen + 10, 10, 2) &&
                 all_are(own.seen + 20, BYTES - 20, 1));
    if (blocking)
        (void)own.cuda->stream_destroy(blocking);
}

static int sync_null_stream(struct bench *bench)
{
    return bench->cuda->stream_sync(NULL);
}

TEST_FLAGS(waiting_for_the_null_stream, TEST_NO_TORTURE)
{
    struct CUstream_st *blocking = NULL;

    CHECK_OK(t, bench_make(&own));
    CHECK_OK(t, own.cuda->stream_create(&blocking, 0, 0));
    fake_gpu_run(blocking, gate_kernel, &gate);
    CHECK(t, waits_for_gate(&own, sync_null_stream));
    if (blocking)
        (void)own.cuda->stream_destroy(blocking);
}

static int copy_unpinned(struct bench *bench)
{
    char byte;

    return bench->cuda->to_host(&byte, bench->memory, 1, bench->stream);
}

TEST_FLAGS(unpinned_copies_wait, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    fake_gpu_run(own.stream, gate_kernel, &gate);
    CHECK(t, waits_for_gate(&own, copy_unpinned));
}

TEST_FLAGS(pinned_copies_do_not, TEST_NO_TORTURE)
{
    void *host = NULL;

    CHECK_OK(t, bench_make(&own));
    CHECK_OK(t, own.cuda->host_alloc(&host, BYTES, 0));
    memset(host, 0, BYTES);
    fake_gpu_run(own.stream, gate_kernel, &gate);
    CHECK_OK(t, own.cuda->fill(own.memory, 5, BYTES, own.stream));
    CHECK_OK(t, own.cuda->to_host(host, own.memory, BYTES, own.stream));
    CHECK(t, all_are(host, BYTES, 0));
    gate_open();
    CHECK_OK(t, own.cuda->stream_sync(own.stream));
    CHECK(t, all_are(host, BYTES, 5));
    if (host)
        (void)own.cuda->host_free(host);
}

static int free_memory(struct bench *bench)
{
    return bench->cuda->memory_free(bench->memory);
}

TEST_FLAGS(giving_back_waits_for_the_device, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    fake_gpu_run(own.other, gate_kernel, &gate); /* a kernel that does not use the memory */
    CHECK(t, waits_for_gate(&own, free_memory));
    own.memory = 0;
}

TEST_FLAGS(destroyed_streams_end_their_work, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    fake_gpu_run(own.stream, gate_kernel, &gate);
    CHECK_OK(t, own.cuda->fill(own.memory, 6, BYTES, own.stream));
    CHECK_OK(t, own.cuda->event_record(own.event, own.stream));
    CHECK_OK(t, own.cuda->stream_destroy(own.stream));
    own.stream = NULL;
    gate_open();
    CHECK_OK(t, own.cuda->event_sync(own.event));
    CHECK(t, all_are(own.seen, BYTES, 6));
}

TEST_FLAGS(priorities_are_kept, TEST_NO_TORTURE)
{
    struct CUstream_st *high = NULL;
    int least = -100;
    int greatest = 100;

    CHECK_OK(t, bench_make(&own));
    CHECK_OK(t, own.cuda->stream_priorities(&least, &greatest));
    CHECK_INT(t, least, ==, 0);
    CHECK_INT(t, greatest, ==, -5);
    CHECK_OK(t, own.cuda->stream_create(&high, CUDA_STREAM_NON_BLOCKING, -100));
    CHECK_INT(t, fake_gpu_priority(high), ==, -5);
    CHECK_INT(t, fake_gpu_priority(own.stream), ==, 0);
    if (high)
        (void)own.cuda->stream_destroy(high);
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST_FLAGS(calls_fail_as_told, TEST_NO_TORTURE)
{
    struct CUevent_st *event = NULL;
    struct CUstream_st *stream = NULL;
    cuda_address at = 0;

    CHECK_OK(t, bench_make(&own));
    fake_gpu_faults("copy#2:fail event#1:fail");
    fake_gpu_faults("stream:fail alloc:fail");
    CHECK_OK(t, own.cuda->fill(own.memory, 1, 1, own.stream));
    CHECK_INT(t, own.cuda->fill(own.memory, 2, 1, own.stream), !=, 0);
    CHECK_OK(t, own.cuda->fill(own.memory, 3, 1, own.stream));
    CHECK_INT(t, own.cuda->event_create(&event, 0), !=, 0);
    CHECK_INT(t, own.cuda->stream_create(&stream, 0, 0), !=, 0);
    CHECK_INT(t, own.cuda->memory_alloc(&at, 1), ==, CUDA_OUT_OF_MEMORY);
    CHECK_INT(t, own.cuda->memory_alloc(&at, 1), ==, CUDA_OUT_OF_MEMORY);
    fake_gpu_faults(NULL);
    CHECK_OK(t, own.cuda->memory_alloc(&at, 1));
    CHECK_OK(t, own.cuda->memory_free(at));
}

TEST_FLAGS(copies_are_slow_as_told, TEST_NO_TORTURE)
{
    int64_t before_us = clock_now_us();

    CHECK_OK(t, bench_make(&own));
    fake_gpu_faults("copy:slow=30");
    CHECK_OK(t, own.cuda->fill(own.memory, 1, 1, own.stream));
    CHECK_OK(t, own.cuda->stream_sync(own.stream));
    CHECK_INT(t, clock_now_us() - before_us, >=, 30000);
}

static int sync_stream(struct bench *bench)
{
    return bench->cuda->stream_sync(bench->stream) ? 0 : HVD_E_IO;
}

TEST_FLAGS(a_lost_device_answers, TEST_NO_TORTURE)
{
    struct hvd_err err = { .code = 0 };

    CHECK_OK(t, bench_make(&own));
    fake_gpu_faults("copy:hang");
    CHECK_OK(t, own.cuda->fill(own.memory, 1, 1, own.stream));
    syncing = (struct waiter){ .bench = &own, .call = sync_stream };
    CHECK_OK(t, thread_start(&syncing.thread, 0, wait_in_call, &syncing));
    syncs = true;
    CHECK_INT(t, own.cuda->stream_query(own.stream), ==, CUDA_NOT_READY);
    fake_gpu_faults("device:lost");
    pthread_join(syncing.thread, NULL); /* the waiting call has returned */
    syncs = false;
    CHECK_INT(t, own.cuda->stream_query(own.stream), !=, CUDA_OK);
    CHECK_CODE(t, cuda_judge(own.cuda, own.cuda->fill(own.memory, 1, 1, own.stream), "fill", &err),
               HVD_E_IO);
    CHECK_HAS(t, err.text, "fill: CUDA_ERROR_LAUNCH_FAILED");
    CHECK_INT(t, gpu_enter(own.device, NULL), !=, 0);
}

/* The objects exist in the host, and a program that has lost its device destroys them once. */
TEST_FLAGS(objects_of_a_lost_device_are_destroyed, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    fake_gpu_faults("device:lost");
    CHECK_INT(t, own.cuda->event_destroy(own.event), !=, CUDA_OK);
    own.event = NULL;
    CHECK_INT(t, own.cuda->stream_destroy(own.other), !=, CUDA_OK);
    own.other = NULL;
    fake_gpu_faults(NULL);
    CHECK_INT(t, fake_gpu_live("events"), ==, 0);
    CHECK_INT(t, fake_gpu_live("streams"), ==, 1);
}

TEST_FLAGS(the_nth_call_loses_the_device, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_make(&own));
    fake_gpu_faults("device#3:lost");
    CHECK_OK(t, own.cuda->stream_query(own.stream));
    CHECK_OK(t, own.cuda->stream_query(own.stream));
    CHECK_INT(t, own.cuda->stream_query(own.stream), !=, CUDA_OK);
    CHECK_INT(t, own.cuda->stream_query(own.stream), !=, CUDA_OK);
}

TEST_FLAGS(a_copy_can_kill, TEST_NO_TORTURE)
{
    pid_t child = fork();
    int status = 0;

    CHECK(t, child >= 0);
    if (child == 0) {
        setenv("HVD_STANDIN_FAULTS", "copy#2:die", 1);
        if (bench_make(&own) || own.cuda->fill(own.memory, 1, 1, own.stream) ||
            own.cuda->stream_sync(own.stream))
            _exit(1);
        (void)own.cuda->fill(own.memory, 1, 1, own.stream);
        (void)own.cuda->stream_sync(own.stream);
        _exit(0);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK(t, WIFSIGNALED(status));
    CHECK_INT(t, WTERMSIG(status), ==, SIGKILL);
}

/* ---- processes ------------------------------------------------------------------------------- */

TEST_FLAGS(a_forked_child_has_no_driver, TEST_NO_TORTURE)
{
    pid_t child;
    int status = 0;

    CHECK_OK(t, bench_make(&own));
    child = fork();
    CHECK(t, child >= 0);
    if (child == 0)
        _exit(own.cuda->stream_query(own.stream));
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK(t, WIFEXITED(status));
    CHECK_INT(t, WEXITSTATUS(status), ==, 3);
}

TEST_FLAGS(devices_are_of_a_machine, TEST_NO_TORTURE)
{
    const struct gpu_device *first;
    const struct gpu_device *second;

    fake_gpu_use(4);
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    CHECK_OK(t, gpu_device_get(0, &first, NULL));
    CHECK_OK(t, gpu_device_get(1, &second, NULL));
    CHECK_TEXT(t, first->name, "stand-in device 2");
    CHECK_TEXT(t, second->name, "stand-in device 0");
    CHECK(t, memcmp(&first->uuid, &second->uuid, sizeof(first->uuid)) != 0);
    CHECK_CODE(t, gpu_device_get(2, &first, NULL), HVD_E_IO);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- misuse ---------------------------------------------------------------------------------- */

/* Runs `what`, which misuses the driver, in a process that has not used the driver before. */
static void misuse(void (*what)(struct bench *bench))
{
    struct bench bench;

    if (bench_make(&bench) == 0)
        what(&bench);
}

static void copy_from_host(struct bench *bench)
{
    char bytes[2] = { 0 };

    (void)bench->cuda->on_device(bench->memory, (cuda_address)(uintptr_t)bytes, 1, bench->stream);
}

static void copy_to_device_as_host(struct bench *bench)
{
    (void)bench->cuda->to_host((void *)(uintptr_t)(bench->memory + 100), bench->memory, 1,
                               bench->stream);
}

static void use_freed_memory(struct bench *bench)
{
    (void)bench->cuda->memory_free(bench->memory);
    (void)bench->cuda->fill(bench->memory, 1, 1, bench->stream);
}

static void free_twice(struct bench *bench)
{
    (void)bench->cuda->memory_free(bench->memory);
    (void)bench->cuda->memory_free(bench->memory);
}

static void copy_too_much(struct bench *bench)
{
    (void)bench->cuda->fill(bench->memory + 1, 1, BYTES, bench->stream);
}

static void use_destroyed_stream(struct bench *bench)
{
    (void)bench->cuda->stream_destroy(bench->stream);
    (void)bench->cuda->stream_sync(bench->stream);
}

static void use_destroyed_event(struct bench *bench)
{
    (void)bench->cuda->event_destroy(bench->event);
    (void)bench->cuda->event_query(bench->event);
}

static void mix_devices(struct bench *bench)
{
    const struct gpu_device *other;

    if (gpu_device_get(1, &other, NULL) == 0 && gpu_enter(other, NULL) == 0)
        (void)bench->cuda->event_record(bench->event, NULL);
}

static void pop_too_often(struct bench *bench)
{
    gpu_leave(bench->device);
    gpu_leave(bench->device);
}

static void unmap_what_is_pinned(struct bench *bench)
{
    void *at = mmap(NULL, 1U << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)bench->cuda->pin(at, 1U << 20, 0);
    munmap(at, 1U << 20);
    (void)bench->cuda->unpin(at);
}

static void ask_for_unknown_fault(struct bench *bench)
{
    (void)bench;
    fake_gpu_faults("revoke:die");
}

TEST_FLAGS(misuse_is_told, TEST_NO_TORTURE)
{
    CHECK_PANICS(t, "is not device memory", misuse(copy_from_host));
    CHECK_PANICS(t, "is device memory, and the host's is wanted", misuse(copy_to_device_as_host));
    CHECK_PANICS(t, "is not allocated", misuse(use_freed_memory));
    CHECK_PANICS(t, "where nothing is allocated", misuse(free_twice));
    CHECK_PANICS(t, "are more than there are of it", misuse(copy_too_much));
    CHECK_PANICS(t, "is no stream", misuse(use_destroyed_stream));
    CHECK_PANICS(t, "is no event", misuse(use_destroyed_event));
    CHECK_PANICS(t, "a stream of device 1 is used for something of device 0", misuse(mix_devices));
    CHECK_PANICS(t, "where none is pushed", misuse(pop_too_often));
    CHECK_PANICS(t, "was unmapped before it was unpinned", misuse(unmap_what_is_pinned));
    CHECK_PANICS(t, "no fault that is known here: 'revoke:die'", misuse(ask_for_unknown_fault));
}
