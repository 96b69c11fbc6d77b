#include "driver/core/core.h"

#include "base/mem.h"
#include "driver/core/agents.h"
#include "driver/core/clock.h"
#include "driver/core/drain.h"
#include "driver/core/finish.h"
#include "driver/core/listing.h"
#include "driver/core/manifest.h"
#include "driver/core/replay.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/seats.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <string.h>

#define LOOKS_MAX 3 /* in one step; what is left then is looked at in the next, at once */

#define ANY_TIME  (SM_BIT(JOB_STOPPING) | SM_BIT(JOB_OVER))

static const struct sm_state states[JOB_STATE_COUNT] = {
    [JOB_NEW] = {"new",
                 SM_BIT(JOB_GATHERING) | SM_BIT(JOB_RUNNING) | SM_BIT(JOB_FINISHING) | ANY_TIME,
                 SM_INITIAL                                                                              },
    [JOB_GATHERING] = { "gathering",  SM_BIT(JOB_RUNNING) | ANY_TIME,                                  0       },
    [JOB_RUNNING] = { "running",
                 SM_BIT(JOB_PREPARING) | SM_BIT(JOB_RECOVERING) | SM_BIT(JOB_FINISHING) |
                          ANY_TIME,                                                              0       },
    [JOB_PREPARING] = { "preparing",  SM_BIT(JOB_PENDING) | SM_BIT(JOB_RUNNING) | ANY_TIME,            0       },
    [JOB_PENDING] = { "pending",    SM_BIT(JOB_RUNNING) | ANY_TIME,                                  0       },
    [JOB_RECOVERING] = { "recovering", SM_BIT(JOB_RUNNING) | SM_BIT(JOB_FINISHING) | ANY_TIME,          0       },
    [JOB_FINISHING] = { "finishing",  ANY_TIME,                                                        0       },
    [JOB_STOPPING] = { "stopping",   SM_BIT(JOB_OVER),                                                0       },
    [JOB_OVER] = { "over",       0,                                                               SM_FINAL},
};

/* What must be true whenever the job enters a state. */
static void check_job(const void *owner, unsigned state)
{
    const struct core *core = owner;
    bool changing = state == JOB_PREPARING || state == JOB_PENDING;

    ASSERT(!changing || (core->next.number && !core->current.revoked));
    ASSERT(state != JOB_RUNNING || !core->next.number);
    ASSERT(state != JOB_RUNNING || core->current.number);
    ASSERT(state != JOB_RECOVERING || core->current.revoked);
}

static const struct sm_type job_type = { "job", states, JOB_STATE_COUNT, check_job };

const char *job_state_name(enum job_state state)
{
    return state < JOB_STATE_COUNT ? states[state].name : "?";
}

struct core *core_create(const struct core_config *config, struct trace *trace)
{
    struct core *core = mem_zalloc(sizeof(*core));

    if (!core)
        return NULL;
    ASSERT(config->np && config->np <= config->max_np);
    core->config = *config;
    core->trace = trace;
    core->earliest_us = 0;
    core->ready_since_us = core->short_since_us = TIME_NEVER;
    core->costs.since_us = core->costs.lost_us = core->costs.prepare_us = TIME_NEVER;
    core->stalls.look_us = core->stalls.warn_us = TIME_NEVER;
    core->stalls.said_us = -LIMIT_DURATION_US;
    core->change_deadline_us = core->enter_deadline_us = core->over_deadline_us = TIME_NEVER;
    core->short_left_us = config->elastic_timeout_us;
    rng_seed(&core->rng, config->seed);
    names_init(&core->hosts_by_name);
    hosts_init(&core->listing);
    blacklist_init(&core->blacklist, &config->blacklist, trace);
    sm_init(&core->sm, &job_type, JOB_NEW, core, NULL);
    return core;
}

void core_free(struct core *core)
{
    if (!core)
        return;
    roster_release(core);
    round_release(&core->current);
    round_release(&core->next);
    round_release(&core->last);
    manifest_release(core);
    blacklist_release(&core->blacklist);
    mem_free(core);
}

/* A listed host, and a slot that it has; NULL, and the operator is told. */
static struct core_host *find_seat(struct core *core, const struct event *event)
{
    struct core_host *host = roster_find_host(core, event->host);
    bool whole = event->slot == EVENT_WHOLE_HOST;
    const char *why;

    if (host && (whole || event->slot < host->seat_count))
        return host;
    if (whole)
        why = tell_text(core, "%s: no such host in this job", event->host);
    else
        why = tell_text(core, "%s:%" PRIu32 ": no such %s in this job", event->host, event->slot,
                        host ? "slot" : "host");
    tell_reply(core, event->ask, HVD_E_NOTFOUND, why);
    return NULL;
}

static void on_drain(struct core *core, const struct event *event)
{
    struct core_host *host = find_seat(core, event);

    if (!host)
        return;
    drain_begin(core, host, event->slot, event->left_us, "an operator");
    tell_reply(core, event->ask, 0, "");
}

static void on_undrain(struct core *core, const struct event *event)
{
    struct core_host *host = find_seat(core, event);

    if (!host)
        return;
    if (event->slot == EVENT_WHOLE_HOST)
        drain_end_all(core, host);
    else
        drain_end(core, host, event->slot);
    tell_reply(core, event->ask, 0, "");
}

static int clear_one(struct core *core, const char *host, uint32_t slot, struct hvd_err *err)
{
    struct blacklist_change change;
    int rc =
        blacklist_clear(&core->blacklist, host, slot, core->now_us, core->wall_us, &change, err);

    if (!rc)
        tell_blacklist(core, &change);
    return rc;
}

/* Of a host also what is held against its slots: they come before it in the list. */
static void clear_slots(struct core *core, const char *host, struct hvd_err *err, int *rc)
{
    for (size_t i = 0; i < blacklist_count(&core->blacklist); i++) {
        struct blacklist_record record;

        blacklist_record_at(&core->blacklist, i, core->now_us, core->wall_us, &record);
        if (record.slot != BLACKLIST_WHOLE_HOST && !strcmp(record.host, host))
            *rc = clear_one(core, host, record.slot, err);
    }
}

static void on_clear(struct core *core, const struct event *event)
{
    bool whole = event->slot == EVENT_WHOLE_HOST;
    struct core_host *known = roster_find_host(core, event->host);
    struct hvd_err err;
    int rc = clear_one(core, event->host, whole ? BLACKLIST_WHOLE_HOST : event->slot, &err);

    if (whole)
        clear_slots(core, event->host, &err, &rc);
    if (known)
        known->again_us = core->now_us;
    core->look_at_seats = true;
    tell_reply(core, event->ask, rc, rc ? tell_text(core, "%s", err.text) : "");
}

static void take(struct core *core, const struct event *event)
{
    switch (event->kind) {
    case EVENT_START: replay_start(core); break;
    case EVENT_HOSTS: listing_on_hosts(core, event->hosts); break;
    case EVENT_HOSTS_FAILED: listing_on_failure(core, event->text); break;
    case EVENT_AGENT_FAILED: agents_on_start_failed(core, event->host, event->text); break;
    case EVENT_MSG: agents_on_msg(core, event->peer, event->msg); break;
    case EVENT_CLOSED: agents_on_closed(core, event->peer, event->text); break;
    case EVENT_DRAIN: on_drain(core, event); break;
    case EVENT_UNDRAIN: on_undrain(core, event); break;
    case EVENT_CLEAR: on_clear(core, event); break;
    case EVENT_STOP: finish_stop(core, event->text); break;
    default: break;
    }
}

/* A driver steps at least once for each beat. If it did not, it is the one that was silent. */
static void set_time(struct core *core, const struct event *event)
{
    int64_t gap_us = event->now_us - core->now_us;

    ASSERT(gap_us >= 0 || event->kind == EVENT_START);
    core->wall_us = event->wall_us;
    if (job_state(core) != JOB_NEW && gap_us > 2 * core->config.beat_us)
        clock_forgive(core, gap_us);
    core->now_us = event->now_us;
}

/* Seats decide who can be in a round, and a round who is wanted in a seat. */
static void look(struct core *core)
{
    for (int i = 0; i < LOOKS_MAX; i++) {
        bool seats = core->look_at_seats;
        bool rounds = core->look_at_rounds;

        core->look_at_seats = core->look_at_rounds = false;
        if (seats)
            seats_look(core);
        if (rounds)
            round_look(core);
    }
    if (core->look_at_seats || core->look_at_rounds)
        clock_want(core, core->now_us);
}

int core_step(struct core *core, const struct event *event, struct action_list *list)
{
    size_t before = list->count;

    ASSERT(!core->broken && event->kind < EVENT_COUNT);
    ASSERT((event->kind == EVENT_START) == (job_state(core) == JOB_NEW));
    if (job_state(core) == JOB_OVER)
        return 0;
    roster_bury(core);
    set_time(core, event);
    core->out = list;
    take(core, event);
    if (job_state(core) != JOB_OVER)
        clock_expire(core);
    look(core);
    clock_judge_shortage(core);
    if (job_state(core) == JOB_OVER)
        tell_exit(core, core->exit_code, core->exit_text);
    core->out = NULL;
    if (list->failed)
        core->broken = true;
    if (core->broken)
        list->count = before; /* half of what is to be told is worse than nothing */
    return core->broken ? HVD_E_NOMEM : 0;
}

int64_t core_deadline(const struct core *core)
{
    if (job_state(core) == JOB_OVER)
        return TIME_NEVER;
    return core->earliest_us;
}
