/*
 * test_parallel.c: os/parallel: each number is done once, and the first failure by number counts.
 */
#include "state/snapshot/parallel.h"

#include "state/snapshot/memory_left.h"
#include "tests/lib/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define NUMBERS 1000

struct tally {
    _Atomic int times[NUMBERS];
    _Atomic int unblocked; /* threads beside the caller that a signal may interrupt */
    pthread_t caller;
    uint64_t fails_from;
};

static int count(void *arg, uint64_t number)
{
    struct tally *tally = arg;
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!pthread_equal(pthread_self(), tally->caller) && !sigismember(&blocked, SIGTERM))
        tally->unblocked++;
    tally->times[number]++;
    return number >= tally->fails_from ? -(int)number : 0;
}

TEST_FLAGS(each_number_once, TEST_NO_TORTURE)
{
    static const unsigned threads[] = { 0, 1, 2, 5, LIMIT_COPY_THREADS, 1000 };
    sigset_t blocked;
    uint64_t failed;

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        struct tally tally = { .caller = pthread_self(), .fails_from = NUMBERS };

        CHECK_OK(t, parallel_for(3, NUMBERS, threads[i], count, &tally, &failed));
        for (int k = 0; k < NUMBERS; k++)
            CHECK_INT(t, tally.times[k], ==, k >= 3);
        CHECK_INT(t, tally.unblocked, ==, 0);
        pthread_sigmask(SIG_SETMASK, NULL, &blocked);
        CHECK(t, !sigismember(&blocked, SIGTERM));
    }
}

TEST(no_item_calls_no_function)
{
    struct tally tally = { .caller = pthread_self(), .fails_from = 0 };
    uint64_t failed;

    CHECK_OK(t, parallel_for(5, 5, 0, count, &tally, &failed));
    CHECK_OK(t, parallel_for(6, 5, 4, count, &tally, &failed));
    CHECK_INT(t, tally.times[5], ==, 0);
}

TEST_FLAGS(the_lowest_failure_counts, TEST_NO_TORTURE)
{
    for (unsigned threads = 1; threads < 8; threads++) {
        struct tally tally = { .caller = pthread_self(), .fails_from = 17 };
        uint64_t failed = 0;

        CHECK_INT(t, parallel_for(1, NUMBERS, threads, count, &tally, &failed), ==, -17);
        CHECK_INT(t, failed, ==, 17);
        CHECK_INT(t, tally.times[NUMBERS - 1], ==, 0);
    }
}

TEST(reads_what_the_kernel_says)
{
    static const char text[] = "MemTotal:       24666252 kB\nMemFree:\t\t5 kB\nHuge: x\nLast: 9";

    CHECK_INT(t, memory_number(text, "MemTotal:"), ==, 24666252);
    CHECK_INT(t, memory_number(text, "MemFree:"), ==, 5);
    CHECK_INT(t, memory_number(text, "Last:"), ==, 9);
    CHECK_INT(t, memory_number("12345\n", ""), ==, 12345);
    CHECK(t, memory_number("max\n", "") == UINT64_MAX);
    CHECK(t, memory_number(text, "Huge:") == UINT64_MAX);
    CHECK(t, memory_number(text, "Free:") == UINT64_MAX);
    CHECK(t, memory_number("", "x") == UINT64_MAX);
    CHECK(t, memory_left() > 0);
}
