/*
 * event_filter.c: reads --on-event-filter and applies it. driver/options.c and the queue of the
 * hooks of events (driver/io/event_queue.c) call this file. Invariant: a filter lets through at
 * least one kind or severity, because an empty list is an error.
 */
#include "driver/control/event_filter.h"

#include "base/text.h"
#include "driver/control/events.h"

#include <string.h>

/* Reads the value of --on-event-filter. A severity also lets through all graver ones; the levels of
 * trace.h begin with the gravest. */
int event_filter_parse(const char *text, struct event_filter *ret_filter, struct hvd_err *err)
{
    struct event_filter filter = { .severities = { false } };
    struct span rest = { text, strlen(text) }, word;
    char quoted[TEXT_QUOTE_MAX];

    while (span_next(&rest, ',', &word)) {
        bool known = false;

        word = span_trim(word);
        for (unsigned level = 0; level <= TRACE_DETAIL; level++)
            if (span_is(word, events_severity((enum trace_level)level))) {
                memset(filter.severities, true, level + 1);
                known = true;
            }
        for (unsigned kind = KIND_NONE + 1; kind < KIND_COUNT; kind++)
            if (span_is(word, facts_kind_name((enum facts_kind)kind)))
                known = filter.kinds[kind] = true;
        if (!known)
            return err_set(err, HVD_E_INVAL,
                           "%s is neither a severity (error, warning, info, debug) nor a kind of "
                           "event; docs/events.md lists the kinds",
                           text_quote(word.at, word.length, quoted));
    }
    *ret_filter = filter;
    return 0;
}

bool event_filter_passes(const struct event_filter *filter, enum trace_level level,
                         enum facts_kind kind)
{
    return filter->severities[level] || filter->kinds[kind];
}
