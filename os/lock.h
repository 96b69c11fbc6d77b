/*
 * lock.h: a file that one living process has. The lock ends with the descriptor, however that ends;
 * the file stays, and in it the pid of who had it last.
 */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/err.h"

#include <sys/types.h>

/*
 * Makes the file when it is missing (mode 0600). Never waits. HVD_E_BUSY when a process has it:
 * then *ret_holder is its pid, or 0 when that cannot be told (it is untouched otherwise);
 * HVD_E_NOTFOUND, HVD_E_DENIED, HVD_E_FULL, HVD_E_UNSUPPORTED, HVD_E_IO. The descriptor is closed
 * to give the lock back; it is not passed on to a program that is started.
 */
int lock_take(const char *path, int *ret_fd, pid_t *ret_holder, struct hvd_err *err) MUST_CHECK;

/* Takes it although a process seems to have it: that one keeps a file which has no name any more.
 * As lock_take otherwise. */
int lock_take_over(const char *path, int *ret_fd, struct hvd_err *err) MUST_CHECK;

#endif
