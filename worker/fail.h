/*
 * fail.h: what hvd_last_error says. Each thread has its own.
 */
#ifndef WORKER_FAIL_H
#define WORKER_FAIL_H

#include "base/err.h"

/* Where a call that fails puts its reason: the last parameter of whatever it calls. */
struct hvd_err *fail_err(void);

/* Notes the reason and returns the code. */
int fail(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* For codes of functions that give no reason: 0 stays 0, news stay as they are, an error gets its
 * sentence. */
int fail_plain(int code);

#endif
