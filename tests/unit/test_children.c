#include "tests/lib/children_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

static bool runs(pid_t pid)
{
    return !kill(pid, 0);
}

static void a_worker_runs_and_ends(struct test *t)
{
    const char *argv[] = { "sh", "-c", "echo out; echo err >&2; pwd; env | grep -c =", NULL };
    struct bench_worker *worker;
    struct bench bench;
    uint64_t number;

    CHECK(t, bench_open(&bench, t));
    number = bench_spawn(&bench, "/usr", argv);
    worker = bench_worker(&bench, number);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, number));
    CHECK(t, worker->pid > 0 && !worker->failed && !worker->disorder && worker->error);
    CHECK_TEXT(t, worker->said, "out\n/usr\n4\n"); /* PWD is the shell's own */
    CHECK(t, worker->ended == ENDED_EXIT && worker->value == 0 && worker->dying == 1);
    CHECK(t, worker->witness == WITNESS_PIDFD);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
    CHECK_INT(t, bench_descriptors(), ==, bench.fds);
out:
    bench_close(&bench);
}

static void the_end_is_told_as_it_was(struct test *t)
{
    struct bench bench;
    uint64_t code;
    uint64_t by_itself;
    uint64_t by_us;

    CHECK(t, bench_open(&bench, t));
    code = bench_shell(&bench, "exit 3");
    by_itself = bench_shell(&bench, "kill -SEGV $$");
    by_us = bench_shell(&bench, "echo ready; exec sleep 1000");
    BENCH_WAIT(t, &bench, *bench_worker(&bench, by_us)->said);
    kill(bench_worker(&bench, by_us)->pid, SIGKILL);
    BENCH_WAIT(t, &bench,
               bench_is_over(&bench, code) && bench_is_over(&bench, by_itself) &&
                   bench_is_over(&bench, by_us));
    CHECK(t, bench_worker(&bench, code)->ended == ENDED_EXIT);
    CHECK_INT(t, bench_worker(&bench, code)->value, ==, 3);
    CHECK(t, bench_worker(&bench, by_itself)->ended == ENDED_SIGNAL);
    CHECK_INT(t, bench_worker(&bench, by_itself)->value, ==, SIGSEGV);
    CHECK(t, bench_worker(&bench, by_us)->ended == ENDED_SIGNAL);
    CHECK_INT(t, bench_worker(&bench, by_us)->value, ==, SIGKILL);
out:
    bench_close(&bench);
}

static void a_start_that_fails_says_why(struct test *t)
{
    const char *missing[] = { "/no/such/program", NULL };
    const char *data[] = { "/etc/passwd", NULL };
    const char *fine[] = { "true", NULL };
    const struct bench_worker *worker;
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    worker = bench_worker(&bench, bench_spawn(&bench, "", missing));
    BENCH_WAIT(t, &bench, worker->failed);
    CHECK_INT(t, worker->failed, ==, HVD_E_NOTFOUND);
    CHECK_TEXT(t, worker->why, "/no/such/program: no such program; check the path on this host");
    worker = bench_worker(&bench, bench_spawn(&bench, "", data));
    BENCH_WAIT(t, &bench, worker->failed);
    CHECK_INT(t, worker->failed, ==, HVD_E_DENIED);
    CHECK_HAS(t, worker->why, "/etc/passwd: may not be run; make it a file with chmod +x");
    worker = bench_worker(&bench, bench_spawn(&bench, "/no/such/folder", fine));
    BENCH_WAIT(t, &bench, worker->failed);
    CHECK_INT(t, worker->failed, ==, HVD_E_NOTFOUND);
    CHECK_HAS(t, worker->why, "/no/such/folder: cannot work in this folder");
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
    CHECK(t, !worker->disorder && !worker->ended && !worker->pid);
    CHECK_INT(t, bench_descriptors(), ==, bench.fds);
out:
    bench_close(&bench);
}

static void no_descriptor_is_left_to_start_with(struct test *t)
{
    const struct bench_worker *worker = NULL;
    int taken[4096];
    int count = 0;
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    while (count < 4096 && (taken[count] = dup(bench.fifo_fd)) >= 0)
        count++;
    for (int room = 0; room < 9 && count > 0; room++) { /* so many steps can fail */
        worker = bench_worker(&bench, bench_shell(&bench, "true"));
        BENCH_WAIT(t, &bench, bench_is_over(&bench, bench.count));
        CHECK(t, worker->ended || worker->failed == HVD_E_LIMIT);
        CHECK(t, worker->ended || strstr(worker->why, "raise ulimit -n"));
        close(taken[--count]);
    }
    CHECK(t, worker && worker->ended);
out:
    while (count > 0)
        close(taken[--count]);
    bench_close(&bench);
}

/* Whatever it has left behind, it is killed; descriptor 9 is how the test sees it alive. */
static void nothing_outlives_its_worker(struct test *t)
{
    static const char *const left[] = {
        "sleep 1000 &",                                         /* in its group */
        "setsid sleep 1000 &",                                  /* not */
        "(setsid sh -c 'sleep 1000 & sleep 1000 & wait' &)",    /* with children of its own */
        "(setsid sh -c '(setsid sleep 1000 &); sleep 1000' &)", /* twice removed */
        "env -i /usr/bin/setsid sleep 1000 &",                  /* and nameless */
        "for i in 1 2 3 4 5 6 7 8 9 0; do setsid sleep 1000 & setsid sleep 1000 & done",
    };
    struct bench bench;

    for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
        const struct bench_worker *worker;

        CHECK(t, bench_open(&bench, t));
        worker = bench_worker(
            &bench, bench_shell(&bench, "exec 9>%s\n%s\necho last; exit 4", bench.fifo, left[i]));
        BENCH_WAIT(t, &bench, bench_is_over(&bench, 1)); /* although the pipe is still open */
        CHECK(t, worker->ended == ENDED_EXIT && worker->value == 4 && !worker->disorder);
        CHECK_TEXT(t, worker->said, "last\n");
        BENCH_WAIT(t, &bench, bench.gone && bench_tidy(&bench));
        CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
        CHECK_INT(t, bench_descriptors(), ==, bench.fds);
        bench_close(&bench);
        bench = (struct bench){ .fifo_fd = -1 };
    }
out:
    bench_close(&bench);
}

static void a_kill_reaches_who_has_left_the_group(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench_shell(&bench,
                "exec 9>%s; setsid sh -c 'sleep 1000 & wait' & (setsid sleep 1000 &); "
                "echo ready; wait",
                bench.fifo);
    BENCH_WAIT(t, &bench, *bench_worker(&bench, 1)->said);
    children_kill(bench.children, 1);
    children_kill(bench.children, 77); /* nobody */
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1) && bench.gone && bench_tidy(&bench));
    CHECK_INT(t, bench_worker(&bench, 1)->value, ==, SIGKILL);
out:
    bench_close(&bench);
}

/* One that has left everything but its worker's environment stays while that lives, and its zombie
 * does not. So does one without that, while there is any worker. */
static void an_orphan_stays_with_its_worker(struct test *t)
{
    const struct bench_worker *first;
    struct bench bench;
    pid_t named;
    pid_t nameless;

    CHECK(t, bench_open(&bench, t));
    first = bench_worker(
        &bench, bench_shell(&bench, "(setsid sh -c 'echo named $$; exec sleep 1000' &); "
                                    "(env -i /usr/bin/setsid sh -c 'echo bare $$; exec sleep 1000' "
                                    "&); exec sleep 1000"));
    BENCH_WAIT(t, &bench,
               bench_pid_said(&bench, 1, "named ") && bench_pid_said(&bench, 1, "bare "));
    named = bench_pid_said(&bench, 1, "named ");
    nameless = bench_pid_said(&bench, 1, "bare ");
    bench_shell(&bench, "exit 1");
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 2) && !child_find_pid(bench.children, 0));
    BENCH_WAIT(t, &bench, list_length(&bench.children->all) == 1);
    CHECK(t, !first->ended && runs(named) && runs(nameless));
    bench_shell(&bench, "exec sleep 1000");
    BENCH_WAIT(t, &bench, bench_worker(&bench, 3)->pid);
    children_kill(bench.children, 1);
    BENCH_WAIT(t, &bench, list_length(&bench.children->all) == 1);
    CHECK(t, !runs(named) && runs(nameless));
    children_kill(bench.children, 3);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
    CHECK(t, !runs(nameless));
out:
    bench_close(&bench);
}

static void sigterm_may_be_ignored(struct test *t)
{
    const struct bench_worker *deaf;
    const struct bench_worker *other;
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    deaf = bench_worker(&bench, bench_shell(&bench, "trap 'echo no' TERM; echo ready; "
                                                    "while :; do sleep 1000 & wait; done"));
    other = bench_worker(&bench, bench_shell(&bench, "echo ready; sleep 1000 & wait"));
    BENCH_WAIT(t, &bench, *deaf->said && *other->said);
    children_term(bench.children, 1);
    children_term(bench.children, 2);
    BENCH_WAIT(t, &bench, other->ended && strstr(deaf->said, "no\n"));
    CHECK(t, other->ended == ENDED_SIGNAL && other->value == SIGTERM && !deaf->ended);
    children_kill(bench.children, 1);
    BENCH_WAIT(t, &bench, deaf->ended);
    CHECK(t, deaf->ended == ENDED_SIGNAL && deaf->value == SIGKILL);
out:
    bench_close(&bench);
}

/* Between fork and exec there is nothing to ask it yet. */
static void one_that_just_starts_can_be_ended(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench_shell(&bench, "exec sleep 1000");
    children_kill(bench.children, 1);
    bench_shell(&bench, "exec sleep 1000");
    children_term(bench.children, 2);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1) && bench_is_over(&bench, 2));
    CHECK_INT(t, bench_worker(&bench, 1)->value, ==, SIGKILL);
    CHECK_INT(t, bench_worker(&bench, 2)->value, ==, SIGTERM);
    CHECK(t, !bench_worker(&bench, 1)->disorder && !bench_worker(&bench, 2)->disorder);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
out:
    bench_close(&bench);
}

static void it_may_close_its_output(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench_shell(&bench, "echo bye; exec >&- 2>&-; exec sleep 1000");
    BENCH_WAIT(t, &bench,
               bench_worker(&bench, 1)->pid &&
                   child_find(bench.children, 1)->output[STREAM_STDOUT].fd < 0 &&
                   child_find(bench.children, 1)->output[STREAM_STDERR].fd < 0);
    CHECK(t, !bench_worker(&bench, 1)->ended);
    children_kill(bench.children, 1);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK_TEXT(t, bench_worker(&bench, 1)->said, "bye\n");
out:
    bench_close(&bench);
}

#define MUCH (100 * 1000 * 1000)

static void all_of_it_is_read(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench_shell(&bench, "head -c %d /dev/zero | tr '\\0' x", MUCH);
    bench_shell(&bench, "head -c %d /dev/zero | tr '\\0' x >&2; exit 5", MUCH);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1) && bench_is_over(&bench, 2));
    CHECK_INT(t, bench_worker(&bench, 1)->said_bytes, ==, MUCH);
    CHECK_INT(t, bench_worker(&bench, 2)->said_bytes, ==, MUCH);
    CHECK(t, !bench_worker(&bench, 1)->error && bench_worker(&bench, 2)->error);
    CHECK_INT(t, bench_worker(&bench, 2)->value, ==, 5);
out:
    bench_close(&bench);
}

/* Its pipe is full, and it waits. */
static bool waits_to_print(struct bench *bench, uint64_t number)
{
    const struct child *child = child_find(bench->children, number);
    int there = 0;

    return !child || (!ioctl(child->output[STREAM_STDOUT].fd, FIONREAD, &there) &&
                      there >= fcntl(child->output[STREAM_STDOUT].fd, F_GETPIPE_SZ));
}

static void who_prints_waits_while_output_is_held(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    children_hold_output(bench.children, true);
    bench_shell(&bench, "exec head -c %d /dev/zero", MUCH);
    bench_shell(&bench, "echo others end; exit 6");
    while (!waits_to_print(&bench, 1) && !bench.late)
        (void)event_base_loop(bench.base, EVLOOP_NONBLOCK);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 2));
    CHECK_TEXT(t, bench_worker(&bench, 2)->said, "others end\n"); /* it said why */
    CHECK_INT(t, bench_worker(&bench, 1)->said_bytes, ==, 0);
    children_hold_output(bench.children, false);
    BENCH_WAIT(t, &bench, bench_worker(&bench, 1)->said_bytes > MUCH / 10);
    children_hold_output(bench.children, true);
    children_hold_output(bench.children, true);
    children_hold_output(bench.children, false);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK_INT(t, bench_worker(&bench, 1)->said_bytes, ==, MUCH);
    CHECK(t, bench_worker(&bench, 1)->ended == ENDED_EXIT);
out:
    bench_close(&bench);
}

/* Lets its reader go on. */
static void open_fifo(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
}

static void nobody_waits_for_ever(struct test *t)
{
    const struct bench_worker *worker;
    char begin[300];
    char end[300];
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench.children->patience_us = 1000;
    snprintf(begin, sizeof(begin), "%s", bench_fifo(&bench, "begin"));
    snprintf(end, sizeof(end), "%s", bench_fifo(&bench, "end"));
    bench_shell(&bench,
                "printf begin; read go <%s; head -c %d /dev/zero | tr '\\0' x; echo; "
                "echo said >%s; read go <%s; echo end",
                begin, MUCH, bench.fifo, end);
    worker = bench_worker(&bench, 1);
    BENCH_WAIT(t, &bench, worker->said_bytes == 5);
    children_hold_output(bench.children, true);
    open_fifo(begin);
    BENCH_WAIT(t, &bench, bench.gone); /* it has printed all of it to nobody */
    while (child_find(bench.children, 1)->output[STREAM_STDOUT].dropped < MUCH + 1 && !bench.late)
        (void)event_base_loop(bench.base, EVLOOP_NONBLOCK);
    CHECK_INT(t, worker->said_bytes, ==, 5);
    children_hold_output(bench.children, false);
    open_fifo(end);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK_TEXT(t, worker->said,
               "begin\n[100000001 bytes were left out here: the driver could not "
               "take them]\nend\n");
out:
    bench_close(&bench);
}

static void who_prints_without_end_stops_nobody(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    for (int i = 0; i < 4; i++)
        bench_shell(&bench, "exec yes");
    for (int i = 0; i < 20; i++) {
        uint64_t number = bench_shell(&bench, "echo last; exit 7");

        BENCH_WAIT(t, &bench, bench_is_over(&bench, number));
        CHECK_TEXT(t, bench_worker(&bench, number)->said, "last\n");
    }
    for (uint64_t i = 1; i <= 4; i++) {
        BENCH_WAIT(t, &bench, bench_worker(&bench, i)->said_bytes > 1000000);
        children_kill(bench.children, i);
    }
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
out:
    bench_close(&bench);
}

/* Whoever keeps writing after the worker's end does not keep the end from being told. */
static void an_orphan_may_fill_the_pipe(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench_shell(&bench, "setsid yes & setsid yes & exit 8");
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK_INT(t, bench_worker(&bench, 1)->value, ==, 8);
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
    CHECK(t, !bench_worker(&bench, 1)->disorder);
out:
    bench_close(&bench);
}

static void it_is_known_who_speaks(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    bench_shell(&bench, "sh -c 'echo below $$; sleep 1000; true' & "
                        "(setsid sh -c 'echo away $$; sleep 1000; true' &) ; exec sleep 1000");
    bench_shell(&bench, "exec sleep 1000");
    BENCH_WAIT(t, &bench,
               bench_pid_said(&bench, 1, "below ") && bench_pid_said(&bench, 1, "away ") &&
                   bench_worker(&bench, 2)->pid);
    for (uint64_t i = 1; i <= 2; i++) {
        CHECK(t, children_owns(bench.children, i, bench_worker(&bench, i)->pid));
        CHECK(t, !children_owns(bench.children, i, bench_worker(&bench, 3 - i)->pid));
        CHECK(t, children_owns(bench.children, i, bench_pid_said(&bench, 1, "below ")) == (i == 1));
        CHECK(t, children_owns(bench.children, i, bench_pid_said(&bench, 1, "away ")) == (i == 1));
        CHECK(t, !children_owns(bench.children, i, getpid()));
        CHECK(t, !children_owns(bench.children, i, 1));
        CHECK(t, !children_owns(bench.children, i, 0));
        CHECK(t, children_page(bench.children, i) >= 0);
    }
    CHECK(t, !children_owns(bench.children, 3, getpid()));
    CHECK_INT(t, children_page(bench.children, 3), ==, -1);
    children_kill(bench.children, 1);
    BENCH_WAIT(t, &bench, bench_is_over(&bench, 1));
    CHECK_INT(t, children_page(bench.children, 1), ==, -1); /* it is unknown now */
    children_joined(bench.children, 1, getpid());
    children_term(bench.children, 1);
out:
    bench_close(&bench);
}

static void freeing_ends_everybody(struct test *t)
{
    struct bench bench;

    CHECK(t, bench_open(&bench, t));
    for (int i = 0; i < 8; i++)
        bench_shell(&bench,
                    "trap '' TERM; exec 9>%s; (env -i /usr/bin/setsid sleep 1000 &); "
                    "setsid sleep 1000 & echo ready; exec sleep 1000",
                    bench.fifo);
    BENCH_WAIT(t, &bench, *bench_worker(&bench, 3)->said);
    children_free(bench.children); /* some have just begun */
    bench.children = NULL;
    BENCH_WAIT(t, &bench, bench.gone);
    CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    CHECK_INT(t, bench_descriptors(), <, bench.fds); /* its eventfd and the loop's signals */
out:
    bench_close(&bench);
}

static void thousands_leave_nothing(struct test *t)
{
    const char *missing[] = { "/no/such/program", NULL };
    const char *fine[] = { "true", NULL };
    struct bench bench;
    uint64_t over = 0;

    CHECK(t, bench_open(&bench, t));
    for (int i = 0; i < 2000; i++) {
        (void)bench_spawn(&bench, "", i % 8 ? missing : fine);
        if (i % 50 < 49)
            continue;
        while (over < bench.count) {
            BENCH_WAIT(t, &bench, bench_is_over(&bench, over + 1));
            CHECK(t, !bench_worker(&bench, ++over)->disorder);
        }
    }
    BENCH_WAIT(t, &bench, bench_tidy(&bench));
    CHECK_INT(t, bench_descriptors(), ==, bench.fds);
    CHECK(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
out:
    bench_close(&bench);
}

TESTS(CASE_FLAGS(a_worker_runs_and_ends, TEST_SURVIVES_ALLOC),
      NO_TORTURE(the_end_is_told_as_it_was), NO_TORTURE(a_start_that_fails_says_why),
      NO_TORTURE(no_descriptor_is_left_to_start_with), NO_TORTURE(nothing_outlives_its_worker),
      CASE_FLAGS(a_kill_reaches_who_has_left_the_group, TEST_NO_TORTURE),
      NO_TORTURE(an_orphan_stays_with_its_worker), NO_TORTURE(sigterm_may_be_ignored),
      NO_TORTURE(one_that_just_starts_can_be_ended), NO_TORTURE(it_may_close_its_output),
      NO_TORTURE(all_of_it_is_read), NO_TORTURE(who_prints_waits_while_output_is_held),
      NO_TORTURE(nobody_waits_for_ever), NO_TORTURE(who_prints_without_end_stops_nobody),
      NO_TORTURE(an_orphan_may_fill_the_pipe), NO_TORTURE(it_is_known_who_speaks),
      NO_TORTURE(freeing_ends_everybody), NO_TORTURE(thousands_leave_nothing))
