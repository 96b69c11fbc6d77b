/*
 * file.h: reads a small text file or a secret as a whole, and replaces a file; and standard input,
 * output and error: these are open, and a process that goes on in the background leaves its
 * terminal.
 */
#ifndef OS_FILE_H
#define OS_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/*
 * Appends the text of the file to buf; path "-" is standard input. Stops when buf is full: with a
 * max of one byte more than the caller accepts, the caller sees that the text is too long.
 * HVD_E_NOTFOUND, HVD_E_DENIED, HVD_E_IO or HVD_E_NOMEM with a text that names the file; buf may
 * then hold a part of the text.
 */
int file_read(const char *path, struct buf *buf, struct hvd_err *err);

/* Like file_read, for a file with a secret, which "-" does not name. HVD_E_DENIED: users outside
 * the file's group can read it, or others than its owner can write it. HVD_E_INVAL: no regular
 * file. */
int file_read_secret(const char *path, struct buf *buf, struct hvd_err *err) MUST_CHECK;

/* Replaces the file `path` by these bytes, which are written to `fresh` first: a reader sees the
 * old bytes or the new ones, and a failure leaves the old ones and no file `fresh`. Any umask
 * leaves `mode` as it is. Nothing is forced to the disk. Returns 0 or an errno. */
int file_replace(const char *path, const char *fresh, const struct buf *bytes, mode_t mode);

/*
 * Opens /dev/null as standard input, output and error where these are closed. Otherwise the next
 * file or socket would get the number 0, 1 or 2, and output would go there by mistake. A program
 * calls this function first.
 */
void file_hold_standard(void);

/* The terminal is gone, or is to be left: standard input, output and error that lead to a terminal
 * lead to /dev/null from now on. Files and pipes stay. Other threads may write meanwhile. */
void file_leave_terminal(void);

/* Standard input, output and error lead to /dev/null from now on, except those that lead to a
 * regular file. So no reader of a pipe waits for this process any more. */
void file_leave_streams(void);

#endif
