/*
 * lease.c: judges the silence of agents. A lease is the time without a message after which an agent
 * counts as dead. core.c calls it at deadlines, listing.c and agents.c when a host may be gone for
 * good. PROTOCOL.md, BEAT: any frame renews a lease, and an agent whose lease runs out counts as
 * dead. The driver kills no process here: an agent that hears no driver ends its workers by itself.
 */
#include "driver/core/lease.h"

#include "driver/core/checkpoint.h"
#include "driver/core/keys.h"
#include "driver/core/loss.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/waits.h"

/* When no stranger has come to the port for this long, the next strangers are logged again. */
#define CROWD_OVER_US TIME_MIN

/* A message of some agent has come. If all agents were silent before, that silence may be the fault
 * of this driver's machine. So the leases of all hosts are prolonged by most of it. */
void lease_heard(struct core *core)
{
    int64_t gap_us, silence_us;

    /* docs/stories.md, `driver_is_cut_off_from_everybody`: after a silence of all agents each agent
     * gets a whole lease in which to come back. */
    if (core->leases.alone) {
        for (size_t i = 0; i < core->roster.hosts.count; i++)
            core->roster.hosts.items[i]->heard_us = core->now_us;
        core->leases.alone = false;
        core_want_timer(core, time_add(core->now_us, core->config.lease_us));
    }
    gap_us = core->now_us - core->leases.anybody_us;
    core->leases.anybody_us = core->now_us;
    if (gap_us < core->config.lease_us / 2) /* too short to matter for any lease */
        return;
    /* A long silence of all agents does not count toward the lease of any agent, because the agents
     * come back one after the other. Two heartbeat intervals of the silence do count. Otherwise a
     * single agent that is heard seldom would hide the death of other agents. */
    silence_us = gap_us - 2 * core->config.beat_us;
    for (size_t i = 0; i < core->roster.hosts.count && silence_us > 0; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (time_add(host->heard_us, silence_us) < core->now_us)
            host->heard_us += silence_us;
        else if (host->heard_us < core->now_us)
            host->heard_us = core->now_us;
    }
}

/* Sends BEAT to each connected agent to which nothing else was sent for a heartbeat interval. */
void lease_beat(struct core *core)
{
    core->leases.beats++;
    core->leases.next_beat_us = time_add(core->now_us, core->config.beat_us);
    core_want_timer(core, core->leases.next_beat_us);
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];
        struct msg *msg;

        if (host->agent != AGENT_THERE || core->now_us - host->said_us < core->config.beat_us)
            continue;
        msg = tell_msg(core, MSG_BEAT, 0, 0);
        msg->u.beat.sequence = core->leases.beats;
        msg->u.beat.answers = host->sequence_heard;
        tell_host(core, host, msg);
    }
}

/* Handles EVENT_CROWDED, which comes again and again while strangers (clients without a key of the
 * job) crowd the port that agents dial. Only the first event of such a time is logged. */
void lease_on_crowd(struct core *core)
{
    if (core->now_us - core->leases.crowded_us > CROWD_OVER_US)
        CORE_WARN(core, FACTS(.kind = KIND_PORT_CROWDED),
                  "strangers crowd the driver's port: a host whose agent cannot connect "
                  "meanwhile is not charged with a failure");
    core->leases.crowded_us = core->now_us;
}

/* True: after since_us strangers (clients without a key of the job) have crowded the port that
 * agents dial. docs/stories.md, `strangers_keep_an_agent_out`: an agent that had to dial may not
 * have got in. So its host is not charged with a failure, and is used as before. */
static bool lease_was_crowded(const struct core *core, int64_t since_us)
{
    return core->leases.crowded_us >= since_us;
}

/* Returns when an unlisted host counts as gone before its lease is over: its connection has broken
 * (`hung_up_us`), and it has workers (`taken`). An agent whose connection only broke would connect
 * again at once, so waiting for the rest of the lease would only delay the other members. In a
 * recovery the members stand still already, so the host counts as gone at once. TIME_NEVER: the
 * host is not gone. */
static int64_t lease_gone_us(const struct core *core, const struct core_host *host)
{
    if (host->agent != AGENT_AWAY || host->listed || !host->taken || !host->hung_up_us)
        return TIME_NEVER;
    if (core->job == JOB_RECOVERING)
        return host->hung_up_us;
    return time_add(host->hung_up_us, 2 * core->config.beat_us);
}

/* Counts the host as dead with all its workers. `why`: the reason for the log. The host is charged
 * with a failure (`to_blame`), except in three cases: it is not listed any more, it is draining, or
 * its agent may have been kept out by strangers, clients without a key of the job (`kept_out`).
 * From now on the driver does not take itself for cut off from all agents (`leases.alone`). */
static void lease_lose_host(struct core *core, struct core_host *host, const char *why)
{
    bool gone = core->now_us >= lease_gone_us(core, host);
    bool kept_out = host->agent == AGENT_AWAY && lease_was_crowded(core, host->heard_us);
    bool to_blame = host->listed && !host->draining && !kept_out;
    const struct ending silent = { .ended = ENDED_SILENT,
                                   .text = gone ? "the worker's host is gone"
                                                : "the worker's host is silent",
                                   .excused = true,
                                   .of_host = to_blame };
    struct worker *worker;

    core->leases.alone = false;
    over_note_untold(core, host);
    CORE_WARN(core, FACTS(.kind = KIND_HOST_LOST, .host = host->name, .cause = why),
              "%s: %s, counted as dead%s", host->name, why,
              kept_out ? "; not charged, as strangers crowd the driver's port" : "");
    if (host->agent == AGENT_THERE) {
        tell_close(core, host, why);
        roster_disconnect(core, host);
        checkpoint_on_lost(core, host);
    }
    if (!host->hung_up_us)
        host->hung_up_us = core->now_us;
    roster_move_agent(host, AGENT_NONE);
    for (size_t slot = 0; (worker = roster_next_on(host, &slot));) {
        loss_doom(core, worker, &silent);
        if (!host->listed)
            /* no agent of an unlisted host will report the end of this worker */
            roster_remove(core, worker);
    }
    if (to_blame)
        loss_charge_host(core, host, why);
    core_want_slots(core);
    over_check_job(core); /* a job that ends may have waited for this host alone */
}

/* True: no agent was heard after this host fell silent, so this driver itself may be cut off. Then
 * all workers train on until agents that hear no driver end their workers themselves. */
static bool lease_may_be_cut_off(const struct core *core, const struct core_host *host)
{
    int64_t since_us = time_add(host->heard_us, 2 * core->config.beat_us);

    if (!host->listed || core->job >= JOB_FINISHING ||
        core->now_us >= time_add(host->heard_us, core->config.driver_grace_us))
        return false;
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        if (core->roster.hosts.items[i]->heard_us > since_us)
            return false;
    return true;
}

/* Asks for the start of an agent again, if the last request is at least after_us ago. */
static void lease_start_again(struct core *core, struct core_host *host, int64_t after_us)
{
    if (core->now_us < time_add(host->started_us, after_us))
        return;
    host->started_us = core->now_us;
    keys_start_agent(core, host);
}

/* True: the driver goes on waiting for an agent that has not said hello since the takeover. Such an
 * agent may dial the earlier driver until a slow ssh has told it the new address. The driver waits
 * as long as no member misses this agent: all members that are heard train, and the members of this
 * host trained too. If the workers of this host were gone, other members would soon report that
 * their collectives fail or wait. When the agent is missed, it has one more lease to come. */
static bool lease_is_spared(struct core *core, struct core_host *host)
{
    bool unmet =
        host->agent == AGENT_AWAY && !host->agent_id && (host->listed || !core->listing.discovered);

    if (!unmet || core->now_us >= time_add(host->heard_us, core->config.driver_grace_us))
        return false;
    if (!round_is_trained(core, host) || waits_for_host(core, host))
        return host->spared_us && core->now_us < time_add(host->spared_us, core->config.lease_us);
    if (!host->spared_us)
        CORE_WARN(
            core, FACTS(.kind = KIND_AGENT_AWAITED, .host = host->name),
            "%s: the agent of this host has not connected to this driver yet; the driver "
            "waits for the agent, because all members whose agents are connected train, which "
            "they could not without the workers of this host; look at the log of hvd-agent "
            "there",
            host->name);
    host->spared_us = core->now_us;
    return true;
}

/* True: the host has left the job, its agent was told to end, and has not ended --kill-grace and a
 * lease later. Then the caller counts the host as dead, so that its key can be ended. */
static bool lease_stays_on(struct core *core, struct core_host *host)
{
    int64_t until_us;

    if (host->listed || host->taken || !host->ending) {
        /* A host that is listed again begins anew when it leaves the next time. */
        host->leave_us = host->listed ? 0 : host->leave_us;
        return false;
    }
    if (!host->leave_us)
        host->leave_us = core->now_us;
    until_us =
        time_add(time_add(host->leave_us, core->config.kill_grace_us), core->config.lease_us);
    if (core->now_us >= until_us)
        return true;
    core_want_timer(core, until_us);
    return false;
}

/* Judges each host whose deadline has passed: its agent is silent, was started without a hello, or
 * runs on a host that has left the job. */
void lease_expire(struct core *core)
{
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];
        bool starting = host->agent == AGENT_STARTING;
        int64_t gone_us = lease_gone_us(core, host);
        int64_t until_us = starting ? time_add(host->started_us, core->config.agent_start_us)
                                    : time_add(host->heard_us, core->config.lease_us);

        if (host->agent == AGENT_NONE)
            continue;
        if (core->now_us >= gone_us) {
            lease_lose_host(
                core, host,
                "the host is no longer listed, and the connection to its agent is gone");
            continue;
        }
        if (lease_stays_on(core, host)) {
            lease_lose_host(core, host, "the agent was told to end, but has not ended");
            continue;
        }
        core_want_timer(core, gone_us);
        if (until_us > core->now_us) {
            core_want_timer(core, until_us);
        } else if (starting) {
            CORE_WARN(core, FACTS(.kind = KIND_AGENT_FAILED, .host = host->name),
                      "%s: the agent of this host was started and has not said hello in time",
                      host->name);
            roster_move_agent(host, AGENT_NONE);
            /* A host that discovery no longer lists may be gone for good: that is no failure. */
            if (!host->listed || lease_was_crowded(core, host->started_us))
                core_want_slots(core);
            else
                loss_charge_host(core, host, "the agent of this host did not say hello in time");
        } else if (lease_may_be_cut_off(core, host)) {
            if (!core->leases.alone)
                CORE_WARN(
                    core,
                    FACTS(.kind = KIND_AGENTS_SILENT,
                          .left_us = host->heard_us + core->config.driver_grace_us - core->now_us),
                    "no agent is heard: the driver's machine may be cut off, so no host is "
                    "counted as dead for %s",
                    time_brief(host->heard_us + core->config.driver_grace_us - core->now_us, text));
            core->leases.alone = true;
            /* Agents are started also on hosts that were not needed: if one of them answers, this
             * driver is not cut off. */
            core_want_slots(core);
            if (host->agent == AGENT_THERE) {
                tell_close(core, host, "silent for longer than the lease");
                roster_disconnect(core, host);
                checkpoint_on_lost(core, host);
            }
            /* The host may have come back without its agent, so the start of an agent is requested
             * again. */
            lease_start_again(core, host, core->config.lease_us);
            core_want_timer(core, time_add(core->now_us, core->config.lease_us));
        } else if (lease_is_spared(core, host)) {
            /* The earlier request to start an agent has failed by now, so it is repeated. */
            lease_start_again(core, host, core->config.agent_start_us);
            core_want_timer(core, time_add(host->spared_us, core->config.lease_us));
        } else {
            lease_lose_host(core, host, "silent for longer than the lease");
        }
    }
}
