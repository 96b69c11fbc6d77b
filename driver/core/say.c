/*
 * say.c: adds a line to the core's trace, with its facts. All files of the core call this file, and
 * it calls none of them. Invariant: a line that is added while a round runs names a round.
 */
#include "driver/core/say.h"

#include "driver/core/core_internal.h"

#include <stdarg.h>

/* Adds a line for the log and its facts (for programs) to the trace. A line without a round gets
 * the number of the current round. */
void core_say(struct core *core, enum trace_level level, const struct facts *facts,
              const char *format, ...)
{
    struct facts whole = *facts;
    va_list args;

    if (!whole.round)
        whole.round = core->current.number;
    va_start(args, format);
    trace_say_args(core->trace, core->now_us, level, &whole, format, args);
    va_end(args);
}
