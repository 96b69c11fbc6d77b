/*
 * fail.h: the error text that hvd_last_error returns. Each thread has its own text.
 */
#ifndef WORKER_FAIL_H
#define WORKER_FAIL_H

#include "base/err.h"

/* Returns the error of the calling thread, which functions that may fail take as their last
 * parameter. */
struct hvd_err *fail_err(void);

/* Sets the error of the calling thread and returns the code. */
int fail(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sets the error of the calling thread to the general text of an error code; 0 and news leave
 * the error as it is. Returns the code. */
int fail_plain(int code);

#endif
