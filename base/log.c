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

struct date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;
};

/* Not by gmtime_r, which reads the machine's time zone file. Counts in eras of 400 years, and in
 * years that begin in March, so that the leap day is the last of its year. */
static struct date date_of(int64_t day_since_1970)
{
    int64_t day = day_since_1970 + 719468; /* since 0000-03-01 */
    int64_t era = (day >= 0 ? day : day - 146096) / 146097;
    int64_t of_era = day - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* 0 is March */

    return (struct date){ .year = year + era * 400 + (month >= 10),
                          .month = (int)(month < 10 ? month + 3 : month - 9),
                          .day = (int)(of_year - (153 * month + 2) / 5 + 1) };
}

/* "2026-11-21T09:30:01.250Z": sortable, and the same everywhere. A time before 1970, of a machine
 * whose clock is not set yet, is rounded down too. */
static size_t stamp(char *out, size_t size, int64_t wall_us)
{
    int64_t into_day_us = wall_us % TIME_DAY;
    int64_t day = wall_us / TIME_DAY;
    struct date date;

    if (into_day_us < 0) {
        into_day_us += TIME_DAY;
        day--;
    }
    date = date_of(day);
    return (size_t)snprintf(out, size, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02d.%03dZ", date.year,
                            date.month, date.day, (int)(into_day_us / TIME_HOUR),
                            (int)(into_day_us / TIME_MIN % 60), (int)(into_day_us / TIME_S % 60),
                            (int)(into_day_us / TIME_MS % 1000));
}

/* What stands before the text is far shorter than a line, so `length` never passes its end. */
void log_line(enum log_subsystem subsystem, enum log_level level, const char *format, ...)
{
    char line[LOG_LINE_MAX];
    size_t length;
    va_list args;

    if (!log_wants(subsystem, level))
        return;
    length = stamp(line, sizeof(line), sink.wall_us(sink.arg));
    length += (size_t)snprintf(line + length, sizeof(line) - length, " %s %s: ", level_names[level],
                               subsystem_names[subsystem]);
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
