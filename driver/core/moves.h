/*
 * moves.h: the state machines of the core as tables, with one row for each move: the state before,
 * the state after, and the cause. A move that is not in its table is a bug and panics. states.md
 * shows the same rows, and tests/unit/test_core_parts.c compares both.
 */
#ifndef DRIVER_CORE_MOVES_H
#define DRIVER_CORE_MOVES_H

#include "driver/core/core_internal.h"

#define MOVE_ANY 255 /* as `from`: the move is allowed from every other state */

struct move {
    unsigned char from, to; /* states of the machine's enum */
    const char *when;       /* the cause, as states.md has it; the code does not use it */
};

struct machine {
    const char *name;
    const char *const *states;
    unsigned state_count;
    const struct move *moves;
    size_t move_count;
};

extern const struct machine job_machine;    /* enum job_state */
extern const struct machine worker_machine; /* enum worker_state */
extern const struct machine round_machine;  /* enum round_state */
extern const struct machine agent_machine;  /* enum agent_state, the agent of a host */

/* Panics when the table has no move between these states. */
void machine_check(const struct machine *machine, unsigned from, unsigned to);

#endif
