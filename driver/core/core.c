/*
 * core.c: one step of the core. The step handles first the event, then all deadlines that have
 * come, then the requests that other files have made in this step (step.h): first for slots, then
 * for a round, at most LOOKS_MAX times. At the end over.c checks whether the job has too few
 * workers. Only this file knows that order, and no other file of the core calls it.
 */
#include "driver/core/core.h"

#include "base/mem.h"
#include "driver/core/agents.h"
#include "driver/core/boot.h"
#include "driver/core/change.h"
#include "driver/core/checkpoint.h"
#include "driver/core/checkpoint_ask.h"
#include "driver/core/drain.h"
#include "driver/core/finish.h"
#include "driver/core/goodput.h"
#include "driver/core/joins.h"
#include "driver/core/keys.h"
#include "driver/core/lease.h"
#include "driver/core/listing.h"
#include "driver/core/loss.h"
#include "driver/core/operator.h"
#include "driver/core/over.h"
#include "driver/core/places.h"
#include "driver/core/progress.h"
#include "driver/core/recovery.h"
#include "driver/core/replay.h"
#include "driver/core/reported.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/slots.h"
#include "driver/core/stall.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/tokens.h"
#include "driver/core/values.h"

/* how often one step carries out requests (step.h); a request that is left after that causes
 * another step at once */
#define LOOKS_MAX 3

/* Makes the core of a job. A time that is not set is TIME_NEVER, or -LIMIT_DURATION_US for an event
 * that is to count as long ago. */
struct core *core_create(const struct core_config *config, struct trace *trace)
{
    struct core *core = mem_zalloc(sizeof(*core));

    if (!core)
        return NULL;
    ASSERT(config->np && config->np <= config->max_np);
    core->config = *config;
    core->trace = trace;
    core->rounds.ready_since_us = TIME_NEVER;
    core->shortage.since_us = core->shortage.counted_us = TIME_NEVER;
    core->out.held_since_us = core->costs.since_us = core->costs.lost_us = core->costs.prepare_us =
        TIME_NEVER;
    core->costs.notices.least_lead_us = core->costs.notices.least_margin_us = TIME_NEVER;
    core->listing.health = (struct view_discovery){
        .worked_us = TIME_NEVER, .failed_us = TIME_NEVER, .asked_us = TIME_NEVER, .failure = ""
    };
    core->stalls.look_us = core->stalls.watch.warn_us = TIME_NEVER;
    core->stalls.said_us = core->leases.crowded_us = -LIMIT_DURATION_US;
    core->change.deadline_us = core->rounds.enter_deadline_us = TIME_NEVER;
    core->finish.deadline_us = core->over.deadline_us = core->recovery.fallback_us = TIME_NEVER;
    core->shortage.left_us = config->elastic_timeout_us;
    checkpoint_init(core);
    rng_seed(&core->rng, config->seed);
    names_init(&core->roster.by_name);
    hosts_init(&core->listing.hosts);
    hosts_init(&core->listing.joins.found);
    blacklist_init(&core->blacklist, &config->blacklist, trace);
    return core;
}

/* Frees the core with everything that its files have allocated; the caller has carried out all
 * actions. */
void core_free(struct core *core)
{
    if (!core)
        return;
    roster_release(core);
    round_release(&core->current);
    round_release(&core->next);
    round_release(&core->last);
    boot_release_manifest(core);
    checkpoint_release(core);
    places_release(core);
    values_release(core);
    tokens_release(core);
    reported_release(core);
    hosts_release(&core->listing.joins.found);
    blacklist_release(&core->blacklist);
    mem_free(core);
}

/* Returns the past moment at_us, moved later by gap_us, but not later than now. */
static int64_t core_move_past(const struct core *core, int64_t at_us, int64_t gap_us)
{
    int64_t moved_us = time_add(at_us, gap_us);

    return moved_us < core->now_us ? moved_us : core->now_us;
}

/* Moves all deadlines of agents and workers by gap_us. `asleep`: the driver itself was silent, so
 * the agents have their leases anew. Otherwise actions wait: only an agent that this driver has not
 * met yet gets a longer lease, because the order to start it may wait; and --elastic-timeout stands
 * still, because no worker can be launched. */
static void core_move_deadlines(struct core *core, int64_t gap_us, bool asleep)
{
    struct worker *worker;

    if (asleep)
        core->leases.anybody_us = time_add(core->leases.anybody_us, gap_us);
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (asleep || (host->agent == AGENT_AWAY && !host->agent_id))
            host->heard_us = time_add(host->heard_us, gap_us);
        if (host->agent == AGENT_STARTING)
            host->started_us = time_add(host->started_us, gap_us);
        if (asleep)
            host->join.heard_us = time_add(host->join.heard_us, gap_us);
        if (host->key.told_us)
            host->key.told_us = time_add(host->key.told_us, gap_us);
        if (host->leave_us)
            host->leave_us = time_add(host->leave_us, gap_us);
        if (host->spared_us)
            host->spared_us = time_add(host->spared_us, gap_us);
        if (host->back_us)
            host->back_us = core_move_past(core, host->back_us, gap_us);
        for (uint32_t slot = 0; slot < host->slot_count; slot++)
            host->slots[slot].starts.since_us = time_add(host->slots[slot].starts.since_us, gap_us);
    }
    for (size_t i = 0; (worker = roster_next(core, &i));)
        worker->limit.since_us = time_add(worker->limit.since_us, gap_us);
    core->change.deadline_us = time_add(core->change.deadline_us, gap_us);
    core->rounds.enter_deadline_us = time_add(core->rounds.enter_deadline_us, gap_us);
    core->recovery.fallback_us = time_add(core->recovery.fallback_us, gap_us);
    core->stalls.watch.warn_us = time_add(core->stalls.watch.warn_us, gap_us);
    if (!asleep && core->shortage.counted_us != TIME_NEVER)
        core->shortage.counted_us = core_move_past(core, core->shortage.counted_us, gap_us);
    core->finish.deadline_us = time_add(core->finish.deadline_us, gap_us);
    core->over.deadline_us = time_add(core->over.deadline_us, gap_us);
    core->checkpoint.answers_us = time_add(core->checkpoint.answers_us, gap_us);
}

/*
 * Sets the time of the step. In two cases the deadlines of agents and workers move by the time
 * since the last step, because no agent and no worker is responsible for it:
 *
 * The driver makes at least one step in each heartbeat interval. If the time since the last step
 * was longer, the driver itself was silent (`asleep`), and messages may still be unread.
 *
 * While the journal cannot be written (`is_held`), an order waits, and its deadline would pass
 * before the order is sent. The wait began before the first step that knows of it (`held_us`), and
 * orders were sent until the first step after it, so both steps move the deadlines too.
 */
static void core_set_time(struct core *core, const struct event *event)
{
    int64_t gap_us = event->now_us - core->now_us, since_us = core->out.held_since_us;
    bool asleep = gap_us > 2 * core->config.beat_us;
    bool was_held = since_us != TIME_NEVER, is_held = event->held_us >= core->config.beat_us;
    const char *journal = core->config.journal;
    char text[TIME_TEXT_MAX];

    ASSERT(gap_us >= 0 || event->kind == EVENT_START);
    core->wall_us = event->wall_us;
    core->now_us = event->now_us;
    goodput_count(core);
    if (core->job == JOB_NEW)
        return;
    if (is_held && !was_held) {
        core->out.held_since_us = core->now_us - event->held_us;
        CORE_WARN(core, FACTS(.kind = KIND_JOURNAL_STALLED, .took_us = event->held_us),
                  "the journal%s%s%s has not been written for %s: changes of the job wait for it, "
                  "training goes on, and no worker is judged for what it was not told",
                  journal ? " (" : "", journal ? journal : "", journal ? ")" : "",
                  time_brief(event->held_us, text));
    } else if (was_held && !is_held) {
        core->out.held_since_us = TIME_NEVER;
        CORE_TRACE(core, FACTS(.kind = KIND_JOURNAL_WORKS, .took_us = core->now_us - since_us),
                   "the journal is written again after %s: changes of the job go on",
                   time_brief(core->now_us - since_us, text));
    }
    if (core->out.awake && asleep && gap_us >= core->config.lease_us)
        CORE_WARN(core, FACTS(.kind = KIND_DRIVER_ASLEEP, .took_us = gap_us),
                  "the driver has not run for %s, because its process was stopped, or its machine "
                  "was asleep or too busy: no host is judged for that time",
                  time_brief(gap_us, text));
    if (is_held && !was_held && !asleep)
        gap_us = event->held_us;
    if (asleep || was_held || is_held)
        core_move_deadlines(core, gap_us, asleep);
    core->out.awake = core->out.awake || event->kind != EVENT_START;
}

/* True: the time at_us has come. False: the time has not come, and a step at at_us is requested. */
static bool core_is_due(struct core *core, int64_t at_us)
{
    if (at_us > core->now_us)
        core_want_timer(core, at_us);
    return at_us <= core->now_us;
}

/* Handles everything whose deadline has come. The core has no timers: step.due_us is a moment
 * before which nothing is due. When that moment has come, all deadlines are checked, and each one
 * that has not come is requested again. */
static void core_expire(struct core *core)
{
    struct worker *worker;
    char key[BLACKLIST_KEY_TEXT_MAX];
    const char *host;
    uint32_t slot;

    if (core->now_us < core->step.due_us)
        return;
    core->step.due_us = TIME_NEVER;
    if (core_is_due(core, core->listing.next_us))
        listing_discover(core);
    if (core_is_due(core, core->leases.next_beat_us)) {
        lease_beat(core);
        joins_beat(core);
    }
    joins_expire(core);
    lease_expire(core);
    drain_expire(core);
    progress_expire(core);
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        const struct worker_limit *limit = &worker->limit;
        int64_t due_us = worker_due_us(worker, limit->since_us, limit->in_us);

        if (worker->state == WORKER_DOOMED || due_us == TIME_NEVER)
            continue;
        if (due_us > core->now_us)
            core_want_timer(core, due_us);
        else if (worker->state == WORKER_BOOTING && !core->launch.anyone_joined)
            /* The process may be a command that never joins; such a command may run for any time.
             */
            worker_limit(core, worker, core->config.start_timeout_us, limit->late);
        else
            loss_kill(core, worker, limit->late, false /* not excused: the worker is to blame */,
                      core->config.kill_grace_us);
    }
    for (size_t i = 0; (host = blacklist_next_cooled(&core->blacklist, core->now_us, &i, &slot));)
        CORE_TRACE(core,
                   FACTS(.kind = KIND_COOLDOWN_OVER, .host = host,
                         .has_slot = slot != BLACKLIST_WHOLE_HOST, .slot = slot),
                   "the cooldown of %s is over", blacklist_key_format(host, slot, key));
    core_want_timer(core, blacklist_deadline(&core->blacklist, core->now_us));
    core_want_slots(core); /* a cooldown may have ended */
    stall_expire(core);
    if ((core->job == JOB_PREPARING || core->job == JOB_PENDING) &&
        core_is_due(core, core->change.deadline_us))
        change_expire(core);
    if (core_is_due(core, core->rounds.enter_deadline_us))
        stall_expire_enter(core);
    /* The call only requests a step at not_before_us; its result is not needed, because
     * core_want_round is called below in any case. */
    core_is_due(core, core->backoff.not_before_us);
    if (core->job == JOB_FINISHING && core_is_due(core, core->finish.deadline_us))
        finish_expire(core);
    if (core->job == JOB_STOPPING && core_is_due(core, core->over.joins_until_us))
        over_check_job(core);
    if (core->job == JOB_STOPPING && core_is_due(core, core->over.deadline_us))
        over_expire(core);
    /* over_judge_shortage handles this deadline. */
    if (core->shortage.counted_us != TIME_NEVER && core->out.held_since_us == TIME_NEVER)
        core_is_due(core, time_add(core->shortage.counted_us, core->shortage.left_us));
    core_want_round(core);
}

/* Makes one step: handles the event, all deadlines that have come, and the requests of this step,
 * and appends the resulting actions to `list`. Returns 0, or HVD_E_NOMEM; then no action was
 * appended, and the core must not be used again. */
int core_step(struct core *core, const struct event *event, struct action_list *list)
{
    struct core_step *step = &core->step;
    size_t before = list->count;

    ASSERT(!core->step.failed && event->kind < EVENT_COUNT);
    ASSERT((event->kind == EVENT_START) == (core->job == JOB_NEW));
    if (core->job == JOB_OVER)
        return 0;
    roster_bury(core);
    core_set_time(core, event);
    core->out.list = list;
    switch (event->kind) {
    case EVENT_START: replay_start(core); break;
    case EVENT_HOSTS: listing_on_hosts(core, event->hosts); break;
    case EVENT_HOSTS_FAILED: listing_on_failure(core, event->text); break;
    case EVENT_AGENT_FAILED: agents_on_start_failed(core, event->host, event->text); break;
    case EVENT_MSG: agents_on_msg(core, event); break;
    case EVENT_CLOSED: agents_on_closed(core, event->peer, event->text); break;
    case EVENT_CROWDED: lease_on_crowd(core); break;
    case EVENT_DRAIN: operator_on_drain(core, event); break;
    case EVENT_UNDRAIN: operator_on_undrain(core, event); break;
    case EVENT_CLEAR: operator_on_clear(core, event); break;
    case EVENT_TOKEN: tokens_on_event(core, event); break;
    case EVENT_REKEY: keys_on_rekey(core, event); break;
    case EVENT_WANT_CHECKPOINT: checkpoint_want(core, event); break;
    case EVENT_CHECKPOINT: checkpoint_on_written(core, event); break;
    case EVENT_STOP:
        if (!event->code || !checkpoint_last(core, event->text))
            over_stop(core, event->text);
        break;
    default: break;
    }
    if (core->job != JOB_OVER)
        core_expire(core);
    /* Carries out the requests. Slots decide which workers can be in a round, and a round decides
     * which workers keep their slot; so the requests are checked several times. */
    for (int i = 0; i < LOOKS_MAX; i++) {
        bool slots = step->want_slots, round = step->want_round;

        step->want_slots = step->want_round = false;
        if (slots) {
            slots_reconcile(core);
            if (core->listing.discovered)
                keys_reconcile(core); /* a host whose agent has ended may have left the job */
        }
        if (!round)
            continue;
        switch (core->job) {
        case JOB_GATHERING: recovery_look_first(core); break;
        case JOB_RECOVERING: recovery_look(core); break;
        case JOB_RUNNING: change_look(core); break;
        default: break;
        }
    }
    if (step->want_slots || step->want_round)
        core_want_timer(core, core->now_us);
    keys_look(core);
    checkpoint_look(core);
    over_judge_shortage(core);
    if (core->job == JOB_OVER)
        joins_end(core);
    goodput_look(core);
    core->out.list = NULL;
    if (list->failed)
        core_fail(core);
    if (core->step.failed)
        list->count = before; /* no action of a failed step is carried out */
    return core->step.failed ? HVD_E_NOMEM : 0;
}

/* True: the worker `incarnation` runs on the host whose agent has the connection `peer`. The driver
 * shows output of the worker only if this connection brings it. */
bool core_speaks_for(const struct core *core, uint32_t peer, uint64_t incarnation)
{
    const struct core_host *host = roster_peer(core, peer);
    const struct worker *worker = roster_worker(core, incarnation);

    return host && worker && worker->host == host;
}

bool core_ends_by_order(const struct core *core, uint64_t incarnation)
{
    const struct worker *worker = roster_worker(core, incarnation);

    return worker &&
           (worker->has_to_go || worker->state == WORKER_LEAVING || core->job >= JOB_STOPPING);
}

/* Returns when the caller has to make a step with EVENT_TIMER; TIME_NEVER: a step is needed only
 * when something happens. */
int64_t core_deadline(const struct core *core)
{
    if (core->job == JOB_OVER)
        return TIME_NEVER;
    return core->step.due_us;
}
