#include "tests/lib/children_bench.h"
#include "worker/io/life.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

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

static void a_life_is_held_once(struct test *t)
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
    page->life = 1; /* somebody else */
    CHECK_CODE(t, life_hold(page), HVD_E_BUSY);
    page->life = FUTEX_OWNER_DIED | FUTEX_WAITERS;
    CHECK_OK(t, life_hold(page));
    life_release(page);
out:
    if (page)
        munmap(page, PAGE_BYTES);
    if (other)
        munmap(other, PAGE_BYTES);
}

/* It has the memory of the holder, but not its life. */
static void a_fork_neither_has_nor_ends_it(struct test *t)
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
out:
    if (page)
        munmap(page, PAGE_BYTES);
}

/* A worker whose script starts the puppet, $P, which tells its pid and takes its page through $F,
 * and then joins; $G is a fifo to wait for. */
static void join(struct bench *bench, const char *script)
{
    char page[300];

    snprintf(page, sizeof(page), "%s", bench_fifo(bench, "page"));
    (void)bench_shell(bench, "P=%s; F=%s; G=%s; %s", PUPPET, page, bench_fifo(bench, "go"), script);
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

/* It is big, so that the kernel takes long to take it apart; and it is tried more than once, as the
 * threads that see it first may come last on a busy machine. */
static void the_mutex_sees_a_death_first(struct test *t)
{
    const struct bench_worker *worker = NULL;
    struct bench bench;

    for (int i = 0; i < 20 && !(worker && worker->witness == WITNESS_MUTEX); i++) {
        if (worker)
            bench_close(&bench);
        CHECK(t, bench_open(&bench, t));
        join(&bench, "exec $P memory 256 pid hold $F say held wait $G");
        worker = bench_worker(&bench, 1);
        kill(worker->pid, SIGKILL);
        BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
        CHECK(t, worker->ended == ENDED_SIGNAL && worker->value == SIGKILL && !worker->disorder);
        BENCH_WAIT(t, &bench, bench_tidy(&bench));
        CHECK_INT(t, bench_descriptors(), ==, bench.fds);
    }
    CHECK(t, worker->witness == WITNESS_MUTEX);
out:
    bench_close(&bench);
}

static void an_exit_is_an_exit(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    join(&bench, "exec $P pid hold $F say held exit 9");
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK(t, bench_worker(&bench, 1)->ended == ENDED_EXIT && bench_worker(&bench, 1)->value == 9);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
out:
    bench_close(&bench);
}

static void a_life_given_back_is_no_end(struct test *t)
{
    const struct bench_worker *worker;
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    join(&bench, "exec $P pid hold $F say held release say released wait $G exit 0");
    worker = bench_worker(&bench, 1);
    BENCH_WAIT(t, &bench, strstr(worker->said, "released"));
    CHECK(t, !worker->ended);
    let_go_on(&bench);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK(t, worker->ended == ENDED_EXIT && worker->value == 0);
    CHECK(t, worker->witness == WITNESS_PIDFD);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
out:
    bench_close(&bench);
}

/* The kernel says the same of a thread that ends, and of a program that becomes another, as of a
 * death. */
static void only_a_death_is_an_end(struct test *t)
{
    static const char *const deeds[] = {
        "exec $P pid hold $F say held leave say goes-on wait $G exit 11",
        "export G; exec $P pid hold $F say held exec sh -c 'echo goes-on; read x <$G; exit 11'",
    };

    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        const struct bench_worker *worker;
        const struct child *child;
        struct bench bench;

        CHECK(t, bench_open(&bench, t));
        join(&bench, deeds[i]);
        worker = bench_worker(&bench, 1);
        child = child_find(bench.children, 1);
        BENCH_WAIT(t, &bench, strstr(worker->said, "goes-on") && !child->life.runs);
        BENCH_WAIT(t, &bench, child->looks > 4);
        CHECK(t, !worker->ended);
        children_joined(bench.children, 1, worker->pid); /* the new program says hello */
        CHECK(t, child->life.runs && !life_watch_is_over(&child->life));
        CHECK_INT(t, child->page->life, ==, 0);
        let_go_on(&bench);
        BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
        CHECK(t, worker->ended == ENDED_EXIT && worker->value == 11);
        BENCH_WAIT(t, &bench, bench_tidy(&bench));
        bench_close(&bench);
        bench = (struct bench){ .fifo_fd = -1 };
        continue;
out:
        bench_close(&bench);
        return;
    }
}

#define WRAPPED "$P pid hold $F say held "

static void a_death_below_a_wrapper_is_the_workers(struct test *t)
{
    const struct bench_worker *worker;
    struct bench bench;
    pid_t pid;

    CHECK(t, bench_open(&bench, t));
    join(&bench, "trap '' TERM; " WRAPPED "wait $G; sleep 1000");
    worker = bench_worker(&bench, 1);
    pid = bench_pid_said(&bench, 1, "pid ");
    CHECK(t, pid != worker->pid);
    kill(pid, SIGKILL);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK(t, worker->ended == ENDED_SIGNAL && worker->value == SIGKILL);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
    CHECK_INT(t, bench_descriptors(), ==, bench.fds);
out:
    bench_close(&bench);
}

static void an_exit_below_a_wrapper(struct test *t)
{
    /* One that hides it, one that goes on, one that has still to pass on what was said. */
    static const char *const wrappers[] = { WRAPPED "say last exit 12; true",
                                            WRAPPED "say last exit 12; sleep 1000",
                                            WRAPPED "say last exit 12 2>&1 | tee" };

    for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++) {
        const struct bench_worker *worker;
        struct bench bench;

        CHECK(t, bench_open(&bench, t));
        join(&bench, wrappers[i]);
        worker = bench_worker(&bench, 1);
        BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
        CHECK(t, worker->ended == ENDED_EXIT && worker->value == 12 && !worker->disorder);
        CHECK_HAS(t, worker->said, "last\n");
        BENCH_WAIT(t, &bench, bench_tidy(&bench));
        bench_close(&bench);
        bench = (struct bench){ .fifo_fd = -1 };
        continue;
out:
        bench_close(&bench);
        return;
    }
}

static void a_wrapper_ends_the_worker_that_ended_well(struct test *t)
{
    const struct bench_worker *worker;
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    join(&bench, WRAPPED "exit 0; echo tidied up; exit 13");
    worker = bench_worker(&bench, 1);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK(t, worker->ended == ENDED_EXIT && worker->value == 13);
    CHECK(t, worker->witness == WITNESS_PIDFD);
    CHECK_HAS(t, worker->said, "tidied up\n");
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
out:
    bench_close(&bench);
}

/* Some hold it, some have not got so far; all threads end with their workers. */
static void many_lives_leave_nothing(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    for (uint64_t i = 1; i <= 40; i++) {
        bench_shell(&bench, "exec sleep 1000");
        BENCH_WAIT(t, &bench, bench_worker(&bench, i)->pid);
        children_joined(bench.children, i, bench_worker(&bench, i)->pid);
        children_joined(bench.children, i, bench_worker(&bench, i)->pid);
    }
    for (uint64_t i = 1; i <= 40; i += 2)
        children_kill(bench.children, i);
    BENCH_WAIT(t, &bench, list_length(&bench.children->all) == 20);
    children_free(bench.children);
    bench.children = NULL;
out:
    bench_close(&bench);
}

TESTS(NO_TORTURE(a_life_is_held_once), NO_TORTURE(a_fork_neither_has_nor_ends_it),
      NO_TORTURE(the_mutex_sees_a_death_first), NO_TORTURE(an_exit_is_an_exit),
      NO_TORTURE(a_life_given_back_is_no_end), NO_TORTURE(only_a_death_is_an_end),
      NO_TORTURE(a_death_below_a_wrapper_is_the_workers), NO_TORTURE(an_exit_below_a_wrapper),
      NO_TORTURE(a_wrapper_ends_the_worker_that_ended_well), NO_TORTURE(many_lives_leave_nothing))
