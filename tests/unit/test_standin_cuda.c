/* The stand-in of the CUDA driver: that it is as strict as it promises (tests/standin/standin.h).
 */
#include "gpu/device.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/test.h"

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

/* ---- one device, and a kernel that ends when it is told to ------------------------------------
 */

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
    uint8_t *seen; /* the memory, as the stand-in sees it */
};

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

/* Nothing may be left then. */
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

/* What a call does that must not return yet, on a thread of its own. */
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

/* It has not ended while the gate is closed, and ends once it is open. */
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

static void bytes_go_and_come(struct test *t)
{
    static uint8_t out[BYTES];
    static uint8_t back[BYTES];
    struct bench bench;
    const struct cuda *cuda;

    CHECK_OK(t, bench_make(&bench));
    cuda = bench.cuda;
    for (size_t i = 0; i < BYTES; i++)
        out[i] = (uint8_t)(i * 7);
    CHECK_OK(t, cuda->to_device(bench.memory, out, BYTES, bench.stream));
    CHECK_OK(t, cuda->to_host(back, bench.memory, BYTES, bench.stream));
    CHECK(t, memcmp(out, back, BYTES) == 0); /* neither is pinned: they have waited */
    CHECK_OK(t, cuda->fill(bench.memory, 3, 1000, bench.stream));
    CHECK_OK(t, cuda->on_device(bench.memory + 5000, bench.memory, 1000, bench.stream));
    CHECK_OK(t, cuda->stream_sync(bench.stream));
    CHECK(t, all_are(bench.seen, 1000, 3) && all_are(bench.seen + 5000, 1000, 3));
    CHECK(t, memcmp(bench.seen + 6000, out + 6000, BYTES - 6000) == 0);
out:
    bench_end(t, &bench);
}

static void memory_is_counted(struct test *t)
{
    struct bench bench;
    cuda_address all = 0;
    cuda_address more = 0;
    size_t total = 0;
    size_t left = 0;

    CHECK_OK(t, bench_make(&bench));
    CHECK_OK(t, bench.cuda->memory_info(&left, &total));
    CHECK_INT(t, total, ==, 256U << 20);
    CHECK_INT(t, left, <, total);
    CHECK_INT(t, bench.cuda->memory_alloc(&more, total), ==, CUDA_OUT_OF_MEMORY);
    CHECK_OK(t, bench.cuda->memory_alloc(&all, left));
    CHECK_INT(t, bench.cuda->memory_alloc(&more, 1), ==, CUDA_OUT_OF_MEMORY);
    CHECK_INT(t, fake_gpu_live("memory"), ==, 2);
    CHECK_OK(t, bench.cuda->memory_free(all));
    all = 0;
    CHECK_OK(t, bench.cuda->memory_alloc(&more, 1));
    CHECK(t, all_are(fake_gpu_memory((void *)(uintptr_t)more), 1, 0xdb)); /* and not 0 */
    CHECK(t, !fake_gpu_memory(&bench));
    CHECK_OK(t, bench.cuda->memory_free(more));
out:
    if (all)
        (void)bench.cuda->memory_free(all);
    bench_end(t, &bench);
}

static void host_cannot_touch_it(struct test *t)
{
    struct bench bench;
    pid_t child;
    int status = 0;

    CHECK_OK(t, bench_make(&bench));
    child = fork();
    CHECK(t, child >= 0);
    if (child == 0) {
        volatile uint8_t *at = (uint8_t *)(uintptr_t)bench.memory;

        signal(SIGSEGV, SIG_DFL);
        _exit(at[0]);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK(t, WIFSIGNALED(status));
    CHECK_INT(t, WTERMSIG(status), ==, SIGSEGV);
out:
    bench_end(t, &bench);
}

static void pinned_memory_is_known(struct test *t)
{
    struct bench bench;
    const struct cuda *cuda;
    void *host = MAP_FAILED;
    void *given = NULL;

    CHECK_OK(t, bench_make(&bench));
    cuda = bench.cuda;
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
out:
    if (host != MAP_FAILED)
        munmap(host, BYTES);
    bench_end(t, &bench);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void work_is_not_done_at_once(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_run(bench.stream, gate_kernel, &gate);
    CHECK_OK(t, bench.cuda->fill(bench.memory, 9, BYTES, bench.stream));
    CHECK_OK(t, bench.cuda->event_record(bench.event, bench.stream));
    CHECK_INT(t, bench.cuda->event_query(bench.event), ==, CUDA_NOT_READY);
    CHECK_INT(t, bench.cuda->stream_query(bench.stream), ==, CUDA_NOT_READY);
    CHECK_INT(t, bench.cuda->stream_query(bench.other), ==, CUDA_OK);
    CHECK(t, bench.seen[0] == 0xdb);
    gate_open();
    CHECK_OK(t, bench.cuda->event_sync(bench.event));
    CHECK(t, all_are(bench.seen, BYTES, 9));
    CHECK_OK(t, bench.cuda->event_query(bench.event));
    CHECK_OK(t, bench.cuda->stream_sync(bench.stream));
    CHECK_OK(t, bench.cuda->stream_query(bench.stream));
out:
    bench_end(t, &bench);
}

static void streams_wait_for_events(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_make(&bench));
    CHECK_OK(t, bench.cuda->stream_wait(bench.other, bench.event, 0)); /* of nothing */
    CHECK_OK(t, bench.cuda->stream_sync(bench.other));
    fake_gpu_run(bench.stream, gate_kernel, &gate);
    CHECK_OK(t, bench.cuda->fill(bench.memory, 1, BYTES, bench.stream));
    CHECK_OK(t, bench.cuda->event_record(bench.event, bench.stream));
    CHECK_OK(t, bench.cuda->stream_wait(bench.other, bench.event, 0));
    CHECK_OK(t, bench.cuda->fill(bench.memory, 2, 10, bench.other));
    /* recorded anew, and destroyed: they wait for what it was */
    CHECK_OK(t, bench.cuda->event_record(bench.event, bench.other));
    CHECK_INT(t, bench.cuda->stream_query(bench.other), ==, CUDA_NOT_READY);
    CHECK_OK(t, bench.cuda->event_destroy(bench.event));
    bench.event = NULL;
    gate_open();
    CHECK_OK(t, bench.cuda->stream_sync(bench.other));
    CHECK(t, all_are(bench.seen, 10, 2) && all_are(bench.seen + 10, BYTES - 10, 1));
out:
    bench_end(t, &bench);
}

static void null_stream_waits_for_blocking_ones(struct test *t)
{
    struct bench bench;
    struct CUstream_st *blocking = NULL;

    CHECK_OK(t, bench_make(&bench));
    CHECK_OK(t, bench.cuda->stream_create(&blocking, 0, 0));
    fake_gpu_run(blocking, gate_kernel, &gate);
    CHECK_OK(t, bench.cuda->fill(bench.memory, 1, BYTES, blocking));
    CHECK_OK(t, bench.cuda->fill(bench.memory, 2, 20, NULL));
    CHECK_OK(t, bench.cuda->fill(bench.memory, 3, 10, blocking));
    CHECK_INT(t, bench.cuda->stream_query(NULL), ==, CUDA_NOT_READY);
    /* one that does not block goes on meanwhile */
    CHECK_OK(t, bench.cuda->fill(bench.memory, 4, 1, bench.other));
    CHECK_OK(t, bench.cuda->stream_sync(bench.other));
    CHECK_INT(t, bench.seen[0], ==, 4);
    gate_open();
    CHECK_OK(t, bench.cuda->stream_sync(blocking));
    CHECK_OK(t, bench.cuda->stream_sync(NULL));
    CHECK(t, all_are(bench.seen, 10, 3) && all_are(bench.seen + 10, 10, 2) &&
                 all_are(bench.seen + 20, BYTES - 20, 1));
out:
    if (blocking)
        (void)bench.cuda->stream_destroy(blocking);
    bench_end(t, &bench);
}

static int sync_null_stream(struct bench *bench)
{
    return bench->cuda->stream_sync(NULL);
}

static void waiting_for_the_null_stream(struct test *t)
{
    struct bench bench;
    struct CUstream_st *blocking = NULL;

    CHECK_OK(t, bench_make(&bench));
    CHECK_OK(t, bench.cuda->stream_create(&blocking, 0, 0));
    fake_gpu_run(blocking, gate_kernel, &gate);
    CHECK(t, waits_for_gate(&bench, sync_null_stream));
out:
    if (blocking)
        (void)bench.cuda->stream_destroy(blocking);
    bench_end(t, &bench);
}

static int copy_unpinned(struct bench *bench)
{
    char byte;

    return bench->cuda->to_host(&byte, bench->memory, 1, bench->stream);
}

static void unpinned_copies_wait(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_run(bench.stream, gate_kernel, &gate);
    CHECK(t, waits_for_gate(&bench, copy_unpinned));
out:
    bench_end(t, &bench);
}

static void pinned_copies_do_not(struct test *t)
{
    struct bench bench;
    void *host = NULL;

    CHECK_OK(t, bench_make(&bench));
    CHECK_OK(t, bench.cuda->host_alloc(&host, BYTES, 0));
    memset(host, 0, BYTES);
    fake_gpu_run(bench.stream, gate_kernel, &gate);
    CHECK_OK(t, bench.cuda->fill(bench.memory, 5, BYTES, bench.stream));
    CHECK_OK(t, bench.cuda->to_host(host, bench.memory, BYTES, bench.stream));
    CHECK(t, all_are(host, BYTES, 0));
    gate_open();
    CHECK_OK(t, bench.cuda->stream_sync(bench.stream));
    CHECK(t, all_are(host, BYTES, 5));
out:
    if (host)
        (void)bench.cuda->host_free(host);
    bench_end(t, &bench);
}

static int free_memory(struct bench *bench)
{
    return bench->cuda->memory_free(bench->memory);
}

static void giving_back_waits_for_the_device(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_run(bench.other, gate_kernel, &gate); /* which does not use it */
    CHECK(t, waits_for_gate(&bench, free_memory));
    bench.memory = 0;
out:
    bench_end(t, &bench);
}

static void destroyed_streams_end_their_work(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_run(bench.stream, gate_kernel, &gate);
    CHECK_OK(t, bench.cuda->fill(bench.memory, 6, BYTES, bench.stream));
    CHECK_OK(t, bench.cuda->event_record(bench.event, bench.stream));
    CHECK_OK(t, bench.cuda->stream_destroy(bench.stream));
    bench.stream = NULL;
    gate_open();
    CHECK_OK(t, bench.cuda->event_sync(bench.event));
    CHECK(t, all_are(bench.seen, BYTES, 6));
out:
    bench_end(t, &bench);
}

static void priorities_are_kept(struct test *t)
{
    struct bench bench;
    struct CUstream_st *high = NULL;
    int least = -100;
    int greatest = 100;

    CHECK_OK(t, bench_make(&bench));
    CHECK_OK(t, bench.cuda->stream_priorities(&least, &greatest));
    CHECK_INT(t, least, ==, 0);
    CHECK_INT(t, greatest, ==, -5);
    CHECK_OK(t, bench.cuda->stream_create(&high, CUDA_STREAM_NON_BLOCKING, -100));
    CHECK_INT(t, fake_gpu_priority(high), ==, -5);
    CHECK_INT(t, fake_gpu_priority(bench.stream), ==, 0);
out:
    if (high)
        (void)bench.cuda->stream_destroy(high);
    bench_end(t, &bench);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void calls_fail_as_told(struct test *t)
{
    struct bench bench;
    struct CUevent_st *event = NULL;
    struct CUstream_st *stream = NULL;
    cuda_address at = 0;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_faults("copy#2:fail event#1:fail");
    fake_gpu_faults("stream:fail alloc:fail");
    CHECK_OK(t, bench.cuda->fill(bench.memory, 1, 1, bench.stream));
    CHECK_INT(t, bench.cuda->fill(bench.memory, 2, 1, bench.stream), !=, 0);
    CHECK_OK(t, bench.cuda->fill(bench.memory, 3, 1, bench.stream));
    CHECK_INT(t, bench.cuda->event_create(&event, 0), !=, 0);
    CHECK_INT(t, bench.cuda->stream_create(&stream, 0, 0), !=, 0);
    CHECK_INT(t, bench.cuda->memory_alloc(&at, 1), ==, CUDA_OUT_OF_MEMORY);
    CHECK_INT(t, bench.cuda->memory_alloc(&at, 1), ==, CUDA_OUT_OF_MEMORY);
    fake_gpu_faults(NULL);
    CHECK_OK(t, bench.cuda->memory_alloc(&at, 1));
    CHECK_OK(t, bench.cuda->memory_free(at));
out:
    bench_end(t, &bench);
}

static void copies_are_slow_as_told(struct test *t)
{
    struct bench bench;
    int64_t before_us = clock_now_us();

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_faults("copy:slow=30");
    CHECK_OK(t, bench.cuda->fill(bench.memory, 1, 1, bench.stream));
    CHECK_OK(t, bench.cuda->stream_sync(bench.stream));
    CHECK_INT(t, clock_now_us() - before_us, >=, 30000);
out:
    bench_end(t, &bench);
}

static int sync_stream(struct bench *bench)
{
    return bench->cuda->stream_sync(bench->stream) ? 0 : HVD_E_IO;
}

static void a_lost_device_answers(struct test *t)
{
    struct bench bench;
    struct hvd_err err = { .code = 0 };
    struct waiter waiter;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_faults("copy:hang");
    CHECK_OK(t, bench.cuda->fill(bench.memory, 1, 1, bench.stream));
    waiter = (struct waiter){ .bench = &bench, .call = sync_stream };
    CHECK_OK(t, thread_start(&waiter.thread, 0, wait_in_call, &waiter));
    CHECK_INT(t, bench.cuda->stream_query(bench.stream), ==, CUDA_NOT_READY);
    fake_gpu_faults("device:lost");
    pthread_join(waiter.thread, NULL); /* what waited has returned */
    CHECK_INT(t, bench.cuda->stream_query(bench.stream), !=, CUDA_OK);
    CHECK_CODE(
        t, cuda_judge(bench.cuda, bench.cuda->fill(bench.memory, 1, 1, bench.stream), "fill", &err),
        HVD_E_IO);
    CHECK_HAS(t, err.text, "fill: CUDA_ERROR_LAUNCH_FAILED");
    CHECK_INT(t, gpu_enter(bench.device, NULL), !=, 0);
out:
    if (bench.device)
        fake_gpu_faults(NULL);
    bench_end(t, &bench);
}

static void the_nth_call_loses_it(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_make(&bench));
    fake_gpu_faults("device#3:lost");
    CHECK_OK(t, bench.cuda->stream_query(bench.stream));
    CHECK_OK(t, bench.cuda->stream_query(bench.stream));
    CHECK_INT(t, bench.cuda->stream_query(bench.stream), !=, CUDA_OK);
    CHECK_INT(t, bench.cuda->stream_query(bench.stream), !=, CUDA_OK);
out:
    bench_end(t, &bench);
}

static void a_copy_can_kill(struct test *t)
{
    pid_t child = fork();
    int status = 0;

    CHECK(t, child >= 0);
    if (child == 0) {
        struct bench bench;

        setenv("HVD_STANDIN_FAULTS", "copy#2:die", 1);
        if (bench_make(&bench) || bench.cuda->fill(bench.memory, 1, 1, bench.stream) ||
            bench.cuda->stream_sync(bench.stream))
            _exit(1);
        (void)bench.cuda->fill(bench.memory, 1, 1, bench.stream);
        (void)bench.cuda->stream_sync(bench.stream);
        _exit(0);
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK(t, WIFSIGNALED(status));
    CHECK_INT(t, WTERMSIG(status), ==, SIGKILL);
out:
    return;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void a_forked_child_has_no_driver(struct test *t)
{
    struct bench bench;
    pid_t child;
    int status = 0;

    CHECK_OK(t, bench_make(&bench));
    child = fork();
    CHECK(t, child >= 0);
    if (child == 0)
        _exit(bench.cuda->stream_query(bench.stream));
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK(t, WIFEXITED(status));
    CHECK_INT(t, WEXITSTATUS(status), ==, 3);
out:
    bench_end(t, &bench);
}

static void devices_are_of_a_machine(struct test *t)
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
out:
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- misuse ---------------------------------------------------------------------------------- */

/* In a process that has not used the driver before. */
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

static void misuse_is_told(struct test *t)
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
out:
    return;
}

#define CASE_PLAIN(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(CASE_PLAIN(bytes_go_and_come), CASE_PLAIN(memory_is_counted),
      CASE_PLAIN(host_cannot_touch_it), CASE_PLAIN(pinned_memory_is_known),
      CASE_PLAIN(work_is_not_done_at_once), CASE_PLAIN(streams_wait_for_events),
      CASE_PLAIN(null_stream_waits_for_blocking_ones), CASE_PLAIN(waiting_for_the_null_stream),
      CASE_PLAIN(unpinned_copies_wait), CASE_PLAIN(pinned_copies_do_not),
      CASE_PLAIN(giving_back_waits_for_the_device), CASE_PLAIN(destroyed_streams_end_their_work),
      CASE_PLAIN(priorities_are_kept), CASE_PLAIN(calls_fail_as_told),
      CASE_PLAIN(copies_are_slow_as_told), CASE_PLAIN(a_lost_device_answers),
      CASE_PLAIN(the_nth_call_loses_it), CASE_PLAIN(a_copy_can_kill),
      CASE_PLAIN(a_forked_child_has_no_driver), CASE_PLAIN(devices_are_of_a_machine),
      CASE_PLAIN(misuse_is_told))
