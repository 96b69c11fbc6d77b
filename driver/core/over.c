/*
 * over.c: the verdict on the job. loss.c, lease.c, slots.c and agents.c call over_check_job when a
 * worker has ended or an agent has gone; any file may end the job with over_fail. The verdict is
 * made once: when the job is STOPPING, no other verdict counts. core.c asks at the end of each step
 * whether the job has too few workers: docs/stories.md, "The job fails". The clock of
 * --elastic-timeout runs only while the job has too few workers; the clock starts again from 0 when
 * all members train.
 */
#include "driver/core/over.h"

#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How long a job that ends waits for hosts that join whose connection is lost; they dial about once
 * a second. */
#define JOINS_WAIT_US (5 * TIME_S)

/* When this many workers have failed and no worker has joined, the job fails; fewer failures may be
 * bad luck. */
#define FAILURES_ALONE 3
/* the job may fail after this many workers in a row that failed before READY */
#define FAILED_BOOTS  10
#define SLOT_BOOTS    3 /* a slot is hopeless after this many such failures in it */
#define FRUITLESS_MAX 5 /* the job may fail after this many rounds in a row that gained nothing */

/* ---- the job ends --------------------------------------------------------------------------- */

/* Sends STOP to the agent of this host: the agent ends its workers and itself. Without an exit text
 * the job goes on, and only this host is not used any more. */
void over_tell_stop(struct core *core, struct core_host *host)
{
    struct msg *msg = tell_msg(core, MSG_STOP, 0, 0);
    const char *text = core->over.exit_text;

    msg->u.stop = (struct msg_stop){ .grace_us = core->config.kill_grace_us,
                                     .reason = *text ? tell_text(core, "%s", text)
                                                     : "the job does not use this host" };
    tell_host(core, host, msg);
}

/* Sends STOP to all agents, and sets the deadline by which their connections have to end. */
static void over_tell_all(struct core *core)
{
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        over_tell_stop(core, core->roster.hosts.items[i]);
    core->over.deadline_us =
        time_add(core->now_us, time_add(2 * core->config.kill_grace_us, core->config.lease_us));
    core->over.joins_until_us = time_add(core->now_us, JOINS_WAIT_US);
    core_want_timer(core, core->over.deadline_us);
    core_want_timer(core, core->over.joins_until_us);
}

/* Makes the verdict: the job ends with this exit code and text. */
static void over_end(struct core *core, int code, const char *text)
{
    static const char *const outcomes[] = { [CORE_FINISHED] = "finished",
                                            [CORE_FAILED] = "failed",
                                            [CORE_STOPPED] = "stopped",
                                            [CORE_REPLACED] = "replaced",
                                            [CORE_TOO_FEW] = "too_few_hosts" };
    struct journal_record *record;

    if (core->job >= JOB_STOPPING)
        return;
    if (core->next.number)
        round_abandon(core, "the job is over");
    core->over.exit_code = code;
    snprintf(core->over.exit_text, sizeof(core->over.exit_text), "%s", text);
    core_say(core, code == CORE_FAILED || code == CORE_TOO_FEW ? TRACE_ERROR : TRACE_DETAIL,
             FACTS(.kind = KIND_JOB_OVER, .cause = text, .outcome = outcomes[code]),
             "the job is over: %s", text);
    record = tell_record(core, JOURNAL_OVER);
    record->code = code;
    record->text = tell_text(core, "%s", text);
    over_tell_all(core);
    core_move_job(core, JOB_STOPPING);
    over_check_job(core);
}

/* Ends the job with the exit code CORE_FAILED and this text. */
void over_fail(struct core *core, const char *why)
{
    over_end(core, CORE_FAILED, why);
}

/* An operator or a signal (`who`) wants the end of the job. A second request, while the job is
 * stopping, ends the job without grace (event.h, EVENT_STOP). */
void over_stop(struct core *core, const char *who)
{
    if (core->job == JOB_STOPPING) {
        CORE_TRACE(core, FACTS(.kind = KIND_JOB_STOPPING, .cause = who),
                   "a second stop by %s: workers are killed at once", who);
        core->config.kill_grace_us = 0;
        over_tell_all(core);
        return;
    }
    over_end(core, CORE_STOPPED, tell_text(core, "stopped by %s", who));
}

/* A driver that takes over goes on with the end of a job that an earlier driver had ended: STOP is
 * sent to all agents again. */
void over_restart(struct core *core)
{
    over_tell_all(core);
    core_move_job(core, JOB_STOPPING);
}

/* Notes a silent host with workers while the job ends: the driver does not know whether the host
 * has got the STOP. */
void over_note_untold(struct core *core, const struct core_host *host)
{
    struct core_over *over = &core->over;
    size_t used = strlen(over->untold_names);

    if (core->job != JOB_STOPPING || !host->taken)
        return;
    if (used + strlen(host->name) + sizeof(", ") <= sizeof(over->untold_names))
        snprintf(over->untold_names + used, sizeof(over->untold_names) - used, "%s%s",
                 used ? ", " : "", host->name);
    over->untold++;
}

/* Returns the text with which the driver ends. docs/stories.md, `ctrl_c_with_a_host_cut_off`: if
 * hosts could not be told STOP, the text names some of them, and says when their workers end. An
 * agent that runs notices after a lease that no driver is left, and ends its workers after
 * --driver-grace; a frozen agent does that when it runs again. */
const char *over_last_words(struct core *core)
{
    const struct core_over *over = &core->over;
    int64_t grace_us = core->config.driver_grace_us;
    char time[TIME_TEXT_MAX], alone[128] = "as --driver-grace is never";

    if (!over->untold)
        return over->exit_text;
    if (grace_us < LIMIT_DURATION_US)
        snprintf(alone, sizeof(alone), "and a running agent ends them by itself within %s",
                 time_format(time_add(core->config.lease_us, grace_us), time));
    return tell_text(core,
                     "%s; hosts that could not be reached: %" PRIu32
                     " (%s); workers there end when their agent is heard again, %s",
                     over->exit_text, over->untold, over->untold_names, alone);
}

/* The time for the agents to end after STOP is over. Agents that are away count as not told, and
 * the job is over. */
void over_expire(struct core *core)
{
    core->over.deadline_us = TIME_NEVER;
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        if (core->roster.hosts.items[i]->agent == AGENT_AWAY)
            over_note_untold(core, core->roster.hosts.items[i]);
    core_move_job(core, JOB_OVER);
}

/* ---- workers that are left when others have finished ---------------------------------------- */

/* True: the worker has said READY and is alive, and its training has not finished. */
bool over_is_unfinished(const struct worker *worker)
{
    return worker_is_alive(worker) && worker->state > WORKER_BOOTING;
}

/* Sends DONE to a worker: the job is done without it, so it need not train on. */
void over_dismiss(struct core *core, const struct worker *worker)
{
    tell_host(core, worker->host, tell_msg(core, MSG_DONE, worker->incarnation, 0));
}

/* Tells all unfinished workers DONE, once: they cannot go on without a member that has ended. */
void over_dismiss_all(struct core *core)
{
    struct worker *worker;

    if (core->over.dismissed)
        return;
    core->over.dismissed = true;
    CORE_TRACE(core, FACTS(.kind = KIND_JOB_FINISHING),
               "the job is done; workers that have not finished are dismissed");
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (over_is_unfinished(worker))
            over_dismiss(core, worker);
}

/* Counts a worker whose training has finished (FINISHED), for the exit text of the job. */
void over_note_finished(struct core *core)
{
    core->over.finished++;
}

/* Counts the end of a worker for the verdict on the job. A worker that had already finished its
 * training is counted in two extra totals: its exit code was never seen (`unseen`), or is a
 * failure (`late_failures`). */
void over_note_end(struct core *core, const struct worker *worker, const struct over_ending *end)
{
    struct core_over *over = &core->over;
    char name[WORKER_NAME_MAX];

    over->unfinished += end->unfinished;
    if (worker->state != WORKER_FINISHED)
        return;
    if (end->ended == ENDED_SILENT)
        over->unseen++;
    else if (!end->clean && !over->late_failures++)
        snprintf(over->late_failure, sizeof(over->late_failure), "%s: %s",
                 worker_name(worker, name), end->why);
}

/* ---- hopeless jobs -------------------------------------------------------------------------- */

/* True: the job need not fail yet because of workers that fail to start. docs/stories.md,
 * `a_slot_fails_while_a_member_stops`: members of the last round have still to stop, and may go on
 * without the failing slot. `one_host_cannot_start_anything`: a worker in another slot, launched
 * less than --start-timeout ago, may still join. */
bool over_awaits_others(const struct core *core)
{
    const struct worker *worker;

    if (core->job == JOB_RECOVERING && core->roster.count[WORKER_REVOKED])
        return true;
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        const struct core_host *host = worker->host;
        bool hopeless = false;

        if (!worker_is_alive(worker) || worker->joined ||
            core->now_us - worker->launched_us >= core->config.start_timeout_us)
            continue;
        /* A slot is hopeless when SLOT_BOOTS workers in a row have failed in the slot, or in a slot
         * of its host if a failure sets the whole host aside. */
        for (uint32_t k = 0; k < host->slot_count; k++)
            hopeless =
                hopeless || (host->slots[k].failed_boots >= SLOT_BOOTS &&
                             (k == worker->slot || core->config.blacklist.scope == SCOPE_HOST));
        if (!hopeless)
            return true;
    }
    return false;
}

/* True: each worker that was started has failed, and no worker has joined. A single failed worker
 * may have had bad luck, unless its program does not exist; and the program may be missing on some
 * hosts only. */
static bool over_is_stillborn(const struct core *core)
{
    const struct core_failures *failures = &core->failures;

    if (core->launch.anyone_joined || !failures->boots ||
        failures->boots != core->roster.incarnations)
        return false;
    /* More workers may still be launched when their agents come. A driver that has taken over does
     * not know which hosts there are until its first discovery. */
    for (size_t i = 0; i < core->listing.list.count; i++)
        if (core->listing.list.items[i]->agent == AGENT_STARTING ||
            core->listing.list.items[i]->agent == AGENT_AWAY)
            return false;
    if (!core->listing.discovered)
        return false;
    if (failures->boots >= FAILURES_ALONE)
        return true;
    return failures->boots >= core->config.np &&
           (failures->boots > 1 || failures->never_started == failures->boots);
}

/* Fails the job if its program is to blame. docs/stories.md, "The job fails": if all members of a
 * round have failed by an error of their own, the machines are not at fault, and another round
 * would end in the same way. A single worker may have had bad luck: progress.c counts its
 * failures. */
static void over_check_failures(struct core *core)
{
    bool no_round_trains = core->job == JOB_GATHERING || core->job == JOB_RECOVERING;
    uint64_t boots = core->failures.boots_in_a_row;
    const struct round *round = &core->current;

    if (round->failed_by_exit && round->failed_by_exit == round->members.count) {
        round_forget_errors(core);
        if (round->members.count > 1)
            over_fail(core, tell_text(core,
                                      "every worker of round %" PRIu64
                                      " has failed; the first failure: %s",
                                      round->number, core->rounds.first_failure));
    } else if (over_is_stillborn(core)) {
        over_fail(core,
                  tell_text(core, "every worker failed before it joined; the first failure: %s",
                            core->rounds.first_failure));
    } else if (no_round_trains && boots >= FAILED_BOOTS && boots >= 3 * (uint64_t)core->config.np &&
               !over_awaits_others(core)) {
        /* Workers fail one after the other before they join. This ends the job even if
         * --progress-restarts sets no limit. */
        over_fail(core, tell_text(core,
                                  "%" PRIu64 " workers in a row failed before they joined, and no "
                                  "round trains; the first failure: %s",
                                  boots, core->failures.boot));
    }
}

/* True: a host that has joined (it has a key) has lost the connection of its process, and the
 * process is still expected: when it dials again it is told that the job is over. */
static bool over_awaits_join(const struct core *core)
{
    if (!core->config.join || core->now_us >= core->over.joins_until_us)
        return false;
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        if (host->key.version && !host->join.connected && !host->join.told)
            return true;
    }
    return false;
}

/* Called after each end of a worker or agent: ends the job if it has ended well, failed, or has
 * nothing to wait for. */
void over_check_job(struct core *core)
{
    const struct core_over *over = &core->over;
    const size_t *count = core->roster.count;
    size_t left = core->roster.staying + core->roster.going;
    const char *unfinished = "", *unseen = "";
    const struct core_host *host;
    uint64_t done = core->roster.done_slots, wanted = 0;

    switch (core->job) {
    case JOB_GATHERING:
        over_check_failures(core);
        /* Commands that never join: the job has ended well when in each slot that it uses a command
         * has ended with 0. */
        if (!done || done < core->config.np || left)
            break;
        for (size_t i = 0; i < core->listing.list.count; i++) {
            host = core->listing.list.items[i];
            wanted += host->draining ? 0 : host->listed_slots;
        }
        if (done >= (wanted < core->config.max_np ? wanted : core->config.max_np))
            over_end(core, CORE_FINISHED, "every command ended with 0");
        break;
    case JOB_RUNNING:
    case JOB_PREPARING:
    case JOB_PENDING:
    case JOB_RECOVERING: over_check_failures(core); break;
    case JOB_FINISHING:
        /* The job ends when all workers that could still end by themselves have ended. The exit
         * code is CORE_FINISHED, unless a worker failed after its training. */
        left += count[WORKER_FINISHED] + count[WORKER_LEAVING];
        if (left > count[WORKER_FINISHED] && over->unfinished)
            /* a member has ended before it finished, so the others cannot go on */
            over_dismiss_all(core);
        if (left)
            break;
        if (over->unfinished)
            unfinished =
                tell_text(core, "; %" PRIu32 " of %" PRIu32 " workers did not reach the end",
                          over->unfinished, over->unfinished + over->finished);
        if (over->unseen)
            unseen = tell_text(core, "; the driver has not seen how %" PRIu32 " workers ended",
                               over->unseen);
        if (over->late_failures)
            over_fail(core, tell_text(core, "the training has finished, but a worker failed: %s",
                                      over->late_failure));
        else
            over_end(core, CORE_FINISHED, tell_text(core, "finished%s%s", unfinished, unseen));
        break;
    case JOB_STOPPING:
        for (size_t i = 0; i < core->roster.hosts.count; i++) {
            host = core->roster.hosts.items[i];
            if (host->agent == AGENT_THERE || (host->agent == AGENT_AWAY && host->taken))
                return;
        }
        if (!over_awaits_join(core))
            core_move_job(core, JOB_OVER);
        break;
    default: break;
    }
}

/* ---- too few workers ------------------------------------------------------------------------- */

/* True: the job has no worker, and no slot that it could use. Each offered slot is barred until an
 * operator clears the slot, or a command has ended with 0 in the slot (`done`). False if no slot is
 * offered: then hosts may still come. */
static bool over_is_hopeless(const struct core *core)
{
    bool any = false;

    /* the job has workers, or ends already */
    if (core->roster.staying || core->roster.going || core->job > JOB_RECOVERING)
        return false;
    for (size_t i = 0; i < core->listing.list.count; i++) {
        const struct core_host *host = core->listing.list.items[i];

        for (uint32_t slot = 0; slot < host->listed_slots; slot++) {
            struct blacklist_verdict verdict =
                blacklist_verdict(&core->blacklist, host->name, slot, core->now_us);

            if (slot < host->slot_count && host->slots[slot].done)
                continue;
            if (verdict.state != BLACKLIST_BARRED)
                return false;
            any = true;
        }
    }
    return any;
}

/* True: a round runs, and all its members train. */
static bool over_all_train(const struct core *core)
{
    return core->job >= JOB_RUNNING && core->job <= JOB_PENDING &&
           round_all_entered(&core->current);
}

/* True: FRUITLESS_MAX or more rounds in a row have gained nothing, and some members do not train
 * now, although there are enough workers. */
static bool over_is_fruitless(const struct core *core)
{
    return core->backoff.fruitless >= FRUITLESS_MAX && !over_all_train(core) &&
           core->job <= JOB_RECOVERING;
}

/* True: no worker was ever launched, and --start-timeout is shorter than --elastic-timeout. Then
 * the driver waits for the first hosts no longer than --start-timeout. */
static bool over_waits_for_start(const struct core *core)
{
    return core->job == JOB_GATHERING && !core->launch.gate_open &&
           core->config.start_timeout_us < core->config.elastic_timeout_us;
}

/* Before the first launch the driver waits only for --start-timeout, which may be shorter than
 * --elastic-timeout: returns the difference, by which the clock ends earlier then. */
static int64_t over_spared_us(const struct core *core)
{
    return over_waits_for_start(core)
               ? core->config.elastic_timeout_us - core->config.start_timeout_us
               : 0;
}

int64_t over_fails_us(const struct core *core)
{
    const struct core_shortage *shortage = &core->shortage;

    if (shortage->counted_us == TIME_NEVER)
        return TIME_NEVER;
    return time_add(shortage->counted_us, shortage->left_us - over_spared_us(core));
}

/* Returns the reason why the job fails after --elastic-timeout. */
static const char *over_shortage_text(struct core *core)
{
    const char *first = core->rounds.first_failure;
    uint64_t least = core->rounds.resume_min_commit;
    uint64_t slots = hosts_total_slots(&core->listing.hosts);
    uint32_t needed = core->current.number ? core->config.min_np : core->config.np;
    const char *why;

    if (core->recovery.holder_missing)
        return tell_text(
            core,
            "every holder of commit %" PRIu64 ".%" PRIu32
            " is gone, and no such host came back within --elastic-timeout: the "
            "training state is lost; %s",
            COMMIT_ROUND_OF(least), COMMIT_PLACE_OF(least),
            core->config.checkpoint_dir
                ? "start the job anew: no checkpoint of it exists"
                : "start the job anew, with --checkpoint-dir to keep later commits on disk");
    if (over_is_fruitless(core))
        return tell_text(core,
                         "%" PRIu32 " rounds in a row have made no progress for longer than "
                         "--elastic-timeout%s%s; check that the workers can reach each other%s%s",
                         core->backoff.fruitless,
                         *core->backoff.waited ? ": the last waited for " : "",
                         core->backoff.waited, *first ? "; first failure: " : "", first);
    why = core->listing.list.count ? "'hvd-elastic hosts' shows why hosts are not used"
                                   : "no host is listed";
    if (!core->listing.discovered && *core->listing.failure)
        why = tell_text(core, "the discovery of hosts has failed: %s", core->listing.failure);
    if (core->listing.list.count && slots < needed)
        why = tell_text(core, "slots that are listed: %" PRIu64, slots);
    if (*core->failures.host)
        why = tell_text(core, "the last host that failed: %s", core->failures.host);
    return tell_text(core, "only %zu of %" PRIu32 " workers for longer than --%s-timeout%s%s; %s",
                     core->roster.staying, needed, over_waits_for_start(core) ? "start" : "elastic",
                     *first ? "; first failure: " : "", first, why);
}

/* Called at the end of each step of the core: runs the clock of --elastic-timeout while the job
 * has too few workers, and ends the job when the time is over. `left_us` is the time that is
 * left, but for over_spared_us. */
void over_judge_shortage(struct core *core)
{
    struct core_shortage *shortage = &core->shortage;
    size_t alive = core->roster.staying + core->roster.going;
    bool is_short = over_is_fruitless(core);
    const char *first = core->rounds.first_failure;
    bool begins;
    int64_t spared_us = over_spared_us(core);
    char text[TIME_TEXT_MAX];

    /* A command that has ended with 0 is not missing: docs/stories.md, `commands_end_far_apart`. */
    if (core->job == JOB_GATHERING)
        is_short |= core->roster.staying + core->roster.done_slots < core->config.np;
    else if (core->job == JOB_RECOVERING && !core->roster.count[WORKER_REVOKED])
        is_short |= core->recovery.holder_missing || alive < core->config.min_np;
    if (over_is_hopeless(core)) {
        over_fail(
            core,
            tell_text(core,
                      "every slot is barred after its failures; mend the cause, then start the job "
                      "again, or clear the slots with 'hvd-elastic blacklist clear' sooner%s%s",
                      *first ? "; first failure: " : "", first));
        return;
    }

    /* Takes the time since the last step of the core from left_us, if the job had too few workers
     * at that step. */
    if (shortage->counted_us != TIME_NEVER) {
        shortage->left_us -= core->now_us - shortage->counted_us;
        if (shortage->left_us < 0)
            shortage->left_us = 0; /* this step came later than the end of the time */
        shortage->counted_us = core->now_us;
    }
    if (over_all_train(core))
        shortage->left_us = core->config.elastic_timeout_us;
    if (!is_short) {
        shortage->since_us = shortage->counted_us = TIME_NEVER;
    } else if (shortage->left_us > spared_us) {
        /* Missing slots before the first round are logged by listing.c, a missing commit by
         * recovery.c. */
        begins = shortage->since_us == TIME_NEVER;
        if (begins && over_is_fruitless(core))
            CORE_WARN(core, FACTS(.kind = KIND_NO_PROGRESS, .left_us = shortage->left_us),
                      "%" PRIu32 " rounds in a row made no progress; the job fails in %s",
                      core->backoff.fruitless, time_brief(shortage->left_us, text));
        else if (begins && core->job == JOB_RECOVERING && !core->recovery.holder_missing)
            CORE_WARN(
                core,
                FACTS(.kind = KIND_TOO_FEW_WORKERS, .size = alive, .left_us = shortage->left_us),
                "waiting for workers: %zu of --min-np %" PRIu32 "; the job fails in %s", alive,
                core->config.min_np, time_brief(shortage->left_us, text));
        if (begins)
            shortage->since_us = core->now_us;
        shortage->counted_us = core->now_us;
        /* The clock of --elastic-timeout stands still while actions wait for the journal
         * (core_move_past). The first step after the wait requests the next step. */
        if (core->out.held_since_us == TIME_NEVER)
            core_want_timer(core, over_fails_us(core));
    } else if (core->recovery.holder_missing || over_is_fruitless(core)) {
        over_fail(core, over_shortage_text(core));
    } else {
        over_end(core, CORE_TOO_FEW, over_shortage_text(core));
    }
}
