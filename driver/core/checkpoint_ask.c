/*
 * checkpoint_ask.c: who wants a checkpoint before its time: an operator, a worker, or a job that is
 * to end. core.c and agents.c bring the requests, checkpoint.c asks for them and reports how its
 * attempts end. Invariant: each operator that waits is answered once, at the end of an attempt that
 * began after the request, or when the job ends; each worker, when its commit is in a checkpoint,
 * when such an attempt has failed, when the commit can be written no more, or when the job ends.
 */
#include "driver/core/checkpoint_ask.h"

#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>

#define NO_DIRECTORY "the job has no directory for checkpoints; start it with --checkpoint-dir DIR"
#define JOB_IS_OVER  "the job has come to its end"
#define ROUND_IS_PASSED                                                                          \
    "other members have gone on to the next round, and keep no commit of the round before; ask " \
    "again in the next round"
#define ROUND_IS_UNSEEN                                                                            \
    "the driver was replaced while the members changed, and the new driver cannot write a commit " \
    "of the round before; ask again in the next round"

/* Makes an attempt begin as soon as all members train, without waiting for the interval. If an
 * attempt is HOLDING, it is begun anew: its agents may wait for a commit that is far ahead, and the
 * new HOLD asks for the newest one. */
void checkpoint_hurry(struct core *core)
{
    core->checkpoint.wanted = true;
    if (core->checkpoint.state == CHECKPOINT_HOLDING)
        core->checkpoint.state = CHECKPOINT_IDLE;
}

/* Handles EVENT_WANT_CHECKPOINT: an operator asks for a checkpoint. With event->code the operator
 * waits, and is answered when the attempt has ended; without it the operator is answered at
 * once. */
void checkpoint_want(struct core *core, const struct event *event)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;

    if (!core->config.checkpoint_dir) {
        tell_reply(core, event->ask, HVD_E_STATE, NO_DIRECTORY);
    } else if (core->job >= JOB_FINISHING) {
        tell_reply(core, event->ask, HVD_E_STATE, JOB_IS_OVER);
    } else if (checkpoint->waiting.operators.count >= LIMIT_CLIENTS) {
        tell_reply(core, event->ask, HVD_E_BUSY,
                   "too many operators wait for a checkpoint; ask again when the present "
                   "checkpoint is complete");
    } else if (VEC_RESERVE(&checkpoint->waiting.operators, 1, LIMIT_CLIENTS)) {
        core_fail(core);
    } else {
        CORE_TRACE(core, FACTS(.kind = KIND_CHECKPOINT_WANTED),
                   "an operator has asked for a checkpoint");
        checkpoint_hurry(core);
        if (event->code)
            checkpoint->waiting.operators.items[checkpoint->waiting.operators.count++] =
                (struct checkpoint_asker){ event->ask, core->now_us };
        else
            tell_reply(core, event->ask, 0, "a checkpoint is written when all workers train");
    }
}

/* ---- requests of workers: PROTOCOL.md, PERSIST ----------------------------------------------- */

/* Answers the PERSIST of a worker. If its agent is away the answer is lost; then the agent sends
 * PERSIST again, and the same commit is answered at once. */
static void checkpoint_tell_persisted(struct core *core, struct worker *worker, uint64_t commit,
                                      int code, const char *text)
{
    struct msg *msg = tell_msg(core, MSG_PERSISTED, worker->incarnation, 0);

    msg->u.persisted = (struct msg_persisted){ .commit = commit, .code = code, .text = text };
    tell_host(core, worker->host, msg);
    worker->persist = (struct worker_persist){ .commit = 0 };
}

/* Handles PERSIST: the worker wants a commit (or a later one) in a checkpoint, and waits for the
 * answer PERSISTED. It is answered at once if such a checkpoint exists, or if the commit can never
 * be written; otherwise an attempt is begun, unless the running one may bring the commit. */
void checkpoint_on_persist(struct core *core, struct worker *worker, const struct msg *msg)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    const struct round *current = &core->current;
    uint64_t commit = msg->u.persist.commit;
    /* The commit is of the round before an agreed switch. This driver, which took the job over
     * meanwhile, has not seen the worker enter that round, so the driver does not know which slots
     * keep the commits of its members (trained_round), and cannot have a commit written. A worker
     * that waits for the answer would never come into the running round. */
    bool unseen = current->cause == CAUSE_SWITCH && !current->entered &&
                  COMMIT_ROUND_OF(commit) == current->previous &&
                  worker->host->slots[worker->slot].trained_round != current->previous;
    char name[WORKER_NAME_MAX];

    if (!core->config.checkpoint_dir) {
        checkpoint_tell_persisted(core, worker, commit, HVD_E_STATE, NO_DIRECTORY);
    } else if (core->job >= JOB_FINISHING) {
        checkpoint_tell_persisted(core, worker, commit, HVD_E_STATE, JOB_IS_OVER);
    } else if (checkpoint->newest >= commit) { /* the commit, or a later one, is written already */
        checkpoint_tell_persisted(core, worker, checkpoint->newest, 0, "");
    } else if (unseen) {
        checkpoint_tell_persisted(core, worker, commit, HVD_E_STATE, ROUND_IS_UNSEEN);
    } else if (checkpoint->passed && COMMIT_ROUND_OF(commit) == checkpoint->passed) {
        checkpoint_tell_persisted(core, worker, commit, HVD_E_IO, ROUND_IS_PASSED);
    } else if (worker->persist.commit < commit) { /* otherwise the message has come twice */
        worker->persist = (struct worker_persist){ commit, core->now_us };
        checkpoint->waiting.workers = true;
        /* The attempt that is under way may bring this commit, or a later one: so the requests of
         * all ranks in one step make one checkpoint. */
        if (checkpoint->state == CHECKPOINT_HOLDING ? checkpoint->asked >= commit
            : checkpoint->state != CHECKPOINT_IDLE  ? checkpoint->commit >= commit
                                                    : false)
            return;
        CORE_TRACE(core, FACTS(.kind = KIND_CHECKPOINT_WANTED, OF_WORKER(worker), .commit = commit),
                   "%s asks for a checkpoint of commit %" PRIu64 ".%" PRIu32,
                   worker_name(worker, name), COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit));
        checkpoint_hurry(core);
    }
}

/* Returns the highest commit of this round that a worker waits for (PERSIST); 0: no worker waits
 * for a commit of the round. */
uint64_t checkpoint_asked(const struct core *core, uint64_t round)
{
    const struct worker *worker;
    uint64_t most = 0;

    for (size_t i = 0; core->checkpoint.waiting.workers && (worker = roster_next(core, &i));)
        if (COMMIT_ROUND_OF(worker->persist.commit) == round && worker->persist.commit > most)
            most = worker->persist.commit;
    return most;
}

/* Answers the workers that wait for a commit of the round checkpoint.passed with an error: its
 * members have left it by a switch, and their agents keep its commits no more. */
void checkpoint_refuse_passed(struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; core->checkpoint.waiting.workers && (worker = roster_next(core, &i));)
        if (COMMIT_ROUND_OF(worker->persist.commit) == core->checkpoint.passed)
            checkpoint_tell_persisted(core, worker, worker->persist.commit, HVD_E_IO,
                                      ROUND_IS_PASSED);
}

/* True: an operator or a worker waits for the end of an attempt. */
bool checkpoint_is_awaited(const struct core *core)
{
    bool awaited = core->checkpoint.waiting.operators.count > 0;
    const struct worker *worker;

    for (size_t i = 0; core->checkpoint.waiting.workers && (worker = roster_next(core, &i));)
        awaited |= worker->persist.commit != 0;
    return awaited;
}

/* Answers those that wait for a checkpoint, at the end of an attempt or of the job. Operators: all
 * that have asked until until_us. Workers: with code 0 all whose commit the newest checkpoint
 * covers; with an error all that have asked until until_us. The others go on waiting. */
void checkpoint_answer(struct core *core, int64_t until_us, int code, const char *text)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;
    bool workers = false;
    struct worker *worker;
    size_t left = 0;

    for (size_t i = 0; i < checkpoint->waiting.operators.count; i++) {
        const struct checkpoint_asker *asker = &checkpoint->waiting.operators.items[i];

        if (asker->since_us <= until_us)
            tell_reply(core, asker->ask, code, text);
        else
            checkpoint->waiting.operators.items[left++] = *asker;
    }
    checkpoint->waiting.operators.count = left;
    for (size_t i = 0; checkpoint->waiting.workers && (worker = roster_next(core, &i));) {
        uint64_t commit = worker->persist.commit;

        if (commit && !code && commit <= checkpoint->newest)
            checkpoint_tell_persisted(core, worker, checkpoint->newest, 0, "");
        else if (commit && code && worker->persist.since_us <= until_us)
            checkpoint_tell_persisted(core, worker, commit, code, text);
        else
            workers |= commit != 0;
    }
    checkpoint->waiting.workers = workers;
}

/* A stop with a checkpoint was requested by `who`: true if the job first writes a last checkpoint.
 * False: the caller ends the job at once, because the job writes no checkpoints, does not train, or
 * was asked before. */
bool checkpoint_last(struct core *core, const char *who)
{
    struct core_checkpoint *checkpoint = &core->checkpoint;

    if (!core->config.checkpoint_dir || core->job < JOB_RUNNING || core->job > JOB_RECOVERING)
        return false;
    if (checkpoint->last_us != TIME_NEVER) {
        CORE_WARN(core, FACTS(.kind = KIND_CHECKPOINT_FAILED, .cause = who),
                  "the job ends without a last checkpoint: a second stop, by %s", who);
        checkpoint->last_us = TIME_NEVER;
        return false;
    }
    checkpoint->last_us = core->now_us;
    checkpoint_hurry(core);
    snprintf(checkpoint->last_by, sizeof(checkpoint->last_by), "%s", who);
    CORE_TRACE(core, FACTS(.kind = KIND_JOB_STOPPING, .cause = who),
               "%s ends the job: a checkpoint is written first; another stop ends the job without "
               "a checkpoint",
               who);
    core_want_timer(core, time_add(core->now_us, CHECKPOINT_LAST_US));
    return true;
}

/* Ends the job that has waited for its last checkpoint. `why`: the reason why none could be made;
 * NULL: it is complete. */
void checkpoint_stop(struct core *core, const char *why)
{
    if (why)
        CORE_WARN(core, FACTS(.kind = KIND_CHECKPOINT_FAILED, .cause = why),
                  "the job ends without a last checkpoint: %s", why);
    core->checkpoint.last_us = TIME_NEVER;
    over_stop(core, core->checkpoint.last_by);
}
