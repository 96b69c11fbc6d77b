/*
 * drain.c: begins and ends drains, and kills workers at the deadlines. operator.c and agents.c
 * begin drains, listing.c ends notices of hosts that are no longer listed. An operator's drain
 * lasts until the operator ends it, also while the host is not listed. Each drain is in the journal
 * with a time of day, so that a successor keeps the drain and its deadline.
 */
#include "driver/core/drain.h"

#include "driver/core/loss.h"
#include "driver/core/notice.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>

/* Writes the drain of `slot`, or of the whole host, until wall_us to the journal. wall_us 0: the
 * drain has ended. `code` says whether the machine itself gave notice (enum journal_drain). */
static void drain_record(struct core *core, const struct core_host *host, uint32_t slot,
                         int64_t wall_us)
{
    struct journal_record *drain = tell_record(core, JOURNAL_DRAIN);

    drain->host = tell_text(core, "%s", host->name);
    drain->slot = slot;
    drain->wall_us = wall_us;
    if (wall_us && slot == EVENT_WHOLE_HOST && host->notice.given)
        drain->code = host->notice.open ? DRAIN_BY_MACHINE : DRAIN_COUNTED;
}

/* Begins the drain of a slot or host, or moves the deadline of its drain, and writes that to the
 * log and the journal. `who`: the operator or the source of the notice. */
static void drain_until(struct core *core, struct core_host *host, uint32_t slot, int64_t left_us,
                        const char *who)
{
    int64_t until_us = time_add(core->now_us, left_us);
    char text[TIME_TEXT_MAX];
    struct facts facts;

    ASSERT(slot == EVENT_WHOLE_HOST || slot < host->slot_count);
    if (slot == EVENT_WHOLE_HOST) {
        host->draining = true;
        host->drain_us = until_us;
    } else {
        host->slots[slot].draining = true;
        host->slots[slot].drain_us = until_us;
    }
    time_format(left_us, text);
    facts = (struct facts){ .kind = KIND_DRAIN_BEGUN,
                            .host = host->name,
                            .has_slot = slot != EVENT_WHOLE_HOST,
                            .slot = slot,
                            .size = slot == EVENT_WHOLE_HOST ? host->taken
                                                             : host->slots[slot].worker != NULL,
                            .cause = who,
                            .left_us = left_us };
    /* An operator knows of the own drain; a machine that goes away is news. */
    core_say(core, slot == EVENT_WHOLE_HOST && host->notice.given ? TRACE_WARNING : TRACE_INFO,
             &facts, "%s%s is drained %s%s: %s", host->name,
             slot == EVENT_WHOLE_HOST ? "" : tell_text(core, ":%" PRIu32, slot),
             left_us == TIME_NEVER ? "without a deadline" : "within ",
             left_us == TIME_NEVER ? "" : text, who);
    drain_record(core, host, slot, time_add(core->wall_us, left_us));
    core_want_timer(core, until_us);
    /* The workers that have to go are marked now, not at the end of the step: from now on the death
     * of such a worker is no failure. */
    roster_judge_slots(core);
    core_want_slots(core);
    core_want_round(core);
}

/* An operator begins a drain of a slot or of the whole host. If the machine had given notice
 * before, the drain is the operator's from now on, and the notice is not counted. */
void drain_begin(struct core *core, struct core_host *host, uint32_t slot, int64_t left_us,
                 const char *who)
{
    if (slot == EVENT_WHOLE_HOST) {
        host->notice.given = false;
        notice_drop(host);
    }
    drain_until(core, host, slot, left_us, who);
}

/* Handles NOTICE: the machine will go away, so its host is drained until then. PROTOCOL.md, K4: a
 * repeated NOTICE changes nothing. Its deadline may differ by the time that the message was on its
 * way, so a deadline is new only if it is earlier than the known one by more than a heartbeat
 * interval. */
void drain_on_notice(struct core *core, struct core_host *host, const struct msg_notice *notice)
{
    int64_t until_us = time_add(core->now_us, notice->left_us);

    if (host->draining && time_add(until_us, core->config.beat_us) >= host->drain_us)
        return;
    /* A drain that an operator began stays the operator's: only the operator ends it. */
    if (!host->draining)
        host->notice.given = true;
    if (host->notice.given)
        notice_open(host, notice->left_us);
    drain_until(core, host, EVENT_WHOLE_HOST, notice->left_us, notice->source);
    notice_settle(core, host);
}

/* Ends the drain of a slot, or of the host itself (EVENT_WHOLE_HOST); drains of its single slots
 * stay. If there is no such drain, nothing happens. */
void drain_end(struct core *core, struct core_host *host, uint32_t slot)
{
    bool *draining;

    ASSERT(slot == EVENT_WHOLE_HOST || slot < host->slot_count);
    draining = slot == EVENT_WHOLE_HOST ? &host->draining : &host->slots[slot].draining;
    if (!*draining)
        return;
    *draining = false;
    if (slot == EVENT_WHOLE_HOST && host->listed)
        notice_drop(host);
    drain_record(core, host, slot, 0);
    core_want_slots(core);
}

/* Ends the drain of the host itself and the drains of all its slots. */
void drain_end_all(struct core *core, struct core_host *host)
{
    drain_end(core, host, EVENT_WHOLE_HOST);
    for (uint32_t slot = 0; slot < host->slot_count; slot++)
        drain_end(core, host, slot);
}

/* Ends the drain of the host if a notice of the machine began it. listing.c calls this when the
 * host leaves the list or comes back to it; a drain of an operator stays. */
void drain_end_notice(struct core *core, struct core_host *host)
{
    if (host->notice.given)
        drain_end(core, host, EVENT_WHOLE_HOST);
}

/* Bounds the hosts that are remembered only for their drains. The table of hosts has the hosts in
 * the order in which the job met them, so the drains of the oldest ones are ended. */
void drain_forget_oldest(struct core *core)
{
    size_t kept = 0;

    for (size_t i = 0; i < core->roster.hosts.count; i++)
        kept +=
            !core->roster.hosts.items[i]->listed && roster_is_drained(core->roster.hosts.items[i]);
    for (size_t i = 0; i < core->roster.hosts.count && kept > LIMIT_DRAINS_KEPT; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (host->listed || !roster_is_drained(host))
            continue;
        CORE_WARN(core, FACTS(.kind = KIND_DRAIN_ENDED, .host = host->name),
                  "%s: the drain of this host is forgotten, because %d other drained hosts are "
                  "not listed (LIMIT_DRAINS_KEPT)",
                  host->name, LIMIT_DRAINS_KEPT);
        drain_end_all(core, host);
        kept--;
    }
}

/* Kills the workers whose time to leave is over. Then ends drains that a machine gave notice of and
 * that are past, if discovery still lists the host: the machine was not taken away. */
void drain_expire(struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        const struct core_host *host = worker->host;
        const struct core_slot *slot = &host->slots[worker->slot];
        int64_t until_us = host->draining ? host->drain_us : TIME_NEVER;

        if (slot->draining && slot->drain_us < until_us)
            until_us = slot->drain_us;
        /* A worker that has finished ends by itself. A kill would make it a failed worker. */
        if (until_us == TIME_NEVER || worker->state == WORKER_DOOMED ||
            worker->state == WORKER_FINISHED)
            continue;
        if (until_us > core->now_us)
            core_want_timer(core, until_us);
        else
            /* true: the worker is not to blame; 0: SIGKILL without grace */
            loss_kill(core, worker, "the worker's time to leave is over", true, 0);
    }
    for (size_t i = 0; i < core->listing.list.count; i++) {
        struct core_host *host = core->listing.list.items[i];
        int64_t over_us = time_add(host->drain_us, DRAIN_NOTICE_LATE_US);

        if (!host->draining || !host->notice.given)
            continue;
        if (over_us > core->now_us) {
            core_want_timer(core, over_us);
            continue;
        }
        CORE_TRACE(core, FACTS(.kind = KIND_DRAIN_ENDED, .host = host->name),
                   "%s was to be taken away and is still listed: the host is used again",
                   host->name);
        drain_end(core, host, EVENT_WHOLE_HOST);
    }
    /* all hosts, not only the listed ones: a notice ends when its host has no worker any more */
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        notice_settle(core, core->roster.hosts.items[i]);
}
