/*
 * test_life.c: the life page between a worker and its agent, with real processes. Three signs
 * report the worker's end: the mutex in the page, a process descriptor, and wait. Which sign comes
 * first, and that only a death counts as an end.
 */
#include "base/time.h"
#include "tests/lib/children_bench.h"
#include "tests/lib/fixture.h"
#include "worker/io/life.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t word_of(const struct page *page)
{
    return page->life;
}

static struct page *shared_page(void)
{
    struct page *page =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? NULL : page;
}

static struct bench own;

static void begin(struct test *t)
{
    CHECK(t, bench_open(&own, t));
}

static void end(struct test *t)
{
    (void)t;
    bench_close(&own);
}
FIXTURE(begin, end)

TEST_FLAGS(a_life_is_held_once, TEST_NO_TORTURE)
{
    struct page *page = shared_page();
    struct page *other = shared_page();

    CHECK(t, page && other);
    CHECK_OK(t, life_hold(page));
    CHECK_INT(t, word_of(page), ==, (uint32_t)gettid());
    CHECK_OK(t, life_hold(page));
    CHECK_CODE(t, life_hold(other), HVD_E_STATE);
    life_release(other);
    CHECK_INT(t, word_of(page), ==, (uint32_t)gettid());
    life_release(page);
    CHECK_INT(t, word_of(page), ==, 0);
    life_release(page);
    CHECK_OK(t, life_hold(other));
    life_release(other);
    page->life = 1; /* of another thread */
    CHECK_CODE(t, life_hold(page), HVD_E_BUSY);
    page->life = FUTEX_OWNER_DIED | FUTEX_WAITERS;
    CHECK_OK(t, life_hold(page));
    life_release(page);
}

/* The forked process has the memory of the holder, but does not hold the mutex. */
TEST_FLAGS(a_fork_neither_has_nor_ends_the_life, TEST_NO_TORTURE)
{
    struct page *page = shared_page();
    pid_t pid;

    CHECK(t, page && !life_hold(page));
    pid = fork();
    CHECK(t, pid >= 0);
    if (pid == 0) {
        life_release(page);
        _exit(0);
    }
    CHECK(t, waitpid(pid, NULL, 0) == pid);
    CHECK_INT(t, word_of(page), ==, (uint32_t)gettid());
    pid = fork();
    CHECK(t, pid >= 0);
    if (pid == 0)
        _exit(0);
    CHECK(t, waitpid(pid, NULL, 0) == pid);
    CHECK_INT(t, word_of(page), ==, (uint32_t)gettid());
    life_release(page);
}

/* Starts a worker whose script starts the scripted worker, $P, which prints its pid, takes its page
 * through $F, and joins; $G is a fifo to wait for. */
static void join(struct bench *bench, const char *script)
{
    char page[300];

    snprintf(page, sizeof(page), "%s", bench_fifo(bench, "page"));
    (void)bench_shell(bench, "P=%s; F=%s; G=%s; %s", SCRIPTED_WORKER, page, bench_fifo(bench, "go"),
                      script);
    while (!bench_pid_said(bench, 1, "pid ") && !bench->late)
        bench_turn(bench);
    if (!bench->late)
        bench_join(bench, 1, bench_pid_said(bench, 1, "pid "), page);
    while (!strstr(bench_worker(bench, 1)->said, "held\n") && !bench->late)
        bench_turn(bench);
}

static void let_go_on(const struct bench *bench)
{
    char path[300];
    int fd;

    snprintf(path, sizeof(path), "%s/go", bench->dir);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
}

/* The worker has much memory, so the kernel takes long to free it. The case tries more than once,
 * because on a busy machine the thread that sees the mutex may come last. */
TEST_FLAGS(the_mutex_sees_a_death_first, TEST_NO_TORTURE)
{
    const struct bench_worker *worker = NULL;

    for (int i = 0; i < 20 && !(worker && worker->witness == WITNESS_MUTEX); i++) {
        if (worker) {
            bench_close(&own);
            CHECK(t, bench_open(&own, t));
        }
        join(&own, "exec $P memory 256 pid hold $F say held wait $G");
        worker = bench_worker(&own, 1);
        kill(worker->pid, SIGKILL);
        BENCH_WAIT(t, &own, bench_is_over(&own, 1));
        CHECK(t, worker->ended == ENDED_SIGNAL && worker->value == SIGKILL && !worker->disorder);
        BENCH_WAIT(t, &own, bench_tidy(&own));
        CHECK_INT(t, bench_descriptors(), ==, own.fds);
    }
    CHECK(t, worker->witness == WITNESS_MUTEX);
}

TEST_FLAGS(an_exit_is_an_exit, TEST_NO_TORTURE)
{
    join(&own, "exec $P pid hold $F say held exit 9");
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK(t, bench_worker(&own, 1)->ended == ENDED_EXIT && bench_worker(&own, 1)->value == 9);
    BENCH_WAIT(t, &own, bench_tidy(&own));
}

TEST_FLAGS(a_life_given_back_is_no_end, TEST_NO_TORTURE)
{
    const struct bench_worker *worker;

    join(&own, "exec $P pid hold $F say held release say released wait $G exit 0");
    worker = bench_worker(&own, 1);
    BENCH_WAIT(t, &own, strstr(worker->said, "released"));
    CHECK(t, !worker->ended);
    let_go_on(&own);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK(t, worker->ended == ENDED_EXIT && worker->value == 0);
    CHECK(t, worker->witness == WITNESS_PIDFD);
    BENCH_WAIT(t, &own, bench_tidy(&own));
}

/* For the end of a thread, and for an exec, the kernel reports the same as for a death. */
TEST_FLAGS(only_a_death_is_an_end, TEST_NO_TORTURE)
{
    static const char *const deeds[] = {
        "exec $P pid hold $F say held leave say goes-on wait $G exit 11",
        "export G; exec $P pid hold $F say held exec sh -c 'echo goes-on; read x <$G; exit 11'",
    };

    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        const struct bench_worker *worker;
        const struct child *child;

        if (i) {
            bench_close(&own);
            CHECK(t, bench_open(&own, t));
        }
        join(&own, deeds[i]);
        worker = bench_worker(&own, 1);
        child = child_find(own.children, 1);
        BENCH_WAIT(t, &own, strstr(worker->said, "goes-on") && !child->life.runs);
        BENCH_WAIT(t, &own, child->looks > 4);
        CHECK(t, !worker->ended);
        children_joined(own.children, 1, worker->pid); /* the new program says hello */
        CHECK(t, child->life.runs && !life_watch_is_over(&child->life));
        CHECK_INT(t, child->page->life, ==, 0);
        let_go_on(&own);
        BENCH_WAIT(t, &own, bench_is_over(&own, 1));
        CHECK(t, worker->ended == ENDED_EXIT && worker->value == 11);
        BENCH_WAIT(t, &own, bench_tidy(&own));
    }
}

#define WRAPPED "$P pid hold $F say held "

TEST_FLAGS(a_death_below_a_wrapper_is_the_workers, TEST_NO_TORTURE)
{
    const struct bench_worker *worker;
    pid_t pid;

    join(&own, "trap '' TERM; " WRAPPED "wait $G; sleep 1000");
    worker = bench_worker(&own, 1);
    pid = bench_pid_said(&own, 1, "pid ");
    CHECK(t, pid != worker->pid);
    kill(pid, SIGKILL);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK(t, worker->ended == ENDED_SIGNAL && worker->value == SIGKILL);
    BENCH_WAIT(t, &own, bench_tidy(&own));
    CHECK_INT(t, bench_descriptors(), ==, own.fds);
}

TEST_FLAGS(an_exit_below_a_wrapper, TEST_NO_TORTURE)
{
    /* a wrapper that hides the worker, one that goes on, and one that has still to print */
    static const char *const wrappers[] = { WRAPPED "say last exit 12; true",
                                            WRAPPED "say last exit 12; sleep 1000",
                                            WRAPPED "say last exit 12 2>&1 | tee" };

    for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++) {
        const struct bench_worker *worker;

        if (i) {
            bench_close(&own);
            CHECK(t, bench_open(&own, t));
        }
        if (i == 2) /* on a busy machine tee may come late */
            own.children->last_words_us = TIME_HOUR;
        join(&own, wrappers[i]);
        worker = bench_worker(&own, 1);
        BENCH_WAIT(t, &own, bench_is_over(&own, 1));
        CHECK(t, worker->ended == ENDED_EXIT && worker->value == 12 && !worker->disorder);
        CHECK_HAS(t, worker->said, "last\n");
        BENCH_WAIT(t, &own, bench_tidy(&own));
    }
}

TEST_FLAGS(a_wrapper_ends_the_worker_that_ended_well, TEST_NO_TORTURE)
{
    const struct bench_worker *worker;

    join(&own, WRAPPED "exit 0; echo tidied up; exit 13");
    worker = bench_worker(&own, 1);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK(t, worker->ended == ENDED_EXIT && worker->value == 13);
    CHECK(t, worker->witness == WITNESS_PIDFD);
    CHECK_HAS(t, worker->said, "tidied up\n");
    BENCH_WAIT(t, &own, bench_tidy(&own));
}

/* Some workers hold the mutex, others have not come so far; all threads end with their workers. */
TEST_FLAGS(many_lives_leave_nothing, TEST_NO_TORTURE)
{
    for (uint64_t i = 1; i <= 40; i++) {
        bench_shell(&own, "exec sleep 1000");
        BENCH_WAIT(t, &own, bench_worker(&own, i)->pid);
        children_joined(own.children, i, bench_worker(&own, i)->pid);
        children_joined(own.children, i, bench_worker(&own, i)->pid);
    }
    for (uint64_t i = 1; i <= 40; i += 2)
        children_kill(own.children, i);
    BENCH_WAIT(t, &own, list_length(&own.children->all) == 20);
    children_free(own.children);
    own.children = NULL;
}
