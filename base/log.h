/*
 * log.h: log lines for operators. Floors 0 to 2 (see ARCHITECTURE.md) write traces and never log;
 * above them exactly one caller logs an error, once.
 *
 *   2026-11-21T09:30:01.250Z warning hosts: script failed with exit 2, keeping 3, again in 1s
 *
 * A line says the subject, what happened, why, and what happens next; lower case, no full stop. The
 * log has no clock and no file of its own: a program sets both with log_open.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

#define LOG_LINE_MAX 1024 /* bytes with the newline; a longer line is cut and ends in "..." */

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

#define LOG_SUBSYSTEMS(X) \
    X(JOB, "job")         \
    X(HOSTS, "hosts")     \
    X(LAUNCH, "launch")   \
    X(NET, "net")         \
    X(STORE, "store")     \
    X(AGENT, "agent")     \
    X(WORKER, "worker")   \
    X(STATE, "state")     \
    X(COLL, "coll")

enum log_subsystem {
#define LOG_ENUM(id, name) LOG_##id,
    LOG_SUBSYSTEMS(LOG_ENUM)
#undef LOG_ENUM
        LOG_SUBSYSTEM_COUNT
};

struct log_sink {
    /* Writes one whole line: a newline at its end, no other control character, and no NUL. */
    void (*write)(void *arg, const char *line, size_t length);
    /* Returns microseconds since 1970, UTC. */
    int64_t (*wall_us)(void);
    void *arg;
};

/* Sets the sink, which gets every log line from now on. The struct is copied. NULL: lines are
 * dropped. Called before other threads start. */
void log_open(const struct log_sink *sink);

/* Sets the log levels of the subsystems. `spec` is one level for all subsystems ("info"), or levels
 * of some of them ("net:debug"), or the first followed by the second ("info,net:debug"). A
 * subsystem that `spec` does not cover keeps its level. A malformed spec changes nothing. Called
 * before other threads start. */
int log_set_levels(const char *spec, struct hvd_err *err);
/* true: lines of this level are written for this subsystem. */
bool log_wants(enum log_subsystem subsystem, enum log_level level);

void log_line(enum log_subsystem subsystem, enum log_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

#define log_error(subsystem, ...)   log_line(LOG_##subsystem, LOG_ERROR, __VA_ARGS__)
#define log_warning(subsystem, ...) log_line(LOG_##subsystem, LOG_WARNING, __VA_ARGS__)
#define log_info(subsystem, ...)    log_line(LOG_##subsystem, LOG_INFO, __VA_ARGS__)
#define log_debug(subsystem, ...)   log_line(LOG_##subsystem, LOG_DEBUG, __VA_ARGS__)

/* Limits log lines that could repeat without end: in each window of `window_us`, the first `burst`
 * lines pass. A clock that goes back starts a new window. */
struct log_limit {
    int64_t window_us;
    unsigned burst;
    int64_t since_us; /* when the present window began */
    unsigned passed;  /* lines that passed in the present window */
    unsigned held;    /* lines that were held back since the last line that passed */
};

/* true: log the line, and say that *ret_held lines were held back since the last one that was
 * logged. */
bool log_limit_pass(struct log_limit *limit, int64_t now_us, unsigned *ret_held);

#endif
