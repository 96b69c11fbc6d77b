/*
 * page_file.h: the page of a job as a file for browsers: the page of --page with its data in it.
 * The file needs no server, and asks none for anything.
 */
#ifndef DRIVER_CONTROL_PAGE_FILE_H
#define DRIVER_CONTROL_PAGE_FILE_H

#include "base/buf.h"

/* Appends the page with `data` in it. `data` is one value of JSON, whose texts may have any
 * characters. HVD_E_NOMEM, or HVD_E_LIMIT; after a failure `out` has a part of the page. */
int page_file_write(const char *data, size_t length, struct buf *out) MUST_CHECK;

#endif
