#include "driver/hosts/complaint_log.h"

#include "base/time.h"
#include "os/clock.h"

#include <string.h>

#define SHOWN_LINES 16

void complaint_log_init(struct complaint_log *log, const char *name)
{
    log->name = name;
    log->shown_length = 0;
    log->limit = (struct log_limit){ .window_us = TIME_MIN, .burst = 10 };
}

/* True when it is another one than before: it is now the one that was shown. */
static bool is_new(struct complaint_log *log, struct span text)
{
    bool same = text.length == log->shown_length &&
                (text.length == 0 || !memcmp(text.at, log->shown, text.length));

    log->shown_length = text.length;
    if (!same && text.length)
        memcpy(log->shown, text.at, text.length);
    return !same;
}

static bool may_log(struct complaint_log *log)
{
    unsigned held = 0;

    if (!log_limit_pass(&log->limit, clock_now_us(), &held))
        return false;
    if (held)
        log_warning(HOSTS, "%s: on standard error: %u complaints are not shown", log->name, held);
    return true;
}

static void log_one(const struct complaint_log *log, struct span line)
{
    log_warning(HOSTS, "%s: on standard error: %.*s", log->name, (int)line.length, line.at);
}

static size_t count_lines(struct span rest)
{
    struct span line;
    size_t count = 0;

    while (complaint_next(&rest, &line))
        count++;
    return count;
}

void complaint_log_run(struct complaint_log *log, const struct complaint *complaint)
{
    struct span rest = complaint_tail(complaint);
    struct span line;
    size_t skip;

    if (!is_new(log, rest) || span_trim(rest).length == 0 || !may_log(log))
        return;
    skip = count_lines(rest);
    skip = skip > SHOWN_LINES ? skip - SHOWN_LINES : 0;
    while (complaint_next(&rest, &line)) {
        if (skip)
            skip--;
        else
            log_one(log, line);
    }
}

void complaint_log_line(struct complaint_log *log, const struct complaint *complaint)
{
    struct span rest = complaint_tail(complaint);
    struct span newest = { NULL, 0 };
    struct span line;

    while (rest.length && rest.at[rest.length - 1] != '\n')
        rest.length--; /* the last line is not whole yet */
    while (complaint_next(&rest, &line))
        newest = line;
    if (newest.length && is_new(log, newest) && may_log(log))
        log_one(log, newest);
}
