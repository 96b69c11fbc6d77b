#include "driver/core/agents.h"

#include "driver/core/change.h"
#include "driver/core/clock.h"
#include "driver/core/drain.h"
#include "driver/core/elect.h"
#include "driver/core/finish.h"
#include "driver/core/hello.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/seats.h"
#include "driver/core/stall.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Told to end, it has ended whoever it was told to start since. */
static void end_with_agent(struct core *core, struct core_host *host)
{
    const struct ending gone = { .ended = ENDED_SILENT,
                                 .text = "its agent was told to end, and has",
                                 .excused = true };

    for (uint32_t slot = 0; slot < host->seat_count; slot++)
        if (host->seats[slot].worker)
            loss_ended(core, host->seats[slot].worker, &gone);
}

void agents_on_closed(struct core *core, uint32_t peer, const char *why)
{
    struct core_host *host = roster_peer(core, peer);

    if (!host)
        return;
    roster_disconnect(core, host);
    clock_want(core, time_add(host->heard_us, core->config.lease_us));
    if (job_state(core) >= JOB_STOPPING || host->ending) {
        CORE_TRACE(core, "%s: its agent is done", host->name);
        host->agent = AGENT_NONE;
        host->ending = false;
        core->look_at_seats = true; /* it may be listed again by now */
        if (job_state(core) < JOB_STOPPING)
            end_with_agent(core, host);
    } else {
        CORE_TRACE(core, "%s: the connection to its agent is gone: %s", host->name, why);
        host->hung_up_us = core->now_us;
        clock_want(core, time_add(core->now_us, 2 * core->config.beat_us));
        if (!host->listed)
            agents_expire(core);
        if (host->agent == AGENT_AWAY && (host->listed || host->taken))
            tell_start_agent(core, host); /* one that still runs learns where we are */
    }
    finish_look(core);
}

void agents_on_start_failed(struct core *core, const char *name, const char *why)
{
    struct core_host *host = roster_find_host(core, name);

    if (!host || host->agent != AGENT_STARTING)
        return;
    CORE_TRACE(core, "%s: no agent could be started: %s", host->name, why);
    host->agent = AGENT_NONE;
    host->again_us = time_add(core->now_us, core->config.beat_us);
    loss_charge_host(core, host, why);
}

void agents_beat(struct core *core)
{
    core->next_beat_us = time_add(core->now_us, core->config.beat_us);
    clock_want(core, core->next_beat_us);
    for (size_t i = 0; i < core->hosts.count; i++) {
        struct core_host *host = core->hosts.items[i];
        struct msg *msg;

        if (host->agent != AGENT_THERE || core->now_us - host->said_us < core->config.beat_us)
            continue;
        msg = tell_msg(core, MSG_BEAT, 0, 0);
        msg->u.beat.sequence = core->stamps;
        msg->u.beat.answers = host->sequence_heard;
        tell_host(core, host, msg);
    }
}

/* Who maintains the list says that it is gone, and so does its connection. One that only broke is
 * made again at once; the rest of the lease would only cost the others that time. They stand still
 * already when the round is dead: then two are enough. */
static int64_t gone_us(const struct core *core, const struct core_host *host)
{
    if (host->agent != AGENT_AWAY || host->listed || !host->taken || !host->hung_up_us)
        return TIME_NEVER;
    if (job_state(core) == JOB_RECOVERING)
        return host->hung_up_us;
    return time_add(host->hung_up_us, 2 * core->config.beat_us);
}

static bool has_gone(const struct core *core, const struct core_host *host)
{
    return core->now_us >= gone_us(core, host);
}

/* Nothing was heard of the host for the length of a lease, or it has gone: whoever runs there is
 * counted as dead. */
static void lose_host(struct core *core, struct core_host *host, const char *why)
{
    const struct ending silent = { .ended = ENDED_SILENT,
                                   .text = has_gone(core, host) ? "its host is gone"
                                                                : "its host is silent",
                                   .excused = true };

    core->alone = false;
    CORE_TRACE(core, "%s: %s, counted as dead", host->name, why);
    if (host->agent == AGENT_THERE) {
        tell_close(core, host, why);
        roster_disconnect(core, host);
    }
    host->agent = AGENT_NONE;
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        struct worker *worker = host->seats[slot].worker;

        if (!worker)
            continue;
        loss_doom(core, worker, &silent);
        if (!host->listed)
            roster_remove(core, worker);
    }
    if (host->listed && !host->draining)
        loss_charge_host(core, host, why);
    core->look_at_seats = true;
    finish_look(core); /* it may be the last one that was waited for */
}

static void never_came(struct core *core, struct core_host *host)
{
    CORE_TRACE(core, "%s: its agent was started and has not said hello", host->name);
    host->agent = AGENT_NONE;
    loss_charge_host(core, host, "its agent did not say hello");
}

/* Was anybody heard after this host fell silent? If not, it may be this driver that is cut off, and
 * then all train on. */
static bool others_were_heard(const struct core *core, const struct core_host *host)
{
    int64_t since_us = time_add(host->heard_us, 2 * core->config.beat_us);

    for (size_t i = 0; i < core->hosts.count; i++)
        if (core->hosts.items[i]->heard_us > since_us)
            return true;
    return false;
}

/* Until agents that hear nobody have ended their workers themselves. */
static bool may_be_cut_off(const struct core *core, const struct core_host *host)
{
    return host->listed && job_state(core) < JOB_FINISHING && !others_were_heard(core, host) &&
           core->now_us < time_add(host->heard_us, core->config.driver_grace_us);
}

/* Since this driver has taken over, its agent has not said hello: it may dial the one before until
 * an ssh, which may be slow, has told it where we are. */
static bool is_unmet(const struct core *core, const struct core_host *host)
{
    return host->agent == AGENT_AWAY && !host->agent_id && (host->listed || !core->discovered);
}

/* Of the members, all who are heard train, and so do those here: or the others would soon say that
 * their collectives fail, or that they wait for them. */
static bool is_missed(struct core *core, const struct core_host *host)
{
    return !round_is_trained(core, host) || stall_waits_for(core, host);
}

/* From when it is missed it has the time of a lease to come. */
static bool is_spared(struct core *core, struct core_host *host)
{
    if (!is_unmet(core, host) ||
        core->now_us >= time_add(host->heard_us, core->config.driver_grace_us))
        return false;
    if (is_missed(core, host))
        return host->spared_us && core->now_us < time_add(host->spared_us, core->config.lease_us);
    if (!host->spared_us)
        CORE_TRACE(core,
                   "%s: its agent has not come to this driver yet; it is waited for, as all "
                   "who are heard train",
                   host->name);
    host->spared_us = core->now_us;
    return true;
}

static void start_again(struct core *core, struct core_host *host, int64_t after_us)
{
    if (core->now_us < time_add(host->started_us, after_us))
        return;
    host->started_us = core->now_us;
    tell_start_agent(core, host);
}

static void wait_for_hello(struct core *core, struct core_host *host)
{
    start_again(core, host, core->config.agent_start_us); /* the last one has failed by now */
    clock_want(core, time_add(host->spared_us, core->config.lease_us));
}

static void wait_for_anybody(struct core *core, struct core_host *host)
{
    char text[TIME_TEXT_MAX];

    if (!core->alone)
        CORE_TRACE(core,
                   "nobody is heard: it may be this machine that is cut off, so nobody is counted "
                   "as dead for %s",
                   time_format(host->heard_us + core->config.driver_grace_us - core->now_us, text));
    core->alone = true;
    core->look_at_seats = true; /* a host that was not needed may tell who is cut off */
    if (host->agent == AGENT_THERE) {
        tell_close(core, host, "silent for longer than the lease");
        roster_disconnect(core, host);
    }
    start_again(core, host, core->config.lease_us); /* it may be back, without an agent */
    clock_want(core, time_add(core->now_us, core->config.lease_us));
}

/* Whoever was not heard for as long as nobody was has the time of a lease to come back. */
static void end_of_silence(struct core *core)
{
    for (size_t i = 0; i < core->hosts.count; i++)
        core->hosts.items[i]->heard_us = core->now_us;
    core->alone = false;
    clock_want(core, time_add(core->now_us, core->config.lease_us));
}

/* The time in which nobody at all was heard counts against nobody, if it is long: those who come
 * back do so one after the other. Two beats of it do count, or one who beats seldom would hide the
 * death of others. */
static void forgive_silence(struct core *core)
{
    int64_t gap_us = core->now_us - core->anybody_us;
    int64_t silence_us = gap_us - 2 * core->config.beat_us;

    core->anybody_us = core->now_us;
    if (gap_us < core->config.lease_us / 2)
        return;
    for (size_t i = 0; i < core->hosts.count && silence_us > 0; i++) {
        struct core_host *host = core->hosts.items[i];

        if (time_add(host->heard_us, silence_us) < core->now_us)
            host->heard_us += silence_us;
        else if (host->heard_us < core->now_us)
            host->heard_us = core->now_us;
    }
}

void agents_expire(struct core *core)
{
    for (size_t i = 0; i < core->hosts.count; i++) {
        struct core_host *host = core->hosts.items[i];
        bool starting = host->agent == AGENT_STARTING;
        int64_t until_us = starting ? time_add(host->started_us, core->config.agent_start_us)
                                    : time_add(host->heard_us, core->config.lease_us);

        if (host->agent == AGENT_NONE)
            continue;
        if (has_gone(core, host)) {
            lose_host(core, host, "no longer listed, and the connection to its agent is gone");
            continue;
        }
        clock_want(core, gone_us(core, host));
        if (until_us > core->now_us)
            clock_want(core, until_us);
        else if (starting)
            never_came(core, host);
        else if (may_be_cut_off(core, host))
            wait_for_anybody(core, host);
        else if (is_spared(core, host))
            wait_for_hello(core, host);
        else
            lose_host(core, host, "silent for longer than the lease");
    }
}

static void on_exited(struct core *core, struct core_host *host, const struct msg *msg)
{
    struct worker *worker = roster_worker(core, msg->incarnation);
    const struct ending ending = { .ended = (enum msg_ended)msg->u.exited.ended,
                                   .value = msg->u.exited.value };

    if (!worker) {
        tell_forget(core, host, msg->incarnation);
    } else if (worker->host == host && ending.ended != ENDED_NOT) {
        if (elect_believes(core, msg->u.exited.commit))
            seat_note_commit(&host->seats[worker->slot], msg->u.exited.commit);
        loss_ended(core, worker, &ending);
    }
}

static void on_beat(struct core_host *host, const struct msg *msg)
{
    if (host->sequence_heard < msg->u.beat.sequence)
        host->sequence_heard = msg->u.beat.sequence;
}

/* Said twice it changes nothing; the time that it takes to get here is not news. */
static void on_notice(struct core *core, struct core_host *host, const struct msg_notice *notice)
{
    int64_t until_us = time_add(core->now_us, notice->left_us);

    if (!host->draining || time_add(until_us, core->config.beat_us) < host->drain_us)
        drain_notice(core, host, notice->left_us, notice->source);
}

/* The first to say that a round is dead says it of those too that have hung up before. */
static void on_recovering(struct core *core, struct worker *worker, const struct msg *msg)
{
    bool known = job_state(core) == JOB_RECOVERING;

    round_on_recovering(core, worker, msg);
    if (!known && job_state(core) == JOB_RECOVERING)
        agents_expire(core);
}

/* Its agent ends it without being told to. Only its own process is at fault: a peer that has died
 * is told of as such, and what it left undone is done by whoever replaces this one. */
static void on_useless(struct core *core, struct worker *worker, const struct msg_useless *said)
{
    const struct ending ending = { .ended = ENDED_SIGNAL,
                                   .value = 9,
                                   .text = tell_text(core, "of no more use: %s", said->text) };

    loss_doom(core, worker, &ending);
}

/* Once, however many say it, and in whatever round: until something else is said. */
static void on_remark(struct core *core, const struct worker *worker, const struct msg *msg)
{
    const char *text = msg->u.remark.text;
    char name[WORKER_NAME_MAX];

    if (msg->round != core->current.number || !strcmp(core->remarked, text))
        return;
    snprintf(core->remarked, sizeof(core->remarked), "%s", text);
    CORE_TRACE(core, "round %" PRIu64 ": %s: %s", msg->round, worker_name(worker, name), text);
}

static void on_worker_msg(struct core *core, struct worker *worker, const struct msg *msg)
{
    switch (msg->type) {
    case MSG_LAUNCHED: seats_on_launched(core, worker); break;
    case MSG_LAUNCH_FAILED: seats_on_launch_failed(core, worker, msg); break;
    case MSG_READY: seats_on_ready(core, worker, msg); break;
    case MSG_PREPARED: change_on_prepared(core, worker, msg); break;
    case MSG_AT: change_on_at(core, worker, msg); break;
    case MSG_RECOVERING: on_recovering(core, worker, msg); break;
    case MSG_ENTERED: round_on_entered(core, worker, msg); break;
    case MSG_LEFT: seats_on_left(core, worker); break;
    case MSG_FINISHED: finish_on_finished(core, worker, msg); break;
    case MSG_STALLED: stall_on_stalled(core, worker, msg); break;
    case MSG_USELESS: on_useless(core, worker, &msg->u.useless); break;
    case MSG_REMARK: on_remark(core, worker, msg); break;
    default: break;
    }
}

/* A host may speak for the workers on it and no others; of those that are no more, nothing counts
 * but that they have ended. */
static void on_msg(struct core *core, struct core_host *host, const struct msg *msg)
{
    struct worker *worker = roster_worker(core, msg->incarnation);

    switch (msg->type) {
    case MSG_BEAT: on_beat(host, msg); return;
    case MSG_EXITED: on_exited(core, host, msg); return;
    case MSG_NOTICE: on_notice(core, host, &msg->u.notice); return;
    default: break;
    }
    if (worker && worker->host == host)
        on_worker_msg(core, worker, msg);
    else if (msg->incarnation && msg->type != MSG_OUTPUT)
        CORE_TRACE(core, "%s: a message of #%" PRIu64 ", which is no more, is dropped", host->name,
                   msg->incarnation);
}

void agents_on_msg(struct core *core, uint32_t peer, const struct msg *msg)
{
    struct core_host *host = roster_peer(core, peer);

    if (core->alone)
        end_of_silence(core);
    forgive_silence(core);
    if (!host) {
        if (msg->type == MSG_HELLO_AGENT)
            hello_on_agent(core, peer, msg);
        return;
    }
    host->heard_us = core->now_us;
    if (msg->type == MSG_BYE)
        return; /* CLOSED follows */
    on_msg(core, host, msg);
}
