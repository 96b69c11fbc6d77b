/*
 * moves.c: every state of a job, a worker, a round and a host's agent, and every move from one to
 * another. core_move_job, roster_move, round_move and roster_move_agent have each move checked
 * here. A new move is a row here and a row in states.md.
 */
#include "driver/core/moves.h"

/* clang-format off */
static const struct move job_moves[] = {
    { JOB_NEW,        JOB_GATHERING,  "the journal knows no round" },
    { JOB_NEW,        JOB_RUNNING,    "an earlier driver began a round" },
    { JOB_NEW,        JOB_FINISHING,  "a worker has finished under an earlier driver" },
    { JOB_NEW,        JOB_STOPPING,   "an earlier driver ended the job" },
    { JOB_GATHERING,  JOB_RUNNING,    "np workers are READY: the first round begins" },
    { JOB_RUNNING,    JOB_PREPARING,  "all train, and a worker joins or has to go" },
    { JOB_PREPARING,  JOB_PENDING,    "all members of the next round said PREPARED" },
    { JOB_PENDING,    JOB_RUNNING,    "all said NEXT_CHECK: the switch; or the change is abandoned" },
    { JOB_PREPARING,  JOB_RUNNING,    "the change is abandoned" },
    { JOB_RUNNING,    JOB_RECOVERING, "the round is revoked" },
    { JOB_RECOVERING, JOB_RUNNING,    "the survivors said RECOVERING: the next round begins" },
    { JOB_RUNNING,    JOB_FINISHING,  "a worker said FINISHED with code 0" },
    { JOB_RECOVERING, JOB_FINISHING,  "a worker said FINISHED with code 0" },
    { JOB_GATHERING,  JOB_STOPPING,   "the job fails, or is stopped" },
    { JOB_RUNNING,    JOB_STOPPING,   "the job fails, or is stopped" },
    { JOB_RECOVERING, JOB_STOPPING,   "the job fails, or is stopped" },
    { JOB_FINISHING,  JOB_STOPPING,   "all workers have ended, or the job is stopped" },
    { MOVE_ANY,       JOB_OVER,       "all agents are gone, or another driver has taken over" },
};

static const struct move worker_moves[] = {
    { WORKER_LAUNCHING, WORKER_BOOTING,   "LAUNCHED" },
    { WORKER_LAUNCHING, WORKER_READY,     "READY came before LAUNCHED" },
    { WORKER_BOOTING,   WORKER_READY,     "READY" },
    { WORKER_READY,     WORKER_MEMBER,    "a round begins with this worker" },
    { WORKER_MEMBER,    WORKER_REVOKED,   "its round is revoked" },
    { WORKER_REVOKED,   WORKER_RECOVERED, "RECOVERING" },
    { WORKER_RECOVERED, WORKER_MEMBER,    "the next round begins with it" },
    { WORKER_READY,     WORKER_LEAVING,   "its slot is given up, or LEFT" },
    { WORKER_MEMBER,    WORKER_LEAVING,   "a switch without it, or LEFT" },
    { WORKER_LAUNCHING, WORKER_LEAVING,   "LEFT" },
    { WORKER_BOOTING,   WORKER_LEAVING,   "LEFT" },
    { WORKER_REVOKED,   WORKER_LEAVING,   "LEFT" },
    { WORKER_RECOVERED, WORKER_LEAVING,   "LEFT" },
    { WORKER_MEMBER,    WORKER_FINISHED,  "FINISHED with code 0" },
    { WORKER_REVOKED,   WORKER_FINISHED,  "FINISHED with code 0" },
    { WORKER_RECOVERED, WORKER_FINISHED,  "FINISHED with code 0" },
    { MOVE_ANY,         WORKER_DOOMED,    "counted as dead; its process is being killed" },
    { MOVE_ANY,         WORKER_ENDED,     "EXITED, or the agent no longer knows the worker" },
};

static const struct move round_moves[] = {
    { ROUND_NONE,     ROUND_NEXT,     "its members are chosen" },
    { ROUND_NEXT,     ROUND_NONE,     "the change is abandoned" },
    { ROUND_NEXT,     ROUND_BEGUN,    "its members are told ROUND" },
    { ROUND_BEGUN,    ROUND_TRAINING, "all members said ENTERED" },
    { ROUND_BEGUN,    ROUND_REVOKED,  "a member died, failed or was late" },
    { ROUND_TRAINING, ROUND_REVOKED,  "a member died or failed" },
    { ROUND_TRAINING, ROUND_LEFT,     "all said NEXT_CHECK: the next round begins by a switch" },
    { ROUND_BEGUN,    ROUND_LEFT,     "the same under an earlier driver" },
    { ROUND_LEFT,     ROUND_NONE,     "all train in the next round, or that one is revoked" },
    { ROUND_REVOKED,  ROUND_NONE,     "the next round begins" },
};

static const struct move agent_moves[] = {
    { AGENT_NONE,     AGENT_STARTING, "its slots are wanted" },
    { AGENT_NONE,     AGENT_THERE,    "HELLO_AGENT that was not asked for" },
    { AGENT_NONE,     AGENT_AWAY,     "the journal knows workers there" },
    { AGENT_STARTING, AGENT_THERE,    "HELLO_AGENT" },
    { AGENT_STARTING, AGENT_NONE,     "it could not be started, or said no HELLO_AGENT in time" },
    { AGENT_THERE,    AGENT_AWAY,     "its connection is gone" },
    { AGENT_AWAY,     AGENT_THERE,    "HELLO_AGENT" },
    { AGENT_AWAY,     AGENT_NONE,     "its lease is over, or it was to end" },
};
/* clang-format on */

/* Names of the states for logs, in the order of the enums. */
static const char *const job_names[] = { "new",       "gathering", "running",
                                         "preparing", "pending",   "recovering",
                                         "finishing", "stopping",  "over" };
static const char *const worker_names[] = { "launching", "booting", "ready",    "member", "revoked",
                                            "recovered", "leaving", "finished", "doomed", "ended" };
static const char *const round_names[] = { "none", "next", "begun", "training", "revoked", "left" };
static const char *const agent_names[] = { "none", "starting", "there", "away" };
_Static_assert(ARRAY_SIZE(job_names) == JOB_STATE_COUNT, "a name for each state");
_Static_assert(ARRAY_SIZE(worker_names) == WORKER_STATE_COUNT, "a name for each state");
_Static_assert(ARRAY_SIZE(round_names) == ROUND_STATE_COUNT, "a name for each state");
_Static_assert(ARRAY_SIZE(agent_names) == AGENT_STATE_COUNT, "a name for each state");

#define MACHINE(name, states, moves)                               \
    {                                                              \
        name, states, ARRAY_SIZE(states), moves, ARRAY_SIZE(moves) \
    }

const struct machine job_machine = MACHINE("job", job_names, job_moves);
const struct machine worker_machine = MACHINE("worker", worker_names, worker_moves);
const struct machine round_machine = MACHINE("round", round_names, round_moves);
const struct machine agent_machine = MACHINE("agent", agent_names, agent_moves);

/* Ends the driver (PANIC) if the table of this state machine has no move from the state `from` to
 * the state `to`: such a move is a bug of the caller. A row with MOVE_ANY allows the move from each
 * other state. */
void machine_check(const struct machine *machine, unsigned from, unsigned to)
{
    ASSERT(from < machine->state_count && to < machine->state_count);
    for (size_t i = 0; i < machine->move_count; i++) {
        const struct move *move = &machine->moves[i];

        if (move->to == to && (move->from == from || (move->from == MOVE_ANY && from != to)))
            return;
    }
    PANIC("%s: %s -> %s is not a move", machine->name, machine->states[from], machine->states[to]);
}

static const char *machine_state_name(const struct machine *machine, unsigned state)
{
    return state < machine->state_count ? machine->states[state] : "?";
}

const char *job_state_name(enum job_state state)
{
    return machine_state_name(&job_machine, state);
}

const char *worker_state_name(enum worker_state state)
{
    return machine_state_name(&worker_machine, state);
}

const char *agent_state_name(enum agent_state state)
{
    return machine_state_name(&agent_machine, state);
}

const char *change_cause_name(enum msg_cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        [CAUSE_FIRST] = "first", [CAUSE_SWITCH] = "switch", [CAUSE_RECOVERY] = "recovery"
    };

    return cause < CAUSE_COUNT ? names[cause] : "unknown";
}
