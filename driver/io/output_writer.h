/*
 * output_writer.h: the thread that writes what workers print, to a descriptor or to the end of a
 * file, in order. Never makes its caller wait.
 */
#ifndef DRIVER_IO_OUTPUT_WRITER_H
#define DRIVER_IO_OUTPUT_WRITER_H

#include "base/err.h"

struct output_writer;

/* err_fd: which of the descriptors is standard error, for what is said of it. A place that cannot
 * be written is said once in the log. */
int output_writer_start(int err_fd, struct output_writer **ret_writer,
                        struct hvd_err *err) MUST_CHECK;

/* Copied. path NULL: to fd. Left out, and counted, when too much waits. */
void output_writer_put(struct output_writer *writer, int fd, const char *path, const char *bytes,
                       size_t length);

/* Waits until it has written what it has, LIMIT_OUTPUT_LINGER_US at most. */
void output_writer_stop(struct output_writer *writer);

#endif
