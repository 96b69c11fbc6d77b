/*
 * scripts.h: shell scripts and a real event loop, for tests of code that starts programs. Every
 * wait ends: with the event, or with a failed test.
 */
#ifndef TESTS_LIB_SCRIPTS_H
#define TESTS_LIB_SCRIPTS_H

#include "tests/lib/test.h"

#include <sys/types.h>

struct event_base;

/* scripts_path: returns the path of the file `name` in the folder. scripts_write: writes a shell
 * script to that path; `body` begins after the #! line and a `cd` to the folder. Returns the path.
 * A returned path is valid until the fourth later call of either function. */
const char *scripts_path(const char *folder, const char *name);
const char *scripts_write(const char *folder, const char *name, const char *body);

/* Writes a file with any text and mode; an old file is replaced in one step. */
void scripts_put(const char *path, const char *text, mode_t mode);

/* Writes the text to a FIFO that has a reader. */
void scripts_say(const char *fifo, const char *text);

/* Makes the FIFO. hear: waits until a program has written into the FIFO; no event loop runs
 * meanwhile, so no time limit of the product is over before. */
void scripts_make_fifo(const char *fifo);
void scripts_hear(const char *fifo);

/* The text of the file, "" when there is no file; valid until the next call. */
const char *scripts_read(const char *path);

/* Runs the event loop until *count changes; false after a minute. */
bool scripts_wait(struct event_base *base, const unsigned *count, unsigned was);

/* Runs the event loop until the file exists and has a whole line; false: not within a minute. */
bool scripts_wait_line(struct event_base *base, const char *path);

/* true: the process whose pid a script wrote into the file is gone, now or within a minute. */
bool scripts_gone(const char *path);

/* true: this process has no children, neither running nor unreaped. */
bool scripts_no_children(void);

#endif
