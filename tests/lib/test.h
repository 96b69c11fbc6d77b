/*
 * test.h: how a unit test is written here.
 *
 *     TEST(keeps_order)
 *     {
 *         struct hosts hosts;
 *
 *         hosts_init(&hosts);
 *         CHECK_OK(t, hosts_add(&hosts, "a", 2));
 *         CHECK_INT(t, hosts.count, ==, 1);
 *     out:
 *         hosts_release(&hosts);
 *     }
 *
 * Each TEST of a program is run by the main of testlib; TEST_FLAGS names the faults that do not
 * apply to a case. In the body `t` is the running case.
 *
 * A failing CHECK notes why and jumps to `out`, where the test frees what it made. That single exit
 * is what lets the same test run under torture: the k-th allocation (or store write) fails, for
 * every k, and then the test may fail, but it must not crash, hang or leave a block behind, and
 * the failure must not be swallowed. A file whose cases all free the same has a fixture instead of
 * the label: fixture.h.
 *
 * The program runs the cases under Check, each in a process of its own; with --torture it runs the
 * torture instead.
 */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include "base/err.h"

#include <setjmp.h>

struct test {
    const char *name;
    bool failed;
    char why[1024];
    jmp_buf leave; /* fixture.h */
};

/* Faults of which a case may fail to notice one are named in its flags. */
#define TEST_SURVIVES_ALLOC 0x1u /* e.g. the allocation is an optimisation */
#define TEST_SURVIVES_STORE 0x2u /* e.g. the write is repeated */
#define TEST_NO_TORTURE     0x4u /* the case forks, aborts, has own faults, or is large */

struct test_case {
    const char *name;
    const char *file;
    void (*run)(struct test *t);
    unsigned flags;
};

/* A list of all cases of the program: the linker collects the entries of the section. */
#define TEST_FLAGS(function, case_flags)                                                           \
    static void function(struct test *t);                                                          \
    static const struct test_case function##_case = { #function, __FILE__, function, case_flags }; \
    static const struct test_case *const function##_entry                                          \
        __attribute__((section("test_cases"), used)) = &function##_case;                           \
    static void function(struct test *t)

#define TEST(function) TEST_FLAGS(function, 0)

void test_fail(struct test *t, const char *file, int line, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* Where a CHECK that fails continues; fixture.h replaces it. */
#define TEST_LEAVE(t) goto out

#define CHECK(t, condition)                                     \
    do {                                                        \
        if (!(condition)) {                                     \
            test_fail(t, __FILE__, __LINE__, "%s", #condition); \
            TEST_LEAVE(t);                                      \
        }                                                       \
    } while (0)

#define CHECK_INT(t, left, op, right)                                                    \
    do {                                                                                 \
        long long left_value = (long long)(left);                                        \
        long long right_value = (long long)(right);                                      \
        if (!(left_value op right_value)) {                                              \
            test_fail(t, __FILE__, __LINE__, "%s %s %s: %lld, %lld", #left, #op, #right, \
                      left_value, right_value);                                          \
            TEST_LEAVE(t);                                                               \
        }                                                                                \
    } while (0)

#define CHECK_OK(t, call)                                                            \
    do {                                                                             \
        int code_value = (call);                                                     \
        if (code_value) {                                                            \
            test_fail(t, __FILE__, __LINE__, "%s: %s", #call, err_name(code_value)); \
            TEST_LEAVE(t);                                                           \
        }                                                                            \
    } while (0)

#define CHECK_CODE(t, call, code)                                                           \
    do {                                                                                    \
        int code_value = (call);                                                            \
        if (code_value != (code)) {                                                         \
            test_fail(t, __FILE__, __LINE__, "%s: %s, not %s", #call, err_name(code_value), \
                      #code);                                                               \
            TEST_LEAVE(t);                                                                  \
        }                                                                                   \
    } while (0)

#define CHECK_TEXT(t, left, right)                                                           \
    do {                                                                                     \
        const char *left_text = (left);                                                      \
        const char *right_text = (right);                                                    \
        if (!test_same_text(left_text, right_text)) {                                        \
            test_fail(t, __FILE__, __LINE__, "%s is\n  '%s', not\n  '%s'", #left,            \
                      left_text ? left_text : "(null)", right_text ? right_text : "(null)"); \
            TEST_LEAVE(t);                                                                   \
        }                                                                                    \
    } while (0)

/* The text contains the part: for messages whose other words may change. */
#define CHECK_HAS(t, text, part)                                                                  \
    do {                                                                                          \
        const char *whole_text = (text);                                                          \
        if (!test_has_text(whole_text, part)) {                                                   \
            test_fail(t, __FILE__, __LINE__, "%s is '%s' without '%s'", #text, whole_text, part); \
            TEST_LEAVE(t);                                                                        \
        }                                                                                         \
    } while (0)

/* The statement panics, and its standard error contains the part. The statement runs in a fork. */
#define CHECK_PANICS(t, part, ...)                          \
    do {                                                    \
        int panic_fd = test_panic_begin();                  \
        if (panic_fd < 0) {                                 \
            __VA_ARGS__;                                    \
            test_panic_missed();                            \
        }                                                   \
        if (!test_panic_end(t, panic_fd, part)) {           \
            test_fail(t, __FILE__, __LINE__, "%s", t->why); \
            TEST_LEAVE(t);                                  \
        }                                                   \
    } while (0)

bool test_same_text(const char *left, const char *right);
bool test_has_text(const char *whole, const char *part);
int test_panic_begin(void);
NORETURN void test_panic_missed(void);
bool test_panic_end(struct test *t, int fd, const char *part);

/* A new directory for this case, in memory if the machine has such a file system; test_main removes
 * it. */
const char *test_dir(struct test *t);

#endif
