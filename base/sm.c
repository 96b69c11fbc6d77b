/*
 * sm.c: state machines driven by a table. Called by the cores and sessions for every change of a
 * job, worker, agent or process state. A transition that is not in the table is never made.
 */
#include "base/sm.h"

/* Puts a state machine into its first state. `type` is its table of states; `owner` is given to the
 * invariant. */
void sm_init(struct sm *sm, const struct sm_type *type, unsigned initial, const void *owner,
             struct trace *trace)
{
    /* A table that contradicts itself is a bug of the calling file. In a right one each successor
     * is a state of the table; a final state has no successor, every other state has one. */
    ASSERT(type->count > 0 && type->count <= SM_STATES_MAX);
    for (unsigned i = 0; i < type->count; i++) {
        const struct sm_state *state = &type->states[i];

        ASSERT(state->name);
        if (type->count < SM_STATES_MAX)
            ASSERT(state->next >> type->count == 0);
        ASSERT((state->flags & SM_FINAL) ? state->next == 0 : state->next != 0);
    }
    ASSERT(initial < type->count);
    ASSERT(type->states[initial].flags & SM_INITIAL);
    *sm = (struct sm){ .type = type, .owner = owner, .trace = trace, .state = initial };
}

/* true: the table allows a move from the present state to `to`. */
bool sm_may(const struct sm *sm, unsigned to)
{
    return to < sm->type->count && (sm->type->states[sm->state].next & SM_BIT(to));
}

/* Moves to the next state, with a trace line, and checks the invariant. A move that the table does
 * not have is a bug. */
void sm_move(struct sm *sm, unsigned to, int64_t now_us, const char *why)
{
    const char *from = sm_name(sm);

    ASSERT(to < sm->type->count);
    if (!sm_may(sm, to))
        PANIC("%s: %s -> %s is not a move (%s)", sm->type->name, from, sm->type->states[to].name,
              why);
    sm->state = to;
    trace_add(sm->trace, now_us, "%s: %s -> %s: %s", sm->type->name, from, sm_name(sm), why);
    if (sm->type->invariant)
        sm->type->invariant(sm->owner, to);
}

const char *sm_name(const struct sm *sm)
{
    return sm->type->states[sm->state].name;
}
