/*
 * recovery.c: forms the first round and each round after a revoked one. core.c calls it when
 * something has changed, agents.c brings RECOVERING. docs/stories.md, "One worker fails": the
 * survivors go on with their last commit within a round trip. No round ever resumes from a commit
 * that is older than resume_min_commit.
 */
#include "driver/core/recovery.h"

#include "driver/core/authority.h"
#include "driver/core/backoff.h"
#include "driver/core/elect.h"
#include "driver/core/join.h"
#include "driver/core/loss.h"
#include "driver/core/over.h"
#include "driver/core/progress.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>

/* After this many rounds in a row that ended because of one worker, the other workers train without
 * this worker. */
#define GIVE_UPS_MAX 3
/* After this many recoveries in a row in which members could not fetch a commit, the driver no
 * longer believes that its holders have it. This concerns commits that only agents keep, or that
 * only workers of one host hold. They are believed at least for VAIN_FETCHES_US, or for half of
 * --elastic-timeout if that is shorter: a network that is broken for a moment, or a crowd at the
 * port of an honest agent, must not cost the commit. */
#define VAIN_FETCHES_MAX 3
#define VAIN_FETCHES_US  TIME_MIN

/* True: the round's commit may not exist. Only agents, or only workers of one host, say that they
 * have it, and no earlier round has trained from it. `fetcher` is a member on another host, which
 * could not fetch the commit. */
static bool recovery_is_doubtful(const struct core *core, const struct round *round,
                                 const struct worker *fetcher)
{
    const struct core_host *host = NULL;
    const struct worker *worker;

    /* Only agents say that they have it: once a member trains, it has fetched the commit. */
    if (!round->holders.count)
        return !round->entered;
    if (round->commit <= core->rounds.resume_min_commit)
        return false;
    for (size_t i = 0; i < round->holders.count; i++) {
        worker = roster_worker(core, round->holders.items[i]);
        if (!worker || worker->host == fetcher->host || (host && host != worker->host))
            return false;
        host = worker->host;
    }
    return true;
}

/* Forgets that agents keep this commit, because no worker could fetch it from any of them. An
 * agent's next hello, or the next commit of its workers, is believed again. */
static void recovery_distrust(struct core *core, uint64_t commit)
{
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        for (uint32_t k = 0; k < host->slot_count; k++) {
            if (host->slots[k].commit != commit)
                continue;
            host->slots[k].commit = 0;
            authority_refuse(core, host,
                             tell_text(core,
                                       "it says that it keeps commit %" PRIu64 ".%" PRIu32
                                       ", which no worker could fetch",
                                       COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit)));
        }
    }
}

/* True: without the commit of the current round the job could go on from another commit: a member
 * on another host than the holders has one, or an agent keeps one. */
static bool recovery_has_other(const struct core *core)
{
    const struct round *round = &core->current;
    const struct worker *worker, *holder = NULL;

    if (round->holders.count)
        holder = roster_worker(core, round->holders.items[0]);
    for (size_t i = 0; holder && (worker = roster_next_member(core, round, &i));) {
        uint64_t commit = worker->host->slots[worker->slot].commit;

        if (worker->host != holder->host && commit && commit != round->commit &&
            commit >= core->rounds.resume_min_commit)
            return true;
    }
    return elect_kept(core, round->commit) != 0;
}

/* Counts a recovery in which the commit of the current round could not be fetched from its doubtful
 * holders, or in which a link broke before (the error code is the same). True: workers of one host
 * say that they hold the commit, and the driver no longer believes them. Holders are believed as
 * long as the job could go on from no other commit: a job that has just begun, or a sole survivor,
 * has only these holders. */
static bool recovery_note_vain(struct core *core)
{
    struct core_recovery *recovery = &core->recovery;
    uint64_t commit = core->current.commit;
    int64_t least_us = core->config.elastic_timeout_us / 2;

    if (least_us > VAIN_FETCHES_US)
        least_us = VAIN_FETCHES_US;
    if (recovery->vain_commit != commit) {
        recovery->vain_commit = commit;
        recovery->vain_since_us = core->now_us;
        recovery->vain = 0;
    }
    if (++recovery->vain < VAIN_FETCHES_MAX || core->now_us - recovery->vain_since_us < least_us ||
        !recovery_has_other(core))
        return false;
    recovery_distrust(core, commit);
    return core->current.holders.count != 0;
}

/* Ends the workers that say that they hold the commit of this round, which no other host could
 * fetch from them. */
static void recovery_end_holders(struct core *core)
{
    const struct round *round = &core->current;

    for (size_t i = 0; i < round->holders.count; i++) {
        struct worker *worker = roster_worker(core, round->holders.items[i]);

        if (worker && worker_is_alive(worker))
            loss_kill(core, worker,
                      tell_text(core,
                                "it says that it holds commit %" PRIu64 ".%" PRIu32
                                ", which no other host could fetch",
                                COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit)),
                      false /* to blame */, core->config.kill_grace_us);
    }
}

/* Handles RECOVERING: a member has left its training loop and says which commits it holds. If the
 * round still runs, its collectives failed with `code`, and the driver revokes the round. A worker
 * that ended GIVE_UPS_MAX rounds in a row by a lack of its own (memory, or a limit) is killed. */
void recovery_on_recovering(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_recovering *said = &msg->u.recovering;
    struct round *round = &core->current;
    bool own_lack, vain = false, is_current = msg->round == round->number;
    bool is_switching = round->cause == CAUSE_SWITCH && msg->round == round->previous;
    const size_t *count = core->roster.count;
    char name[WORKER_NAME_MAX];
    const char *why;

    /* PROTOCOL.md, ROUND: a LEAVING worker is not in the next round, so it is told to leave. */
    if (worker->state == WORKER_LEAVING) {
        tell_drain(core, worker, 0, "it was to leave, and the round is revoked");
        return;
    }
    /* After the first FINISHED no round is formed, so the member is told DONE. */
    if (core->job == JOB_FINISHING) {
        if (over_is_unfinished(worker))
            over_dismiss(core, worker);
        return;
    }
    if (worker->state == WORKER_MEMBER && core->job <= JOB_PENDING &&
        (is_current || (is_switching && !worker->entered))) {
        /* PROTOCOL.md, REVOKE: a worker whose collectives fail sends RECOVERING without a REVOKE,
         * and the driver revokes the round. */
        why = tell_text(core, "%s: %s", worker_name(worker, name),
                        said->text && said->text[0] ? said->text : "its collectives failed");
        if (core->next.number)
            round_abandon(core, why);
        round->failed_with = said->code;
        /* The agents or workers that are said to have the commit of this round may be wrong about
         * it, or lie. */
        if (said->code == HVD_E_LOST && is_current && recovery_is_doubtful(core, round, worker))
            vain = recovery_note_vain(core);
        else if (is_current && round->entered && !round->holders.count)
            core->recovery.vain_commit = 0;
        if (said->code == HVD_E_MISMATCH)
            backoff_note_mismatch(core, said->text);
        /* HVD_E_NOMEM and HVD_E_LIMIT are about the worker itself. After a broken connection a
         * worker cannot know which side was at fault. */
        own_lack = said->code == HVD_E_NOMEM || said->code == HVD_E_LIMIT;
        worker->gave_up = own_lack ? worker->gave_up + 1 : 0;
        round_revoke(core, NULL, why);
        if (vain)
            recovery_end_holders(core);
    }
    if (!is_current || (worker->state != WORKER_REVOKED && worker->state != WORKER_RECOVERED))
        return;
    elect_note(core, worker, &said->held);
    if (worker->state == WORKER_REVOKED) {
        roster_move(core, worker, WORKER_RECOVERED);
        CORE_TRACE(core, "%s has recovered (%zu of %zu)", worker_name(worker, name),
                   count[WORKER_RECOVERED], count[WORKER_RECOVERED] + count[WORKER_REVOKED]);
    }
    /* The worker would make the next round fail too, so it is ended. Its agent keeps its commit. */
    if (worker->gave_up >= GIVE_UPS_MAX) {
        loss_kill(core, worker,
                  tell_text(core, "%" PRIu32 " rounds in a row failed because of this worker: %s",
                            worker->gave_up, said->text),
                  false /* to blame */, core->config.kill_grace_us);
        backoff_forgive(core);
    }
}

/* True: `commit`, the best one that the job could resume from now, is older than resume_min_commit,
 * so no round may begin. A host that has a newer commit may still come back. As long as
 * `holder_missing` is true, slots.c starts agents and workers on hosts that may have it. */
static bool recovery_lacks_holder(struct core *core, uint64_t commit)
{
    uint64_t least = core->rounds.resume_min_commit;
    bool lacks = commit < least;
    /* text such as " b, c": the hosts that kept the commit when they were last heard */
    char seen[LIMIT_REASON_BYTES + 1] = "";
    size_t used = 0;

    for (size_t i = 0; lacks && i < core->roster.hosts.count && used < sizeof(seen); i++) {
        const struct core_host *host = core->roster.hosts.items[i];
        bool kept = false;

        for (uint32_t slot = 0; slot < host->slot_count; slot++)
            kept = kept || host->slots[slot].commit >= least;
        if (kept && host->agent != AGENT_THERE)
            used += (size_t)snprintf(seen + used, sizeof(seen) - used, "%s %s", used ? "," : "",
                                     host->name);
    }
    if (lacks && !core->recovery.holder_missing)
        CORE_TRACE(
            core,
            "commit %" PRIu64 ".%" PRIu32
            " is held by no worker or agent that is here: waiting for a host that has it%s%s",
            COMMIT_ROUND_OF(least), COMMIT_PLACE_OF(least), used ? ", last seen with it:" : "",
            seen);
    if (lacks != core->recovery.holder_missing)
        core_want_slots(core);
    core->recovery.holder_missing = lacks;
    return lacks;
}

/* Chooses the members and the commit of the next round, and begins it if it has at least `least`
 * members. Survivors come first in the order of their ranks, so old members keep low ranks. */
static void recovery_form(struct core *core, enum msg_cause cause, size_t least)
{
    struct round *next = &core->next;
    const struct worker *worker;
    struct election election;
    uint64_t commit;

    round_clear(next);
    for (size_t i = 0;
         cause == CAUSE_RECOVERY && (worker = roster_next_member(core, &core->current, &i));)
        if (worker->state == WORKER_RECOVERED)
            round_add(core, next, worker->incarnation);
    join_add_joiners(core);
    if (core->step.failed)
        return;
    /* When no member holds resume_min_commit or a newer commit, an agent may keep one. */
    election = elect(core, next);
    commit = election.commit < core->rounds.resume_min_commit
                 ? elect_kept(core, 0 /* leave none out */)
                 : election.commit;
    /* join_allowed and progress_judge may end the job, so they are asked last. */
    if (next->members.count < least || recovery_lacks_holder(core, commit) || !join_allowed(core) ||
        !progress_judge(core, true /* the next round begins now */)) {
        round_clear(next);
        return;
    }
    round_name_next(core, cause);
    next->commit = commit ? commit : COMMIT_FIRST_OF(next->number);
    /* Otherwise no member is a holder: the members fetch the commit from the agents that keep
     * it. */
    if (commit == election.commit)
        elect_holders(core, next, &election);
    if (core->step.failed)
        return;
    progress_on_round(core);
    round_begin(core);
    round_tell(core);
}

void recovery_look_first(struct core *core)
{
    if (round_gathered(core, core->config.np))
        recovery_form(core, CAUSE_FIRST, core->config.np);
}

/* Begins the round after a revoked round, when all survivors have said RECOVERING (no worker is
 * WORKER_REVOKED any more). The members of the new round are all survivors and the workers that are
 * READY. A survivor that has to leave is a member too, because it may hold the newest commit; it
 * leaves by the next change of the membership.
 *
 * The job may end here instead. progress_judge ends it after too many failures without a newer
 * commit in between. backoff_weigh ends it after too many rounds in a row in which the ranks called
 * different operations; `weighed` says that backoff_weigh has judged this round already. */
void recovery_look(struct core *core)
{
    const size_t *count = core->roster.count;
    size_t least = core->config.min_np;
    const char *why;

    if (count[WORKER_REVOKED] || !progress_judge(core, false) ||
        count[WORKER_RECOVERED] + count[WORKER_READY] < least)
        return;
    if (!core->current.weighed) {
        why = backoff_weigh(core);
        if (why)
            over_fail(core, why);
    }
    if (core->job != JOB_RECOVERING)
        return;
    if (!count[WORKER_RECOVERED] && !round_gathered(core, least))
        return;
    if (backoff_is_over(core))
        recovery_form(core, CAUSE_RECOVERY, least);
}
