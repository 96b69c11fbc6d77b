#include "tests/lib/test.h"

#include "tests/lib/heap.h"
#include "tests/lib/torture.h"

#include <check.h>
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

#define CASE_TIMEOUT_S 120

static const struct test_case *running;
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

/* An abort drops what the process has counted for the coverage report; a child that panics on
 * purpose writes its own counts first, without those it was forked with. */
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

/* The child gets -1 and runs on with its standard error in the pipe; the parent gets the other end.
 */
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

static void remove_work(void)
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

static void make_work_root(void)
{
    const char *base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

    snprintf(work_root, sizeof(work_root), "%s/hvd-test-XXXXXX", base);
    if (!mkdtemp(work_root)) {
        perror(work_root);
        exit(2);
    }
}

void test_run_case(struct test *t, const struct test_case *test)
{
    size_t before = heap_blocks();

    *t = (struct test){ .name = test->name };
    test->run(t);
    if (!t->failed && heap_blocks() != before)
        test_fail(t, test->name, 0, "leaves %zu blocks allocated", heap_blocks() - before);
}

void test_die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void run_one(int index)
{
    static struct test t;

    test_die_with_parent();
    heap_use();
    test_run_case(&t, &running[index]);
    if (t.failed)
        ck_abort_msg("%s: %s", running[index].name, t.why);
}

START_TEST(run_case)
{
    run_one(_i);
}
END_TEST

static int run_under_check(const char *file, size_t count)
{
    Suite *suite = suite_create(file);
    TCase *tcase = tcase_create(file);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, CASE_TIMEOUT_S);
    tcase_add_loop_test(tcase, run_case, 0, (int)count);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

int test_main(int argc, char **argv, const char *file, const struct test_case *cases, size_t count)
{
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    bool torture = argc > 1 && !strcmp(argv[1], "--torture");
    int status;

    if (argc > 2 || (argc == 2 && !torture)) {
        fprintf(stderr, "usage: %s [--torture]\n", argv[0]);
        return 2;
    }
    running = cases;
    make_work_root();
    status = torture ? torture_run(name, cases, count) : run_under_check(name, count);
    remove_work();
    return status;
}
