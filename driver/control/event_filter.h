/*
 * event_filter.h: which events --on-event and --on-event-url are told: the value of
 * --on-event-filter, a list such as "warning,round_trains,job_over". A severity lets through the
 * events that are at least as grave; a kind (docs/events.md) the events of that kind.
 */
#ifndef DRIVER_CONTROL_EVENT_FILTER_H
#define DRIVER_CONTROL_EVENT_FILTER_H

#include "base/err.h"
#include "base/facts.h"
#include "base/trace.h"

/* true: events of this severity, or of this kind, pass. */
struct event_filter {
    bool severities[TRACE_DETAIL + 1];
    bool kinds[KIND_COUNT];
};

/* Reads the value of --on-event-filter. HVD_E_INVAL: a word is neither a severity nor a kind; the
 * error names the word. */
int event_filter_parse(const char *text, struct event_filter *ret_filter,
                       struct hvd_err *err) MUST_CHECK;

bool event_filter_passes(const struct event_filter *filter, enum trace_level level,
                         enum facts_kind kind);

#endif
