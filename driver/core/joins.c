/*
 * joins.c: the connections of processes that have joined for their hosts, and the list of hosts
 * that follows from them. agents.c brings their messages, core.c their deadlines, keys.c asks for
 * the start of an agent. Invariant: a host has at most one such connection, and keeps its place in
 * the list for a lease after the connection has broken.
 */
#include "driver/core/joins.h"

#include "driver/core/keys.h"
#include "driver/core/listing.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/tokens.h"

#include <inttypes.h>
#include <string.h>

/* Hosts that join within this time after the last new list become hosts of the job together. */
#define JOIN_TOGETHER_US   (100 * TIME_MS)
#define REFUSALS_WINDOW_US (10 * TIME_S)
#define REFUSALS_BURST     20

/* Returns the host whose process `hvd-agent --join` has the connection `peer`; NULL: the connection
 * is not of such a process. */
struct core_host *joins_peer(const struct core *core, uint32_t peer)
{
    for (size_t i = 0; core->config.join && i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (host->join.connected && host->join.peer == peer)
            return host;
    }
    return NULL;
}

/* Called when a host has joined or left: joins_apply makes the list of hosts again, in a step that
 * is requested for now. */
static void joins_change(struct core *core)
{
    core->listing.joins.changed = true;
    core_want_timer(core, core->now_us);
}

/* The host has said bye, or was silent for a lease: it leaves the job, as a host that discovery
 * does not name any more. */
static void join_leave(struct core *core, struct core_host *host, const char *why)
{
    CORE_TRACE(core, FACTS(.kind = KIND_HOST_LEFT, .host = host->name, .cause = why),
               "%s: this host leaves the job: %s", host->name, why);
    host->join.here = host->join.connected = false;
    joins_change(core);
}

/* Answers a JOIN with REFUSED and closes the connection. `name`: the host's name in the JOIN, which
 * is not proved. */
static void join_refuse(struct core *core, uint32_t peer, const char *name, int code,
                        const char *why)
{
    struct msg *answer = tell_msg(core, MSG_REFUSED, 0, 0);
    struct log_limit *limit = &core->listing.joins.refusals;
    unsigned held;

    limit->window_us = REFUSALS_WINDOW_US;
    limit->burst = REFUSALS_BURST;
    if (log_limit_pass(limit, core->now_us, &held))
        CORE_WARN(core, FACTS(.kind = KIND_HOST_REFUSED, .host = name, .cause = why),
                  "%s: this host may not join: %s", name, why);
    answer->u.refused = (struct msg_refused){ .code = code, .text = why };
    tell_join_peer(core, peer, NULL, answer);
    tell_join_close(core, peer, why);
}

/* True: the driver sees the host at another address than the host itself, so a device on the way
 * translates addresses (NAT). `own` is "10.0.0.7", `seen` "10.0.0.7:4321" or "[fd00::7]:4321". Not
 * compared: the interface of a link-local address ("%eth0"), whose name the other side does not
 * know, and the prefix with which an IPv6 socket shows an IPv4 address. */
static bool join_is_translated(const char *own, const char *seen)
{
    static const char prefix[] = "::ffff:";
    bool bracketed = seen[0] == '[';
    size_t length = bracketed ? strcspn(++seen, "]%") : strcspn(seen, ":");

    if (!strncmp(seen, prefix, strlen(prefix)) && memchr(seen, '.', length)) {
        seen += strlen(prefix);
        length -= strlen(prefix);
    }
    return strcspn(own, "%") != length || memcmp(own, seen, length) != 0;
}

/* Returns why no other host can connect to the workers of this one, as far as its JOIN shows; NULL:
 * nothing is known against it. A host that is in the job already is not judged again: a driver that
 * has moved may be the only one that the host reaches by NAT. */
static const char *join_judge_address(struct core *core, const struct event *event,
                                      const struct core_host *host)
{
    const char *own = event->msg->u.join.address;

    if (!own || !own[0] || !event->text || (host && (host->taken || host->join.here)) ||
        !join_is_translated(own, event->text))
        return NULL;
    return tell_text(
        core,
        "its address is %.64s, but its connection comes from %.64s: the host is behind "
        "NAT, and the other hosts cannot connect to its workers; give hvd-agent "
        "--address, with the address at which they can",
        own, event->text);
}

/* Decides about the JOIN of a host. NULL: the host may join, and the use of its token is recorded.
 * Otherwise returns why it may not, with the error code in *ret_code. */
static const char *join_judge(struct core *core, const struct event *event, int *ret_code)
{
    const struct msg_join *join = &event->msg->u.join;
    const struct core_host *host = roster_find_host(core, join->host);
    struct hvd_err err;
    const char *why;

    *ret_code = HVD_E_DENIED;
    if (core->config.join == JOIN_NO)
        return "no host can join this job; start it with --discovery join";
    if (strncmp(event->host, TOKEN_PEER, strlen(TOKEN_PEER)) != 0)
        return "the connection has not proved a token";
    if (host_name_check(join->host, strlen(join->host), &err))
        return tell_text(core, "the name of the host is not valid: %s", err.text);
    if (!join->slots || !join->join)
        return "the host has no slots, or its process no number";
    why = join_judge_address(core, event, host);
    if (why)
        return why;
    *ret_code = HVD_E_EXISTS;
    if (host && host->join.connected && host->join.number != join->join)
        return tell_text(core,
                         "the name %s is that of a living host of the job; give each host a name "
                         "of its own with --name",
                         join->host);
    why = tokens_use(core, event->host + strlen(TOKEN_PEER), join->host, join->join);
    *ret_code = why ? HVD_E_DENIED : 0;
    return why;
}

/* Handles JOIN, the first message of the process `hvd-agent --join` of a host. An accepted host is
 * welcomed, and joins_apply will list it. While the job ends, the process is told that the job is
 * over. */
void joins_on_join(struct core *core, const struct event *event)
{
    const struct msg_join *join = &event->msg->u.join;
    struct msg *answer;
    struct core_host *host;
    bool was_here;
    int code;
    const char *why = core->job < JOB_STOPPING ? join_judge(core, event, &code) : NULL;

    if (core->job >= JOB_STOPPING) {
        /* The process has dialled while the job ends: the process is told that the job is over. */
        answer = tell_msg(core, MSG_REFUSED, 0, 0);
        answer->u.refused =
            (struct msg_refused){ .code = HVD_E_MISMATCH, .text = "the job is over" };
        tell_join_peer(core, event->peer, NULL, answer);
        tell_join_close(core, event->peer, "the job is over");
        host = roster_find_host(core, join->host);
        if (host)
            host->join.told = true;
        over_check_job(core);
        return;
    }
    if (why) {
        join_refuse(core, event->peer, tell_text(core, "%s", join->host), code, why);
        return;
    }
    host = core->step.failed ? NULL : roster_host(core, join->host);
    if (!host)
        return;
    if (host->join.connected)
        tell_join_close(core, host->join.peer, "the process of this host has dialled again");
    was_here = host->join.here;
    if (!was_here || host->join.slots != join->slots)
        joins_change(core);
    host->join = (struct core_host_join){ .here = true,
                                          .connected = true,
                                          .peer = event->peer,
                                          .number = join->join,
                                          .slots = join->slots,
                                          .heard_us = core->now_us,
                                          .said_us = core->now_us };
    CORE_TRACE(core, FACTS(.kind = KIND_HOST_JOINED, .host = host->name),
               "%s: this host %s, with token %s and %" PRIu32 " slots", host->name,
               was_here ? "is back" : "joins", event->host + strlen(TOKEN_PEER), join->slots);
    if (strcmp(join->version, HVD_VERSION_TEXT) != 0)
        CORE_WARN(core, FACTS(.kind = KIND_VERSION_DIFFERS, .host = host->name),
                  "%s: this host has version %s, the driver has %s; install the same version",
                  host->name, tell_text(core, "%s", join->version), HVD_VERSION_TEXT);
    tell_join_peer(core, event->peer, NULL, tell_welcome(core));
    core_want_timer(core, time_add(core->now_us, core->config.lease_us));
    /* An agent is wanted here: its start was requested while this process was away, or the agent
     * does not find this driver. START goes to the process that has just joined. */
    if (host->agent == AGENT_STARTING ||
        (host->agent == AGENT_AWAY && (host->listed || host->taken)))
        keys_start_agent(core, host);
}

/* Handles a later message of the process: any message renews its lease, and BYE lets the host leave
 * at once. */
void joins_on_msg(struct core *core, struct core_host *host, const struct msg *msg)
{
    host->join.heard_us = core->now_us;
    switch (msg->type) {
    case MSG_BYE:
        tell_join_close(core, host->join.peer, "the process of this host has said bye");
        join_leave(core, host, tell_text(core, "%s", msg->u.bye.reason));
        break;
    default:
        /* BEAT needs no more than the renewed lease, and agents.c handles NOT_STARTED. Other
         * messages have no meaning on this connection. */
        break;
    }
}

/* The connection of the process is gone. The host keeps its place for one lease, in which the
 * process may dial again. */
void joins_on_closed(struct core *core, struct core_host *host, const char *why)
{
    CORE_TRACE(core, FACTS(.kind = KIND_AGENT_LOST, .host = host->name, .cause = why),
               "%s: the connection of the process that has joined is gone: %s", host->name, why);
    host->join.connected = false;
    host->join.heard_us = core->now_us;
    core_want_timer(core, time_add(core->now_us, core->config.lease_us));
}

/* Called when the driver starts: the tokens of the journal are accepted, and the list of hosts is
 * made soon. After a takeover joins_apply first waits one lease for the hosts that have workers. */
void joins_start(struct core *core)
{
    if (!core->config.join)
        return;
    tokens_start(core);
    core->listing.joins.heard_us = core->now_us;
    /* After a takeover hosts that joined an earlier driver have a lease to find this one. */
    if (core->roster.incarnations)
        core->listing.joins.heard_us = time_add(core->now_us, core->config.lease_us);
    joins_change(core);
}

/* Sends BEAT to each connected process to which nothing was sent for a heartbeat interval. */
void joins_beat(struct core *core)
{
    for (size_t i = 0; core->config.join && i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!host->join.connected || core->now_us - host->join.said_us < core->config.beat_us)
            continue;
        host->join.said_us = core->now_us;
        tell_join_peer(core, host->join.peer, NULL, tell_msg(core, MSG_BEAT, 0, 0));
    }
}

/* Makes the list of the job's hosts again, if hosts have joined or left, or discovery has named
 * hosts. With JOIN_ALONE these are all hosts that have joined. With JOIN_LISTED these are the hosts
 * that discovery names and that have joined, each with the smaller number of slots. */
static void joins_apply(struct core *core)
{
    struct core_joins *joins = &core->listing.joins;
    bool listed = core->config.join == JOIN_LISTED;
    size_t all = listed ? joins->found.count : core->roster.hosts.count;
    int64_t due_us = joins->apply_us;
    struct hosts hosts;
    int rc = 0;

    if ((!joins->changed && joins->found_times == joins->found_applied) ||
        (listed && !joins->found_times))
        return;
    /* After a takeover the list waits until all hosts that have workers have joined again. */
    for (size_t i = 0; !core->listing.discovered && i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        if (host->taken && !host->join.here && due_us < joins->heard_us)
            due_us = joins->heard_us;
    }
    if (core->now_us < due_us) {
        core_want_timer(core, due_us);
        return;
    }
    joins->changed = false;
    joins->found_applied = joins->found_times;
    joins->apply_us = time_add(core->now_us, JOIN_TOGETHER_US);
    hosts_init(&hosts);
    for (size_t i = 0; !rc && i < all; i++) {
        const struct host *found = listed ? &joins->found.items[i] : NULL;
        const struct core_host *host =
            listed ? roster_find_host(core, found->name) : core->roster.hosts.items[i];
        uint32_t slots = host ? host->join.slots : 0;

        if (host && host->join.here)
            rc = hosts_add(&hosts, host->name,
                           listed && slots > found->slots ? found->slots : slots);
    }
    if (rc)
        core_fail(core);
    else
        listing_set(core, &hosts);
    hosts_release(&hosts);
}

/* Lets the hosts go whose process was silent for a lease, and then makes the list of hosts again if
 * it has changed. */
void joins_expire(struct core *core)
{
    if (!core->config.join || core->job >= JOB_STOPPING)
        return;
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];
        int64_t until_us = time_add(host->join.heard_us, core->config.lease_us);

        if (!host->join.here)
            continue;
        if (core->now_us < until_us) {
            core_want_timer(core, until_us);
            continue;
        }
        if (host->join.connected)
            tell_join_close(core, host->join.peer, "silent for longer than the lease");
        join_leave(core, host, "its process has been silent for longer than the lease");
    }
    joins_apply(core);
}

/* The job is over: tells the processes of joined hosts to end, and returns the last action, the
 * exit of this driver. A driver that was replaced tells them nothing, as the job goes on. */
void joins_end(struct core *core)
{
    bool told = core->over.exit_code != CORE_REPLACED;
    struct msg *msg;

    for (size_t i = 0; told && core->config.join && i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!host->join.connected)
            continue;
        msg = tell_msg(core, MSG_STOP, 0, 0);
        msg->u.stop = (struct msg_stop){ .grace_us = core->config.kill_grace_us,
                                         .reason = tell_text(core, "%s", core->over.exit_text) };
        tell_join_peer(core, host->join.peer, NULL, msg);
        tell_join_close(core, host->join.peer, "the job is over");
        host->join.connected = false;
    }
    tell_exit(core, core->over.exit_code, over_last_words(core));
}
