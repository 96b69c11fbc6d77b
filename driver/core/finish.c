#include "driver/core/finish.h"

#include "base/mem.h"
#include "driver/core/change.h"
#include "driver/core/clock.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>

#define FAILURES_ALONE 3
#define BOOTS_IN_VAIN  10
#define SEAT_IN_VAIN   3

void finish_tell_stop(struct core *core, struct core_host *host)
{
    struct msg *msg = tell_msg(core, MSG_STOP, 0, 0);

    msg->u.stop =
        (struct msg_stop){ .grace_us = core->config.kill_grace_us,
                           .reason = *core->exit_text ? tell_text(core, "%s", core->exit_text)
                                                      : "the job does not use this host" };
    tell_host(core, host, msg);
}

static void tell_all(struct core *core)
{
    for (size_t i = 0; i < core->hosts.count; i++)
        finish_tell_stop(core, core->hosts.items[i]);
    core->over_deadline_us =
        time_add(core->now_us, time_add(2 * core->config.kill_grace_us, core->config.lease_us));
    clock_want(core, core->over_deadline_us);
}

static void stop_all(struct core *core)
{
    tell_all(core);
    sm_move(&core->sm, JOB_STOPPING, core->now_us, "");
}

static void over(struct core *core, int code, const char *text)
{
    struct journal_record *record;

    if (job_state(core) >= JOB_STOPPING)
        return;
    if (core->next.number)
        change_abandon(core, "the job is over");
    core->exit_code = code;
    snprintf(core->exit_text, sizeof(core->exit_text), "%s", text);
    CORE_TRACE(core, "the job is over: %s", text);
    record = tell_record(core, JOURNAL_OVER);
    record->code = code;
    record->text = tell_text(core, "%s", text);
    stop_all(core);
    finish_look(core);
}

void finish_fail(struct core *core, const char *why)
{
    over(core, CORE_FAILED, why);
}

/* Asked for twice, it is wanted at once. */
void finish_stop(struct core *core, const char *who)
{
    if (job_state(core) == JOB_STOPPING) {
        CORE_TRACE(core, "%s does not want to wait: workers get no time to end", who);
        core->config.kill_grace_us = 0;
        tell_all(core);
        return;
    }
    over(core, CORE_STOPPED, tell_text(core, "stopped by %s", who));
}

void finish_too_few(struct core *core, const char *why)
{
    over(core, CORE_TOO_FEW, why);
}

/* The step ends with the exit, whatever else it still has to tell. */
static void leave(struct core *core)
{
    sm_move(&core->sm, JOB_OVER, core->now_us, "");
}

void finish_replaced(struct core *core, const char *host, uint64_t term)
{
    if (job_state(core) == JOB_OVER)
        return;
    CORE_TRACE(core,
               "%s obeys a driver of term %" PRIu64 ": this one, of term %" PRIu64
               ", has been replaced",
               host, term, core->term);
    core->exit_code = CORE_REPLACED;
    snprintf(core->exit_text, sizeof(core->exit_text), "another driver has taken over");
    leave(core);
}

static bool is_unfinished(const struct worker *worker)
{
    return worker_is_alive(worker) && worker_state(worker) > WORKER_BOOTING;
}

static void dismiss(struct core *core, const struct worker *worker)
{
    tell_host(core, worker->host, tell_msg(core, MSG_DONE, worker->incarnation, 0));
}

/* Those inside the loop cannot go on without the one that died. */
static void dismiss_all(struct core *core)
{
    struct worker *worker;

    if (core->dismissed)
        return;
    core->dismissed = true;
    CORE_TRACE(core, "the job is done; workers that have not finished are dismissed");
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (is_unfinished(worker))
            dismiss(core, worker);
}

void finish_resume(struct core *core, struct core_host *host)
{
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        const struct worker *worker = host->seats[slot].worker;

        if (worker && is_unfinished(worker) && (core->dismissed || worker->rank == RANK_NONE))
            dismiss(core, worker);
    }
}

/* Nobody joins any more. */
static void close_membership(struct core *core)
{
    bool broken = job_state(core) == JOB_RECOVERING;
    struct worker *worker;

    if (core->next.number)
        change_abandon(core, "the job is finishing");
    sm_move(&core->sm, JOB_FINISHING, core->now_us, "");
    core->closed_us = core->now_us;
    core->over_deadline_us = time_add(core->now_us, core->config.stall_us);
    clock_want(core, core->over_deadline_us);
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (worker_state(worker) == WORKER_READY)
            dismiss(core, worker);
        else if (worker_is_alive(worker) && !is_unfinished(worker))
            loss_kill(core, worker, "the job is finishing", true, core->config.kill_grace_us);
    }
    if (broken)
        dismiss_all(core);
}

/* All that have trained in this round have finished. A member that has not cannot begin without
 * them; unless it was just not heard of yet, it need not be waited for long. */
static bool nobody_trains(const struct core *core)
{
    const struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker_state(worker) == WORKER_MEMBER && worker->entered)
            return false;
    return core->count[WORKER_MEMBER] > 0;
}

static void hurry(struct core *core)
{
    int64_t soon_us = time_add(core->now_us, core->config.lease_us);

    if (job_state(core) != JOB_FINISHING || core->dismissed || !nobody_trains(core) ||
        soon_us >= core->over_deadline_us)
        return;
    core->over_deadline_us = soon_us;
    clock_want(core, soon_us);
}

void finish_on_recovering(struct core *core, const struct worker *worker)
{
    if (is_unfinished(worker))
        dismiss(core, worker);
}

/* Until its process has ended, which says less. */
static void keep_complaint(struct core *core, struct worker *worker,
                           const struct msg_finished *said)
{
    if (worker->complaint)
        return;
    worker->complaint = mem_strdup(
        tell_text(core, "its training returned %" PRId32 ": %s", said->code, said->text));
    core->broken |= !worker->complaint;
}

void finish_on_finished(struct core *core, struct worker *worker, const struct msg *msg)
{
    char name[WORKER_NAME_MAX];

    if (worker->rank == RANK_NONE || !worker_is_alive(worker))
        return;
    if (msg->u.finished.code) {
        keep_complaint(core, worker, &msg->u.finished);
        CORE_TRACE(core, "%s: %s", worker_name(worker, name),
                   worker->complaint ? worker->complaint : "its training failed");
        return;
    }
    tell_record(core, JOURNAL_FINISHED)->incarnation = worker->incarnation;
    roster_move(core, worker, WORKER_FINISHED);
    core->finished++;
    CORE_TRACE(core, "%s has finished", worker_name(worker, name));
    if (job_state(core) < JOB_FINISHING)
        close_membership(core);
    hurry(core);
}

void finish_failed_late(struct core *core, const struct worker *worker, const char *why)
{
    char name[WORKER_NAME_MAX];

    if (!core->late_failures++)
        snprintf(core->first_failure, sizeof(core->first_failure), "%s: %s",
                 worker_name(worker, name), why);
}

/* The good end, and for whom it was not quite. */
static const char *finished_text(struct core *core)
{
    const char *unfinished = "";
    const char *unseen = "";

    if (core->unfinished)
        unfinished = tell_text(core, "; %" PRIu32 " of %" PRIu32 " workers did not reach the end",
                               core->unfinished, core->unfinished + core->finished);
    if (core->unseen)
        unseen = tell_text(core, "; how %" PRIu32 " workers ended was not seen", core->unseen);
    return tell_text(core, "finished%s%s", unfinished, unseen);
}

/* Everybody who could end by themselves has ended. */
static void look_finishing(struct core *core)
{
    size_t left =
        core->staying + core->going + core->count[WORKER_FINISHED] + core->count[WORKER_LEAVING];

    if (left > core->count[WORKER_FINISHED] &&
        core->unfinished) /* one died inside the loop: the others cannot go on */
        dismiss_all(core);
    if (left)
        return;
    if (core->late_failures)
        finish_fail(core,
                    tell_text(core, "the training has finished, but a worker failed after it: %s",
                              core->first_failure));
    else
        over(core, CORE_FINISHED, finished_text(core));
}

/* Commands that never join: done when each seat that the job wants has seen one end with 0. */
static void look_commands(struct core *core)
{
    uint64_t wanted = 0;

    if (!core->done_seats || core->done_seats < core->config.np || core->staying || core->going)
        return;
    for (size_t i = 0; i < core->listed.count; i++)
        wanted += core->listed.items[i]->draining ? 0 : core->listed.items[i]->slots;
    if (wanted > core->config.max_np)
        wanted = core->config.max_np;
    if (core->done_seats >= wanted)
        over(core, CORE_FINISHED, "every command ended with 0");
}

/* On one host it may be the host, however often: so whoever boots just now does so in a seat in
 * which a few have failed already. Seats that nobody is in say nothing: they may not be used any
 * more. */
static bool all_boot_in_vain(const struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker_is_alive(worker) && !worker->joined &&
            worker->host->seats[worker->slot].boots_in_vain < SEAT_IN_VAIN)
            return false;
    return true;
}

/* Starting one after the other leads nowhere, and nobody trains meanwhile. */
static bool is_boot_loop(const struct core *core)
{
    bool stands = job_state(core) == JOB_GATHERING || job_state(core) == JOB_RECOVERING;

    return stands && core->boot_failures_in_a_row >= BOOTS_IN_VAIN &&
           core->boot_failures_in_a_row >= 3 * (uint64_t)core->config.np && all_boot_in_vain(core);
}

/* Others may be launched as soon as their agents have come. A successor does not know yet which
 * hosts there are. */
static bool agents_are_coming(const struct core *core)
{
    for (size_t i = 0; i < core->listed.count; i++)
        if (core->listed.items[i]->agent == AGENT_STARTING ||
            core->listed.items[i]->agent == AGENT_AWAY)
            return true;
    return !core->discovered;
}

/* Whoever was started has failed, and nobody has joined. One alone may have had bad luck, unless
 * there is no such program; and that may be so on some hosts only. */
static bool is_stillborn(const struct core *core)
{
    if (core->anyone_joined || !core->boot_failures || core->boot_failures != core->incarnations ||
        agents_are_coming(core))
        return false;
    if (core->boot_failures >= FAILURES_ALONE)
        return true;
    return core->boot_failures >= core->config.np &&
           (core->boot_failures > 1 || core->never_started == core->boot_failures);
}

/* All have failed by an error of their own: that is the program, not the machines, and another
 * round would end the same way. One worker alone may have had bad luck, a few times. */
static void look_failures(struct core *core)
{
    struct round *round = &core->current;

    if (round->failed_by_exit && round->failed_by_exit == round->members.count) {
        core->failed_alone += round->failed_by_exit;
        round->failed_by_exit = 0;
        if (core->failed_alone >= FAILURES_ALONE || round->members.count > 1)
            finish_fail(
                core, tell_text(core, "every worker of round %" PRIu64 " has failed; the first: %s",
                                round->number, core->first_failure));
    } else if (is_stillborn(core)) {
        finish_fail(core, tell_text(core, "every worker failed before it joined; the first: %s",
                                    core->first_failure));
    } else if (is_boot_loop(core)) {
        finish_fail(core,
                    tell_text(core,
                              "%" PRIu64 " workers in a row failed before they joined, and the "
                              "job stands; the first: %s",
                              core->boot_failures_in_a_row, core->boot_failure));
    }
}

static void look_stopping(struct core *core)
{
    for (size_t i = 0; i < core->hosts.count; i++) {
        const struct core_host *host = core->hosts.items[i];

        if (host->agent == AGENT_THERE || (host->agent == AGENT_AWAY && host->taken))
            return;
    }
    leave(core);
}

void finish_look(struct core *core)
{
    switch (job_state(core)) {
    case JOB_FINISHING: look_finishing(core); break;
    case JOB_STOPPING: look_stopping(core); break;
    case JOB_GATHERING:
        look_failures(core);
        look_commands(core);
        break;
    case JOB_RUNNING:
    case JOB_PREPARING:
    case JOB_PENDING:
    case JOB_RECOVERING: look_failures(core); break;
    default: break;
    }
}

/* What a program does after its training, nobody can judge: it may be writing the result. But it is
 * said who is waited for. */
static void name_those_left(struct core *core)
{
    struct worker *worker;
    char name[WORKER_NAME_MAX];
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker_state(worker) == WORKER_FINISHED)
            CORE_TRACE(core, "%s finished %s ago and has not ended: the job waits for it",
                       worker_name(worker, name),
                       time_format(core->now_us - worker->since_us, text));
}

void finish_expire(struct core *core)
{
    struct worker *worker;

    core->over_deadline_us = TIME_NEVER;
    if (job_state(core) == JOB_STOPPING) {
        leave(core);
        return;
    }
    if (job_state(core) != JOB_FINISHING)
        return;
    if (!core->dismissed && !nobody_trains(core) &&
        core->now_us < time_add(core->closed_us, core->config.stall_us)) {
        core->over_deadline_us = time_add(core->closed_us, core->config.stall_us);
        clock_want(core, core->over_deadline_us);
        return;
    }
    for (size_t i = 0; core->dismissed && (worker = roster_next(core, &i));)
        if (is_unfinished(worker) && clock_is_heard(core, worker, core->config.stall_us))
            loss_kill(core, worker, "the job is done, and it does not end", true,
                      core->config.kill_grace_us);
    if (job_state(core) != JOB_FINISHING)
        return; /* those were the last ones, and the job is stopping */
    dismiss_all(core);
    name_those_left(core);
    core->over_deadline_us = time_add(core->now_us, core->config.stall_us);
    clock_want(core, core->over_deadline_us);
}

void finish_restart(struct core *core)
{
    ASSERT(job_state(core) == JOB_NEW);
    if (*core->exit_text) {
        stop_all(core);
    } else {
        close_membership(core);
        hurry(core); /* the others may have finished before this driver began */
    }
    finish_look(core);
}
