/*
 * torture.h: runs each case once to count its operations, then once for every k with the k-th
 * operation failing.
 */
#ifndef TESTS_LIB_TORTURE_H
#define TESTS_LIB_TORTURE_H

#include "tests/lib/test.h"

/* 0: every run ended in order. Prints one line per case and a total. */
int torture_run(const char *suite, const struct test_case *const *cases, size_t count);

/* The calling process dies when its parent dies, so that a child that hangs does not stay behind.
 */
void test_die_with_parent(void);

/* Runs one case once, and checks that it leaves no block of memory. */
void test_run_case(struct test *t, const struct test_case *test);

/* Makes and removes the folder in which test_dir makes the directories of the cases. */
void test_work_begin(void);
void test_work_end(void);

#endif
