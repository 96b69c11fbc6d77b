/*
 * sm.h: a state machine. Every move is looked up in a table and traced, and then the owner's
 * invariant is checked. A move that is not in the table is a bug and panics.
 */
#ifndef BASE_SM_H
#define BASE_SM_H

#include "base/trace.h"

#define SM_BIT(state) (UINT64_C(1) << (state))
#define SM_INITIAL    0x1u
#define SM_FINAL      0x2u /* the machine never leaves this state */
#define SM_STATES_MAX 64

struct sm_state {
    const char *name;
    uint64_t next; /* SM_BIT of each state that may follow */
    unsigned flags;
};

struct sm_type {
    const char *name; /* name of the kind of machine: "job", "slot" */
    const struct sm_state *states;
    unsigned count;
    /* Called after each move; panics when the fields of the owner do not fit the new state. May be
     * NULL. */
    void (*invariant)(const void *owner, unsigned state);
};

struct sm {
    const struct sm_type *type;
    const void *owner;   /* the object that has this machine; the invariant gets it; borrowed */
    struct trace *trace; /* gets a line for each move; borrowed, may be NULL */
    unsigned state;
};

/* Puts the machine into its initial state. Panics on a table that contradicts itself: a successor
 * is out of range, or a final state has a successor. */
void sm_init(struct sm *sm, const struct sm_type *type, unsigned initial, const void *owner,
             struct trace *trace);

/* Moves to a state, traces "name: from -> to: why", and checks the invariant. Panics when the table
 * does not allow the move. */
void sm_move(struct sm *sm, unsigned to, int64_t now_us, const char *why);

/* true: the table allows a move from the present state to `to`. */
bool sm_may(const struct sm *sm, unsigned to);
const char *sm_name(const struct sm *sm);

#endif
