/*
 * test_main.c: the main of every unit test: runs the cases that TEST has put on the list of the
 * program, each in a process of its own under Check, or under torture with --torture. It is in a
 * file of its own because the linker takes it only for a program that has no main.
 */
#include "tests/lib/heap.h"
#include "tests/lib/torture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define CASE_TIMEOUT_S 250 /* the programs have 300 from CTest */

/* The names that the linker gives to both ends of the section with the list of cases. */
extern const struct test_case *const first_case[] __asm__("__start_test_cases");
extern const struct test_case *const end_of_cases[] __asm__("__stop_test_cases");

START_TEST(run_case)
{
    static struct test t;

    test_die_with_parent();
    heap_use();
    test_run_case(&t, first_case[_i]);
    if (t.failed)
        ck_abort_msg("%s: %s", t.name, t.why);
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

int main(int argc, char **argv)
{
    size_t count = (size_t)(end_of_cases - first_case);
    const char *file = first_case[0]->file;
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    bool torture = argc > 1 && !strcmp(argv[1], "--torture");
    int status;

    if (argc > 2 || (argc == 2 && !torture)) {
        fprintf(stderr, "usage: %s [--torture]\n", argv[0]);
        return 2;
    }
    test_work_begin();
    status = torture ? torture_run(name, first_case, count) : run_under_check(name, count);
    test_work_end();
    return status;
}
