/*
 * lock.h: a file that one living process holds. The lock ends with the descriptor; the file stays,
 * with the pid of its last holder.
 */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/err.h"

#include <sys/types.h>

/*
 * Takes the lock without waiting; creates the file (mode 0600) when it is missing. HVD_E_BUSY:
 * another process holds the lock, and *ret_holder is its pid, or 0 when the pid is not known. 0:
 * *ret_holder is the pid of the last holder, 0 if there was none. Other errors: HVD_E_NOTFOUND,
 * HVD_E_DENIED, HVD_E_FULL, HVD_E_UNSUPPORTED, HVD_E_IO. Closing the descriptor releases the lock;
 * programs that are started do not inherit the descriptor.
 */
int lock_take(const char *path, int *ret_fd, pid_t *ret_holder, struct hvd_err *err) MUST_CHECK;

/* Takes the lock although a process seems to hold it: the file of that process is replaced by a new
 * file, and the process keeps a file without a name. Otherwise as lock_take. */
int lock_take_over(const char *path, int *ret_fd, struct hvd_err *err) MUST_CHECK;

#endif
