/*
 * log_follow.h: reads job/events.log while the driver writes it, so that a fault can strike at a
 * known moment of a change.
 */
#ifndef TESTS_CHAOS_LOG_FOLLOW_H
#define TESTS_CHAOS_LOG_FOLLOW_H

#include "base/err.h"

#define LOG_FOLLOW_LINE 512 /* a longer line is cut */

struct log_follow {
    int fd;
    int notify;
    char line[LOG_FOLLOW_LINE]; /* the line so far */
    size_t length;
};

/* Opens the log at its present end. */
int log_follow_open(struct log_follow *follow, const char *path, struct hvd_err *err) MUST_CHECK;
void log_follow_close(struct log_follow *follow);

/* Waits for a line that contains the text, and leaves the line in follow->line. false: no such line
 * came in time. */
bool log_follow_await(struct log_follow *follow, const char *text, int64_t deadline_us);

/* Finds the last line that contains the text, and copies the line from the text on. false: no line
 * has the text. */
bool log_follow_last(const char *path, const char *text, char line[LOG_FOLLOW_LINE]);

#endif
