#include "driver/core/drain.h"

#include "driver/core/clock.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/tell.h"

#include <inttypes.h>

static void record(struct core *core, const struct core_host *host, uint32_t slot, int64_t wall_us)
{
    struct journal_record *drain = tell_record(core, JOURNAL_DRAIN);

    drain->host = tell_text(core, "%s", host->name);
    drain->slot = slot;
    drain->wall_us = wall_us;
    drain->code = wall_us && slot == EVENT_WHOLE_HOST && host->noticed;
}

static void begin(struct core *core, struct core_host *host, uint32_t slot, int64_t left_us,
                  const char *who)
{
    int64_t until_us = time_add(core->now_us, left_us);
    char text[TIME_TEXT_MAX];

    ASSERT(slot == EVENT_WHOLE_HOST || slot < host->seat_count);
    if (slot == EVENT_WHOLE_HOST) {
        host->draining = true;
        host->drain_us = until_us;
    } else {
        host->seats[slot].draining = true;
        host->seats[slot].drain_us = until_us;
    }
    time_format(left_us, text);
    CORE_TRACE(core, "%s%s is drained %s%s: %s", host->name,
               slot == EVENT_WHOLE_HOST ? "" : tell_text(core, ":%" PRIu32, slot),
               left_us == TIME_NEVER ? "without a deadline" : "within ",
               left_us == TIME_NEVER ? "" : text, who);
    record(core, host, slot, time_add(core->wall_us, left_us));
    clock_want(core, until_us);
    roster_judge_seats(core); /* at once: whoever dies now was to go */
    core->look_at_seats = core->look_at_rounds = true;
}

void drain_begin(struct core *core, struct core_host *host, uint32_t slot, int64_t left_us,
                 const char *who)
{
    if (slot == EVENT_WHOLE_HOST)
        host->noticed = false;
    begin(core, host, slot, left_us, who);
}

void drain_notice(struct core *core, struct core_host *host, int64_t left_us, const char *who)
{
    if (!host->draining)
        host->noticed = true; /* what an operator has said stays until it is taken back */
    begin(core, host, EVENT_WHOLE_HOST, left_us, who);
}

void drain_end(struct core *core, struct core_host *host, uint32_t slot)
{
    bool *draining;

    ASSERT(slot == EVENT_WHOLE_HOST || slot < host->seat_count);
    draining = slot == EVENT_WHOLE_HOST ? &host->draining : &host->seats[slot].draining;
    if (!*draining)
        return;
    *draining = false;
    record(core, host, slot, 0);
    core->look_at_seats = true;
}

void drain_end_all(struct core *core, struct core_host *host)
{
    drain_end(core, host, EVENT_WHOLE_HOST);
    for (uint32_t slot = 0; slot < host->seat_count; slot++)
        drain_end(core, host, slot);
}

static int64_t leaves_by(const struct core_host *host, uint32_t slot)
{
    int64_t until_us = TIME_NEVER;

    if (host->draining)
        until_us = host->drain_us;
    if (host->seats[slot].draining && host->seats[slot].drain_us < until_us)
        until_us = host->seats[slot].drain_us;
    return until_us;
}

static void forget_notices(struct core *core)
{
    for (size_t i = 0; i < core->listed.count; i++) {
        struct core_host *host = core->listed.items[i];
        int64_t over_us = time_add(host->drain_us, DRAIN_NOTICE_LATE_US);

        if (!host->draining || !host->noticed)
            continue;
        if (over_us > core->now_us) {
            clock_want(core, over_us);
            continue;
        }
        CORE_TRACE(core, "%s was to be taken away and is still listed: it is used again",
                   host->name);
        drain_end(core, host, EVENT_WHOLE_HOST);
    }
}

void drain_expire(struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        int64_t until_us = leaves_by(worker->host, worker->slot);

        if (until_us == TIME_NEVER || worker_state(worker) == WORKER_DOOMED ||
            worker_state(worker) == WORKER_FINISHED)
            continue; /* who has finished ends alone, and killed it would have failed */
        if (until_us > core->now_us)
            clock_want(core, until_us);
        else
            loss_kill(core, worker, "its time to leave is over", true, 0);
    }
    forget_notices(core);
}
