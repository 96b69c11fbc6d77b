/*
 * calls.h: collectives in the timeline. Each member shows its call and, in another lane (a row of
 * the viewer), what the call is made of: the wait for the other members, copies, reductions. With a
 * NULL timeline, or one that is off, nothing happens.
 */
#ifndef TIMELINE_CALLS_H
#define TIMELINE_CALLS_H

#include "timeline/timeline.h"

/* When this member made the call, and which member was the last to make it. */
struct timeline_arrival {
    int64_t at_us; /* when this member made the call; 0: the timeline is off, or this time is shown
                      already */
    bool knows_last;  /* true: `last` and `early_us` are known */
    uint32_t last;    /* the rank that called last, of the members on this host */
    int64_t early_us; /* how long before `last` this member called */
};

struct timeline_call {
    const char *operation; /* name of the operation: "allreduce" */
    uint64_t number;       /* number of the operation in its group and round */
    uint64_t round;        /* number of the round */
    uint32_t rank;         /* rank of this member */
    size_t group;          /* number of the group; 0: all members */
    /* lowest rank of the group: groups with the same number have different ones */
    uint32_t lowest_rank;
    uint32_t members;  /* number of members of the group */
    const char *type;  /* type of the elements; NULL: the operation has none */
    const char *op;    /* op of the reduction; NULL: the operation has none */
    const char *by;    /* carrier: "NCCL" or the host, where both are possible; otherwise NULL */
    uint64_t bytes;    /* bytes that this member gave */
    uint32_t requests; /* number of started requests in this operation; 0: it was not started */
    struct timeline_arrival arrival;
    int code;        /* the result of the call */
    const char *why; /* the reason of a failure, or NULL */
    int64_t begun_us, ended_us;
};

/* Adds a collective to the timeline, with the time from its call until its return. */
void timeline_call(struct timeline *timeline, const struct timeline_call *call);

/* Adds a phase of a collective: "wait for rank 3", "copy in", "reduce", "between hosts". bytes 0:
 * the number of bytes is not shown. */
void timeline_phase(struct timeline *timeline, const char *name, uint64_t bytes, int64_t begun_us,
                    int64_t ended_us);

#endif
