/*
 * log.h: lines for operators. Floors 0 to 2 trace and never log; above them exactly one caller logs
 * an error, once.
 *
 *     2026-11-21T09:30:01.250Z warning hosts: script failed with exit 2, keeping 3, again in 1s
 *
 * Who, what, why, what happens next; lower case, no full stop. There is no clock and no file here:
 * a program sets both with log_open.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

#define LOG_LINE_MAX 1024 /* with the newline; longer lines are cut, ending in "..." */

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
    /* One whole line with its newline, and no other control character. Not terminated. */
    void (*write)(void *arg, const char *line, size_t length);
    /* Microseconds since 1970, UTC. */
    int64_t (*wall_us)(void *arg);
    void *arg;
};

/* NULL closes: lines go nowhere. Set before other threads start. */
void log_open(const struct log_sink *sink);

/* "info", "info,net:debug" or "net:debug": a level for all, then exceptions; without the first, the
 * others keep theirs. Unchanged when malformed. Set before other threads start. */
int log_set_levels(const char *spec, struct hvd_err *err);
bool log_wants(enum log_subsystem subsystem, enum log_level level);

void log_line(enum log_subsystem subsystem, enum log_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

#define log_error(subsystem, ...)   log_line(LOG_##subsystem, LOG_ERROR, __VA_ARGS__)
#define log_warning(subsystem, ...) log_line(LOG_##subsystem, LOG_WARNING, __VA_ARGS__)
#define log_info(subsystem, ...)    log_line(LOG_##subsystem, LOG_INFO, __VA_ARGS__)
#define log_debug(subsystem, ...)   log_line(LOG_##subsystem, LOG_DEBUG, __VA_ARGS__)

/* Lets `burst` lines through per window, for what could repeat without end. A clock that goes back
 * starts a new window. */
struct log_limit {
    int64_t window_us;
    unsigned burst;
    int64_t since_us;
    unsigned passed;
    unsigned held; /* how many were not shown */
};

/* True: log it, and say that *ret_held were left out since the last one shown. */
bool log_limit_pass(struct log_limit *limit, int64_t now_us, unsigned *ret_held);

#endif
