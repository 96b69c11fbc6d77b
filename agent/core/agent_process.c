/* agent_process.c: processes from LAUNCH to FORGET, and the end of the agent, which is theirs. */
#include "agent/core/agent_state.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define SIGNAL_KILL 9  /* what a SIGKILL of ours looks like to the driver */
#define SIGNAL_TERM 15 /* the same of a SIGTERM */

static void over_when_alone(struct agent *agent)
{
    struct agent_action *action;

    if (agent->life.state != LIFE_ENDING || agent->alive > 0)
        return;
    agent_driver_bye(agent, agent->exit_text);
    sm_move(&agent->life, LIFE_OVER, agent->now_us, "every worker has ended");
    action = agent_do(agent, AGENT_DO_EXIT);
    action->code = agent->exit_code;
    action->text = agent_text(agent, "%s", agent->exit_text);
}

static void launch_failed(struct agent *agent, uint64_t incarnation, uint32_t slot, int code,
                          const char *text)
{
    struct msg *msg = agent_msg(agent, MSG_LAUNCH_FAILED, incarnation);

    msg->u.launch_failed = (struct msg_launch_failed){ slot, code, text };
    agent_driver_send(agent, msg);
}

static void say_launched(struct agent *agent, const struct agent_worker *worker)
{
    struct msg *msg = agent_msg(agent, MSG_LAUNCHED, worker->incarnation);

    msg->u.launched = (struct msg_launched){ worker->slot, worker->pid };
    agent_driver_send(agent, msg);
}

static void say_exited(struct agent *agent, const struct agent_worker *worker)
{
    struct msg *msg = agent_msg(agent, MSG_EXITED, worker->incarnation);

    msg->u.exited = (struct msg_exited){
        .slot = worker->slot,
        .pid = worker->pid,
        .ended = worker->ended,
        .value = worker->value,
        .witness = worker->witness,
        .ran_us = worker->ran_us,
        .commit = worker->commit,
    };
    agent_driver_send(agent, msg);
}

void agent_process_report(struct agent *agent, const struct agent_worker *worker)
{
    if (!agent_driver_is_open(agent))
        return;
    switch ((enum process)worker->process.state) {
    case RUNNING: say_launched(agent, worker); break;
    case ENDED: say_exited(agent, worker); break;
    case FAILED:
        launch_failed(agent, worker->incarnation, worker->slot, worker->code,
                      agent_text(agent, "%s", worker->text));
        break;
    case SPAWNING: /* its answer is on its way */
    case FORGOTTEN:
    case PROCESS_COUNT: break;
    }
}

/* A child of it may still hold the socket. */
static void close_connection(struct agent *agent, struct agent_worker *worker)
{
    struct agent_action *action;

    if (!worker->connected)
        return;
    action = agent_do(agent, AGENT_DO_DROP);
    action->worker = worker->connection;
    action->text = "its worker is gone";
    agent_roster_disconnect(agent, worker);
}

/* Its place in the roster goes; the slot remembers that the incarnation was there. */
static void forget(struct agent *agent, struct agent_worker *worker, const char *why)
{
    close_connection(agent, worker);
    agent_worker_move(agent, worker, FORGOTTEN, why);
    agent_roster_remove(agent, worker);
}

static void spawn(struct agent *agent, const struct msg *msg)
{
    struct agent_slot *slot = &agent->slots[msg->u.launch.slot];
    struct agent_action *action;

    if (slot->failed) /* who launches the next one knows */
        forget(agent, slot->failed, "superseded");
    if (!agent_roster_add(agent, msg))
        return;
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " in slot %u: spawn",
              msg->incarnation, msg->u.launch.slot);
    action = agent_do(agent, AGENT_DO_SPAWN);
    action->incarnation = msg->incarnation;
    action->msg = msg;
}

static void launch_new(struct agent *agent, const struct msg *msg)
{
    uint32_t slot = msg->u.launch.slot;

    if (agent->life.state == LIFE_ENDING)
        launch_failed(agent, msg->incarnation, slot, HVD_E_STATE, "the agent is ending");
    else if (agent->slots[slot].worker)
        launch_failed(agent, msg->incarnation, slot, HVD_E_BUSY,
                      "an older incarnation still runs in the slot");
    else if (agent->workers.count >= LIMIT_SLOT_REPORTS)
        launch_failed(agent, msg->incarnation, slot, HVD_E_LIMIT,
                      "too many ends that the driver has not forgotten");
    else
        spawn(agent, msg);
}

void agent_process_launch(struct agent *agent, const struct msg *msg)
{
    const struct agent_worker *worker = agent_roster_find(agent, msg->incarnation);
    uint32_t slot = msg->u.launch.slot;

    if (!msg->incarnation || slot >= LIMIT_SLOTS_PER_HOST || (worker && worker->slot != slot))
        trace_add(agent->trace, agent->now_us,
                  "worker: LAUNCH of %" PRIu64 " in slot %u cannot be: dropped", msg->incarnation,
                  slot);
    else if (worker)
        agent_process_report(agent, worker);
    else if (msg->incarnation <= agent->slots[slot].highest)
        trace_add(agent->trace, agent->now_us,
                  "worker: LAUNCH of %" PRIu64 " in slot %u is stale (%" PRIu64 " was there): "
                  "dropped",
                  msg->incarnation, slot, agent->slots[slot].highest);
    else
        launch_new(agent, msg);
}

/* The living worker of that incarnation; of another, a trace. */
static struct agent_worker *find_alive(struct agent *agent, uint64_t incarnation, const char *what)
{
    struct agent_worker *worker = agent_roster_find(agent, incarnation);

    if (worker && agent_worker_is_alive(worker))
        return worker;
    trace_add(agent->trace, agent->now_us, "worker: %s of %" PRIu64 ", which does not run: ignored",
              what, incarnation);
    return NULL;
}

/* What was asked for while nobody could be asked, and what has become due. */
static void carry_out(struct agent *agent, struct agent_worker *worker)
{
    if (worker->asked == ASKED_NOT || worker->asked == ASKED_KILL ||
        worker->process.state != RUNNING)
        return;
    if (worker->kill_at_us <= agent->now_us) {
        agent_do(agent, AGENT_DO_KILL)->incarnation = worker->incarnation;
        worker->asked = ASKED_KILL;
        worker->kill_at_us = TIME_NEVER;
        return;
    }
    if (worker->asked == ASKED_WAITS) {
        agent_do(agent, AGENT_DO_TERM)->incarnation = worker->incarnation;
        worker->asked = ASKED_TERM;
    }
    agent_wake_at(agent, worker->kill_at_us);
}

/* Asked twice, the earlier end counts. */
static void ask_to_end(struct agent *agent, struct agent_worker *worker, int64_t grace_us)
{
    int64_t kill_at_us = time_add(agent->now_us, grace_us > 0 ? grace_us : 0);

    ASSERT(agent_worker_is_alive(worker));
    if (worker->asked == ASKED_NOT)
        worker->asked = ASKED_WAITS;
    if (kill_at_us < worker->kill_at_us)
        worker->kill_at_us = kill_at_us;
    carry_out(agent, worker);
}

void agent_process_timer(struct agent *agent, struct agent_worker *worker)
{
    carry_out(agent, worker);
}

void agent_process_blame(struct agent *agent, struct agent_worker *worker, enum msg_witness witness)
{
    worker->blamed = witness;
    ask_to_end(agent, worker, 0);
}

void agent_process_useless(struct agent *agent, struct agent_worker *worker)
{
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " is of no more use: it is ended",
              worker->incarnation);
    if (agent_worker_is_alive(worker))
        ask_to_end(agent, worker, 0);
}

void agent_process_kill(struct agent *agent, uint64_t incarnation, int64_t grace_us)
{
    struct agent_worker *worker = find_alive(agent, incarnation, "KILL");

    if (!worker)
        return;
    worker->driver_asked = true;
    ask_to_end(agent, worker, grace_us);
}

void agent_process_spawned(struct agent *agent, uint64_t incarnation, uint64_t pid)
{
    struct agent_worker *worker = find_alive(agent, incarnation, "SPAWNED");

    if (!worker || worker->process.state != SPAWNING)
        return;
    worker->pid = pid;
    worker->started_us = agent->now_us;
    agent_worker_move(agent, worker, RUNNING, "started");
    agent_process_report(agent, worker);
    carry_out(agent, worker);
}

/* It no longer takes up its slot. */
static void vacate(struct agent *agent, struct agent_worker *worker)
{
    ASSERT(agent->slots[worker->slot].worker == worker && agent->alive > 0);
    agent->slots[worker->slot].worker = NULL;
    agent->alive--;
    worker->kill_at_us = TIME_NEVER;
    worker->silent_at_us = TIME_NEVER;
}

void agent_process_spawn_failed(struct agent *agent, const struct agent_event *event)
{
    struct agent_worker *worker = find_alive(agent, event->incarnation, "SPAWN_FAILED");

    if (!worker || worker->process.state != SPAWNING)
        return;
    worker->code = event->code ? event->code : HVD_E_IO;
    worker->text = mem_strdup(agent_text(agent, "%s", event->text ? event->text : ""));
    if (!worker->text) {
        agent->list->failed = true;
        return;
    }
    close_connection(agent, worker);
    vacate(agent, worker);
    agent->slots[worker->slot].failed = worker;
    agent_worker_move(agent, worker, FAILED, worker->text);
    agent_process_report(agent, worker);
    over_when_alone(agent);
}

/* The agent ends by itself, and has asked this worker to end: the driver knows nothing of it. */
static bool is_cut_short(const struct agent *agent, const struct agent_worker *worker)
{
    return agent->life.state == LIFE_ENDING && !agent->stopped && worker->asked != ASKED_NOT &&
           !worker->driver_asked && worker->phase != PHASE_LEFT && worker->phase != PHASE_FINISHED;
}

static void note_end(struct agent *agent, struct agent_worker *worker,
                     const struct agent_event *event)
{
    worker->ended = event->ended;
    worker->value = event->value;
    worker->witness = event->witness;
    /* A command that handles SIGTERM and exits 0 has not done its part: the driver, which takes an
     * exit 0 for that, would call the job finished. One that had just done it runs once more. */
    if (event->ended == ENDED_EXIT && event->value == 0 && is_cut_short(agent, worker)) {
        worker->ended = ENDED_SIGNAL;
        worker->value = SIGNAL_TERM;
    }
    if (worker->blamed) {
        worker->ended = ENDED_SILENT;
        worker->value = SIGNAL_KILL;
        worker->witness = worker->blamed;
    }
    if (worker->pid)
        worker->ran_us = agent->now_us - worker->started_us;
    if (worker->phase != PHASE_LEFT && worker->phase != PHASE_FINISHED)
        worker->phase = PHASE_ENDED;
}

void agent_process_ended(struct agent *agent, const struct agent_event *event)
{
    struct agent_worker *worker = find_alive(agent, event->incarnation, "an end");

    ASSERT(event->ended > ENDED_NOT && event->ended < ENDED_COUNT);
    ASSERT(event->witness < WITNESS_COUNT);
    if (!worker)
        return;
    note_end(agent, worker, event);
    worker->commit = event->commit;
    vacate(agent, worker);
    agent_worker_move(agent, worker, ENDED,
                      worker->blamed ? "it was silent" : "its process is gone");
    agent_process_report(agent, worker);
    over_when_alone(agent);
}

void agent_process_forget(struct agent *agent, uint64_t incarnation)
{
    struct agent_worker *worker = agent_roster_find(agent, incarnation);

    if (!worker)
        return; /* it was forgotten before */
    if (agent_worker_is_alive(worker)) {
        trace_add(agent->trace, agent->now_us,
                  "worker: FORGET of %" PRIu64 ", which runs: the driver is wrong, ignored",
                  incarnation);
        return;
    }
    forget(agent, worker, "the driver has written it down");
}

void agent_end(struct agent *agent, int64_t grace_us, int code, const char *why)
{
    ASSERT(agent->life.state != LIFE_NEW && agent->life.state != LIFE_OVER);
    ASSERT(strlen(why) < sizeof(agent->exit_text));
    if (agent->life.state != LIFE_ENDING) {
        agent->exit_code = code;
        memcpy(agent->exit_text, why, strlen(why) + 1);
        agent->grace_at_us = TIME_NEVER;
        sm_move(&agent->life, LIFE_ENDING, agent->now_us, why);
    }
    for (size_t i = 0; i < agent->workers.count; i++) {
        if (agent_worker_is_alive(agent->workers.items[i]))
            ask_to_end(agent, agent->workers.items[i], grace_us);
    }
    over_when_alone(agent);
}
