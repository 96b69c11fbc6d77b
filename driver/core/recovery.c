/*
 * recovery.c: forms the first round and each round after a revoked one. core.c calls it when
 * something has changed, agents.c brings RECOVERING. docs/stories.md, "One worker fails": the
 * survivors go on with their last commit within a round trip. No round resumes from a commit that
 * is older than resume_min_commit, except from the newest checkpoint, or a commit after it, when no
 * process can come back with a newer one.
 */
#include "driver/core/recovery.h"

#include "driver/core/authority.h"
#include "driver/core/backoff.h"
#include "driver/core/checkpoint.h"
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
/* How long the job waits for a host that was last seen with a newer commit, before it goes on from
 * a checkpoint. */
#define FALLBACK_US (30 * TIME_S)
/* After this many recoveries in a row in which members could not fetch a commit, the driver no
 * longer believes that the holders of this commit have it. This concerns commits that only agents
 * keep, or that only workers of one host hold. Such holders are believed at least for
 * FAILED_FETCHES_US, or for half of --elastic-timeout if that is shorter: a network that is broken
 * for a moment, or a crowd at the port of an honest agent, must not cost the commit. */
#define FAILED_FETCHES_MAX 3
#define FAILED_FETCHES_US  TIME_MIN

/* True: the commit of this round may not exist: only agents, or only the workers of one host, have
 * said that they have it, and no round has trained from it. `fetcher`: a member on another host,
 * which could not fetch the commit from them. */
static bool recovery_is_doubtful(const struct core *core, const struct round *round,
                                 const struct worker *fetcher)
{
    const struct core_host *host = NULL;
    const struct worker *worker;

    /* No member holds the commit, only agents say that they have it. A member that trains in the
     * round has fetched the commit, so then there is no doubt. */
    if (!round->holders.count)
        return !round->entered;
    /* the commit exists: members have trained from it or a later one, or it is in a checkpoint */
    if (round->commit <= core->rounds.resume_min_commit)
        return false;
    for (size_t i = 0; i < round->holders.count; i++) {
        worker = roster_worker(core, round->holders.items[i]);
        /* A holder that has died explains the failed fetch. A holder on the fetcher's own host, or
         * holders on two hosts, confirm the commit. */
        if (!worker || worker->host == fetcher->host || (host && host != worker->host))
            return false;
        host = worker->host;
    }
    return true;
}

/* True: without the commit of the current round the job could go on from another commit: a member
 * on another host than the holders has one, an agent keeps one, or there is a checkpoint. */
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
    return elect_kept(core, round->commit) || core->checkpoint.newest;
}

/* Counts a recovery in which the commit of the current round could not be fetched from the
 * holders that are in doubt (or in which a connection broke before the fetch: the error code is
 * the same for both). After FAILED_FETCHES_MAX of them the driver no longer believes the holders,
 * if the job can go on from another commit; otherwise it must believe them. Returns true if the
 * holders are workers, all on one host, which are no longer believed. */
static bool recovery_note_unfetched(struct core *core)
{
    struct core_recovery *recovery = &core->recovery;
    uint64_t commit = core->current.commit;
    int64_t least_us = core->config.elastic_timeout_us / 2;

    if (least_us > FAILED_FETCHES_US)
        least_us = FAILED_FETCHES_US;
    /* the first such recovery for this commit begins the count */
    if (recovery->unfetched_commit != commit) {
        recovery->unfetched_commit = commit;
        recovery->unfetched_since_us = core->now_us;
        recovery->unfetched = 0;
    }
    if (++recovery->unfetched < FAILED_FETCHES_MAX ||
        core->now_us - recovery->unfetched_since_us < least_us || !recovery_has_other(core))
        return false;
    /* From now on these slots count as without the commit. If an agent names the commit again in a
     * hello, or its workers do, it is believed again. */
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        for (uint32_t k = 0; k < host->slot_count; k++) {
            if (host->slots[k].commit != commit)
                continue;
            host->slots[k].commit = 0;
            authority_refuse(core, host,
                             tell_text(core,
                                       "the agent says that it keeps commit %" PRIu64 ".%" PRIu32
                                       ", which no worker could fetch",
                                       COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit)));
        }
    }
    return core->current.holders.count != 0; /* false: only agents have said that they keep it */
}

/* Revokes the running round, because a member says that its collectives failed, or that it could
 * not get the state of the round. PROTOCOL.md, REVOKE: such a worker sends RECOVERING without a
 * REVOKE. `is_current`: the member was in the running round, not still in the round before the
 * switch. */
static void recovery_fail_round(struct core *core, struct worker *worker,
                                const struct msg_recovering *said, bool is_current)
{
    struct round *round = &core->current;
    bool own_lack, reads, disbelieved = false;
    char name[WORKER_NAME_MAX];
    const char *text = said->text && said->text[0] ? said->text : "the worker's collectives failed";
    /* PROTOCOL.md, RECOVERING: no member has made the commit of a switch. The member that says so
     * first is not to blame, so the log does not name it. */
    bool unmade = is_current && round->cause == CAUSE_SWITCH && said->code == HVD_E_NOTFOUND;
    const char *why = unmade ? tell_text(core, "%s", text)
                             : tell_text(core, "%s: %s", worker_name(worker, name), text);

    if (core->next.number)
        round_abandon(core, why);
    round->failed_with = said->code;
    /* `reads`: the members read the commit of this round from the newest checkpoint. If that
     * checkpoint is missing or damaged, a second attempt would fail too, so the driver tries an
     * older checkpoint. If the checkpoint is of another state, no attempt can succeed, and the job
     * ends below. */
    reads = is_current && !round->holders.count && !round->entered &&
            round->commit == core->checkpoint.newest;
    if (reads && (said->code == HVD_E_CORRUPT || said->code == HVD_E_NOTFOUND))
        checkpoint_reject(core, why);
    /* Perhaps no agent or worker has the commit of this round, although some of them say so: they
     * may be wrong, or lie. */
    if (said->code == HVD_E_LOST && is_current && recovery_is_doubtful(core, round, worker))
        disbelieved = recovery_note_unfetched(core);
    else if (is_current && round->entered && !round->holders.count)
        /* A member trains from the commit of this round, so the commit was fetched. */
        core->recovery.unfetched_commit = 0;
    if (said->code == HVD_E_MISMATCH)
        backoff_note_mismatch(core, said->text);
    /* With HVD_E_NOMEM or HVD_E_LIMIT in said->code the worker itself lacks something. Other codes
     * do not count against the worker: after a broken connection it cannot know which side was at
     * fault. */
    own_lack = said->code == HVD_E_NOMEM || said->code == HVD_E_LIMIT;
    worker->gave_up = own_lack ? worker->gave_up + 1 : 0;
    round_revoke(core, NULL /* no worker has died */, why);
    /* No other host could fetch the commit of this round from the workers that say they hold it. */
    for (size_t i = 0; disbelieved && i < round->holders.count; i++) {
        struct worker *holder = roster_worker(core, round->holders.items[i]);

        if (holder && worker_is_alive(holder))
            loss_kill(core, holder,
                      tell_text(core,
                                "the worker says that it holds commit %" PRIu64 ".%" PRIu32
                                ", which no other host could fetch",
                                COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit)),
                      false /* not excused: the worker is to blame */, core->config.kill_grace_us);
    }
    if (reads &&
        (said->code == HVD_E_MISMATCH || said->code == HVD_E_INVAL || said->code == HVD_E_VERSION))
        over_fail(core, tell_text(core,
                                  "the checkpoint does not fit the state of the program: %s; to "
                                  "begin anew, give another --checkpoint-dir",
                                  why));
}

/* Handles RECOVERING: a member has left its training loop and says which commits it holds. If the
 * round still runs, its collectives failed with `code`, and the driver revokes the round. A worker
 * that ended GIVE_UPS_MAX rounds in a row, because it lacked memory or met a limit, is killed. */
void recovery_on_recovering(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_recovering *said = &msg->u.recovering;
    const struct round *round = &core->current;
    bool is_current = msg->round == round->number;
    bool is_switching = round->cause == CAUSE_SWITCH && msg->round == round->previous;
    const size_t *count = core->roster.count;
    char name[WORKER_NAME_MAX];

    /* PROTOCOL.md, ROUND: a LEAVING worker is not in the next round, so it is told to leave. */
    if (worker->state == WORKER_LEAVING) {
        tell_drain(core, worker, 0 /* at once */,
                   "the worker is to leave, and its round is revoked");
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
        recovery_fail_round(core, worker, said, is_current);
    }
    if (!is_current || (worker->state != WORKER_REVOKED && worker->state != WORKER_RECOVERED))
        return;
    elect_note(core, worker, &said->held);
    if (worker->state == WORKER_REVOKED) {
        roster_move(core, worker, WORKER_RECOVERED);
        CORE_DETAIL(core, FACTS(.kind = KIND_WORKER_RECOVERED, OF_WORKER(worker)),
                    "%s has recovered (%zu of %zu)", worker_name(worker, name),
                    count[WORKER_RECOVERED], count[WORKER_RECOVERED] + count[WORKER_REVOKED]);
    }
    /* The worker would make the next round fail too, so it is ended. Its agent keeps its commit.
     * The failed rounds are forgiven (backoff.h): their cause is gone, so no round has to wait. */
    if (worker->gave_up >= GIVE_UPS_MAX) {
        loss_kill(core, worker,
                  tell_text(core, "%" PRIu32 " rounds in a row failed because of this worker: %s",
                            worker->gave_up, said->text),
                  false /* not excused: the worker is to blame */, core->config.kill_grace_us);
        backoff_forgive(core);
    }
}

/* True: `commit`, the best one that the job could resume from now, is older than resume_min_commit,
 * so no round may begin. A host that has a newer commit may still come back. As long as
 * `holder_missing` is true, slots.c starts agents and workers on hosts that may have it. */
static bool recovery_lacks_holder(struct core *core, uint64_t commit)
{
    uint64_t least = core->rounds.resume_min_commit;
    bool lacks = commit < least && (!commit || commit != core->checkpoint.newest);
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
        CORE_WARN(core, FACTS(.kind = KIND_COMMIT_MISSING, .commit = least),
                  "commit %" PRIu64 ".%" PRIu32 " is held by no connected worker or agent: the "
                  "driver waits for a host that has this commit%s%s",
                  COMMIT_ROUND_OF(least), COMMIT_PLACE_OF(least),
                  used ? "; hosts that were last seen with this commit:" : "", seen);
    if (lacks != core->recovery.holder_missing)
        core_want_slots(core);
    core->recovery.holder_missing = lacks;
    return lacks;
}

/* True: a host may have a commit that is newer than the newest checkpoint, and that no member can
 * fetch now. An agent that is away counts until its lease has run out; a host that was seen with
 * such a commit counts for FALLBACK_US. A host whose agent is connected counts until a worker could
 * have started there, because an agent of an earlier version does not name the address at which
 * members fetch from it: its worker does.
 * After a takeover the agents that the driver has not heard yet count too. */
static bool recovery_may_return(struct core *core)
{
    int64_t fallback_us = core->recovery.fallback_us;
    int64_t start_us = core->config.start_timeout_us;
    uint64_t least = core->rounds.resume_min_commit;
    /* `met`: this driver has heard an agent of each listed host. */
    bool met = core->listing.discovered;

    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];
        bool there = host->agent == AGENT_THERE, seen = false;
        int64_t until_us =
            time_add(fallback_us, there && start_us > FALLBACK_US ? start_us : FALLBACK_US);

        met &= host->agent_id || !host->listed;
        for (uint32_t k = 0; k < host->slot_count; k++) {
            const struct core_slot *slot = &host->slots[k];
            const struct worker *worker = slot->worker;

            seen |= slot->commit > core->checkpoint.newest && slot->commit >= least;
            /* This worker has still to end, and may have made a commit of which the driver does
             * not know: the agent's EXITED names it. */
            seen |= worker && worker->joined &&
                    (worker->state == WORKER_LEAVING || worker->state == WORKER_FINISHED ||
                     worker->state == WORKER_DOOMED);
        }
        if (host->agent == AGENT_AWAY && host->taken)
            return true;
        if (seen && core->now_us < until_us) {
            core_want_timer(core, until_us);
            return true;
        }
    }
    /* The first driver of a job (term 1) has no agents of an earlier driver to wait for. */
    if (met || core->term == 1 || core->now_us >= time_add(fallback_us, FALLBACK_US))
        return false;
    core_want_timer(core, time_add(fallback_us, FALLBACK_US));
    return true;
}

/* Returns the newest commit that a member or a connected agent has, and that is not older than
 * resume_min_commit. 0: there is none. Without a survivor the newest commit may be that of a dead
 * member, which its agent keeps: a new worker in the slot of an earlier death holds an older one.
 */
static uint64_t recovery_newest(const struct core *core, const struct election *election)
{
    uint64_t held = election->commit < core->rounds.resume_min_commit ? 0 : election->commit;
    uint64_t kept = held && elect_has_survivor(core) ? 0 : elect_kept(core, 0 /* all slots */);

    return held > kept ? held : kept;
}

/* Chooses the commit with which the next round begins: the newest one that a member or an agent
 * has, or that of a newer checkpoint. When the checkpoint is newer, an agent's or a member's commit
 * after the checkpoint is still taken, even if it is older than resume_min_commit. False: the round
 * has to wait, because a host that may have a newer commit than the checkpoint may come back. */
static bool recovery_choose(struct core *core, const struct election *election,
                            uint64_t *ret_commit)
{
    struct core_recovery *recovery = &core->recovery;
    uint64_t newest = core->checkpoint.newest;
    uint64_t commit = recovery_newest(core, election), kept;

    *ret_commit = commit;
    if (newest <= commit) {
        recovery->fallback_us = TIME_NEVER;
        return true;
    }
    if (recovery->fallback_us == TIME_NEVER)
        recovery->fallback_us = core->now_us;
    if (core->rounds.resume_min_commit && recovery_may_return(core))
        /* true without a commit that counts: the caller then asks recovery_lacks_holder, which logs
         * what is missing */
        return commit < core->rounds.resume_min_commit;
    round_fall_back(core, newest);
    kept = elect_kept(core, 0 /* leave none out */);
    commit = election->commit > kept ? election->commit : kept;
    *ret_commit = commit > newest ? commit : newest;
    return true;
}

/* Called by recovery_look_first and recovery_look, each time that a round may be possible: chooses
 * the members and the commit of the next round, and begins it if it has at least `least` members.
 * Survivors come first in the order of their ranks, so old members keep low ranks. */
static void recovery_form(struct core *core, enum msg_cause cause, size_t least)
{
    struct round *next = &core->next;
    const struct worker *worker;
    struct election election;
    uint64_t commit;
    bool waits;

    if (core->checkpoint.searching)
        /* the newest checkpoint is being looked for; EVENT_CHECKPOINT then requests a round */
        return;
    round_clear(next);
    for (size_t i = 0;
         cause == CAUSE_RECOVERY && (worker = roster_next_member(core, &core->current, &i));)
        if (worker->state == WORKER_RECOVERED)
            round_add(core, next, worker->incarnation);
    join_add_joiners(core);
    if (core->step.failed ||
        (cause == CAUSE_RECOVERY && !elect_has_survivor(core) && elect_awaits_end(core)))
        return;
    election = elect(core, next);
    /* If a worker or an agent has a commit that counts, the round begins with that commit.
     * Otherwise the round waits until it is known which checkpoint is the newest: then
     * EVENT_CHECKPOINT asks for the round again. */
    waits = core->config.checkpoint_awaited && next->members.count >= least &&
            !recovery_newest(core, &election);
    if (waits && !core->recovery.store_awaited_told)
        CORE_WARN(core, FACTS(.kind = KIND_CHECKPOINT_AWAITED),
                  "no process has a commit that counts: the next round waits for the store "
                  "of checkpoints");
    core->recovery.store_awaited_told = waits;
    /* join_allowed and progress_judge may end the job, so they are asked last. */
    if (next->members.count < least || waits || !recovery_choose(core, &election, &commit) ||
        recovery_lacks_holder(core, commit) || !join_allowed(core) ||
        !progress_judge(core, true /* the next round begins now */)) {
        round_clear(next);
        return;
    }
    round_name_next(core, cause);
    next->commit = commit ? commit : COMMIT_FIRST_OF(next->number);
    if (commit == core->checkpoint.newest && commit > recovery_newest(core, &election))
        CORE_WARN(core, FACTS(.kind = KIND_CHECKPOINT_RESTORED, .commit = commit),
                  "no process has a newer commit than checkpoint %" PRIu64 ".%" PRIu32
                  ": the training goes on from %s",
                  COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit), core->checkpoint.folder);
    /* The commit is one that members hold. Otherwise the round has no holders, and its members
     * fetch the commit from the agents that keep it, or read its checkpoint. */
    if (commit == election.commit)
        elect_holders(core, next, &election);
    if (core->step.failed)
        return;
    progress_on_round(core);
    round_begin(core);
    round_tell(core);
}

/* Called while the job is GATHERING: begins the first round as soon as np workers are READY and
 * have gathered. */
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

    if (count[WORKER_REVOKED] || !progress_judge(core, false /* it may be put off */) ||
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
