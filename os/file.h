/*
 * file.h: reading a small text whole.
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

#endif
