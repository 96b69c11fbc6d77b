/*
 * call.h: a collective in the timeline, from the call until it returns.
 */
#ifndef TIMELINE_CALL_H
#define TIMELINE_CALL_H

#include "timeline/timeline.h"

struct timeline_call {
    const char *operation; /* "allreduce" */
    uint64_t number;       /* in its group and round */
    uint64_t round;
    size_t group;     /* 0: all */
    const char *type; /* NULL: it has none */
    const char *op;   /* likewise */
    const char *by;   /* what carried it, where that may vary; NULL */
    uint64_t bytes;   /* that this member gave */
    int code;         /* as it ended */
    const char *why;  /* of a failure, or NULL */
    int64_t begun_us, ended_us;
};

void timeline_put_call(struct timeline *timeline, const struct timeline_call *call);

static inline void timeline_call(struct timeline *timeline, const struct timeline_call *call)
{
    if (timeline)
        timeline_put_call(timeline, call);
}

#endif
