/*
 * log.c: the levels of the subsystems, and the writing of one log line. Called by the programs,
 * never by the pure floors. The sink gets whole lines; without a sink no line is formatted.
 */
#include "base/log.h"

#include "base/text.h"
#include "base/time.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = { "error", "warning", "info", "debug" };

static const char *const subsystem_names[] = {
#define NAME(id, name) name,
    LOG_SUBSYSTEMS(NAME)
#undef NAME
};

static const char subsystem_choices[] =
#define CHOICE(id, name) ", " name
    LOG_SUBSYSTEMS(CHOICE);
#undef CHOICE

static struct log_sink sink;
static enum log_level levels[LOG_SUBSYSTEM_COUNT] = {
#define DEFAULT(id, name) LOG_INFO,
    LOG_SUBSYSTEMS(DEFAULT)
#undef DEFAULT
};

void log_open(const struct log_sink *new_sink)
{
    sink = new_sink ? *new_sink : (struct log_sink){ .write = NULL };
}

/* Returns the index of the name in `names`, or a negative code. For the error text: `what` says
 * what the name is of ("level"), and `choices` lists the valid names. */
static int log_find_name(struct span name, const char *const *names, size_t count, const char *what,
                         const char *choices, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    for (size_t i = 0; i < count; i++) {
        if (span_is(name, names[i]))
            return (int)i;
    }
    return err_set(err, HVD_E_INVAL, "%s: unknown log %s; use one of %s",
                   text_quote(name.at, name.length, quoted), what, choices);
}

/* Sets the log levels from a text such as "info,net:debug". After an error no level has changed. */
int log_set_levels(const char *spec, struct hvd_err *err)
{
    enum log_level wanted[LOG_SUBSYSTEM_COUNT];
    struct span rest = { spec, strlen(spec) };
    struct span part;

    memcpy(wanted, levels, sizeof(wanted));
    /* A part is "subsystem:level", or a level for all subsystems, which must be the first part. */
    while (span_next(&rest, ',', &part)) {
        struct span name = part;
        struct span subsystem = { NULL, 0 };
        char quoted[TEXT_QUOTE_MAX];
        int level;
        int index;

        if (part.length && memchr(part.at, ':', part.length))
            span_next(&name, ':', &subsystem);
        level = log_find_name(name, level_names, ARRAY_SIZE(level_names), "level",
                              "error, warning, info, debug", err);
        if (level < 0)
            return level;
        if (subsystem.at) {
            index = log_find_name(subsystem, subsystem_names, ARRAY_SIZE(subsystem_names),
                                  "subsystem", subsystem_choices + strlen(", "), err);
            if (index < 0)
                return index;
            wanted[index] = (enum log_level)level;
            continue;
        }
        if (part.at != spec)
            return err_set(
                err, HVD_E_INVAL,
                "%s: a log level for all subsystems replaces the levels before it; write the "
                "level for all first",
                text_quote(part.at, part.length, quoted));
        for (index = 0; index < LOG_SUBSYSTEM_COUNT; index++)
            wanted[index] = (enum log_level)level;
    }
    memcpy(levels, wanted, sizeof(levels));
    return 0;
}

/* true: a sink is set, and the subsystem's level lets lines of this level pass. */
bool log_wants(enum log_subsystem subsystem, enum log_level level)
{
    return sink.write && level <= levels[subsystem];
}

/* Writes one line. The part before the message is far shorter than LOG_LINE_MAX, so `length` stays
 * within the line. */
void log_line(enum log_subsystem subsystem, enum log_level level, const char *format, ...)
{
    char line[LOG_LINE_MAX];
    char moment[TIME_STAMP_MAX];
    size_t length;
    va_list args;

    if (!log_wants(subsystem, level))
        return;
    length = (size_t)snprintf(line, sizeof(line), "%s %s %s: ", time_stamp(sink.wall_us(), moment),
                              level_names[level], subsystem_names[subsystem]);
    va_start(args, format);
    length += text_line(line + length, sizeof(line) - length, format, args);
    va_end(args);
    line[length++] = '\n';
    sink.write(sink.arg, line, length);
}

/* true: the line may be logged, because fewer than `burst` lines passed in this window of time.
 * *ret_held: lines that were held back since the last line that passed. */
bool log_limit_pass(struct log_limit *limit, int64_t now_us, unsigned *ret_held)
{
    if (limit->passed == 0 || now_us < limit->since_us ||
        now_us - limit->since_us >= limit->window_us) {
        limit->since_us = now_us;
        limit->passed = 0;
    }
    if (limit->passed >= limit->burst) {
        if (limit->held < UINT_MAX)
            limit->held++;
        return false;
    }
    limit->passed++;
    *ret_held = limit->held;
    limit->held = 0;
    return true;
}
