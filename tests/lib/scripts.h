/*
 * scripts.h: real programs and a real loop, for tests of what starts the one from the other. Every
 * wait ends: with what was waited for, or with the test.
 */
#ifndef TESTS_LIB_SCRIPTS_H
#define TESTS_LIB_SCRIPTS_H

#include "tests/lib/test.h"

#include <sys/types.h>

struct event_base;

/* A new file in the folder: a shell script, after its first line. Returns its path, which is good
 * until the fourth call after this one. */
const char *scripts_write(const char *folder, const char *name, const char *body);
const char *scripts_path(const char *folder, const char *name);

/* The same for any text and mode; what was there is replaced at once. */
void scripts_put(const char *path, const char *text, mode_t mode);

/* Into a FIFO that somebody reads. */
void scripts_say(const char *fifo, const char *text);

/* What the file holds, "" when it is not there; the text is good until the next call. */
const char *scripts_read(const char *path);

/* Turns the loop until *count is not what it was; false after a minute. */
bool scripts_wait(struct event_base *base, const unsigned *count, unsigned was);

/* Turns the loop until there is a file with a whole line; false after a minute. */
bool scripts_wait_line(struct event_base *base, const char *path);

/* The process whose number a script wrote into the file is gone, now or within a minute. */
bool scripts_gone(const char *path);

/* We have no children: neither running nor unreaped. */
bool scripts_no_children(void);

#endif
