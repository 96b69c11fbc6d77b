/*
 * agent_states.c: the three state machines of an agent: tables of all possible transitions. sm_move
 * panics on a transition that is not in these tables, and after each one checks the invariant.
 *
 *     agent    new ──► alone ◄──► serving     ending: on STOP, on a final refusal, or when the
 *                        └───────────┴──► ending ──► over     time without a driver is over
 *
 *     link     down ──► dialling ──► greeting ──► open     each state falls back to down
 *
 *     process  spawning ──► running ──► ended ──FORGET──► forgotten
 *                  └──────► failed ─────FORGET, or the next LAUNCH──► forgotten
 */
#include "agent/core/agent_internal.h"

/* The invariant of the agent's life, checked after each change of its state. */
static void check_life(const void *owner, unsigned state)
{
    const struct agent *agent = owner;

    if (state == LIFE_ALONE)
        ASSERT(!agent_link_is_open(agent));
    if (state == LIFE_SERVING)
        ASSERT(agent_link_is_open(agent) && agent->grace_at_us == TIME_NEVER);
    if (state == LIFE_OVER)
        ASSERT(agent->alive == 0);
}

/* The invariant of a worker's process, checked after each change of its state. */
static void check_process(const void *owner, unsigned state)
{
    const struct agent_worker *worker = owner;

    ASSERT(worker->incarnation && worker->slot < LIMIT_SLOTS_PER_HOST);
    ASSERT((state == ENDED) == (worker->ending.ended != ENDED_NOT) || state == FORGOTTEN);
    if (state == FAILED)
        ASSERT(worker->ending.code && !worker->contact.connected);
    if (state == FORGOTTEN)
        ASSERT(!worker->contact.connected);
}

/* clang-format off */
static const struct sm_state life_states[LIFE_COUNT] = {
    /* state             name         what may follow */
    [LIFE_NEW]        = { "new",       SM_BIT(LIFE_ALONE),                               SM_INITIAL },
    [LIFE_ALONE]      = { "alone",     SM_BIT(LIFE_SERVING) | SM_BIT(LIFE_ENDING),       0          },
    [LIFE_SERVING]    = { "serving",   SM_BIT(LIFE_ALONE) | SM_BIT(LIFE_ENDING),         0          },
    [LIFE_ENDING]     = { "ending",    SM_BIT(LIFE_OVER),                                0          },
    [LIFE_OVER]       = { "over",      0,                                                SM_FINAL   },
};

static const struct sm_state link_states[DRIVER_COUNT] = {
    [DRIVER_DOWN]     = { "down",      SM_BIT(DRIVER_DIALLING),                          SM_INITIAL },
    [DRIVER_DIALLING] = { "dialling",  SM_BIT(DRIVER_GREETING) | SM_BIT(DRIVER_DOWN),    0          },
    [DRIVER_GREETING] = { "greeting",  SM_BIT(DRIVER_OPEN) | SM_BIT(DRIVER_DOWN),        0          },
    [DRIVER_OPEN]     = { "open",      SM_BIT(DRIVER_DOWN),                              0          },
};

static const struct sm_state process_states[PROCESS_COUNT] = {
    [SPAWNING]        = { "spawning",  SM_BIT(RUNNING) | SM_BIT(FAILED) | SM_BIT(ENDED), SM_INITIAL },
    [RUNNING]         = { "running",   SM_BIT(ENDED),                                    0          },
    [ENDED]           = { "ended",     SM_BIT(FORGOTTEN),                                0          },
    [FAILED]          = { "failed",    SM_BIT(FORGOTTEN),                                0          },
    [FORGOTTEN]       = { "forgotten", 0,                                                SM_FINAL   },
};
/* clang-format on */

const struct sm_type agent_life_machine = { "agent", life_states, LIFE_COUNT, check_life };
const struct sm_type agent_link_machine = { "driver", link_states, DRIVER_COUNT, NULL };
const struct sm_type agent_process_machine = { "worker", process_states, PROCESS_COUNT,
                                               check_process };
