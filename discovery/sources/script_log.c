/*
 * script_log.c: the standard error of a source's program, for the driver's log. script.c shows the
 * last lines of a run, watch.c each new line. A text that is equal to the text before is not shown
 * again, also after runs without a text, unless discovery has failed and works again. At most ten
 * texts a minute are shown.
 */
#include "discovery/sources/script_log.h"

#include "base/time.h"
#include "os/clock.h"

#include <string.h>

#define SHOWN_LINES 16 /* the most lines that are logged of one run */

void script_log_init(struct script_log *log, const char *name)
{
    log->name = name;
    log->shown_length = 0;
    log->failing = false;
    log->limit = (struct log_limit){ .window_us = TIME_MIN, .burst = 10 };
}

/* Says whether `text` is to be logged: true if it is not blank, differs from the text before, and
 * is within the limit of texts per minute. Keeps the text for the next call. */
static bool script_log_may_show(struct script_log *log, struct span text)
{
    unsigned held = 0; /* texts that the limit has held back */

    if (span_trim(text).length == 0 ||
        (text.length == log->shown_length && !memcmp(text.at, log->shown, text.length)))
        return false;
    log->shown_length = text.length;
    memcpy(log->shown, text.at, text.length);
    if (!log_limit_pass(&log->limit, clock_now_us(), &held))
        return false;
    if (held)
        log_warning(
            HOSTS, "%s: %u more lines on standard error were not shown, because they were too many",
            log->name, held);
    return true;
}

static void script_log_show(const struct script_log *log, struct span line)
{
    log_warning(HOSTS, "%s: on standard error: %.*s", log->name, (int)line.length, line.at);
}

/* Logs the last SHOWN_LINES lines of a run's standard error. The text is read twice: first to count
 * its lines, then to show the last ones. */
void script_log_run(struct script_log *log, const struct stderr_tail *stderr_tail, bool works)
{
    struct span text = stderr_tail_text(stderr_tail);
    struct span rest = text;
    struct span line;
    size_t count = 0;

    /* Discovery works again, and has nothing to say: the next text is logged, also the same one. */
    if (works && log->failing && span_trim(text).length == 0)
        log->shown_length = 0;
    log->failing = !works;
    if (!script_log_may_show(log, text))
        return;
    while (stderr_tail_next_line(&rest, &line))
        count++;
    for (rest = text; stderr_tail_next_line(&rest, &line); count--)
        if (count <= SHOWN_LINES)
            script_log_show(log, line);
}

/* Logs the newest complete line of the standard error of a program that goes on running. */
void script_log_line(struct script_log *log, const struct stderr_tail *stderr_tail)
{
    struct span rest = stderr_tail_text(stderr_tail);
    struct span newest = { NULL, 0 };
    struct span line;

    while (rest.length && rest.at[rest.length - 1] != '\n')
        rest.length--; /* the last line has no newline yet */
    while (stderr_tail_next_line(&rest, &line))
        newest = line;
    if (newest.length && script_log_may_show(log, newest))
        script_log_show(log, newest);
}
