#include "driver/core/listing.h"

#include "base/time.h"
#include "discovery/diff.h"
#include "discovery/order.h"
#include "driver/core/agents.h"
#include "driver/core/clock.h"
#include "driver/core/drain.h"
#include "driver/core/finish.h"
#include "driver/core/roster.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAME_FAILURE_US TIME_MIN

void listing_discover(struct core *core)
{
    core->next_discovery_us = TIME_NEVER;
    if (core->discovering || job_state(core) >= JOB_STOPPING)
        return;
    core->discovering = true;
    tell_discover(core);
}

static void discover_again(struct core *core)
{
    core->discovering = false;
    core->next_discovery_us = time_add(core->now_us, core->config.discovery_us);
    clock_want(core, core->next_discovery_us);
}

/* A host that is no longer listed offers nothing. Should it come back it is a new one. */
static void unlist(struct core *core, struct core_host *host)
{
    host->listed = false;
    host->slots = 0;
    drain_end_all(core, host);
    for (uint32_t slot = 0; slot < host->seat_count; slot++)
        host->seats[slot].done = false;
}

static size_t count_done(const struct core_host *host)
{
    size_t count = 0;

    for (uint32_t slot = 0; slot < host->slots; slot++)
        count += host->seats[slot].done;
    return count;
}

/* If its agent was lost meanwhile, nobody has asked for another one. */
static void listed_anew(struct core *core, struct core_host *host)
{
    drain_end_all(core, host); /* of notices that came after it was gone */
    if (host->agent == AGENT_AWAY)
        tell_start_agent(core, host);
}

static bool list(struct core *core)
{
    core->listed.count = 0;
    core->offered_slots = core->done_seats = 0;
    if (VEC_RESERVE(&core->listed, core->listing.count, LIMIT_HOSTS))
        return false;
    for (size_t i = 0; i < core->listing.count; i++) {
        struct core_host *host = roster_host(core, core->listing.items[i].name);
        uint32_t slots = core->listing.items[i].slots;

        if (!host || !roster_seats(core, host, slots))
            return false;
        if (!host->listed && core->discovered)
            listed_anew(core, host);
        host->listed = true;
        host->slots = slots;
        host->place = (uint32_t)i;
        core->done_seats += count_done(host);
        core->listed.items[core->listed.count++] = host;
        if (host->agent == AGENT_THERE)
            core->offered_slots += slots;
    }
    return true;
}

/* Hosts with less than before where somebody runs: they may have to leave. */
static uint32_t count_losses(const struct core *core, const struct diff *diff)
{
    uint32_t losses = 0;

    for (size_t i = 0; i < diff->count; i++) {
        const struct core_host *host = roster_find_host(core, diff->items[i].name);

        losses += (diff->items[i].kind & DIFF_LOSS) && host && host->taken;
    }
    return losses;
}

static uint32_t count_gains(const struct diff *diff)
{
    uint32_t gains = 0;

    for (size_t i = 0; i < diff->count; i++)
        gains += (diff->items[i].kind & DIFF_GAIN) != 0;
    return gains;
}

/* News for those who want it; nobody has to act. Hosts that nobody uses are none, nor are more of
 * them while there are enough. */
static void tell_news(struct core *core, const struct diff *diff)
{
    uint32_t removed = count_losses(core, diff);
    uint32_t added = removed || core->staying < core->config.max_np ? count_gains(diff) : 0;
    struct msg *msg;

    if (!core->discovered || job_state(core) < JOB_RUNNING || job_state(core) > JOB_PENDING ||
        !(added || removed))
        return;
    msg = tell_msg(core, MSG_HOSTS_UPDATED, 0, core->current.number);
    msg->u.hosts_updated = (struct msg_hosts_updated){ .added = added, .removed = removed };
    CORE_TRACE(core, "round %" PRIu64 " is told: hosts +%" PRIu32 " -%" PRIu32,
               core->current.number, added, removed);
    tell_rounds(core, &core->current, NULL, msg);
}

/* Nothing is launched before there are np slots: that is no reason to say nothing. */
static void trace_shortage(struct core *core)
{
    uint64_t slots = 0;

    for (size_t i = 0; i < core->listed.count; i++)
        slots += core->listed.items[i]->slots;
    if (slots < core->config.np)
        CORE_TRACE(core, "waiting for slots: %" PRIu64 " of %" PRIu32 " are listed", slots,
                   core->config.np);
}

/* To a driver that has taken over, the first set is all new: what it knows are ranks, not slots. */
static void trace_change(struct core *core, const struct hosts *hosts, const struct diff *diff)
{
    char text[DIFF_TEXT_MAX];

    if (core->discovered || !core->current.number)
        CORE_TRACE(core, "hosts: %s", diff->kinds ? diff_describe(diff, text) : "none");
    else
        CORE_TRACE(core, "hosts: %zu with %" PRIu64 " slots are listed", hosts->count,
                   hosts_total_slots(hosts));
}

static bool take_over(struct core *core, const struct hosts *hosts, struct diff *diff)
{
    if (diff_between(&core->listing, hosts, diff))
        return false;
    if (!diff->kinds && core->discovered)
        return true;
    trace_change(core, hosts, diff);
    /* Others too, which the journal alone knows of: what it says of their drains is over. */
    for (size_t i = 0; i < core->hosts.count; i++)
        if (!hosts_find(hosts, core->hosts.items[i]->name))
            unlist(core, core->hosts.items[i]);
    tell_news(core, diff);
    if (order_update(&core->listing, hosts, &core->listing) || !list(core))
        return false;
    if (job_state(core) == JOB_GATHERING && !core->gate_open)
        trace_shortage(core);
    core->look_at_seats = core->look_at_rounds = true;
    agents_expire(core); /* of those that have hung up */
    roster_sweep(core);
    return true;
}

void listing_on_hosts(struct core *core, const struct hosts *hosts)
{
    struct diff diff;

    if (!core->discovering)
        return;
    discover_again(core);
    diff_init(&diff);
    if (!take_over(core, hosts, &diff))
        core->broken = true;
    diff_release(&diff);
    core->discovered = true;
    core->discovery_failure[0] = '\0';
}

/* A script that is broken is broken each time: once a minute is enough to know of it. */
static void trace_failure(struct core *core, const char *why)
{
    if (strncmp(core->discovery_failure, why, LIMIT_REASON_BYTES) == 0 &&
        core->now_us - core->discovery_failure_us < SAME_FAILURE_US)
        return;
    CORE_TRACE(core, "discovery has failed, the hosts stay as they are: %s", why);
    snprintf(core->discovery_failure, sizeof(core->discovery_failure), "%s", why);
    core->discovery_failure_us = core->now_us;
}

void listing_on_failure(struct core *core, const char *why)
{
    if (!core->discovering)
        return;
    discover_again(core);
    if (!core->discovered && !core->incarnations) {
        finish_fail(core, tell_text(core, "the first discovery has failed: %s", why));
        return;
    }
    trace_failure(core, why);
}
