/*
 * trace.h: one readable line for every decision of a pure module. The last lines are kept in a ring
 * and written out when an assertion fails. A tap is a callback that sees each new line: story tests
 * compare the lines, and a program shows them.
 *
 *   [  12.345] job: reshape -> round 2, size 3
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include "base/facts.h"
#include "base/panic.h"

#include <stdarg.h>

#define TRACE_LINE_MAX 400 /* bytes; a longer line is cut and ends in "..." */

/* How much a line matters to a person who looks after the program. */
enum trace_level {
    TRACE_ERROR,   /* the end of a job for a bad reason */
    TRACE_WARNING, /* a failure, a stall, or a wait that an operator should know of */
    TRACE_INFO,    /* a step of the job as a whole */
    TRACE_DETAIL   /* a step of one of many workers or agents */
};

/* `facts` is NULL for a line that was added without facts. */
typedef void trace_tap_fn(void *arg, const char *line, enum trace_level level,
                          const struct facts *facts);

struct trace {
    struct panic_dumper dumper;
    const char *name; /* the name of the trace, for a panic; borrowed */
    char (*ring)[TRACE_LINE_MAX];
    size_t capacity;
    uint64_t written; /* lines that were ever added; the last `capacity` of them are in the ring */
    trace_tap_fn *tap;
    void *tap_arg;
};

/* Creates a trace that keeps the last `lines` lines. 0 or HVD_E_NOMEM. */
int trace_init(struct trace *trace, const char *name, size_t lines) MUST_CHECK;
void trace_release(struct trace *trace);
void trace_set_tap(struct trace *trace, trace_tap_fn *tap, void *arg);

/* Adds a line of the level TRACE_INFO, without facts. Control characters in foreign text become
 * blanks (text_line), so one call adds one line. trace may be NULL: then nothing happens. */
void trace_add(struct trace *trace, int64_t now_us, const char *format, ...) PRINTF_LIKE(3, 4);

/* Adds a line as trace_add does, with a level and facts of its own. The ring does not keep these
 * two: they are for the tap, so that a program can show the lines of some levels only. The function
 * with _args takes the arguments of the format as a va_list. */
void trace_say(struct trace *trace, int64_t now_us, enum trace_level level,
               const struct facts *facts, const char *format, ...) PRINTF_LIKE(5, 6);
void trace_say_args(struct trace *trace, int64_t now_us, enum trace_level level,
                    const struct facts *facts, const char *format, va_list args) PRINTF_LIKE(5, 0);

/* Returns the line that is `back` lines before the newest (0: the newest); NULL: the trace does not
 * keep that line. */
const char *trace_line(const struct trace *trace, size_t back);

#endif
