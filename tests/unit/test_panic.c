/*
 * test_panic.c: base/panic: an assertion that fails says where and what, asks the dumpers in
 * order, and aborts even if a dumper panics.
 */
#include "base/panic.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void write_text(const char *text)
{
    panic_write(text, strlen(text));
}

static void dump_first(struct panic_dumper *dumper)
{
    (void)dumper;
    write_text("first remembers\n");
}

static void dump_second(struct panic_dumper *dumper)
{
    (void)dumper;
    write_text("second remembers\n");
}

static void must_not_be_asked(struct panic_dumper *dumper)
{
    (void)dumper;
    _exit(0);
}

static void dump_and_panic(struct panic_dumper *dumper)
{
    (void)dumper;
    PANIC("the dumper is broken too");
}

TEST(an_assertion_that_holds_is_silent)
{
    int evaluated = 0;

    ASSERT(++evaluated == 1);
    CHECK_INT(t, evaluated, ==, 1);
out:;
}

TEST_FLAGS(says_where_and_what, TEST_NO_TORTURE)
{
    CHECK_PANICS(t, "bug in hvd-elastic: ", ASSERT(1 + 1 == 3));
    CHECK_PANICS(t, "test_panic.c:", ASSERT(1 + 1 == 3));
    CHECK_PANICS(t, ": says_where_and_what: 1 + 1 == 3\n", ASSERT(1 + 1 == 3));
    CHECK_PANICS(t, "a.c:7: f: slot 3 is gone\n", panic("a.c", 7, "f", "slot %d is %s", 3, "gone"));
    CHECK_PANICS(t, ": 5 % 2 == 0\n", ASSERT(5 % 2 == 0));
out:;
}

TEST_FLAGS(long_text_is_cut, TEST_NO_TORTURE)
{
    char big[1000];

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    CHECK_PANICS(t, "a.c:1: f: xxxx", panic("a.c", 1, "f", "%s", big));
    CHECK_PANICS(t, "xxxx\n", panic("a.c", 1, "f", "%s", big));
    CHECK_PANICS(t, "xxxx\n", panic(big, 1, "f", "not reached"));
out:;
}

TEST_FLAGS(dumpers_are_asked_in_order, TEST_NO_TORTURE)
{
    struct panic_dumper first = { .dump = dump_first };
    struct panic_dumper second = { .dump = dump_second };

    panic_add_dumper(&first);
    panic_add_dumper(&second);
    CHECK_PANICS(t, ": lost\nfirst remembers\nsecond remembers\n", PANIC("lost"));
    panic_remove_dumper(&first);
    CHECK_PANICS(t, ": lost\nsecond remembers\n", PANIC("lost"));
out:
    panic_remove_dumper(&first);
    panic_remove_dumper(&second);
}

/* Its own panic is told, the others are not asked again, and the process still ends. */
TEST_FLAGS(a_dumper_that_panics_ends_the_dump, TEST_NO_TORTURE)
{
    struct panic_dumper broken = { .dump = dump_and_panic };
    struct panic_dumper second = { .dump = must_not_be_asked };

    panic_add_dumper(&broken);
    panic_add_dumper(&second);
    CHECK_PANICS(t, ": lost\nbug in hvd-elastic: ", PANIC("lost"));
    CHECK_PANICS(t, ": dump_and_panic: the dumper is broken too\n", PANIC("lost"));
out:
    panic_remove_dumper(&broken);
    panic_remove_dumper(&second);
}

TEST_FLAGS(aborts_without_standard_error, TEST_NO_TORTURE)
{
    CHECK_PANICS(t, "", close(STDERR_FILENO); PANIC("unheard"));
out:;
}

/* A full pipe. The third SIGALRM empties the pipe, so the first two signals interrupt a write that
 * waits for room. */
static int full_pipe[2];
static volatile sig_atomic_t alarms;

static void empty_the_pipe(int signal_number)
{
    char bytes[4096];
    int saved = errno;

    (void)signal_number;
    if (++alarms == 3) {
        while (read(full_pipe[0], bytes, sizeof(bytes)) > 0)
            ;
    }
    errno = saved;
}

static bool fill_a_pipe(void)
{
    static const char bytes[4096];

    if (pipe2(full_pipe, O_CLOEXEC | O_NONBLOCK))
        return false;
    while (write(full_pipe[1], bytes, sizeof(bytes)) > 0)
        ;
    return fcntl(full_pipe[1], F_SETFL, 0) == 0;
}

static int tick_every(long us)
{
    struct itimerval timer = { .it_interval.tv_usec = us, .it_value.tv_usec = us };

    return setitimer(ITIMER_REAL, &timer, NULL);
}

TEST_FLAGS(a_signal_does_not_cut_what_is_written, TEST_NO_TORTURE)
{
    struct sigaction action = { .sa_handler = empty_the_pipe };
    char said[8] = "";
    int saved = dup(STDERR_FILENO);

    CHECK(t, saved >= 0 && fill_a_pipe());
    CHECK(t, dup2(full_pipe[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK_OK(t, sigaction(SIGALRM, &action, NULL));
    CHECK_OK(t, tick_every(2000));
    write_text("kept");
    CHECK_OK(t, tick_every(0));
    CHECK(t, alarms >= 3);
    CHECK_INT(t, read(full_pipe[0], said, sizeof(said)), ==, 4);
    CHECK_TEXT(t, said, "kept");
out:
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(full_pipe[0]);
    close(full_pipe[1]);
}
