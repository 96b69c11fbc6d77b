/*
 * fail.h: the error text that hvd_last_error returns. Each thread has its own text.
 */
#ifndef WORKER_FAIL_H
#define WORKER_FAIL_H

#include "base/err.h"

/* Returns the error of the calling thread, which functions that may fail take as their last
 * parameter. */
struct hvd_err *fail_err(void);

/* Clears the last error: called at the beginning of each function of hvd.h that may fail, except
 * those that only ask. fail_latest still finds the cleared error. */
void fail_begin(void);
/* Forgets the error, also for fail_latest: a call has handled the failure, and succeeds. */
void fail_forget(void);
/* Returns the latest failure of this thread, also if calls that came after it have succeeded
 * (fail_begin keeps the failure). */
const struct hvd_err *fail_latest(void);

/* Sets the error of the calling thread and returns the code. */
int fail(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sets the error of the calling thread to the general text of an error code; 0 and news leave
 * the error as it is. Returns the code. */
int fail_plain(int code);

#endif
