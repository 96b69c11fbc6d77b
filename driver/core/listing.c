#include "driver/core/listing.h"

#include "discovery/diff.h"
#include "discovery/order.h"
#include "driver/core/clock.h"
#include "driver/core/drain.h"
#include "driver/core/finish.h"
#include "driver/core/roster.h"
#include "driver/core/tell.h"

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
    drain_end(core, host, EVENT_WHOLE_HOST);
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        drain_end(core, host, slot);
        host->seats[slot].done = false;
    }
}

static size_t count_done(const struct core_host *host)
{
    size_t count = 0;

    for (uint32_t slot = 0; slot < host->slots; slot++)
        count += host->seats[slot].done;
    return count;
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

/* News for those who want it; nobody has to act. */
static void tell_news(struct core *core, const struct diff *diff)
{
    struct msg *msg;

    if (job_state(core) != JOB_RUNNING ||
        (!(diff->kinds & DIFF_LOSS) && core->current.members.count >= core->config.max_np))
        return;
    msg = tell_msg(core, MSG_HOSTS_UPDATED, 0, core->current.number);
    for (size_t i = 0; i < diff->count; i++) {
        msg->u.hosts_updated.added += (diff->items[i].kind & DIFF_GAIN) != 0;
        msg->u.hosts_updated.removed += (diff->items[i].kind & DIFF_LOSS) != 0;
    }
    tell_rounds(core, &core->current, NULL, msg);
}

static bool take_over(struct core *core, const struct hosts *hosts, struct diff *diff)
{
    char text[DIFF_TEXT_MAX];

    if (diff_between(&core->listing, hosts, diff))
        return false;
    if (!diff->kinds && core->discovered)
        return true;
    CORE_TRACE(core, "hosts: %s", diff_describe(diff, text));
    for (size_t i = 0; i < core->listing.count; i++) {
        struct core_host *host = roster_find_host(core, core->listing.items[i].name);

        if (host && host->listed && !hosts_find(hosts, host->name))
            unlist(core, host);
    }
    tell_news(core, diff);
    if (order_update(&core->listing, hosts, &core->listing) || !list(core))
        return false;
    core->look_at_seats = core->look_at_rounds = true;
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
    CORE_TRACE(core, "discovery has failed, the hosts stay as they are: %s", why);
}
