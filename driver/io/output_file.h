/*
 * output_file.h: the files of --output-filename: FOLDER/HOST/SLOT/INCARNATION.out and .err. Only
 * the thread that writes the output of workers uses them.
 *
 * A file that another user could have put there (a link, a pipe, a file with two names, a folder of
 * another user) is refused. A file that would become too long is renamed to NAME.1 and replaces an
 * older NAME.1, so the files of one worker never take more than the limit.
 */
#ifndef DRIVER_IO_OUTPUT_FILE_H
#define DRIVER_IO_OUTPUT_FILE_H

#include "base/err.h"

/* A worker has at most four files: .out, .out.1, .err and .err.1. */
#define OUTPUT_FILE_SHARES 4

struct output_files {
    const char *folder;   /* the folder of --output-filename; NULL: output goes to no file */
    uint64_t limit_bytes; /* the most bytes of all files of one worker; UINT64_MAX: no limit */
    /* Each bit stands for the file names with one digest. A bit is set when a log line about such a
     * name was written, so there is at most one line for each name, and 64 lines of each kind. */
    uint64_t refused, renamed;
};

/* Opens the file `name`, "HOST/SLOT/INCARNATION.out", to append `length` bytes; a file that would
 * be too long then is renamed first. A failure is logged once for each name. */
int output_file_open(struct output_files *files, const char *name, size_t length,
                     int *ret_fd) MUST_CHECK;

#endif
