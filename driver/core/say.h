/*
 * say.h: how the core tells what it has decided: a line of its trace, with the facts of the line
 * for programs.
 */
#ifndef DRIVER_CORE_SAY_H
#define DRIVER_CORE_SAY_H

#include "base/facts.h"
#include "base/trace.h"

struct core;

/* Adds a line to the core's trace. If the facts have no round, they get the current one. */
void core_say(struct core *core, enum trace_level level, const struct facts *facts,
              const char *format, ...) PRINTF_LIKE(4, 5);

#define CORE_TRACE(core, ...)  core_say(core, TRACE_INFO, __VA_ARGS__)
#define CORE_WARN(core, ...)   core_say(core, TRACE_WARNING, __VA_ARGS__)
#define CORE_DETAIL(core, ...) core_say(core, TRACE_DETAIL, __VA_ARGS__)

/* For FACTS(): the facts of a log line that name a slot (OF_SLOT) or a worker (OF_WORKER). */
#define OF_SLOT(name, number) .host = (name), .has_slot = true, .slot = (number)
#define OF_WORKER(worker) \
    OF_SLOT((worker)->host->name, (worker)->slot), .incarnation = (worker)->incarnation

#endif
