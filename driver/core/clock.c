#include "driver/core/clock.h"

#include "driver/core/agents.h"
#include "driver/core/change.h"
#include "driver/core/drain.h"
#include "driver/core/finish.h"
#include "driver/core/listing.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/stall.h"
#include "driver/core/tell.h"

#include <inttypes.h>

void clock_want(struct core *core, int64_t at_us)
{
    if (at_us < core->earliest_us)
        core->earliest_us = at_us;
}

void clock_limit(struct core *core, struct worker *worker, int64_t in_us, const char *late)
{
    worker->limit = (struct worker_limit){ core->now_us, in_us, late };
    clock_want(core, time_add(core->now_us, in_us));
}

int64_t clock_due(const struct worker *worker, int64_t since_us, int64_t in_us)
{
    const struct core_host *host = worker->host;

    if (host->agent != AGENT_THERE)
        return TIME_NEVER;
    return time_add(since_us > host->back_us ? since_us : host->back_us, in_us);
}

bool clock_is_heard(const struct core *core, const struct worker *worker, int64_t for_us)
{
    const struct core_host *host = worker->host;

    return host->agent == AGENT_THERE &&
           (!host->back_us || time_add(host->back_us, for_us) <= core->now_us);
}

/* Until somebody joins, whoever runs may be a command that never will, and may run as long as it
 * likes. */
static bool is_command(const struct core *core, const struct worker *worker)
{
    return worker_state(worker) == WORKER_BOOTING && !core->anyone_joined;
}

static void expire_workers(struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        const struct worker_limit *limit = &worker->limit;
        int64_t due_us = clock_due(worker, limit->since_us, limit->in_us);

        if (worker_state(worker) == WORKER_DOOMED || due_us == TIME_NEVER)
            continue;
        if (due_us > core->now_us)
            clock_want(core, due_us);
        else if (is_command(core, worker))
            clock_limit(core, worker, core->config.start_timeout_us, limit->late);
        else
            loss_kill(core, worker, limit->late, false, core->config.kill_grace_us);
    }
}

/* A single moment: true when it has come. */
static bool is_due(struct core *core, int64_t at_us)
{
    if (at_us > core->now_us)
        clock_want(core, at_us);
    return at_us <= core->now_us;
}

static void expire_blacklist(struct core *core)
{
    int64_t until_us = blacklist_deadline(&core->blacklist, core->now_us);

    clock_want(core, until_us);
    core->look_at_seats = true; /* a cooldown may have ended: it is cheap to look */
}

void clock_expire(struct core *core)
{
    if (core->now_us < core->earliest_us)
        return;
    core->earliest_us = TIME_NEVER;
    if (is_due(core, core->next_discovery_us))
        listing_discover(core);
    if (is_due(core, core->next_beat_us))
        agents_beat(core);
    agents_expire(core);
    drain_expire(core);
    expire_workers(core);
    expire_blacklist(core);
    stall_expire(core);
    if (is_due(core, core->change_deadline_us))
        change_expire(core);
    if (is_due(core, core->enter_deadline_us))
        round_expire(core);
    is_due(core, core->vain.not_before_us);
    if (is_due(core, core->over_deadline_us))
        finish_expire(core);
    if (core->short_since_us != TIME_NEVER)
        is_due(core, time_add(core->short_since_us, core->short_left_us));
    core->look_at_rounds = true;
}

void clock_forgive(struct core *core, int64_t since_us)
{
    struct worker *worker;

    core->anybody_us = time_add(core->anybody_us, since_us);
    for (size_t i = 0; i < core->hosts.count; i++)
        core->hosts.items[i]->heard_us = time_add(core->hosts.items[i]->heard_us, since_us);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        worker->limit.since_us = time_add(worker->limit.since_us, since_us);
    core->change_deadline_us = time_add(core->change_deadline_us, since_us);
    core->enter_deadline_us = time_add(core->enter_deadline_us, since_us);
    core->over_deadline_us = time_add(core->over_deadline_us, since_us);
}

/* Every slot that is offered is barred until somebody clears it, or has done its part, and nobody
 * is left. */
static bool is_hopeless(const struct core *core)
{
    bool any = false;

    if (core->staying || core->going || job_state(core) > JOB_RECOVERING)
        return false;
    for (size_t i = 0; i < core->listed.count; i++) {
        const struct core_host *host = core->listed.items[i];

        for (uint32_t slot = 0; slot < host->slots; slot++) {
            struct blacklist_verdict verdict =
                blacklist_verdict(&core->blacklist, host->name, slot, core->now_us);

            if (slot < host->seat_count && host->seats[slot].done)
                continue;
            if (verdict.state != BLACKLIST_BARRED)
                return false;
            any = true;
        }
    }
    return any;
}

#define ROUNDS_IN_VAIN 5

static bool all_train(const struct core *core)
{
    return job_state(core) >= JOB_RUNNING && job_state(core) <= JOB_PENDING &&
           core->current.entered == core->current.members.count;
}

/* One round after the other comes to nothing: there are workers enough, and they cannot train. */
static bool is_in_vain(const struct core *core)
{
    return core->vain.barren >= ROUNDS_IN_VAIN && !all_train(core) &&
           job_state(core) <= JOB_RECOVERING;
}

static bool is_short(const struct core *core)
{
    if (is_in_vain(core))
        return true;
    if (job_state(core) == JOB_GATHERING)
        return core->staying < core->config.np;
    return job_state(core) == JOB_RECOVERING && !core->count[WORKER_REVOKED] &&
           (core->holder_missing || core->staying + core->going < core->config.min_np);
}

static const char *why_hosts_are_not_used(struct core *core)
{
    if (*core->host_failure)
        return tell_text(core, "the last host that failed: %s", core->host_failure);
    return core->listed.count ? "see why hosts are not used" : "no host is listed";
}

static const char *shortage(struct core *core)
{
    if (core->holder_missing)
        return tell_text(core,
                         "every holder of commit %" PRIu64 ".%" PRIu32
                         " is gone, and none came back within --elastic-timeout: the training "
                         "state is lost",
                         core->floor >> 32, (uint32_t)core->floor);
    if (is_in_vain(core))
        return tell_text(core,
                         "%" PRIu32 " rounds in a row have come to nothing for longer than "
                         "--elastic-timeout%s%s; can the workers reach each other?%s%s",
                         core->vain.barren, *core->vain.waited ? ": the last waited for " : "",
                         core->vain.waited, *core->first_failure ? " first failure: " : "",
                         core->first_failure);
    return tell_text(core,
                     "only %zu of %" PRIu32 " workers for longer than --elastic-timeout%s%s; %s",
                     core->staying, core->current.number ? core->config.min_np : core->config.np,
                     *core->first_failure ? "; first failure: " : "", core->first_failure,
                     why_hosts_are_not_used(core));
}

/* What is missing before the first round is said by listing.c, a missing commit by round.c. */
static void trace_shortage(struct core *core)
{
    char text[TIME_TEXT_MAX];

    if (is_in_vain(core))
        CORE_TRACE(core, "%" PRIu32 " rounds in a row came to nothing; the job fails in %s",
                   core->vain.barren, time_format(core->short_left_us, text));
    else if (job_state(core) == JOB_RECOVERING && !core->holder_missing)
        CORE_TRACE(core, "waiting for workers: %zu of --min-np %" PRIu32 "; the job fails in %s",
                   core->staying + core->going, core->config.min_np,
                   time_format(core->short_left_us, text));
}

void clock_judge_shortage(struct core *core)
{
    bool now_short = is_short(core);

    if (is_hopeless(core)) {
        finish_fail(core, tell_text(core, "every slot is barred until it is cleared%s%s",
                                    *core->first_failure ? "; first failure: " : "",
                                    core->first_failure));
        return;
    }
    if (core->short_since_us != TIME_NEVER) {
        core->short_left_us -= core->now_us - core->short_since_us;
        if (core->short_left_us < 0)
            core->short_left_us = 0; /* the step came late */
        core->short_since_us = core->now_us;
    }
    if (all_train(core))
        core->short_left_us = core->config.elastic_timeout_us;
    if (!now_short) {
        core->short_since_us = TIME_NEVER;
        return;
    }
    if (core->short_left_us <= 0) {
        if (core->holder_missing || is_in_vain(core))
            finish_fail(core, shortage(core));
        else
            finish_too_few(core, shortage(core));
        return;
    }
    if (core->short_since_us == TIME_NEVER)
        trace_shortage(core);
    core->short_since_us = core->now_us;
    clock_want(core, time_add(core->now_us, core->short_left_us));
}
