/*
 * trace.h: one human line for everything a pure module decides. The last lines are kept in a ring
 * and written out when an assertion fails; a tap sees each line as it is made, which is how story
 * tests compare them and how a program shows them.
 *
 *     [    12.345] job: reshape -> round 2, size 3
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include "base/panic.h"

#define TRACE_LINE_MAX 400 /* longer lines are cut, ending in "..." */

typedef void trace_tap_fn(void *arg, const char *line);

struct trace {
    struct panic_dumper dumper;
    const char *name; /* borrowed */
    char (*ring)[TRACE_LINE_MAX];
    size_t capacity;
    uint64_t written;
    trace_tap_fn *tap;
    void *tap_arg;
};

/* Keeps the last `lines` lines. 0 or HVD_E_NOMEM. */
int trace_init(struct trace *trace, const char *name, size_t lines) MUST_CHECK;
void trace_release(struct trace *trace);
void trace_set_tap(struct trace *trace, trace_tap_fn *tap, void *arg);

/* Foreign text cannot make a second line of it (text_line). A NULL trace is silent. */
void trace_add(struct trace *trace, int64_t now_us, const char *format, ...) PRINTF_LIKE(3, 4);

/* The line that is `back` lines old (0 = the last one); NULL when it is not kept. */
const char *trace_line(const struct trace *trace, size_t back);

#endif
