#include "driver/core/loss.h"

#include "driver/core/finish.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *why_of(struct core *core, const struct worker *worker,
                          const struct ending *ending)
{
    if (ending->text)
        return ending->text;
    switch (ending->ended) {
    case ENDED_EXIT:
        if (ending->value == 0 && worker->joined && worker_state(worker) != WORKER_FINISHED &&
            worker_state(worker) != WORKER_LEAVING && job_state(core) < JOB_FINISHING)
            return worker->complaint ? worker->complaint
                                     : "exit code 0 before its training had finished";
        if (worker->complaint)
            return tell_text(core, "exit code %" PRId32 ", %s", ending->value, worker->complaint);
        return tell_text(core, "exit code %" PRId32, ending->value);
    case ENDED_SIGNAL: return tell_text(core, "killed by signal %" PRId32, ending->value);
    default: return "silent for longer than its lease";
    }
}

static bool is_clean(const struct ending *ending)
{
    return ending->ended == ENDED_EXIT && ending->value == 0;
}

/* A command that never called hvd_init is judged by its exit code, until anyone has joined. */
static bool is_plain_success(const struct core *core, const struct worker *worker,
                             const struct ending *ending)
{
    return is_clean(ending) && !ending->text && !worker->joined && !core->anyone_joined;
}

static bool is_to_blame(const struct core *core, const struct worker *worker,
                        const struct ending *ending)
{
    enum worker_state state = worker_state(worker);

    return !ending->excused && !worker->has_to_go && state != WORKER_LEAVING &&
           state != WORKER_FINISHED && state != WORKER_DOOMED && job_state(core) < JOB_FINISHING &&
           !is_plain_success(core, worker, ending);
}

/* With the scope "host" a failure takes the whole host out, healthy workers included. */
static void clear_host(struct core *core, struct core_host *host)
{
    for (uint32_t i = 0; i < host->seat_count; i++) {
        struct worker *worker = host->seats[i].worker;

        if (worker && worker_is_alive(worker))
            loss_kill(core, worker, "its host is set aside after a failure on it", true,
                      core->config.kill_grace_us);
    }
}

static void charge(struct core *core, const char *host, uint32_t slot, uint64_t incarnation,
                   const char *why)
{
    struct blacklist_failure failure = {
        .host = host, .slot = slot, .incarnation = incarnation, .reason = why
    };
    struct blacklist_change change;
    struct hvd_err err;
    int rc = blacklist_failure(&core->blacklist, &failure, core->now_us, core->wall_us, &core->rng,
                               &change, &err);

    if (rc == HVD_E_NOMEM)
        core->broken = true;
    else if (rc)
        CORE_TRACE(core, "blacklist: %s: %s", host, err.text);
    else if (!change.none)
        tell_blacklist(core, &change);
    core->look_at_seats = true;
}

void loss_charge_host(struct core *core, const struct core_host *host, const char *why)
{
    if (job_state(core) >= JOB_FINISHING)
        return; /* a job that ends has no use for blame, and whoever comes next should not pay */
    snprintf(core->host_failure, sizeof(core->host_failure), "%s: %s", host->name, why);
    charge(core, host->name, BLACKLIST_WHOLE_HOST, 0, why);
}

static void charge_worker(struct core *core, const struct worker *worker, const char *why)
{
    char name[WORKER_NAME_MAX];

    if (!*core->first_failure)
        snprintf(core->first_failure, sizeof(core->first_failure), "%s: %s",
                 worker_name(worker, name), why);
    charge(core, worker->host->name, worker->slot, worker->incarnation, why);
}

/* Whatever it ended of: how long it ran well speaks for its seat. */
static void settle(struct core *core, const struct worker *worker)
{
    struct blacklist_record settled[2];

    if (worker->joined)
        blacklist_healthy(&core->blacklist, worker->host->name, worker->slot, worker->launched_us,
                          core->now_us, core->wall_us, settled);
}

static void record_end(struct core *core, uint64_t incarnation, const struct ending *ending)
{
    struct journal_record *record = tell_record(core, JOURNAL_ENDED);

    record->incarnation = incarnation;
    record->ended = ending->ended;
    record->value = ending->value;
}

/* What an end means besides the round: for the job as a whole. */
static void judge(struct core *core, struct worker *worker, const struct ending *ending,
                  const char *why, bool to_blame)
{
    char name[WORKER_NAME_MAX];
    bool own_error = to_blame && ending->ended == ENDED_EXIT && !is_clean(ending);

    if (own_error && worker->rank != RANK_NONE)
        core->current.failed_by_exit++;
    if (to_blame && !worker->joined) /* by whatever: else one that always hangs would be hope */
        worker->host->seats[worker->slot].boots_in_vain++;
    if (own_error && !worker->joined && core->boot_failures_in_a_row++ == 0)
        snprintf(core->boot_failure, sizeof(core->boot_failure), "%s: %s",
                 worker_name(worker, name), why);
    if (own_error && !core->anyone_joined) {
        core->boot_failures++;
        core->never_started += ending->value < 0;
    }
    if (worker_state(worker) == WORKER_FINISHED && ending->ended == ENDED_SILENT)
        core->unseen++;
    else if (worker_state(worker) == WORKER_FINISHED && !is_clean(ending))
        finish_failed_late(core, worker, why);
    if (job_state(core) == JOB_FINISHING && worker->rank != RANK_NONE && worker_is_alive(worker))
        core->unfinished++;
    if (is_plain_success(core, worker, ending) && job_state(core) < JOB_FINISHING) {
        worker->host->seats[worker->slot].done = true;
        core->done_seats += worker->slot < worker->host->slots;
    }
}

static void lose(struct core *core, struct worker *worker, const struct ending *ending,
                 enum worker_state to)
{
    const char *why = why_of(core, worker, ending);
    bool to_blame = is_to_blame(core, worker, ending);
    enum worker_state was = worker_state(worker);
    char name[WORKER_NAME_MAX];

    ASSERT(was != WORKER_DOOMED && was != WORKER_ENDED);
    CORE_TRACE(core, "%s: %s%s", worker_name(worker, name), why,
               to_blame || is_clean(ending) ? "" : " (not counted as a failure)");
    judge(core, worker, ending, why, to_blame);
    roster_move(core, worker, to);
    round_lost(core, worker, was,
               why); /* first, so that the others know without waiting for disk */
    record_end(core, worker->incarnation, ending);
    settle(core, worker);
    if (to_blame)
        charge_worker(core, worker, why);
    if (to_blame && core->config.blacklist.scope == SCOPE_HOST)
        clear_host(core, worker->host);
    finish_look(core);
}

void loss_ended(struct core *core, struct worker *worker, const struct ending *ending)
{
    if (worker_state(worker) == WORKER_DOOMED)
        roster_move(core, worker, WORKER_ENDED);
    else
        lose(core, worker, ending, WORKER_ENDED);
    tell_forget(core, worker->host, worker->incarnation);
    roster_remove(core, worker);
}

void loss_doom(struct core *core, struct worker *worker, const struct ending *ending)
{
    if (worker_state(worker) != WORKER_DOOMED)
        lose(core, worker, ending, WORKER_DOOMED);
}

void loss_kill(struct core *core, struct worker *worker, const char *why, bool excused,
               int64_t grace_us)
{
    const struct ending ending = {
        .ended = ENDED_SIGNAL, .value = 9, .text = why, .excused = excused
    };

    loss_doom(core, worker, &ending);
    tell_kill(core, worker, grace_us, why);
}
