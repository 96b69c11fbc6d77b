/*
 * test.h: how a unit test is written here.
 *
 *     static void keeps_order(struct test *t)
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
 *     TESTS(CASE(keeps_order), CASE_ALONE(other))
 *
 * A failing CHECK notes why and goes to `out`, where the test frees what it made. That single exit
 * is what lets the same test run under torture: the k-th allocation (or store write) fails, for
 * every k, and then the test may fail, but it must not crash, hang or leave a block behind, and
 * the failure must not be swallowed.
 *
 * The program runs the cases under Check, each in a process of its own; with --torture it runs the
 * torture instead.
 */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include "base/err.h"

struct test {
    const char *name;
    bool failed;
    char why[1024];
};

/* The faults that a case may outlive without noticing are named with its flags. */
#define TEST_SURVIVES_ALLOC 0x1u /* e.g. the allocation is an optimisation */
#define TEST_SURVIVES_STORE 0x2u /* e.g. the write is tried again */
#define TEST_NO_TORTURE     0x4u /* forks, aborts, has its own faults, or is all volume */

struct test_case {
    const char *name;
    void (*run)(struct test *t);
    unsigned flags;
};

#define CASE(function)         \
    {                          \
#function, function, 0 \
    }
#define CASE_FLAGS(function, flags) \
    {                               \
#function, function, flags  \
    }

#define TESTS(...)                                                                  \
    static const struct test_case test_cases[] = { __VA_ARGS__ };                   \
    int main(int argc, char **argv)                                                 \
    {                                                                               \
        return test_main(argc, argv, __FILE__, test_cases, ARRAY_SIZE(test_cases)); \
    }

int test_main(int argc, char **argv, const char *file, const struct test_case *cases, size_t count);

void test_fail(struct test *t, const char *file, int line, const char *format, ...)
    PRINTF_LIKE(4, 5);

#define CHECK(t, condition)                                     \
    do {                                                        \
        if (!(condition)) {                                     \
            test_fail(t, __FILE__, __LINE__, "%s", #condition); \
            goto out;                                           \
        }                                                       \
    } while (0)

#define CHECK_INT(t, left, op, right)                                                    \
    do {                                                                                 \
        long long left_value = (long long)(left);                                        \
        long long right_value = (long long)(right);                                      \
        if (!(left_value op right_value)) {                                              \
            test_fail(t, __FILE__, __LINE__, "%s %s %s: %lld, %lld", #left, #op, #right, \
                      left_value, right_value);                                          \
            goto out;                                                                    \
        }                                                                                \
    } while (0)

#define CHECK_OK(t, call)                                                            \
    do {                                                                             \
        int code_value = (call);                                                     \
        if (code_value) {                                                            \
            test_fail(t, __FILE__, __LINE__, "%s: %s", #call, err_name(code_value)); \
            goto out;                                                                \
        }                                                                            \
    } while (0)

#define CHECK_CODE(t, call, code)                                                           \
    do {                                                                                    \
        int code_value = (call);                                                            \
        if (code_value != (code)) {                                                         \
            test_fail(t, __FILE__, __LINE__, "%s: %s, not %s", #call, err_name(code_value), \
                      #code);                                                               \
            goto out;                                                                       \
        }                                                                                   \
    } while (0)

#define CHECK_TEXT(t, left, right)                                                           \
    do {                                                                                     \
        const char *left_text = (left);                                                      \
        const char *right_text = (right);                                                    \
        if (!test_same_text(left_text, right_text)) {                                        \
            test_fail(t, __FILE__, __LINE__, "%s is\n  '%s', not\n  '%s'", #left,            \
                      left_text ? left_text : "(null)", right_text ? right_text : "(null)"); \
            goto out;                                                                        \
        }                                                                                    \
    } while (0)

/* The text holds the part: for messages whose wording may still change around it. */
#define CHECK_HAS(t, text, part)                                                                  \
    do {                                                                                          \
        const char *whole_text = (text);                                                          \
        if (!test_has_text(whole_text, part)) {                                                   \
            test_fail(t, __FILE__, __LINE__, "%s is '%s' without '%s'", #text, whole_text, part); \
            goto out;                                                                             \
        }                                                                                         \
    } while (0)

/* The statement panics, and what it wrote to standard error holds the part. Runs it in a fork. */
#define CHECK_PANICS(t, part, ...)                          \
    do {                                                    \
        int panic_fd = test_panic_begin();                  \
        if (panic_fd < 0) {                                 \
            __VA_ARGS__;                                    \
            test_panic_missed();                            \
        }                                                   \
        if (!test_panic_end(t, panic_fd, part)) {           \
            test_fail(t, __FILE__, __LINE__, "%s", t->why); \
            goto out;                                       \
        }                                                   \
    } while (0)

bool test_same_text(const char *left, const char *right);
bool test_has_text(const char *whole, const char *part);
int test_panic_begin(void);
NORETURN void test_panic_missed(void);
bool test_panic_end(struct test *t, int fd, const char *part);

/* A fresh directory for this case, on memory if the machine has it; removed by test_main. */
const char *test_dir(struct test *t);

#endif
