/*
 * chronicle.h: what a driver writes down (job/events.log), read while it is written: so something
 * can be done to a job at a known moment of a change.
 */
#ifndef TESTS_CHAOS_CHRONICLE_H
#define TESTS_CHAOS_CHRONICLE_H

#include "base/err.h"

#define CHRONICLE_LINE 512 /* what is longer is cut */

struct chronicle {
    int fd;
    int notify;
    char line[CHRONICLE_LINE]; /* so far */
    size_t length;
};

/* From its end on. */
int chronicle_open(struct chronicle *chronicle, const char *path, struct hvd_err *err) MUST_CHECK;
void chronicle_close(struct chronicle *chronicle);

/* Until a line has that text in it, which is in chronicle->line then; false: it did not come. */
bool chronicle_await(struct chronicle *chronicle, const char *text, int64_t deadline_us);

/* The last line so far that has that text in it, from the text on; false: none has. */
bool chronicle_last(const char *path, const char *text, char line[CHRONICLE_LINE]);

#endif
