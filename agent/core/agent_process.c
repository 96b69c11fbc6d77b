/*
 * agent_process.c: the processes of workers from LAUNCH to FORGET (PROTOCOL.md, "Life"), and the
 * end of the agent, after the last process. Called for orders of the driver, for events of a
 * process, and when a worker is silent. Invariant: a living worker occupies its slot; each end is
 * reported until the driver says FORGET.
 */
#include "agent/core/agent_handlers.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define SIGNAL_KILL 9  /* number of SIGKILL, as reported to the driver */
#define SIGNAL_TERM 15 /* number of SIGTERM, as reported to the driver */

/* Called whenever a worker has ended: if the agent is ending and no worker is left, the agent says
 * BYE and asks to exit. */
static void process_exit_if_last(struct agent *agent)
{
    struct agent_action *action;

    if (agent->life.state != LIFE_ENDING || agent->alive > 0)
        return;
    agent_link_bye(agent, agent->exit.text);
    sm_move(&agent->life, LIFE_OVER, agent->now_us, "every worker has ended");
    action = agent_do(agent, AGENT_DO_EXIT);
    action->code = agent->exit.code;
    action->text = agent_text(agent, "%s", agent->exit.text);
}

/* Sends a running worker the signal that is due now: SIGKILL if kill_at_us has come, else SIGTERM
 * if the worker has not got it yet. A worker that was not asked to end gets none. */
void agent_process_signal(struct agent *agent, struct agent_worker *worker)
{
    struct agent_killing *killing = &worker->killing;

    if (killing->asked == ASKED_NOT || killing->asked == ASKED_KILL ||
        worker->process.state != RUNNING)
        return;
    if (killing->kill_at_us <= agent->now_us) {
        agent_do(agent, AGENT_DO_KILL)->incarnation = worker->incarnation;
        killing->asked = ASKED_KILL;
        killing->kill_at_us = TIME_NEVER;
        return;
    }
    if (killing->asked == ASKED_WAITS) {
        agent_do(agent, AGENT_DO_TERM)->incarnation = worker->incarnation;
        killing->asked = ASKED_TERM;
    }
    agent_wake_at(agent, killing->kill_at_us);
}

/* Asks a worker to end: SIGTERM now, SIGKILL after the grace time. Of two requests the one with the
 * earlier SIGKILL counts. */
static void process_ask_to_end(struct agent *agent, struct agent_worker *worker, int64_t grace_us)
{
    int64_t kill_at_us = time_add(agent->now_us, grace_us > 0 ? grace_us : 0);

    ASSERT(agent_worker_is_alive(worker));
    if (worker->killing.asked == ASKED_NOT)
        worker->killing.asked = ASKED_WAITS;
    if (kill_at_us < worker->killing.kill_at_us)
        worker->killing.kill_at_us = kill_at_us;
    agent_process_signal(agent, worker);
}

/* Begins the end of the agent: every worker gets SIGTERM, and SIGKILL after the grace time. A later
 * call may shorten the grace time. */
void agent_end(struct agent *agent, int64_t grace_us, int code, const char *why)
{
    ASSERT(agent->life.state != LIFE_NEW && agent->life.state != LIFE_OVER);
    ASSERT(strlen(why) < sizeof(agent->exit.text));
    if (agent->life.state != LIFE_ENDING) { /* only the first reason is reported */
        agent->exit.code = code;
        memcpy(agent->exit.text, why, strlen(why) + 1);
        agent->grace_at_us = TIME_NEVER;
        sm_move(&agent->life, LIFE_ENDING, agent->now_us, why);
    }
    for (size_t i = 0; i < agent->workers.count; i++) {
        if (agent_worker_is_alive(agent->workers.items[i]))
            process_ask_to_end(agent, agent->workers.items[i], grace_us);
    }
    process_exit_if_last(agent);
}

/* Tells the driver that this incarnation could not be started in the slot. */
static void process_say_failed(struct agent *agent, uint64_t incarnation, uint32_t slot, int code,
                               const char *text)
{
    struct msg *msg = agent_msg(agent, MSG_LAUNCH_FAILED, incarnation);

    msg->u.launch_failed = (struct msg_launch_failed){ slot, code, text };
    agent_link_send(agent, msg);
}

/* Tells the driver how far the process is: LAUNCHED, LAUNCH_FAILED or EXITED. */
void agent_process_report(struct agent *agent, const struct agent_worker *worker)
{
    const struct agent_ending *ending = &worker->ending;
    struct msg *msg;

    if (!agent_link_is_open(agent))
        return;
    switch ((enum process)worker->process.state) {
    case RUNNING:
        msg = agent_msg(agent, MSG_LAUNCHED, worker->incarnation);
        msg->u.launched = (struct msg_launched){ worker->slot, worker->pid };
        agent_link_send(agent, msg);
        break;
    case ENDED:
        agent_autopsy_say(agent, worker);
        msg = agent_msg(agent, MSG_EXITED, worker->incarnation);
        msg->u.exited = (struct msg_exited){
            .slot = worker->slot,
            .pid = worker->pid,
            .ended = ending->ended,
            .value = ending->value,
            .witness = ending->witness,
            .ran_us = ending->ran_us,
            .commit = ending->commit,
        };
        agent_link_send(agent, msg);
        break;
    case FAILED:
        process_say_failed(agent, worker->incarnation, worker->slot, ending->code,
                           agent_text(agent, "%s", ending->text));
        break;
    case SPAWNING: /* no report yet: SPAWNED or SPAWN_FAILED follows */
    case FORGOTTEN:
    case PROCESS_COUNT: break;
    }
}

/* Closes the connection of a worker that has ended: a child of the worker may still hold the other
 * end of the socket. */
static void process_close_connection(struct agent *agent, struct agent_worker *worker)
{
    struct agent_action *action;

    if (!worker->contact.connected)
        return;
    action = agent_do(agent, AGENT_DO_DROP);
    action->worker = worker->contact.number;
    action->text = "its worker is gone";
    agent_roster_disconnect(agent, worker);
}

/* Removes the worker from the roster; the slot still remembers the highest incarnation. */
static void process_forget(struct agent *agent, struct agent_worker *worker, const char *why)
{
    process_close_connection(agent, worker);
    agent_worker_move(agent, worker, FORGOTTEN, why);
    agent_roster_remove(agent, worker);
}

/* Handles LAUNCH: starts a worker in a slot of this host, or tells the driver why not. Within a
 * slot, incarnations only grow. */
void agent_process_launch(struct agent *agent, const struct msg *msg)
{
    const struct agent_worker *known = agent_roster_find(agent, msg->incarnation);
    uint64_t incarnation = msg->incarnation;
    uint32_t number = msg->u.launch.slot;
    struct agent_slot *slot;
    struct agent_action *action;

    if (!incarnation || number >= LIMIT_SLOTS_PER_HOST || (known && known->slot != number)) {
        trace_add(agent->trace, agent->now_us,
                  "worker: LAUNCH of %" PRIu64 " in slot %u is impossible: dropped", incarnation,
                  number);
        return;
    }
    slot = &agent->slots[number];
    if (known) { /* PROTOCOL.md, LAUNCH: a repeated LAUNCH is answered again */
        agent_process_report(agent, known);
    } else if (incarnation <= slot->highest) {
        trace_add(agent->trace, agent->now_us,
                  "worker: LAUNCH of %" PRIu64 " in slot %u is stale (%" PRIu64 " was there): "
                  "dropped",
                  incarnation, number, slot->highest);
    } else if (agent->life.state == LIFE_ENDING) {
        process_say_failed(agent, incarnation, number, HVD_E_STATE, "the agent is ending");
    } else if (slot->worker) {
        process_say_failed(agent, incarnation, number, HVD_E_BUSY,
                           "an older incarnation still runs in the slot");
    } else if (agent->workers.count >= LIMIT_SLOT_REPORTS) {
        process_say_failed(
            agent, incarnation, number, HVD_E_LIMIT,
            "the agent keeps LIMIT_SLOT_REPORTS reports of ended workers that the driver "
            "has not confirmed; look whether the driver can write its journal");
    } else {
        if (slot->failed) /* the driver launches the next incarnation, so it knows of the failure */
            process_forget(agent, slot->failed, "superseded");
        if (!agent_roster_add(agent, msg))
            return;
        trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " in slot %u: spawn", incarnation,
                  number);
        action = agent_do(agent, AGENT_DO_SPAWN);
        action->incarnation = incarnation;
        action->msg = msg;
    }
}

/* Returns the living worker of that incarnation; NULL: that worker does not run, and the trace gets
 * a line about `what`. */
static struct agent_worker *process_find_alive(struct agent *agent, uint64_t incarnation,
                                               const char *what)
{
    struct agent_worker *worker = agent_roster_find(agent, incarnation);

    if (worker && agent_worker_is_alive(worker))
        return worker;
    trace_add(agent->trace, agent->now_us, "worker: %s of %" PRIu64 ", which does not run: ignored",
              what, incarnation);
    return NULL;
}

/* The worker's program runs with this pid: tells the driver. */
void agent_process_spawned(struct agent *agent, uint64_t incarnation, uint64_t pid)
{
    struct agent_worker *worker = process_find_alive(agent, incarnation, "SPAWNED");

    if (!worker || worker->process.state != SPAWNING)
        return;
    worker->pid = pid;
    worker->started_us = agent->now_us;
    agent_worker_move(agent, worker, RUNNING, "started");
    agent_process_report(agent, worker);
    agent_process_signal(agent, worker); /* a KILL may have come before SPAWNED */
}

/* The worker does not answer: it gets SIGKILL at once (grace 0), and its end will be reported as
 * the end of a silent worker, with this witness. */
void agent_process_blame(struct agent *agent, struct agent_worker *worker, enum msg_witness witness)
{
    worker->killing.blamed = witness;
    process_ask_to_end(agent, worker, 0 /* SIGKILL at once */);
}

/* The worker has said UNUSABLE (its process can train no more): it gets SIGKILL at once (grace 0).
 */
void agent_process_unusable(struct agent *agent, struct agent_worker *worker)
{
    trace_add(agent->trace, agent->now_us, "worker: %" PRIu64 " says UNUSABLE: it is ended",
              worker->incarnation);
    if (agent_worker_is_alive(worker))
        process_ask_to_end(agent, worker, 0 /* SIGKILL at once */);
}

/* Handles KILL of the driver: the worker gets SIGTERM, and SIGKILL after the grace in `msg`. The
 * reason is kept for the autopsy. `by_driver` keeps the end from being reported as an end by the
 * agent itself (agent_process_ended). */
void agent_process_kill(struct agent *agent, const struct msg *msg)
{
    struct agent_worker *worker = process_find_alive(agent, msg->incarnation, "KILL");
    struct agent_killing *killing;

    if (!worker)
        return;
    killing = &worker->killing;
    killing->by_driver = true;
    if (!killing->reason)
        killing->reason = mem_strdup(msg->u.kill.reason ? msg->u.kill.reason : "");
    if (!killing->reason)
        agent->list->failed = true;
    process_ask_to_end(agent, worker, msg->u.kill.grace_us);
}

/* Frees the slot of a worker that has ended or could not be started. The worker stays in the table
 * until FORGET. */
static void process_vacate(struct agent *agent, struct agent_worker *worker)
{
    ASSERT(agent->slots[worker->slot].worker == worker && agent->alive > 0);
    agent->slots[worker->slot].worker = NULL;
    agent->alive--;
    worker->killing.kill_at_us = TIME_NEVER;
    worker->contact.silent_at_us = TIME_NEVER;
}

/* The worker's program could not be started: frees the slot, keeps the reason for the driver, and
 * reports it. */
void agent_process_spawn_failed(struct agent *agent, const struct agent_event *event)
{
    struct agent_worker *worker = process_find_alive(agent, event->incarnation, "SPAWN_FAILED");

    if (!worker || worker->process.state != SPAWNING)
        return;
    worker->ending.code = event->code ? event->code : HVD_E_IO;
    worker->ending.text = mem_strdup(agent_text(agent, "%s", event->text ? event->text : ""));
    if (!worker->ending.text) {
        agent->list->failed = true;
        return;
    }
    process_close_connection(agent, worker);
    process_vacate(agent, worker);
    agent->slots[worker->slot].failed = worker;
    agent_worker_move(agent, worker, FAILED, worker->ending.text);
    agent_process_report(agent, worker);
    process_exit_if_last(agent);
}

/* The worker's process has ended: decides how this end is reported to the driver, and frees the
 * slot. */
void agent_process_ended(struct agent *agent, const struct agent_event *event)
{
    struct agent_worker *worker = process_find_alive(agent, event->incarnation, "an end");
    const struct agent_killing *killing;
    struct agent_ending *ending;
    bool done, cut_short;

    ASSERT(event->ended > ENDED_NOT && event->ended < ENDED_COUNT);
    ASSERT(event->witness < WITNESS_COUNT);
    if (!worker)
        return;
    killing = &worker->killing;
    ending = &worker->ending;
    done = worker->phase == PHASE_LEFT || worker->phase == PHASE_FINISHED;
    ending->ended = event->ended;
    ending->value = event->value;
    ending->witness = event->witness;
    ending->commit = event->commit;
    if (worker->pid)
        ending->ran_us = agent->now_us - worker->started_us;

    /* The agent is ending by itself and has asked this worker to end; the driver does not know
     * that. A command may handle SIGTERM and exit with 0. The driver would take that 0 for the end
     * of finished work, and would end the job. So the agent reports the signal SIGTERM instead. A
     * worker that had really just finished is then run once more, which does less harm. */
    cut_short = agent->life.state == LIFE_ENDING && !agent->exit.by_driver &&
                killing->asked != ASKED_NOT && !killing->by_driver && !done;
    if (event->ended == ENDED_EXIT && event->value == 0 && cut_short) {
        ending->ended = ENDED_SIGNAL;
        ending->value = SIGNAL_TERM;
    }
    if (killing->blamed) { /* the agent has killed the worker because it was silent */
        ending->ended = ENDED_SILENT;
        ending->value = SIGNAL_KILL;
        ending->witness = killing->blamed;
    }
    if (!done) /* PROTOCOL.md, "Greeting": a report of LEFT or FINISHED is not changed by the end */
        worker->phase = PHASE_ENDED;

    process_vacate(agent, worker);
    agent_worker_move(agent, worker, ENDED,
                      killing->blamed ? "it was silent" : "its process is gone");
    if (!done && agent->life.state != LIFE_ENDING && event->remains)
        agent_autopsy_make(agent, worker, event->remains);
    agent_process_report(agent, worker);
    process_exit_if_last(agent);
}

/* Handles FORGET: the driver has recorded the end of this worker, so the agent need not report it
 * again. */
void agent_process_forget(struct agent *agent, uint64_t incarnation)
{
    struct agent_worker *worker = agent_roster_find(agent, incarnation);

    if (!worker)
        return; /* the worker was forgotten before */
    if (agent_worker_is_alive(worker)) {
        trace_add(agent->trace, agent->now_us,
                  "worker: FORGET of %" PRIu64 ", which runs: the driver is wrong, ignored",
                  incarnation);
        return;
    }
    process_forget(agent, worker, "the driver has written it down");
}
