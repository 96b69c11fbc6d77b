/*
 * log_kept.h: keeps what is logged, for a test that looks at it. Any thread may log meanwhile.
 *
 *     log_kept_begin();
 *     ...
 *     CHECK_INT(t, log_kept_times("works again"), ==, 1);
 */
#ifndef TESTS_LIB_LOG_KEPT_H
#define TESTS_LIB_LOG_KEPT_H

/* Opens the log, and forgets what was kept before. Called before other threads start. */
void log_kept_begin(void);

/* Forgets what was kept. */
void log_kept_forget(void);

/* Returns how often the text was logged. */
unsigned log_kept_times(const char *text);

/* Returns all that was logged, for a test of which no other thread logs now. */
const char *log_kept(void);

#endif
