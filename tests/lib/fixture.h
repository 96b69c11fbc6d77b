/*
 * fixture.h: for a test file whose cases share their beginning and their end:
 *
 *     static struct script s;
 *
 *     static void begin(struct test *t)
 *     {
 *         CHECK_OK(t, script_init(&s));
 *     }
 *
 *     static void end(struct test *t)
 *     {
 *         script_release(&s);
 *     }
 *     FIXTURE(begin, end)
 *
 * `begin` runs before each case and `end` after it, also after a case that has failed. So a case of
 * such a file has no label `out`: a CHECK that fails leaves the case by longjmp, also from a
 * function that the case has called. `end` has to free what a case makes. A file whose cases make
 * nothing to free includes fixture.h and needs no FIXTURE. A thread of a case must not CHECK.
 */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include "tests/lib/test.h"

/* Either function may be NULL. */
struct test_fixture {
    void (*begin)(struct test *t);
    void (*end)(struct test *t);
};

#define FIXTURE(begin, end)                        \
    extern const struct test_fixture test_fixture; \
    const struct test_fixture test_fixture = { begin, end };

NORETURN void test_leave(struct test *t);

#undef TEST_LEAVE
#define TEST_LEAVE(t) test_leave(t)

#endif
