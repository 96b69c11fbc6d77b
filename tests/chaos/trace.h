/*
 * trace.h: when machines were available: lines of "MILLISECONDS,add|remove,NODE", ordered by time.
 */
#ifndef TESTS_CHAOS_TRACE_H
#define TESTS_CHAOS_TRACE_H

#include "base/err.h"

struct trace_event {
    int64_t at_us;
    bool add;
    uint32_t node; /* each node name has its own index */
};

struct trace {
    struct trace_event *events;
    size_t count, room;
    char (*nodes)[64];
    size_t node_count, node_room;
};

/* Reads the trace from a text. An error names the line. Release trace also after an error. */
int trace_parse(struct trace *trace, const char *text, size_t length,
                struct hvd_err *err) MUST_CHECK;
int trace_load(struct trace *trace, const char *path, struct hvd_err *err) MUST_CHECK;
void trace_release(struct trace *trace);

#endif
