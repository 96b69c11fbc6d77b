#include "base/log.h"

#include "base/text.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

static const char *const level_names[] = { "error", "warning", "info", "debug" };

static const char *const subsystem_names[] = {
#define NAME(id, name) name,
    LOG_SUBSYSTEMS(NAME)
#undef NAME
};

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

static int find(struct span name, const char *const *names, size_t count, const char *what,
                size_t *ret_index, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    char choices[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (span_is(name, names[i])) {
            *ret_index = i;
            return 0;
        }
        used += (size_t)snprintf(choices + used, sizeof(choices) - used, "%s%s", i ? ", " : "",
                                 names[i]);
    }
    return err_set(err, HVD_E_INVAL, "%s: no such %s; there are %s",
                   text_quote(name.at, name.length, quoted), what, choices);
}

int log_set_levels(const char *spec, struct hvd_err *err)
{
    enum log_level wanted[LOG_SUBSYSTEM_COUNT];
    struct span rest = { spec, strlen(spec) };
    struct span part;
    int rc;

    memcpy(wanted, levels, sizeof(wanted));
    while (span_next(&rest, ',', &part)) {
        struct span level = part;
        struct span subsystem = { NULL, 0 };
        size_t level_index;
        size_t index;

        if (part.length && memchr(part.at, ':', part.length))
            span_next(&level, ':', &subsystem);
        rc = find(level, level_names, ARRAY_SIZE(level_names), "log level", &level_index, err);
        if (rc)
            return rc;
        if (!subsystem.at) {
            for (index = 0; index < LOG_SUBSYSTEM_COUNT; index++)
                wanted[index] = (enum log_level)level_index;
            continue;
        }
        rc = find(subsystem, subsystem_names, ARRAY_SIZE(subsystem_names), "log subsystem", &index,
                  err);
        if (rc)
            return rc;
        wanted[index] = (enum log_level)level_index;
    }
    memcpy(levels, wanted, sizeof(levels));
    return 0;
}

bool log_wants(enum log_subsystem subsystem, enum log_level level)
{
    return sink.write && level <= levels[subsystem];
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_days(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* "2026-11-21T09:30:01.250Z": sortable, and the same everywhere. Not by gmtime_r, which reads the
 * machine's time zone file. */
static size_t stamp(char *out, size_t size, int64_t wall_us)
{
    int64_t day = wall_us / TIME_DAY;
    int year = 1970;
    int month = 1;

    for (; day >= 365 + is_leap(year); year++)
        day -= 365 + is_leap(year);
    for (; day >= month_days(year, month); month++)
        day -= month_days(year, month);
    return (size_t)snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month,
                            (int)day + 1, (int)(wall_us / TIME_HOUR % 24),
                            (int)(wall_us / TIME_MIN % 60), (int)(wall_us / TIME_S % 60),
                            (int)(wall_us / TIME_MS % 1000));
}

void log_line(enum log_subsystem subsystem, enum log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES + 1];
    size_t length;
    va_list args;

    if (!log_wants(subsystem, level))
        return;
    length = stamp(line, LINE_MAX_BYTES, sink.wall_us(sink.arg));
    length += (size_t)snprintf(line + length, LINE_MAX_BYTES - length,
                               " %s %s: ", level_names[level], subsystem_names[subsystem]);
    va_start(args, format);
    vsnprintf(line + length, LINE_MAX_BYTES - length, format, args);
    va_end(args);
    for (char *c = line + length; *c; c++) {
        if (*c == '\n' || *c == '\r')
            *c = ' '; /* one line stays one line, whatever a peer sent */
    }
    length = strlen(line);
    line[length++] = '\n';
    sink.write(sink.arg, line, length);
}

bool log_limit_pass(struct log_limit *limit, int64_t now_us, unsigned *ret_held)
{
    if (limit->passed == 0 || now_us - limit->since_us >= limit->window_us) {
        limit->since_us = now_us;
        limit->passed = 0;
    }
    if (limit->passed >= limit->burst) {
        limit->held++;
        return false;
    }
    limit->passed++;
    *ret_held = limit->held;
    limit->held = 0;
    return true;
}
