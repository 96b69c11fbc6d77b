/*
 * sm.h: a state machine whose every move is looked up in a table, traced, and followed by the
 * owner's invariant. A move that is not in the table is a bug and panics, so an impossible
 * transition cannot be made quietly.
 */
#ifndef BASE_SM_H
#define BASE_SM_H

#include "base/trace.h"

#define SM_BIT(state) (UINT64_C(1) << (state))
#define SM_INITIAL    0x1u
#define SM_FINAL      0x2u /* may not be left */
#define SM_STATES_MAX 64

struct sm_state {
    const char *name;
    uint64_t next; /* SM_BIT of each state that may follow */
    unsigned flags;
};

struct sm_type {
    const char *name; /* of the kind of machine: "job", "slot" */
    const struct sm_state *states;
    unsigned count;
    void (*invariant)(const void *owner, unsigned state); /* panics when broken; may be NULL */
};

struct sm {
    const struct sm_type *type;
    const void *owner;   /* borrowed */
    struct trace *trace; /* borrowed, may be NULL */
    unsigned state;
};

/* Panics on a table that contradicts itself: a successor out of range, a final state with one. */
void sm_init(struct sm *sm, const struct sm_type *type, unsigned initial, const void *owner,
             struct trace *trace);

/* Moves, traces "name: from -> to: why", and checks the invariant. */
void sm_move(struct sm *sm, unsigned to, int64_t now_us, const char *why);

bool sm_may(const struct sm *sm, unsigned to);
const char *sm_name(const struct sm *sm);

#endif
