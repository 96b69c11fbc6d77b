/*
 * lines.h: reads a file that other programs have written, line by line, in bounded memory.
 */
#ifndef TOOLS_LINES_H
#define TOOLS_LINES_H

#include "base/text.h"

/* Handles one line, without its newline; the bytes are borrowed. A code other than 0 ends the
 * reading. */
typedef int lines_fn(void *arg, struct span line, struct hvd_err *err);

struct lines {
    const char *kind; /* what the file should be, for an error: "sample log" */
    size_t line_max;  /* the most bytes of a line; a line of exactly this length is read */
    int too_long;     /* the code for a line that is too long */
    lines_fn *take;
    void *arg;
};

/* Passes all whole lines of the file to `take`. Text after the last newline is left out: its writer
 * has died, or is still writing. The error names the file, and the number of the line if there is
 * one. HVD_E_IO, HVD_E_NOMEM, the code `too_long`, or a code of `take`. */
int lines_read(const struct lines *lines, const char *path, struct hvd_err *err) MUST_CHECK;

#endif
