/*
 * listing.c: makes the hosts that discovery found the hosts of the job. This file changes only what
 * is known of hosts, and requests slots and a round (core_want_slots, core_want_round). Then
 * slots.c starts agents and workers and sends other workers away, and change.c changes the round.
 * docs/stories.md, "Hosts come and go": a new list never revokes a round.
 */
#include "driver/core/listing.h"

#include "discovery/diff.h"
#include "discovery/order.h"
#include "driver/core/drain.h"
#include "driver/core/keys.h"
#include "driver/core/lease.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* the same failure of discovery is logged at most this often */
#define SAME_FAILURE_US TIME_MIN

/* Asks for one discovery, unless one runs, the job is ending, or its hosts come only by joining
 * (JOIN_ALONE). */
void listing_discover(struct core *core)
{
    core->listing.next_us = TIME_NEVER;
    if (core->listing.discovering || core->job >= JOB_STOPPING || core->config.join == JOIN_ALONE)
        return;
    core->listing.discovering = true;
    core->listing.health.asked_us = core->now_us;
    tell_discover(core);
}

/* Called when a discovery has ended, well or not: sets the time of the next one to one
 * --discovery-interval from now. */
static void listing_discover_again(struct core *core)
{
    core->listing.discovering = false;
    core->listing.health.asked_us = TIME_NEVER;
    core->listing.next_us = time_add(core->now_us, core->config.discovery.pause_us);
    core_want_timer(core, core->listing.next_us);
}

/* Fills core->listing.list with the struct core_host of each host in core->listing.hosts. False:
 * no memory is left. */
static bool listing_list(struct core *core)
{
    struct core_listing *listing = &core->listing;

    listing->list.count = 0;
    roster_relist(core);
    if (VEC_RESERVE(&listing->list, listing->hosts.count, LIMIT_HOSTS))
        return false;
    for (size_t i = 0; i < listing->hosts.count; i++) {
        struct core_host *host = roster_host(core, listing->hosts.items[i].name);
        uint32_t slots = listing->hosts.items[i].slots;

        if (!host || !roster_slots(core, host, slots))
            return false;
        if (!host->listed && listing->discovered) {
            /* While the host was not listed its machine may have given notice: it is back, so that
             * drain ends. */
            drain_end_notice(core, host);
            if (host->agent == AGENT_AWAY)
                /* The agent of this host is away and may be dead. No agent was started while the
                 * host was not listed, so the start is requested now. */
                keys_start_agent(core, host);
        }
        roster_list_host(core, host, (uint32_t)i, slots);
        listing->list.items[listing->list.count++] = host;
    }
    return true;
}

/* PROTOCOL.md, HOSTS_UPDATED: tells the members how many hosts were added and removed. The message
 * is only for information. Removed hosts without workers do not count, and added hosts do not count
 * while there are enough workers. */
static void listing_tell_news(struct core *core, const struct diff *diff)
{
    uint32_t removed = 0, added = 0;
    struct msg *msg;

    for (size_t i = 0; i < diff->count; i++) {
        const struct core_host *host = roster_find_host(core, diff->items[i].name);

        removed += (diff->items[i].kind & DIFF_LOSS) && host && host->taken;
        added += (diff->items[i].kind & DIFF_GAIN) != 0;
    }
    if (!removed && core->roster.staying >= core->config.max_np)
        added = 0;
    if (!core->listing.discovered || core->job < JOB_RUNNING || core->job > JOB_PENDING ||
        !(added || removed))
        return;
    msg = tell_msg(core, MSG_HOSTS_UPDATED, 0, core->current.number);
    msg->u.hosts_updated = (struct msg_hosts_updated){ .added = added, .removed = removed };
    CORE_DETAIL(core, FACTS(.kind = KIND_HOSTS_CHANGED),
                "round %" PRIu64 " is told that hosts have changed: +%" PRIu32 " -%" PRIu32,
                core->current.number, added, removed);
    tell_rounds(core, &core->current, NULL, msg);
}

/* Makes `hosts` the list of the job. `diff`, which the caller has initialised, gets the difference
 * to the list before. False: no memory is left. */
static bool listing_apply_hosts(struct core *core, const struct hosts *hosts, struct diff *diff)
{
    char text[DIFF_TEXT_MAX];
    uint64_t slots;

    if (diff_between(&core->listing.hosts, hosts, diff))
        return false;
    if (!diff->kinds && core->listing.discovered)
        return true;
    /* For a driver that has taken over, the whole first list is new, because its journal names
     * workers and not listed slots. So the log has only totals. */
    if (core->listing.discovered || !core->current.number)
        CORE_TRACE(core, FACTS(.kind = KIND_HOSTS_CHANGED), "hosts: %s",
                   diff->kinds ? diff_describe(diff, text) : "none");
    else
        CORE_TRACE(core, FACTS(.kind = KIND_HOSTS_CHANGED),
                   "hosts: %zu with %" PRIu64 " slots are listed", hosts->count,
                   hosts_total_slots(hosts));
    /* A host that is no longer listed offers no slots, and it counts as a new host if it is listed
     * again. That holds also for hosts that only the journal names. docs/stories.md,
     * `a_drained_host_flaps`: an operator's drain lasts until the operator ends it. */
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!hosts_find(hosts, host->name)) {
            roster_unlist_host(host);
            drain_end_notice(core, host);
        }
    }
    drain_forget_oldest(core);
    listing_tell_news(core, diff);
    /* docs/stories.md, `old_hosts_first`: old hosts keep their order, and new hosts are appended.
     * `newest_order_before_the_start`: before the first launch no host has a rank to keep. */
    if ((core->launch.gate_open ? order_update(&core->listing.hosts, hosts, &core->listing.hosts)
                                : hosts_copy(hosts, &core->listing.hosts)) ||
        !listing_list(core))
        return false;

    /* docs/stories.md, `waits_for_np_slots`: no worker is launched before np slots are listed, and
     * the log says why. */
    slots = hosts_total_slots(&core->listing.hosts);
    if (core->job == JOB_GATHERING && !core->launch.gate_open && slots < core->config.np)
        CORE_WARN(core, FACTS(.kind = KIND_TOO_FEW_SLOTS),
                  "waiting for slots: %" PRIu64 " of %" PRIu32 " are listed%s", slots,
                  core->config.np, tokens_advise(core));
    core_want_slots(core);
    core_want_round(core);
    lease_expire(core); /* Unlisted hosts whose connection has broken may count as dead now. */
    roster_remove_unheard(core);
    keys_reconcile(core);
    roster_sweep(core);
    return true;
}

/* Makes `hosts` the hosts of the job; called with the result of discovery, or with the hosts that
 * have joined. From now on the driver knows which hosts are listed. */
void listing_set(struct core *core, const struct hosts *hosts)
{
    struct diff diff;

    diff_init(&diff);
    if (!listing_apply_hosts(core, hosts, &diff))
        core_fail(core);
    diff_release(&diff);
    core->listing.discovered = true;
}

/* A discovery has found `hosts`: they become the hosts of the job. A result that was not asked for
 * is ignored. */
void listing_on_hosts(struct core *core, const struct hosts *hosts)
{
    struct core_listing *listing = &core->listing;
    struct view_discovery *health = &listing->health;

    if (!core->listing.discovering)
        return;
    listing_discover_again(core);
    if (listing->failing_said)
        CORE_TRACE(core, FACTS(.kind = KIND_DISCOVERY_WORKS),
                   "discovery works again after %" PRIu32 " failure%s in a row", health->failures,
                   health->failures == 1 ? "" : "s");
    listing->failing_said = false;
    health->failures = 0;
    health->worked_us = core->now_us;
    if (!core->config.join) {
        listing_set(core, hosts);
    } else if (hosts_copy(hosts, &core->listing.joins.found)) {
        core_fail(core);
    } else { /* joins_apply makes the list: the hosts that discovery names and that have joined */
        core->listing.joins.found_times++;
        core_want_timer(core, core->now_us);
    }
}

/* A discovery has failed, for the reason `why`: the hosts stay as they are. If it is the first
 * discovery of a new job, the job fails, unless it is to be tried again. */
void listing_on_failure(struct core *core, const char *why)
{
    struct core_listing *listing = &core->listing;
    bool first = !listing->discovered && !core->roster.incarnations;

    if (!listing->discovering)
        return;
    listing_discover_again(core);
    listing->health.failures++;
    listing->health.failed_us = core->now_us;
    /* docs/stories.md, `first_discovery_fails`, `first_discovery_is_tried_again`. */
    if (first && !core->config.discovery.retry_first) {
        over_fail(core, tell_text(core, "the first discovery has failed: %s", why));
        return;
    }
    /* A broken script fails each time, so the same failure is logged once a minute, also of a
     * script that works now and then. */
    if (strncmp(listing->failure, why, LIMIT_REASON_BYTES) == 0 &&
        core->now_us - listing->failure_us < SAME_FAILURE_US)
        return;
    CORE_WARN(core, FACTS(.kind = KIND_DISCOVERY_FAILED, .cause = why), "%s: %s",
              first ? "the first discovery has failed, and is tried again"
                    : "discovery has failed, so the list of hosts does not change",
              why);
    snprintf(listing->failure, sizeof(listing->failure), "%s", why);
    listing->failure_us = core->now_us;
    listing->failing_said = true;
}
