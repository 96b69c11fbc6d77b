/*
 * test_children.c: the child processes of an agent, with real processes: ends, process groups,
 * orphans (processes that a worker left behind), output that is held back or not read. No process
 * outlives its worker.
 */
#include "proto/page.h"
#include "tests/lib/children_bench.h"
#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool runs(pid_t pid)
{
    return !kill(pid, 0);
}

static struct bench own;

static void begin_case(struct test *t)
{
    CHECK(t, bench_open(&own, t));
}

static void end_case(struct test *t)
{
    (void)t;
    bench_close(&own);
}
FIXTURE(begin_case, end_case)

TEST_FLAGS(a_worker_runs_and_ends, TEST_SURVIVES_ALLOC)
{
    const char *argv[] = { "sh", "-c", "echo out; echo err >&2; pwd; env | grep -c =", NULL };
    struct bench_worker *worker;
    uint64_t number;

    number = bench_spawn(&own, "/usr", argv);
    worker = bench_worker(&own, number);
    BENCH_WAIT(t, &own, bench_is_over(&own, number));
    CHECK(t, worker->pid > 0 && !worker->failed && !worker->disorder && worker->error);
    CHECK_TEXT(t, worker->said, "out\n/usr\n4\n"); /* PWD is the shell's own */
    CHECK(t, worker->ended == ENDED_EXIT && worker->value == 0 && worker->dying == 1);
    CHECK(t, worker->witness == WITNESS_PIDFD);
    BENCH_WAIT(t, &own, bench_tidy(&own));
    CHECK_INT(t, bench_descriptors(), ==, own.fds);
}

TEST_FLAGS(the_end_is_told_as_it_was, TEST_NO_TORTURE)
{
    uint64_t code;
    uint64_t by_itself;
    uint64_t by_us;

    code = bench_shell(&own, "exit 3");
    by_itself = bench_shell(&own, "kill -SEGV $$");
    by_us = bench_shell(&own, "echo ready; exec sleep 1000");
    BENCH_WAIT(t, &own, *bench_worker(&own, by_us)->said);
    kill(bench_worker(&own, by_us)->pid, SIGKILL);
    BENCH_WAIT(t, &own,
               bench_is_over(&own, code) && bench_is_over(&own, by_itself) &&
                   bench_is_over(&own, by_us));
    CHECK(t, bench_worker(&own, code)->ended == ENDED_EXIT);
    CHECK_INT(t, bench_worker(&own, code)->value, ==, 3);
    CHECK(t, bench_worker(&own, by_itself)->ended == ENDED_SIGNAL);
    CHECK_INT(t, bench_worker(&own, by_itself)->value, ==, SIGSEGV);
    CHECK(t, bench_worker(&own, by_us)->ended == ENDED_SIGNAL);
    CHECK_INT(t, bench_worker(&own, by_us)->value, ==, SIGKILL);
}

/* The end of the output stays, however much came before. */
TEST_FLAGS(remains_of_a_worker_are_read, TEST_NO_TORTURE)
{
    struct children_remains none;
    struct bench_worker *worker;
    uint64_t number;

    number = bench_shell(&own, "seq 100000; echo last; echo why >&2; exit 3");
    worker = bench_worker(&own, number);
    BENCH_WAIT(t, &own, bench_is_over(&own, number));
    CHECK(t, !worker->disorder && !own.remains.dumped);
    CHECK_INT(t, own.remains.pid, ==, worker->pid);
    CHECK_INT(t, own.remains.recorded.count, ==, 0);
    CHECK_INT(t, strlen(own.tail[STREAM_STDOUT]), ==, LIMIT_STDERR_TAIL_BYTES);
    CHECK_HAS(t, own.tail[STREAM_STDOUT], "\n100000\nlast\n");
    CHECK_TEXT(t, own.tail[STREAM_STDERR], "why\n");
    CHECK(t, !children_remains(own.children, number + 1, &none));
}

TEST_FLAGS(a_start_that_fails_says_why, TEST_NO_TORTURE)
{
    const char *missing[] = { "/no/such/program", NULL };
    const char *data[] = { "/etc/passwd", NULL };
    const char *fine[] = { "true", NULL };
    const struct bench_worker *worker;

    worker = bench_worker(&own, bench_spawn(&own, "", missing));
    BENCH_WAIT(t, &own, worker->failed);
    CHECK_INT(t, worker->failed, ==, HVD_E_NOTFOUND);
    CHECK_TEXT(t, worker->why, "/no/such/program: no such program; check the path on this host");
    worker = bench_worker(&own, bench_spawn(&own, "", data));
    BENCH_WAIT(t, &own, worker->failed);
    CHECK_INT(t, worker->failed, ==, HVD_E_DENIED);
    CHECK_HAS(t, worker->why, "/etc/passwd: this user may not run the program; use chmod +x");
    worker = bench_worker(&own, bench_spawn(&own, "/no/such/folder", fine));
    BENCH_WAIT(t, &own, worker->failed);
    CHECK_INT(t, worker->failed, ==, HVD_E_NOTFOUND);
    CHECK_HAS(t, worker->why, "/no/such/folder: no program can work in this folder");
    BENCH_WAIT(t, &own, bench_tidy(&own));
    CHECK(t, !worker->disorder && !worker->ended && !worker->pid);
    CHECK_INT(t, bench_descriptors(), ==, own.fds);
}

TEST_FLAGS(no_descriptor_is_left_to_start_with, TEST_NO_TORTURE)
{
    const struct bench_worker *worker = NULL;
    int taken[4096];
    int count = 0;

    while (count < 4096 && (taken[count] = dup(own.fifo_fd)) >= 0)
        count++;
    for (int room = 0; room < 9 && count > 0; room++) { /* the number of steps that can fail */
        worker = bench_worker(&own, bench_shell(&own, "true"));
        BENCH_WAIT(t, &own, bench_is_over(&own, own.count));
        CHECK(t, worker->ended || worker->failed == HVD_E_LIMIT);
        CHECK(t, worker->ended || strstr(worker->why, "(ulimit -n)"));
        close(taken[--count]);
    }
    CHECK(t, worker && worker->ended);
    while (count > 0)
        close(taken[--count]);
}

/* A process that the worker left behind is killed. The test sees that the process lives by its
 * descriptor 9. */
TEST_FLAGS(nothing_outlives_its_worker, TEST_NO_TORTURE)
{
    static const char *const left[] = {
        "sleep 1000 &",                                         /* in the worker's group */
        "setsid sleep 1000 &",                                  /* in a group of its own */
        "(setsid sh -c 'sleep 1000 & sleep 1000 & wait' &)",    /* with child processes */
        "(setsid sh -c '(setsid sleep 1000 &); sleep 1000' &)", /* two generations away */
        "env -i /usr/bin/setsid sleep 1000 &", /* and without the worker's environment */
        "for i in 1 2 3 4 5 6 7 8 9 0; do setsid sleep 1000 & setsid sleep 1000 & done",
    };

    for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
        const struct bench_worker *worker;

        worker = bench_worker(
            &own, bench_shell(&own, "exec 9>%s\n%s\necho last; exit 4", own.fifo, left[i]));
        BENCH_WAIT(t, &own, bench_is_over(&own, 1)); /* although the pipe is still open */
        CHECK(t, worker->ended == ENDED_EXIT && worker->value == 4 && !worker->disorder);
        CHECK_TEXT(t, worker->said, "last\n");
        BENCH_WAIT(t, &own, own.gone && bench_tidy(&own));
        CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
        CHECK_INT(t, bench_descriptors(), ==, own.fds);
        end_case(t);
        begin_case(t);
    }
}

TEST_FLAGS(a_kill_reaches_processes_outside_the_group, TEST_NO_TORTURE)
{
    bench_shell(&own,
                "exec 9>%s; setsid sh -c 'sleep 1000 & wait' & (setsid sleep 1000 &); "
                "echo ready; wait",
                own.fifo);
    BENCH_WAIT(t, &own, *bench_worker(&own, 1)->said);
    children_kill(own.children, 1);
    children_kill(own.children, 77); /* an unknown worker */
    BENCH_WAIT(t, &own, bench_is_over(&own, 1) && own.gone && bench_tidy(&own));
    CHECK_INT(t, bench_worker(&own, 1)->value, ==, SIGKILL);
}

/* An orphan in another group, with the worker's environment, stays as long as the worker lives,
 * and does not stay as a zombie. An orphan without that environment stays as long as any worker
 * lives. */
TEST_FLAGS(an_orphan_stays_with_its_worker, TEST_NO_TORTURE)
{
    const struct bench_worker *first;
    pid_t named;
    pid_t nameless;

    first = bench_worker(
        &own, bench_shell(&own, "(setsid sh -c 'echo named $$; exec sleep 1000' &); "
                                "(env -i /usr/bin/setsid sh -c 'echo bare $$; exec sleep 1000' "
                                "&); exec sleep 1000"));
    BENCH_WAIT(t, &own, bench_pid_said(&own, 1, "named ") && bench_pid_said(&own, 1, "bare "));
    named = bench_pid_said(&own, 1, "named ");
    nameless = bench_pid_said(&own, 1, "bare ");
    bench_shell(&own, "exit 1");
    BENCH_WAIT(t, &own, bench_is_over(&own, 2) && !child_find_pid(own.children, 0));
    BENCH_WAIT(t, &own, list_length(&own.children->all) == 1);
    CHECK(t, !first->ended && runs(named) && runs(nameless));
    bench_shell(&own, "exec sleep 1000");
    BENCH_WAIT(t, &own, bench_worker(&own, 3)->pid);
    children_kill(own.children, 1);
    BENCH_WAIT(t, &own, list_length(&own.children->all) == 1);
    CHECK(t, !runs(named) && runs(nameless));
    children_kill(own.children, 3);
    BENCH_WAIT(t, &own, bench_tidy(&own));
    CHECK(t, !runs(nameless));
}

TEST_FLAGS(sigterm_may_be_ignored, TEST_NO_TORTURE)
{
    const struct bench_worker *deaf;
    const struct bench_worker *other;

    deaf = bench_worker(&own, bench_shell(&own, "trap 'echo no' TERM; echo ready; "
                                                "while :; do sleep 1000 & wait; done"));
    other = bench_worker(&own, bench_shell(&own, "echo ready; sleep 1000 & wait"));
    BENCH_WAIT(t, &own, *deaf->said && *other->said);
    children_term(own.children, 1);
    children_term(own.children, 2);
    BENCH_WAIT(t, &own, other->ended && strstr(deaf->said, "no\n"));
    CHECK(t, other->ended == ENDED_SIGNAL && other->value == SIGTERM && !deaf->ended);
    children_kill(own.children, 1);
    BENCH_WAIT(t, &own, deaf->ended);
    CHECK(t, deaf->ended == ENDED_SIGNAL && deaf->value == SIGKILL);
}

/* Between fork and exec the process cannot yet be asked anything. */
TEST_FLAGS(a_starting_worker_can_be_ended, TEST_NO_TORTURE)
{
    bench_shell(&own, "exec sleep 1000");
    children_kill(own.children, 1);
    bench_shell(&own, "exec sleep 1000");
    children_term(own.children, 2);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1) && bench_is_over(&own, 2));
    CHECK_INT(t, bench_worker(&own, 1)->value, ==, SIGKILL);
    CHECK_INT(t, bench_worker(&own, 2)->value, ==, SIGTERM);
    CHECK(t, !bench_worker(&own, 1)->disorder && !bench_worker(&own, 2)->disorder);
    BENCH_WAIT(t, &own, bench_tidy(&own));
}

TEST_FLAGS(a_worker_may_close_its_output, TEST_NO_TORTURE)
{
    bench_shell(&own, "echo bye; exec >&- 2>&-; exec sleep 1000");
    BENCH_WAIT(t, &own,
               bench_worker(&own, 1)->pid &&
                   child_find(own.children, 1)->output[STREAM_STDOUT].fd < 0 &&
                   child_find(own.children, 1)->output[STREAM_STDERR].fd < 0);
    CHECK(t, !bench_worker(&own, 1)->ended);
    children_kill(own.children, 1);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK_TEXT(t, bench_worker(&own, 1)->said, "bye\n");
}

#define MUCH (100 * 1000 * 1000)

TEST_FLAGS(the_whole_output_is_read, TEST_NO_TORTURE)
{
    bench_shell(&own, "head -c %d /dev/zero | tr '\\0' x", MUCH);
    bench_shell(&own, "head -c %d /dev/zero | tr '\\0' x >&2; exit 5", MUCH);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1) && bench_is_over(&own, 2));
    CHECK_INT(t, bench_worker(&own, 1)->said_bytes, ==, MUCH);
    CHECK_INT(t, bench_worker(&own, 2)->said_bytes, ==, MUCH);
    CHECK(t, !bench_worker(&own, 1)->error && bench_worker(&own, 2)->error);
    CHECK_INT(t, bench_worker(&own, 2)->value, ==, 5);
}

/* true: the worker's pipe is full, and the worker waits in write. */
static bool waits_to_print(struct bench *bench, uint64_t number)
{
    const struct child *child = child_find(bench->children, number);
    int there = 0;

    return !child || (!ioctl(child->output[STREAM_STDOUT].fd, FIONREAD, &there) &&
                      there >= fcntl(child->output[STREAM_STDOUT].fd, F_GETPIPE_SZ));
}

TEST_FLAGS(a_printing_worker_waits_while_output_is_held, TEST_NO_TORTURE)
{
    children_hold_output(own.children, true);
    bench_shell(&own, "exec head -c %d /dev/zero", MUCH);
    bench_shell(&own, "echo others end; exit 6");
    while (!waits_to_print(&own, 1) && !own.late)
        (void)event_base_loop(own.base, EVLOOP_NONBLOCK);
    BENCH_WAIT(t, &own, bench_is_over(&own, 2));
    CHECK_TEXT(t, bench_worker(&own, 2)->said, "others end\n"); /* the worker gave the reason */
    CHECK_INT(t, bench_worker(&own, 1)->said_bytes, ==, 0);
    children_hold_output(own.children, false);
    BENCH_WAIT(t, &own, bench_worker(&own, 1)->said_bytes > MUCH / 10);
    children_hold_output(own.children, true);
    children_hold_output(own.children, true);
    children_hold_output(own.children, false);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK_INT(t, bench_worker(&own, 1)->said_bytes, ==, MUCH);
    CHECK(t, bench_worker(&own, 1)->ended == ENDED_EXIT);
}

/* Opens the pipe for writing, so that its reader continues. */
static void open_fifo(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
}

/* The agent holds output back for a limited time; then 100 MB are dropped, and the worker ends. */
TEST_FLAGS(the_wait_for_held_output_has_a_limit, TEST_NO_TORTURE)
{
    const struct bench_worker *worker;
    char begin[300];
    char end[300];

    own.children->patience_us = 1000;
    snprintf(begin, sizeof(begin), "%s", bench_fifo(&own, "begin"));
    snprintf(end, sizeof(end), "%s", bench_fifo(&own, "end"));
    bench_shell(&own,
                "printf begin; read go <%s; head -c %d /dev/zero | tr '\\0' x; echo; "
                "echo said >%s; read go <%s; echo end",
                begin, MUCH, own.fifo, end);
    worker = bench_worker(&own, 1);
    BENCH_WAIT(t, &own, worker->said_bytes == 5);
    children_hold_output(own.children, true);
    open_fifo(begin);
    BENCH_WAIT(t, &own, own.gone); /* the worker has printed all, and the agent has read nothing */
    while (child_find(own.children, 1)->output[STREAM_STDOUT].dropped < MUCH + 1 && !own.late)
        (void)event_base_loop(own.base, EVLOOP_NONBLOCK);
    CHECK_INT(t, worker->said_bytes, ==, 5);
    children_hold_output(own.children, false);
    open_fifo(end);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK_TEXT(t, worker->said,
               "begin\n[100000001 bytes of output were left out here: the driver could not "
               "take them]\nend\n");
}

TEST_FLAGS(endless_output_stops_no_worker, TEST_NO_TORTURE)
{
    for (int i = 0; i < 4; i++)
        bench_shell(&own, "exec yes");
    for (int i = 0; i < 20; i++) {
        uint64_t number = bench_shell(&own, "echo last; exit 7");

        BENCH_WAIT(t, &own, bench_is_over(&own, number));
        CHECK_TEXT(t, bench_worker(&own, number)->said, "last\n");
    }
    for (uint64_t i = 1; i <= 4; i++) {
        BENCH_WAIT(t, &own, bench_worker(&own, i)->said_bytes > 1000000);
        children_kill(own.children, i);
    }
    BENCH_WAIT(t, &own, bench_tidy(&own));
}

/* An orphan that writes on after the worker's end does not delay the report of the end. */
TEST_FLAGS(an_orphan_may_fill_the_pipe, TEST_NO_TORTURE)
{
    bench_shell(&own, "setsid yes & setsid yes & exit 8");
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK_INT(t, bench_worker(&own, 1)->value, ==, 8);
    BENCH_WAIT(t, &own, bench_tidy(&own));
    CHECK(t, !bench_worker(&own, 1)->disorder);
}

/* children_owns knows the processes below a worker and those in other sessions, and no strangers;
 * children_page fails for a worker that has ended. */
TEST_FLAGS(output_names_its_worker, TEST_NO_TORTURE)
{
    bench_shell(&own, "sh -c 'echo below $$; sleep 1000; true' & "
                      "(setsid sh -c 'echo away $$; sleep 1000; true' &) ; exec sleep 1000");
    bench_shell(&own, "exec sleep 1000");
    BENCH_WAIT(t, &own,
               bench_pid_said(&own, 1, "below ") && bench_pid_said(&own, 1, "away ") &&
                   bench_worker(&own, 2)->pid);
    for (uint64_t i = 1; i <= 2; i++) {
        CHECK(t, children_owns(own.children, i, bench_worker(&own, i)->pid));
        CHECK(t, !children_owns(own.children, i, bench_worker(&own, 3 - i)->pid));
        CHECK(t, children_owns(own.children, i, bench_pid_said(&own, 1, "below ")) == (i == 1));
        CHECK(t, children_owns(own.children, i, bench_pid_said(&own, 1, "away ")) == (i == 1));
        CHECK(t, !children_owns(own.children, i, getpid()));
        CHECK(t, !children_owns(own.children, i, 1));
        CHECK(t, !children_owns(own.children, i, 0));
        CHECK(t, children_page(own.children, i) >= 0);
    }
    CHECK(t, !children_owns(own.children, 3, getpid()));
    CHECK_INT(t, children_page(own.children, 3), ==, -1);
    children_kill(own.children, 1);
    BENCH_WAIT(t, &own, bench_is_over(&own, 1));
    CHECK_INT(t, children_page(own.children, 1), ==, -1); /* worker 1 is unknown now */
    children_joined(own.children, 1, getpid());
    children_term(own.children, 1);
}

/* A worker that reports the same value without an end, on a thread of the test. A value that is
 * being written (`turn` is odd) cannot be read. */
struct reporter {
    struct report_slot *slot;
    _Atomic bool over;
};

static void *report_without_end(void *arg)
{
    struct reporter *reporter = arg;
    uint64_t turn = atomic_load(&reporter->slot->turn);

    while (!atomic_load(&reporter->over)) {
        atomic_store(&reporter->slot->turn, ++turn);
        for (int i = 0; i < 50; i++)
            (void)atomic_load(&reporter->over); /* about the time of two reads */
    }
    atomic_store(&reporter->slot->turn, turn + turn % 2);
    return NULL;
}

/* A list has the value or not, and is never refused, also if a value can be read only after the
 * values were counted. */
TEST_FLAGS(values_are_listed_while_they_are_written, TEST_NO_TORTURE)
{
    const struct report report = { .name = "loss" };
    uint64_t number = bench_shell(&own, "exec sleep 1000");
    struct page *page = MAP_FAILED;
    struct reporter reporter = { .slot = NULL };
    struct report_list list = { .count = 0 };
    size_t changes = 0, count = 0;
    pthread_t thread;
    struct arena arena;
    int rc = 0;

    BENCH_WAIT(t, &own, bench_worker(&own, number)->pid);
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                children_page(own.children, number), 0);
    CHECK(t, page != MAP_FAILED);
    CHECK_OK(t, report_put(page->reports, &report));
    reporter.slot = &page->reports[0];
    CHECK(t, !pthread_create(&thread, NULL, report_without_end, &reporter));
    for (int i = 0; changes < 2000 && i < 20000000 && !rc; i++) {
        arena_init(&arena, 1 << 16);
        rc = children_reports(own.children, number, &arena, &list);
        changes += list.count != count;
        count = list.count;
        arena_release(&arena);
    }
    atomic_store(&reporter.over, true);
    CHECK(t, !pthread_join(thread, NULL));
    munmap(page, PAGE_BYTES);
    CHECK_OK(t, rc);
    CHECK_INT(t, changes, ==, 2000);
}

TEST_FLAGS(freeing_ends_all_workers, TEST_NO_TORTURE)
{
    for (int i = 0; i < 8; i++)
        bench_shell(&own,
                    "trap '' TERM; exec 9>%s; (env -i /usr/bin/setsid sleep 1000 &); "
                    "setsid sleep 1000 & echo ready; exec sleep 1000",
                    own.fifo);
    BENCH_WAIT(t, &own, *bench_worker(&own, 3)->said);
    children_free(own.children); /* some workers have just begun */
    own.children = NULL;
    BENCH_WAIT(t, &own, own.gone);
    CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    /* the eventfd and the signals of the loop are closed */
    CHECK_INT(t, bench_descriptors(), <, own.fds);
}

TEST_FLAGS(thousands_leave_nothing, TEST_NO_TORTURE)
{
    const char *missing[] = { "/no/such/program", NULL };
    const char *fine[] = { "true", NULL };
    uint64_t over = 0;

    for (int i = 0; i < 2000; i++) {
        (void)bench_spawn(&own, "", i % 8 ? missing : fine);
        if (i % 50 < 49)
            continue;
        while (over < own.count) {
            BENCH_WAIT(t, &own, bench_is_over(&own, over + 1));
            CHECK(t, !bench_worker(&own, ++over)->disorder);
        }
    }
    BENCH_WAIT(t, &own, bench_tidy(&own));
    CHECK_INT(t, bench_descriptors(), ==, own.fds);
    CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}
