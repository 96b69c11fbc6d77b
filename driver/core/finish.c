/*
 * finish.c: the phase JOB_FINISHING. PROTOCOL.md, FINISHED: the job is done for a worker that sends
 * code 0. From the first such message on no round is formed, so no worker is stopped in its last
 * step for a joiner. agents.c and replay.c begin the phase, core.c calls finish_expire at its
 * deadline, and over.c ends the phase.
 */
#include "driver/core/finish.h"

#include "base/mem.h"
#include "driver/core/loss.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <string.h>

/* Sets the deadline of the phase JOB_FINISHING; core.c calls finish_expire then. */
static void finish_by(struct core *core, int64_t deadline_us)
{
    core->finish.deadline_us = deadline_us;
    core_want_timer(core, deadline_us);
}

/* True: members are left, and none of them has begun to train. Called only after a worker has
 * finished, so this is not the beginning of a round: the members that trained have finished (state
 * WORKER_FINISHED), and the rest cannot begin without them. False if no member is left: then there
 * is nothing to wait for. */
static bool finish_is_training_over(const struct core *core)
{
    const struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker->state == WORKER_MEMBER && worker->entered)
            return false;
    return core->roster.count[WORKER_MEMBER] > 0;
}

/* Brings the deadline for the last workers forward to one lease from now, never later, if the
 * training is over. One lease is enough for an ENTERED that is still on its way. */
static void finish_hurry(struct core *core)
{
    int64_t soon_us = time_add(core->now_us, core->config.lease_us);

    if (core->job == JOB_FINISHING && !core->over.dismissed && finish_is_training_over(core) &&
        soon_us < core->finish.deadline_us)
        finish_by(core, soon_us);
}

/* The training of this worker is over for good: from now on its exit code counts for the job. */
static void finish_mark(struct core *core, struct worker *worker)
{
    char name[WORKER_NAME_MAX];

    tell_record(core, JOURNAL_FINISHED)->incarnation = worker->incarnation;
    roster_move(core, worker, WORKER_FINISHED);
    over_note_finished(core);
    CORE_DETAIL(core, FACTS(.kind = KIND_WORKER_FINISHED, OF_WORKER(worker)), "%s has finished",
                worker_name(worker, name));
}

/* The first worker has finished: no further round is formed. READY workers are told DONE, and
 * workers that have not joined are killed. A worker whose program has raised an exception has
 * finished too, because no later round repeats its training. `broken`: the round is revoked, and as
 * no next round comes, its members are told DONE too. */
static void finish_close_membership(struct core *core)
{
    bool broken = core->job == JOB_RECOVERING;
    struct worker *worker;

    if (core->next.number)
        round_abandon(core, "the job is finishing");
    core_move_job(core, JOB_FINISHING);
    core->finish.since_us = core->now_us;
    finish_by(core, time_add(core->now_us, core->config.stall_us));
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (worker->state == WORKER_READY)
            over_dismiss(core, worker);
        else if (worker_is_alive(worker) && worker->failure.raised)
            finish_mark(core, worker);
        else if (worker_is_alive(worker) && !over_is_unfinished(worker))
            loss_kill(core, worker, "the job is finishing",
                      true /* excused: the worker is not to blame */, core->config.kill_grace_us);
    }
    if (broken)
        over_dismiss_all(core);
}

/* Keeps the text of FINISHED as the reason why the training of this worker has failed, and logs it.
 * If another worker has failed with the same text, the log line only names that worker. */
static void finish_note_failure(struct core *core, struct worker *worker,
                                const struct msg_finished *said)
{
    /* `train` may return a code of its own that is equal to an error code of the library. The name
     * of the library's code is added only if the code is the library's. */
    bool of_program = said->code > 0 || strstr(said->text, "an error of the program itself");
    const char *named = of_program ? "" : tell_text(core, " (%s)", err_name(said->code));
    const char *what = "the worker's program failed after its training";
    const struct worker *other;
    char name[WORKER_NAME_MAX], first[WORKER_NAME_MAX];

    if (worker->failure.text) /* the message has come twice */
        return;
    if (said->code == HVD_E_EXCEPTION)
        what = "the worker's program raised an exception";
    else if (said->code)
        what = tell_text(core, "the worker's training returned %" PRId32 "%s", said->code, named);
    worker->failure.text = mem_strdup(tell_text(core, "%s: %s", what, said->text));
    if (!worker->failure.text) {
        core_fail(core);
        return;
    }
    for (size_t i = 0; (other = roster_next(core, &i));)
        if (other != worker && other->failure.text &&
            !strcmp(other->failure.text, worker->failure.text))
            break;
    if (other)
        CORE_WARN(
            core, FACTS(.kind = KIND_WORKER_COMPLAINED, OF_WORKER(worker), .cause = said->text),
            "%s: %s, as that of %s", worker_name(worker, name), what, worker_name(other, first));
    else
        CORE_WARN(core,
                  FACTS(.kind = KIND_WORKER_COMPLAINED, OF_WORKER(worker), .cause = said->text),
                  "%s: %s", worker_name(worker, name), worker->failure.text);
}

/* Handles FINISHED of a member: its training function has returned. `code` other than 0: the
 * training has failed, and the process ends soon. `code` 0: the worker is done; the first such
 * message begins the end of the job. A text with the code 0: the program fails now, after its
 * training. */
void finish_on_finished(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_finished *said = &msg->u.finished;

    if (worker->rank == RANK_NONE || !worker_is_alive(worker))
        return;
    /* The process of this worker ends soon. The text of FINISHED is kept as the reason of that end,
     * because the exit code says less. */
    if (said->code || *said->text)
        finish_note_failure(core, worker, said);
    worker->failure.raised = said->code == HVD_E_EXCEPTION;
    /* After a failed training the worker ends, and the round recovers without it. But while the job
     * is FINISHING no round follows: a worker that has raised an exception has finished. */
    if (said->code && (!worker->failure.raised || core->job != JOB_FINISHING))
        return;
    finish_mark(core, worker);
    if (core->job < JOB_FINISHING)
        finish_close_membership(core);
    finish_hurry(core);
}

/* The agent of this host has come back while the job is FINISHING: DONE is sent again to its
 * workers that may have missed it. Those are all unfinished workers after over_dismiss_all, before
 * it only those that are in no round. */
void finish_resume(struct core *core, struct core_host *host)
{
    const struct worker *worker;

    for (size_t slot = 0; (worker = roster_next_on(host, &slot));)
        if (over_is_unfinished(worker) && (core->over.dismissed || worker->rank == RANK_NONE))
            over_dismiss(core, worker);
}

/* The deadline of the phase has passed. If a member may still train, it gets the full time.
 * Otherwise workers that were told DONE and do not end are killed, and all unfinished workers are
 * told DONE. */
void finish_expire(struct core *core)
{
    int64_t until_us = time_add(core->finish.since_us, core->config.stall_us);
    struct worker *worker;
    char name[WORKER_NAME_MAX];
    char text[TIME_TEXT_MAX];

    core->finish.deadline_us = TIME_NEVER;
    if (!core->over.dismissed && !finish_is_training_over(core) && core->now_us < until_us) {
        /* A member still trains, so the full time counts: --stall-shutdown from the first FINISHED
         * on. */
        finish_by(core, until_us);
        return;
    }
    for (size_t i = 0; core->over.dismissed && (worker = roster_next(core, &i));)
        if (over_is_unfinished(worker) && worker_is_heard(core, worker, core->config.stall_us))
            loss_kill(core, worker, "the job is done, but the worker has not ended",
                      true /* excused: the worker is not to blame */, core->config.kill_grace_us);
    if (core->job != JOB_FINISHING)
        return; /* no worker is left after these kills, so over.c has begun to stop the job */
    over_dismiss_all(core);

    /* A worker whose training has finished may still write its result. The worker is never killed,
     * but the operator is told that the job waits for it. */
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker->state == WORKER_FINISHED)
            CORE_WARN(core,
                      FACTS(.kind = KIND_WORKER_AWAITED, OF_WORKER(worker),
                            .took_us = core->now_us - worker->since_us),
                      "%s finished %s ago and has not ended: the job waits for this worker; if the "
                      "worker hangs, kill its process",
                      worker_name(worker, name), time_brief(core->now_us - worker->since_us, text));
    finish_by(core, time_add(core->now_us, core->config.stall_us));
}

/* Called at the start of a driver that takes over a job in which a worker has finished, or which an
 * earlier driver has ended (then `exit_text` is not empty). */
void finish_restart(struct core *core)
{
    ASSERT(core->job == JOB_NEW);
    if (*core->over.exit_text) {
        over_restart(core);
    } else {
        finish_close_membership(core);
        finish_hurry(core); /* the other workers may have finished before this driver began */
    }
    over_check_job(core);
}
