/*
 * loss.c: the one place where a worker is lost, for any reason: EXITED, a silent host, a time
 * limit, UNUSABLE, or a worker that is to leave. Each loss is judged once: a DOOMED worker that
 * ends is not judged again. The round is revoked before the loss is recorded, so that the other
 * members learn of a death before a slow disk does.
 */
#include "driver/core/loss.h"

#include "base/text.h"
#include "driver/core/goodput.h"
#include "driver/core/notice.h"
#include "driver/core/over.h"
#include "driver/core/pace.h"
#include "driver/core/places.h"
#include "driver/core/progress.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>

/* Counts a failure of a slot, or of a whole host (`slot` is BLACKLIST_WHOLE_HOST), in the
 * blacklist, for the reason `why`. `incarnation` 0: no single worker has failed. */
static void loss_charge(struct core *core, const char *host, uint32_t slot, uint64_t incarnation,
                        const char *why)
{
    struct blacklist_failure failure = {
        .host = host, .slot = slot, .incarnation = incarnation, .reason = why
    };
    struct blacklist_change change;
    struct hvd_err err;
    int rc =
        blacklist_failure(&core->blacklist, &failure, core_moment(core), &core->rng, &change, &err);

    if (rc == HVD_E_NOMEM)
        core_fail(core);
    else if (rc)
        CORE_WARN(core, FACTS(.kind = KIND_FAILURE_COUNTED, .host = host, .cause = err.text),
                  "blacklist: %s: %s", host, err.text);
    /* `none`: the failure of this worker was counted before, so there is nothing to store. */
    else if (!change.none)
        tell_blacklist(core, &change);
    core_want_slots(core);
}

/* Counts a failure of the host as a whole, for the reason `why`: no worker is launched there until
 * its cooldown ends. */
void loss_charge_host(struct core *core, const struct core_host *host, const char *why)
{
    if (core->job >= JOB_FINISHING)
        /* A job that is ending launches no more workers, so a charge would only harm the next
         * job. */
        return;
    snprintf(core->failures.host, sizeof(core->failures.host), "%s: %s", host->name, why);
    loss_charge(core, host->name, BLACKLIST_WHOLE_HOST, 0 /* no single worker */, why);
}

/* A worker has said READY: the count of workers in a row that failed before READY begins again at
 * 0. */
void loss_forget_boots(struct core *core)
{
    core->failures.boots_in_a_row = 0;
}

/* Returns the reason of the worker's end in words: the text of `ending` if it has one; otherwise
 * the exit code or signal, with what the worker said of its failed training in FINISHED, which
 * explains more. */
static const char *loss_reason(struct core *core, const struct worker *worker,
                               const struct ending *ending)
{
    char signal[TEXT_SIGNAL_MAX];

    if (ending->text)
        return ending->text;
    switch (ending->ended) {
    case ENDED_EXIT:
        if (ending->value == 0 && worker->joined && worker->state != WORKER_FINISHED &&
            worker->state != WORKER_LEAVING && core->job < JOB_FINISHING)
            return worker->failure.text ? worker->failure.text
                                        : "exit code 0 before the worker's training had finished";
        if (worker->failure.text)
            return tell_text(core, "exit code %" PRId32 ", %s", ending->value,
                             worker->failure.text);
        return tell_text(core, "exit code %" PRId32, ending->value);
    case ENDED_SIGNAL: return tell_text(core, "killed by %s", text_signal(ending->value, signal));
    default: return "silent for longer than its lease";
    }
}

/* True: the process ended by itself with exit code 0. */
static bool is_clean(const struct ending *ending)
{
    return ending->ended == ENDED_EXIT && ending->value == 0;
}

/* True: a command that never called hvd_init has ended with exit code 0. Until any worker has
 * joined, such an end is a success. */
static bool is_plain_success(const struct core *core, const struct worker *worker,
                             const struct ending *ending)
{
    return is_clean(ending) && !ending->text && !worker->joined && !core->launch.anyone_joined;
}

/* Adds the end to the counts of the slot (failed_boots), of the round (round_note_error) and of the
 * job (over_note_end). round_lost decides later whether the round is revoked. */
static void loss_count(struct core *core, struct worker *worker, const struct ending *ending,
                       const char *why, bool to_blame)
{
    bool own_error = to_blame && ending->ended == ENDED_EXIT && !is_clean(ending);
    bool member = worker->rank != RANK_NONE;
    const struct over_ending end = {
        .ended = ending->ended,
        .clean = is_clean(ending),
        .unfinished = core->job == JOB_FINISHING && member && worker_is_alive(worker),
        .why = why,
    };
    struct core_failures *failures = &core->failures;
    char name[WORKER_NAME_MAX];

    if (own_error && member)
        round_note_error(core);
    /* Each end before READY that is the worker's own fault counts, also a hang: a slot whose
     * workers always hang will probably not work either. */
    if (to_blame && !worker->joined)
        worker->host->slots[worker->slot].failed_boots++;
    if (own_error && !worker->joined && failures->boots_in_a_row++ == 0)
        snprintf(failures->boot, sizeof(failures->boot), "%s: %s", worker_name(worker, name), why);
    if (own_error && !core->launch.anyone_joined) {
        failures->boots++;
        /* A negative value is an error code of LAUNCH_FAILED: there was no process. */
        failures->never_started += ending->value < 0;
    }
    over_note_end(core, worker, &end);
    if (is_plain_success(core, worker, ending) && core->job < JOB_FINISHING) {
        roster_mark_done(core, worker);
        places_note_done(core, worker);
        progress_note_success(core);
    }
}

/* Logs the end of a worker for the reason `why`. If its training failed, its FINISHED was logged
 * with the reason when it came, so here the line has only the exit code. `counts`: of a worker that
 * is not to blame: its host is (BLAME_HOST), and goodput.c counts a failure there. */
static void loss_trace(struct core *core, const struct worker *worker, const struct ending *ending,
                       const char *why, bool to_blame, bool counts)
{
    bool ordered = ending->text && core->job >= JOB_FINISHING;
    enum trace_level level = to_blame                      ? TRACE_WARNING
                             : is_clean(ending) || ordered ? TRACE_DETAIL
                                                           : TRACE_INFO;
    char name[WORKER_NAME_MAX];
    struct facts facts;

    if (worker->failure.text && ending->ended == ENDED_EXIT && !ending->text)
        why = tell_text(core, "exit code %" PRId32, ending->value);
    facts = (struct facts){ .kind = to_blame ? KIND_WORKER_FAILED : KIND_WORKER_ENDED,
                            OF_WORKER(worker),
                            .cause = why };
    core_say(core, level, &facts, "%s: %s%s", worker_name(worker, name), why,
             to_blame || is_clean(ending) ? ""
             : counts                     ? " (counted for its host, not for this worker)"
                                          : " (not counted as a failure of this worker)");
}

/* Judges the loss of a worker once, and carries out what follows: the round, the journal,
 * progress.c, the blacklist. The worker moves to the state `to` (DOOMED or ENDED). `to_blame`: the
 * loss is a failure of this worker and its slot. */
static void loss_handle(struct core *core, struct worker *worker, const struct ending *ending,
                        enum worker_state to)
{
    const char *why = loss_reason(core, worker, ending);
    enum worker_state was = worker->state;
    /* PROTOCOL.md, DRAIN: a worker that leaves is never counted as a failure. After the first
     * FINISHED a bad end counts only for the exit text of the job. */
    bool to_blame = !ending->excused && !worker->has_to_go && was < WORKER_LEAVING &&
                    core->job < JOB_FINISHING && !is_plain_success(core, worker, ending);
    bool counts =
        was != WORKER_LEAVING && worker->rank != RANK_NONE && (to_blame || ending->of_host);
    bool ends_host;
    struct blacklist_record healthy[2];
    struct journal_record *record;
    struct worker *other;

    ASSERT(was != WORKER_DOOMED && was != WORKER_ENDED);
    if (ending->ended != ENDED_SILENT)
        pace_heard(core, worker);
    loss_trace(core, worker, ending, why, to_blame, counts);
    loss_count(core, worker, ending, why, to_blame);
    if (worker->rank != RANK_NONE && was < WORKER_LEAVING && core->job < JOB_FINISHING)
        notice_lost(worker->host);
    roster_move(core, worker, to);
    round_lost(core, worker, was, why);
    record = tell_record(core, JOURNAL_ENDED);
    record->incarnation = worker->incarnation;
    record->ended = ending->ended;
    record->value = ending->value;
    if (counts) {
        record->code = to_blame ? BLAME_SLOT : BLAME_HOST;
        progress_note_failure(core, worker, !to_blame, why);
    } else if (to_blame && !worker->joined &&
               (ending->ended == ENDED_EXIT || (ending->ended == ENDED_SIGNAL && !ending->text))) {
        /* The process has ended by itself, or could not be started. A signal with a `text` is a
         * kill by order of the driver, or follows UNUSABLE: it is no failed start. */
        record->code = (int32_t)progress_start_blame(core, worker);
        if (record->code)
            progress_note_start(core, worker, (enum journal_blame)record->code, why);
    }

    if (record->code)
        goodput_note_failure(core, worker->host->name);
    /* The time for which the worker ran well forgives older failures of its slot, however the
     * worker ended. The changed records in `healthy` need not be stored (blacklist.h). */
    if (worker->joined)
        blacklist_healthy(&core->blacklist, worker->host->name, worker->slot, worker->launched_us,
                          core_moment(core), healthy);
    if (to_blame) {
        round_note_failure(core, worker, why);
        loss_charge(core, worker->host->name, worker->slot, worker->incarnation, why);
    }
    /* docs/stories.md, `host_scope_ends_the_others_on_the_host`: the whole host is set aside, so
     * its other workers are ended too. */
    ends_host = to_blame && core->config.blacklist.scope == SCOPE_HOST;
    for (size_t slot = 0; ends_host && (other = roster_next_on(worker->host, &slot));)
        if (worker_is_alive(other))
            loss_kill(core, other,
                      "the worker's host is set aside, because another worker failed there",
                      true /* excused: the worker is not to blame */, core->config.kill_grace_us);
    over_check_job(core);
}

/* The process of the worker is gone: removes the worker from the table. A DOOMED worker was judged
 * when it was counted as dead, so only its state changes. FORGET ends the agent's repetition of
 * EXITED. If it was the host's last worker, the notice of the host ends. */
void loss_ended(struct core *core, struct worker *worker, const struct ending *ending)
{
    struct core_host *host = worker->host;

    if (worker->state == WORKER_DOOMED)
        roster_move(core, worker, WORKER_ENDED);
    else
        loss_handle(core, worker, ending, WORKER_ENDED);
    tell_forget(core, host, worker->incarnation);
    roster_remove(core, worker);
    notice_settle(core, host);
}

/* Counts the worker as dead from now on, although its process may still run; the message EXITED
 * about it comes later. A worker that is DOOMED already was judged before. */
void loss_doom(struct core *core, struct worker *worker, const struct ending *ending)
{
    if (worker->state != WORKER_DOOMED)
        loss_handle(core, worker, ending, WORKER_DOOMED);
}

/* Counts the worker as dead, as if SIGKILL (9) had killed it, and tells its agent to kill it.
 * `excused`: the worker is not to blame. A DOOMED worker is only killed again. */
void loss_kill(struct core *core, struct worker *worker, const char *why, bool excused,
               int64_t grace_us)
{
    const struct ending ending = {
        .ended = ENDED_SIGNAL, .value = 9, .text = why, .excused = excused
    };

    loss_doom(core, worker, &ending);
    tell_kill(core, worker, grace_us, why);
}
