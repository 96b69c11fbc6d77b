/*
 * test.c: the functions that the checks of test.h call: notes on a failure, panics in a fork,
 * directories of a case. Programs with a main of their own use it too; the main of unit tests is in
 * test_main.c.
 */
#include "tests/lib/test.h"

#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/torture.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HVD_COVER
#include <gcov.h>
#endif

static char work_root[64];

void test_fail(struct test *t, const char *file, int line, const char *format, ...)
{
    char text[800];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    t->failed = true;
    snprintf(t->why, sizeof(t->why), "%s:%d: %s", file, line, text);
}

bool test_same_text(const char *left, const char *right)
{
    return left && right ? !strcmp(left, right) : left == right;
}

bool test_has_text(const char *whole, const char *part)
{
    return whole && strstr(whole, part);
}

/* An abort loses the counts for the coverage report. So a child that panics on purpose writes its
 * own counts first, without those that it had at the fork. */
#ifdef HVD_COVER
static void dump_coverage(int signal_number)
{
    (void)signal_number;
    __gcov_dump();
}

static void keep_coverage(void)
{
    __gcov_reset();
    signal(SIGABRT, dump_coverage);
}
#else
static void keep_coverage(void)
{
}
#endif

/* Forks. The child gets -1 and continues with its standard error in a pipe; the parent gets the
 * read end of the pipe. */
int test_panic_begin(void)
{
    int fds[2];
    pid_t child;

    if (pipe2(fds, O_CLOEXEC))
        abort();
    fflush(NULL);
    child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        struct rlimit none = { 0, 0 };

        setrlimit(RLIMIT_CORE, &none);
        dup2(fds[1], STDERR_FILENO);
        keep_coverage();
        return -1;
    }
    close(fds[1]);
    return fds[0];
}

NORETURN void test_panic_missed(void)
{
    _exit(0);
}

bool test_panic_end(struct test *t, int fd, const char *part)
{
    char said[8192];
    size_t length = 0;
    ssize_t got;
    int status;

    while (length < sizeof(said) - 1 &&
           (got = read(fd, said + length, sizeof(said) - 1 - length)) > 0)
        length += (size_t)got;
    said[length] = '\0';
    close(fd);
    if (wait(&status) < 0)
        abort();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, part))
        return true;
    snprintf(t->why, sizeof(t->why), "no panic with '%s' (status %d): %.600s", part, status, said);
    return false;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

void test_work_end(void)
{
    if (work_root[0])
        nftw(work_root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_dir(struct test *t)
{
    static char path[256];
    static unsigned serial;

    snprintf(path, sizeof(path), "%s/%s.%d.%u", work_root, t->name, (int)getpid(), serial++);
    if (mkdir(path, 0700))
        abort();
    return path;
}

void test_work_begin(void)
{
    const char *base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

    snprintf(work_root, sizeof(work_root), "%s/hvd-test-XXXXXX", base);
    if (!mkdtemp(work_root)) {
        perror(work_root);
        exit(2);
    }
}

/* The fixture of the program, if it has one. */
extern const struct test_fixture test_fixture __attribute__((weak));

NORETURN void test_leave(struct test *t)
{
    longjmp(t->leave, 1);
}

void test_run_case(struct test *t, const struct test_case *test)
{
    const struct test_fixture *fixture = &test_fixture;
    size_t before = heap_blocks();

    *t = (struct test){ .name = test->name };
    if (!setjmp(t->leave)) {
        if (fixture && fixture->begin)
            fixture->begin(t);
        test->run(t);
    }
    if (fixture && fixture->end && !setjmp(t->leave))
        fixture->end(t);
    if (!t->failed && heap_blocks() != before)
        test_fail(t, test->name, 0, "leaves %zu blocks allocated", heap_blocks() - before);
}

void test_die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}
