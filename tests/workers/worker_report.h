/*
 * worker_report.h: how the test programs on the worker library report to the test that runs them:
 * by lines in files, and by an exit code. Each text begins with the name of the program.
 */
#ifndef TESTS_WORKERS_WORKER_REPORT_H
#define TESTS_WORKERS_WORKER_REPORT_H

#include "base/base.h"
#include "hvd/hvd.h"

#define WORKER_WRONG    9     /* exit code: a number is wrong */
#define WORKER_OWN_CODE (-77) /* the result of a train that fails on purpose */

/* Prints what is missing or what hvd_last_error says, and ends the process with this status. */
NORETURN void worker_give_up(int status, const char *what);

/* Prints what is wrong, and ends the process with WORKER_WRONG. */
NORETURN void worker_wrong(const char *format, ...) PRINTF_LIKE(1, 2);

/* The exit code for the result of hvd_elastic_run; prints the error, if there was one. */
int worker_status(int rc);

/* Appends a line to the file in one write, so that lines of several processes do not mix. A NULL
 * path: nothing is written. */
void worker_append(const char *path, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends a text of any length in the same way. */
void worker_append_text(const char *path, const char *text, size_t length);

/* Appends "incarnation round rank size"; for a reset callback. */
void worker_say_round(const char *path);

const char *worker_variable(const char *name, const char *otherwise);

static inline const char *worker_incarnation(void)
{
    return worker_variable("HVD_INCARNATION", "0");
}

/* Waits for the time of a step. */
void worker_pass(uint64_t ms);

#endif
