/*
 * last_error.h: what hvd_last_error shows.
 */
#ifndef WORKER_LAST_ERROR_H
#define WORKER_LAST_ERROR_H

#include "base/err.h"

/* This thread's, to be filled in by the call that fails. */
struct hvd_err *last_error(void);

#endif
