/*
 * agents.c: gives each message of an agent to the file that handles it; core.c calls it. Two rules
 * of PROTOCOL.md are kept here for all messages. The driver believes an agent only about the
 * workers on the agent's own host (section 1). About a worker that has ended only the message
 * EXITED counts; other messages about this worker are dropped (section 3, K2).
 */
#include "driver/core/agents.h"

#include "driver/core/authority.h"
#include "driver/core/boot.h"
#include "driver/core/change.h"
#include "driver/core/checkpoint.h"
#include "driver/core/checkpoint_ask.h"
#include "driver/core/drain.h"
#include "driver/core/elect.h"
#include "driver/core/finish.h"
#include "driver/core/hello.h"
#include "driver/core/joins.h"
#include "driver/core/keys.h"
#include "driver/core/lease.h"
#include "driver/core/loss.h"
#include "driver/core/over.h"
#include "driver/core/pace.h"
#include "driver/core/recovery.h"
#include "driver/core/reported.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/stall.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/values.h"

#include <stdio.h>
#include <string.h>

/* Handles the end of an agent's connection. It is expected in two cases: the agent was told to end
 * (`ending`); or the job stops and the host has no worker left, because an agent reports the ends
 * of all its workers before it ends. Otherwise the agent may come back (AGENT_AWAY), and its lease
 * runs on: it may not even have read the STOP. */
void agents_on_closed(struct core *core, uint32_t peer, const char *why)
{
    const struct ending gone = { .ended = ENDED_SILENT,
                                 .text = "the agent of this host was told to end, and has ended",
                                 .excused = true };
    /* A driver whose journal is not written says nothing to agents. After a lease of silence they
     * hang up and dial again. */
    bool untold = core->out.held_since_us != TIME_NEVER &&
                  core->now_us >= time_add(core->out.held_since_us,
                                           core->config.lease_us - 2 * core->config.beat_us);
    struct core_host *host = roster_peer(core, peer);
    struct worker *worker;

    if (!host) {
        host = joins_peer(core, peer);
        if (host)
            joins_on_closed(core, host, why);
        return;
    }
    roster_disconnect(core, host);
    checkpoint_on_lost(core, host);
    core_want_timer(core, time_add(host->heard_us, core->config.lease_us));
    if (core->job >= JOB_STOPPING ? !host->taken : host->ending) {
        CORE_DETAIL(core, FACTS(.kind = KIND_AGENT_ENDED, .host = host->name),
                    "%s: the agent of this host has ended as told", host->name);
        roster_move_agent(host, AGENT_NONE);
        /* Discovery may list the host again by now; then slots.c starts a new agent. */
        core_want_slots(core);
        /* An agent ends all its workers before it ends itself, also workers that the driver
         * launched after the STOP. */
        for (size_t slot = 0; core->job < JOB_STOPPING && (worker = roster_next_on(host, &slot));)
            loss_ended(core, worker, &gone);
    } else {
        if (untold)
            CORE_TRACE(core, FACTS(.kind = KIND_AGENT_LOST, .host = host->name, .cause = why),
                       "%s: its agent has hung up, as it is told nothing while the journal is not "
                       "written",
                       host->name);
        else
            CORE_WARN(core, FACTS(.kind = KIND_AGENT_LOST, .host = host->name, .cause = why),
                      "%s: the connection to its agent is gone: %s", host->name, why);
        host->hung_up_us = core->now_us;
        core_want_timer(core, time_add(core->now_us, 2 * core->config.beat_us));
        /* In a recovery an unlisted host without a connection counts as dead at once (lease.c). */
        if (!host->listed)
            lease_expire(core);
        /* The agent may still run, but not find the driver because the driver's address has
         * changed. The request to start an agent also tells a running agent the new address. */
        if (host->agent == AGENT_AWAY && (host->listed || host->taken))
            keys_start_agent(core, host);
    }
    over_check_job(core);
}

/* The driver has asked for an agent on the host `name`, and no agent could be started. Slots of the
 * host are tried again after a heartbeat interval. The report is ignored if the host is unknown or
 * an agent has said hello meanwhile. */
void agents_on_start_failed(struct core *core, const char *name, const char *why)
{
    struct core_host *host = roster_find_host(core, name);

    if (!host || host->agent != AGENT_STARTING)
        return;
    CORE_WARN(core, FACTS(.kind = KIND_AGENT_FAILED, .host = host->name, .cause = why),
              "%s: no agent could be started: %s", host->name, why);
    roster_move_agent(host, AGENT_NONE);
    host->again_us = time_add(core->now_us, core->config.beat_us);
    /* A host that discovery no longer lists may be gone for good. That is no failure of the
     * host. */
    if (host->listed)
        loss_charge_host(core, host, why);
}

/* Handles one message about a worker that is in the table of workers. */
static void agents_on_worker_msg(struct core *core, struct worker *worker, const struct msg *msg)
{
    bool recovering = core->job == JOB_RECOVERING;
    enum worker_state was = worker->state;
    /* only for UNUSABLE: the worker counts as killed by SIGKILL (9) */
    struct ending ending = { .ended = ENDED_SIGNAL, .value = 9 };
    char name[WORKER_NAME_MAX];

    switch (msg->type) {
    case MSG_LAUNCHED: boot_on_launched(core, worker); break;
    case MSG_LAUNCH_FAILED: boot_on_launch_failed(core, worker, msg); break;
    case MSG_READY: boot_on_ready(core, worker, msg); break;
    case MSG_PREPARED: change_on_prepared(core, worker, msg); break;
    case MSG_NEXT_CHECK: change_on_next_check(core, worker, msg); break;
    case MSG_RECOVERING:
        recovery_on_recovering(core, worker, msg);
        /* The round was revoked just now. Hosts that are not listed, and whose connection broke
         * earlier, now count as dead, so that the recovery does not wait for them. */
        if (!recovering && core->job == JOB_RECOVERING)
            lease_expire(core);
        break;
    case MSG_ENTERED: round_on_entered(core, worker, msg); break;
    case MSG_LEFT: /* the worker has left its round; its process must end soon */
        if (was == WORKER_FINISHED || was == WORKER_DOOMED || worker->left)
            break;
        if (was != WORKER_LEAVING) {
            roster_move(core, worker, WORKER_LEAVING);
            round_lost(core, worker, was, "the worker has left");
        }
        worker->left = true;
        worker->may_block_switch = false; /* the worker has passed the agreed check */
        CORE_DETAIL(core, FACTS(.kind = KIND_WORKER_LEFT, OF_WORKER(worker)), "%s has left",
                    worker_name(worker, name));
        worker_limit(core, worker, core->config.stall_us,
                     "the worker has left, but its process has not ended");
        break;
    case MSG_FINISHED: finish_on_finished(core, worker, msg); break;
    case MSG_STALLED: stall_on_stalled(core, worker, msg); break;
    case MSG_UNUSABLE:
        /* The agent ends this worker by itself, without an order of the driver. The worker itself
         * is at fault: when a peer of the worker has died, the peer's own agent reports that. */
        ending.text = tell_text(core, "the worker cannot go on: %s", msg->u.unusable.text);
        loss_doom(core, worker, &ending);
        break;
    case MSG_PERSIST: checkpoint_on_persist(core, worker, msg); break;
    case MSG_STORE: values_on_store(core, worker, msg); break;
    case MSG_REMARK: stall_on_remark(core, worker, msg); break;
    default: break;
    }
}

/* Handles one message of an agent. A connection without a host (roster_peer returns NULL) has not
 * said hello yet, so only HELLO_AGENT counts there. The other messages are first checked by
 * authority.c, then given to the file that handles them. */
void agents_on_msg(struct core *core, const struct event *event)
{
    const struct msg *msg = event->msg;
    struct core_host *host = roster_peer(core, event->peer), *joined;
    struct worker *worker = roster_worker(core, msg->incarnation);
    struct ending ending = { 0 };
    const char *absurd;

    lease_heard(core);
    if (!host) {
        joined = joins_peer(core, event->peer);
        if (joined && msg->type == MSG_NOT_STARTED)
            agents_on_start_failed(core, joined->name, msg->u.not_started.text);
        else if (joined)
            joins_on_msg(core, joined, msg);
        else if (msg->type == MSG_HELLO_AGENT)
            hello_on_agent(core, event);
        else if (msg->type == MSG_JOIN)
            joins_on_join(core, event);
        return;
    }
    host->heard_us = core->now_us;
    if (!authority_believes(core, host, msg, &absurd)) {
        if (absurd) {
            /* No honest agent can send this message: the connection of the agent is closed, and its
             * host is charged with a failure. */
            absurd = tell_text(core, "%s", absurd);
            authority_refuse(core, host,
                             tell_text(core, "%s; the connection of the agent is closed", absurd));
            tell_close(core, host, absurd);
            loss_charge_host(core, host, absurd);
            agents_on_closed(core, event->peer, absurd);
        }
        return;
    }
    switch (msg->type) {
    case MSG_BYE: return; /* the agent closes its connection: EVENT_CLOSED follows */
    case MSG_BEAT:
        if (host->sequence_heard < msg->u.beat.sequence)
            host->sequence_heard = msg->u.beat.sequence;
        pace_on_beat(core, host, &msg->u.beat);
        reported_on_beat(core, host, &msg->u.beat);
        return;
    case MSG_EXITED:
        /* An agent repeats EXITED until it gets FORGET, so the worker may already be removed from
         * the table. Or the table may have the worker as DOOMED on another host, whose agent has
         * claimed it in a hello that may be a lie (hello.c). */
        ending.ended = (enum msg_ended)msg->u.exited.ended;
        ending.value = msg->u.exited.value;
        if (!worker || worker->host != host) {
            tell_forget(core, host, msg->incarnation);
        } else if (ending.ended != ENDED_NOT) {
            if (elect_believes(core, msg->u.exited.commit))
                slot_note_commit(&host->slots[worker->slot], msg->u.exited.commit);
            loss_ended(core, worker, &ending);
        }
        return;
    case MSG_NOTICE: drain_on_notice(core, host, &msg->u.notice); return;
    case MSG_REKEYED: keys_on_rekeyed(core, host, msg->u.rekeyed.epoch); return;
    case MSG_HOLDING: checkpoint_on_holding(core, host, msg); return;
    case MSG_SAVED: checkpoint_on_saved(core, host, msg); return;
    default: break;
    }
    /* A message about a worker that is not in the table came too late: the worker has ended. Late
     * output, and a late autopsy, are not worth a log line. */
    if (worker)
        agents_on_worker_msg(core, worker, msg);
    else if (msg->incarnation && msg->type != MSG_OUTPUT && msg->type != MSG_AUTOPSY)
        authority_note_late(core, host, msg->incarnation);
}
