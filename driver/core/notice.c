/*
 * notice.c: counts the notices of machines that they will go away: how many were honoured
 * (notice.h), the lead time (from the notice to the deadline), and the margin (from the end of the
 * last worker to the deadline). drain.c opens notices; loss.c reports the losses and ends of
 * workers. Invariant: each notice is counted once, and the counts are in the journal, so a
 * successor goes on with the same counts.
 */
#include "driver/core/notice.h"

#include "driver/core/roster.h"
#include "driver/core/tell.h"

#include <inttypes.h>

/* Begins to count a notice of the host's machine: it goes away in left_us (TIME_NEVER: not known).
 * If a notice of the host is being counted already, only an unknown deadline is filled in. */
void notice_open(struct core_host *host, int64_t left_us)
{
    if (!host->notice.open)
        host->notice = (struct host_notice){ .given = true, .open = true, .lead_us = left_us };
    else if (host->notice.lead_us == TIME_NEVER)
        host->notice.lead_us = left_us; /* the deadline was not known before */
}

/* A member was lost on this host: if a notice is being counted, it will not count as honoured. */
void notice_lost(struct core_host *host)
{
    if (host->notice.open)
        host->notice.lost = true;
}

/* Stops counting the notice of this host, which then counts neither as honoured nor as missed. */
void notice_drop(struct core_host *host)
{
    host->notice.open = false;
}

/* Fills the fields of a NOTICE record with the counts of this job so far; journal.h says which
 * field has which count. */
void notice_record(const struct core *core, struct journal_record *record)
{
    const struct view_notices *all = &core->costs.notices;

    record->code = (int32_t)all->ended;
    record->value = (int32_t)all->honoured;
    record->check = (uint64_t)all->least_lead_us;
    record->manifest = (uint64_t)all->least_margin_us;
}

/* Writes a duration in whole milliseconds, or "not known" for TIME_NEVER. */
static const char *notice_time(int64_t us, char text[TIME_TEXT_MAX])
{
    return us == TIME_NEVER ? "not known" : time_format(us - us % TIME_MS, text);
}

/* Ends the notice of this host when the host has no worker any more: counts it as honoured, unless
 * a member was lost, then logs it and writes the counts to the journal. */
void notice_settle(struct core *core, struct core_host *host)
{
    struct view_notices *all = &core->costs.notices;
    char lead[TIME_TEXT_MAX], margin[TIME_TEXT_MAX];
    int64_t margin_us = TIME_NEVER;
    struct journal_record *record;

    if (!host->notice.open || host->taken || core->job >= JOB_STOPPING)
        return;
    host->notice.open = false;
    all->ended++;
    if (host->drain_us != TIME_NEVER)
        margin_us = host->drain_us > core->now_us ? host->drain_us - core->now_us : 0;
    if (!host->notice.lost) {
        all->honoured++;
        if (host->notice.lead_us < all->least_lead_us)
            all->least_lead_us = host->notice.lead_us;
        if (margin_us < all->least_margin_us)
            all->least_margin_us = margin_us;
    }
    if (host->notice.lost)
        CORE_WARN(
            core, FACTS(.kind = KIND_NOTICE_MISSED, .host = host->name),
            "%s: the notice was not honoured: a member was lost before it could leave; %" PRIu32
            " of %" PRIu32 " notices were honoured",
            host->name, all->honoured, all->ended);
    else if (margin_us == TIME_NEVER)
        CORE_TRACE(core, FACTS(.kind = KIND_NOTICE_HONOURED, .host = host->name),
                   "%s: the notice, which had no deadline, is honoured; %" PRIu32 " of %" PRIu32
                   " notices were honoured",
                   host->name, all->honoured, all->ended);
    else
        CORE_TRACE(core,
                   FACTS(.kind = KIND_NOTICE_HONOURED, .host = host->name, .left_us = margin_us),
                   "%s: the notice is honoured: lead %s, margin %s; %" PRIu32 " of %" PRIu32
                   " notices were honoured",
                   host->name, notice_time(host->notice.lead_us, lead),
                   notice_time(margin_us, margin), all->honoured, all->ended);
    record = tell_record(core, JOURNAL_NOTICE);
    record->host = tell_text(core, "%s", host->name);
    notice_record(core, record);
}

/* Restores the counts of a NOTICE record. The record was written when a notice ended, so the notice
 * of its host is over. False: the record is impossible. */
bool notice_replay(struct core *core, const struct journal_record *record)
{
    struct core_host *host;

    if (record->code < 0 || record->value < 0 || record->value > record->code ||
        record->check > INT64_MAX || record->manifest > INT64_MAX)
        return false;
    core->costs.notices = (struct view_notices){ .ended = (uint32_t)record->code,
                                                 .honoured = (uint32_t)record->value,
                                                 .least_lead_us = (int64_t)record->check,
                                                 .least_margin_us = (int64_t)record->manifest };
    host = *record->host ? roster_find_host(core, record->host) : NULL;
    if (host)
        notice_drop(host);
    return true;
}
