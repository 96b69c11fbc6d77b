/*
 * trace.c: keeps the last lines of a trace in a ring buffer. A line says in words what a pure core
 * has decided. The cores call this file; a panic (a failed assertion) prints all traces. A core
 * never writes to the log itself: the program that runs the core may set a tap, a callback that
 * gets each new line and may log it.
 */
#include "base/trace.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Writes the lines of the ring, the oldest first; called by a panic. */
static void trace_dump(struct panic_dumper *dumper)
{
    struct trace *trace = CONTAINER_OF(dumper, struct trace, dumper);
    size_t kept = trace->written < trace->capacity ? (size_t)trace->written : trace->capacity;
    char head[TRACE_LINE_MAX];

    snprintf(head, sizeof(head), "the last %zu of %" PRIu64 " trace lines of %s:\n", kept,
             trace->written, trace->name);
    panic_write(head, strlen(head));
    while (kept-- > 0) {
        const char *line = trace_line(trace, kept);

        panic_write(line, strlen(line));
        panic_write("\n", 1);
    }
}

/* Makes a trace that keeps its last `lines` lines, and writes them out if the program panics. */
int trace_init(struct trace *trace, const char *name, size_t lines)
{
    ASSERT(lines > 0);
    *trace = (struct trace){ .name = name, .capacity = lines, .dumper = { .dump = trace_dump } };
    list_init(&trace->dumper.link);
    trace->ring = mem_zalloc_array(lines, sizeof(*trace->ring));
    if (!trace->ring)
        return HVD_E_NOMEM;
    panic_add_dumper(&trace->dumper);
    return 0;
}

/* Frees the lines. A trace that was never made, or is freed already, is left as it is. */
void trace_release(struct trace *trace)
{
    if (!trace || !trace->ring)
        return;
    panic_remove_dumper(&trace->dumper);
    mem_free(trace->ring);
    *trace = (struct trace){ .ring = NULL };
}

/* Sets the function that gets each new line; NULL: none. */
void trace_set_tap(struct trace *trace, trace_tap_fn *tap, void *arg)
{
    trace->tap = tap;
    trace->tap_arg = arg;
}

/* Adds a line to the ring, in place of the oldest, and shows it to the tap. `trace` NULL: nothing
 * happens. */
void trace_say_args(struct trace *trace, int64_t now_us, enum trace_level level,
                    const struct facts *facts, const char *format, va_list args)
{
    char *line;
    int head;

    if (!trace)
        return;
    ASSERT(now_us >= 0);
    line = trace->ring[trace->written % trace->capacity];
    head = snprintf(line, TRACE_LINE_MAX, "[%6" PRId64 ".%03" PRId64 "] ", now_us / TIME_S,
                    now_us / TIME_MS % 1000);
    text_line(line + head, TRACE_LINE_MAX - (size_t)head, format, args);
    trace->written++;
    if (trace->tap)
        trace->tap(trace->tap_arg, line, level, facts);
}

/* Adds a line of the level TRACE_INFO, without facts. */
void trace_add(struct trace *trace, int64_t now_us, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    trace_say_args(trace, now_us, TRACE_INFO, NULL, format, args);
    va_end(args);
}

/* Adds a line with a level and facts, which the tap gets with the line. */
void trace_say(struct trace *trace, int64_t now_us, enum trace_level level,
               const struct facts *facts, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    trace_say_args(trace, now_us, level, facts, format, args);
    va_end(args);
}

/* Returns the line that is `back` lines older than the newest; NULL: the ring has lost that
 * line. */
const char *trace_line(const struct trace *trace, size_t back)
{
    if (back >= trace->capacity || back >= trace->written)
        return NULL;
    return trace->ring[(trace->written - 1 - back) % trace->capacity];
}
