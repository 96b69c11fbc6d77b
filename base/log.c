#include "base/log.h"

#include "base/text.h"
#include "base/time.h"

#include <inttypes.h>
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

/* The index of the name, or a negative code. */
static int find(struct span name, const char *const *names, size_t count, const char *what,
                const char *choices, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    for (size_t i = 0; i < count; i++) {
        if (span_is(name, names[i]))
            return (int)i;
    }
    return err_set(err, HVD_E_INVAL, "%s: no such log %s; there are %s",
                   text_quote(name.at, name.length, quoted), what, choices);
}

/* One part of a spec: a level for all, which only the first may be, or "subsystem:level". */
static int read_part(struct span part, bool first, enum log_level *levels_of, struct hvd_err *err)
{
    struct span level = part;
    struct span subsystem = { NULL, 0 };
    char quoted[TEXT_QUOTE_MAX];
    int wanted;
    int index;

    if (part.length && memchr(part.at, ':', part.length))
        span_next(&level, ':', &subsystem);
    wanted = find(level, level_names, ARRAY_SIZE(level_names), "level",
                  "error, warning, info, debug", err);
    if (wanted < 0)
        return wanted;
    if (subsystem.at) {
        index = find(subsystem, subsystem_names, ARRAY_SIZE(subsystem_names), "subsystem",
                     subsystem_choices + strlen(", "), err);
        if (index < 0)
            return index;
        levels_of[index] = (enum log_level)wanted;
        return 0;
    }
    if (!first)
        return err_set(err, HVD_E_INVAL,
                       "%s: a log level for all would undo the parts before it; write it first",
                       text_quote(part.at, part.length, quoted));
    for (index = 0; index < LOG_SUBSYSTEM_COUNT; index++)
        levels_of[index] = (enum log_level)wanted;
    return 0;
}

int log_set_levels(const char *spec, struct hvd_err *err)
{
    enum log_level wanted[LOG_SUBSYSTEM_COUNT];
    struct span rest = { spec, strlen(spec) };
    struct span part;

    memcpy(wanted, levels, sizeof(wanted));
    while (span_next(&rest, ',', &part)) {
        int rc = read_part(part, part.at == spec, wanted, err);

        if (rc)
            return rc;
    }
    memcpy(levels, wanted, sizeof(levels));
    return 0;
}

bool log_wants(enum log_subsystem subsystem, enum log_level level)
{
    return sink.write && level <= levels[subsystem];
}

/* What stands before the text is far shorter than a line, so `length` never passes its end. */
void log_line(enum log_subsystem subsystem, enum log_level level, const char *format, ...)
{
    char line[LOG_LINE_MAX];
    char moment[TIME_STAMP_MAX];
    size_t length;
    va_list args;

    if (!log_wants(subsystem, level))
        return;
    length = (size_t)snprintf(line, sizeof(line),
                              "%s %s %s: ", time_stamp(sink.wall_us(sink.arg), moment),
                              level_names[level], subsystem_names[subsystem]);
    va_start(args, format);
    length += text_line(line + length, sizeof(line) - length, format, args);
    va_end(args);
    line[length++] = '\n';
    sink.write(sink.arg, line, length);
}

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
