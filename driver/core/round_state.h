/*
 * round_state.h: what is known of one round. Its members are named by incarnation: one that is not
 * in the table of workers is dead. Private to this folder; what is done with it: round.h.
 */
#ifndef DRIVER_CORE_ROUND_STATE_H
#define DRIVER_CORE_ROUND_STATE_H

#include "base/vec.h"
#include "proto/msg.h"

struct round {
    uint64_t number; /* 0: none */
    uint64_t previous;
    uint64_t commit;
    uint64_t check;
    enum msg_cause cause;
    struct VEC(uint64_t) members; /* by rank */
    struct VEC(uint64_t) holders; /* of the commit */
    size_t entered, prepared, at;
    uint64_t max_check;
    size_t failed_by_exit; /* members whose program ended with an error of its own */
    size_t lost;           /* members that have died in it, or before the next */
    int64_t trains_us;     /* since when all train; TIME_NEVER: they do not */
    int failed_with;       /* a code: what a member said that made it end */
    bool revoked;
    bool weighed; /* whether it has brought the job any further */
};

#endif
