/*
 * torture.h: runs each case once to count, then once for every k with the k-th operation failing.
 */
#ifndef TESTS_LIB_TORTURE_H
#define TESTS_LIB_TORTURE_H

#include "tests/lib/test.h"

/* 0 when every run ended in order; prints one line per case and a total. */
int torture_run(const char *suite, const struct test_case *cases, size_t count);

/* A child that hangs must not outlive whoever gave up waiting for its parent. */
void test_die_with_parent(void);

/* One run of one case, blocks counted. */
void test_run_case(struct test *t, const struct test_case *test);

#endif
