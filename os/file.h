/*
 * file.h: reading a small text whole; standard input, output and error.
 */
#ifndef OS_FILE_H
#define OS_FILE_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends what the file holds; "-" is standard input. Stops when buf is full: with a max of one
 * byte more than its reader accepts, that reader sees that the text is too long. HVD_E_NOTFOUND,
 * HVD_E_DENIED, HVD_E_IO or HVD_E_NOMEM, naming the file; buf may then hold a part.
 */
int file_read(const char *path, struct buf *buf, struct hvd_err *err);

/*
 * Opens /dev/null in place of standard input, output and error where they are closed: else the next
 * file or socket that is opened gets that number, and what is printed goes there. The first thing
 * that a program does.
 */
void file_hold_standard(void);

#endif
