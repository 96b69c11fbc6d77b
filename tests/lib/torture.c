/*
 * torture.c: runs a case once to count its operations, then once for every k with the k-th
 * failing. Each case has a process of its own, so that a crash or a hang is one result among
 * others.
 */
#include "tests/lib/torture.h"

#include "tests/lib/fault.h"
#include "tests/lib/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* the time limit of a run; a run takes milliseconds, also under sanitizers on a busy machine */
#define HANG_S 180

/* Memory shared with the child, so that the parent can report where a child crashed or hung. */
struct progress {
    enum fault_kind kind;
    uint64_t k;
    uint64_t runs;
    char wrong[1200];
};

/* One run with the k-th operation failing. false: it did not end in order, and progress has the
 * reason. */
static bool run_with_fault(const struct test_case *test, struct progress *progress)
{
    static struct test t;
    size_t before = heap_blocks();
    bool delivered;

    alarm(HANG_S);
    fault_arm(progress->kind, progress->k);
    test_run_case(&t, test);
    delivered = fault_delivered(progress->kind);
    progress->runs++;
    if (heap_blocks() != before)
        snprintf(progress->wrong, sizeof(progress->wrong), "%zu blocks leaked",
                 heap_blocks() - before);
    else if (delivered && !t.failed &&
             !(test->flags &
               (progress->kind == FAULT_ALLOC ? TEST_SURVIVES_ALLOC : TEST_SURVIVES_STORE)))
        snprintf(progress->wrong, sizeof(progress->wrong), "the failure was swallowed");
    else if (!delivered && t.failed)
        snprintf(progress->wrong, sizeof(progress->wrong), "failed without a fault: %.1000s",
                 t.why);
    else
        return true;
    return false;
}

/* The child: runs every k of every kind; at exit the leak checker decides too. */
NORETURN static void torture_case(const struct test_case *test, struct progress *progress)
{
    test_die_with_parent();
    heap_use();
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        bool more = true;

        progress->kind = (enum fault_kind)kind;
        /* The runs are more or fewer than the counted operations: a run that fails early makes
         * fewer, a run that retries makes more. So the loop ends when k is beyond the last
         * operation of a run. */
        for (progress->k = 0; more; progress->k++) {
            if (!run_with_fault(test, progress))
                _exit(1);
            more = progress->k == 0 ? fault_count(progress->kind) > 0
                                    : fault_delivered(progress->kind);
        }
        fault_arm(progress->kind, 0); /* the last fault has not happened, so it must be disarmed */
    }
    exit(0);
}

static bool case_holds(const char *suite, const struct test_case *test, struct progress *progress)
{
    int status;
    pid_t child;

    memset(progress, 0, sizeof(*progress));
    fflush(NULL);
    child = fork();
    if (child < 0)
        abort();
    if (child == 0)
        torture_case(test, progress);
    if (waitpid(child, &status, 0) != child)
        abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(progress->wrong, sizeof(progress->wrong), "hangs");
    else if (!progress->wrong[0])
        snprintf(progress->wrong, sizeof(progress->wrong), "crashes (status %d)", status);
    fprintf(stderr, "%s: %s with %s %llu failing: %s\n", suite, test->name,
            fault_name(progress->kind), (unsigned long long)progress->k, progress->wrong);
    return false;
}

int torture_run(const char *suite, const struct test_case *const *cases, size_t count)
{
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned long long runs = 0;
    size_t tortured = 0;
    size_t broken = 0;

    if (progress == MAP_FAILED)
        abort();
    for (size_t i = 0; i < count; i++) {
        if (cases[i]->flags & TEST_NO_TORTURE)
            continue;
        tortured++;
        if (!case_holds(suite, cases[i], progress))
            broken++;
        runs += progress->runs;
    }
    munmap(progress, sizeof(*progress));
    printf("%s: %zu cases, %llu runs with a fault, %zu broken (%zu cases cannot be tortured)\n",
           suite, tortured, runs, broken, count - tortured);
    return broken ? 1 : 0;
}
