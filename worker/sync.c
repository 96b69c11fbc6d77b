/*
 * sync.c: loads the commit with which a round begins: from this worker's own snapshot, or from the
 * workers and agents that hold the commit, which the ROUND message names.
 *
 * Called by run.c, after the reset callbacks and before train. Invariant: when state_sync returns
 * 0, the program's memory has the bytes of the round's commit, and this worker has no newer commit,
 * which the other members would not have.
 */
#include "base/mem.h"
#include "base/time.h"
#include "proto/commit.h"
#include "worker/addresses.h"
#include "worker/state_device.h"

#include <inttypes.h>
#include <stdio.h>

/* How long a fetch waits before it is tried again. */
#define RETRY_US (100 * TIME_MS)

/* true: the ROUND names this worker as one that has the commit with which the round begins. */
static bool sync_is_holder(const struct msg_round *round, uint64_t incarnation)
{
    for (size_t i = 0; i < round->holders.count; i++) {
        if (round->holders.items[i] == incarnation)
            return true;
    }
    return false;
}

/* true: no member holds the commit of the round, and its source is a checkpoint, which an agent
 * reads. */
bool state_reads_checkpoint(const struct msg_round *round)
{
    return !round->holders.count && round->sources.count &&
           addresses_find(&round->sources.items[0].addresses, "checkpoint");
}

/* Drops this worker's commits that have this number or a higher one. They were made in a round that
 * failed: a commit with the same number may have other bytes on other members, or may exist only
 * here. */
static void drop_from(hvd_state *state, uint64_t commit)
{
    struct msg_held held[2];
    size_t count = snapshot_held(state->snapshot, held);

    for (size_t i = 0; i < count; i++) {
        if (held[i].commit >= commit)
            snapshot_drop(state->snapshot, held[i].commit);
    }
    state_drop_slots(state, commit);
}

/* Fetches the commit into the snapshot, and restores the state from it. A commit of other workers
 * has only the replicated entries, so the per-rank entries of this worker are copied from the live
 * state into the snapshot before that. A checkpoint may have the per-rank entries of this rank
 * too. */
static int fetch_commit(hvd_state *state, const struct msg *msg, const struct msg_fetch *what,
                        struct hvd_err *err)
{
    const struct copy mine = state_copy(state, COPY_PER_RANK);
    struct copy theirs = state_copy(state, COPY_REPLICATED);
    struct session_thread *session = state->worker->session;
    uint64_t commit = msg->u.round.commit;
    /* True: no member of the new round holds the commit. The workers that leave at this switch are
     * making it, and it is perhaps not complete yet: a fetch that does not find it is tried
     * again. */
    bool under_way = msg->u.round.cause == CAUSE_SWITCH && !msg->u.round.holders.count;
    struct msg answer = { 0 };
    int rc;

    drop_from(state, commit);
    do
        rc = session_thread_fetch(session, msg->round, what, &answer, err);
    while (rc == HVD_E_LOST && under_way && !session_thread_pause(session, msg->round, RETRY_US));
    if (!rc && what->entries.count && answer.u.fetched.per_rank)
        theirs.which = COPY_ALL;
    else if (!rc && what->entries.count &&
             state->manifest.bytes != state->manifest.replicated_bytes)
        snprintf(state->remark, sizeof(state->remark), "%s; per-rank entries begin anew",
                 answer.u.fetched.text[0] ? answer.u.fetched.text
                                          : "the checkpoint was made by another number of ranks");
    msg_release(&answer);
    if (!rc)
        rc = state_follow(state, err);
    if (!rc && theirs.which == COPY_ALL)
        /* the agent has filled this buffer of the snapshot with all entries */
        (void)snapshot_begin(state->snapshot);
    /* a commit of the per-rank entries alone leaves the replicated ones as the agent has fetched
     * them (copy.h) */
    else if (!rc)
        rc = copy_commit(state->snapshot, &mine, err);
    if (rc)
        return rc;
    snapshot_end(state->snapshot, commit);
    rc = copy_restore(state->snapshot, commit, &theirs, err);
    if (rc)
        /* this commit could not be restored here, so no other worker is to fetch it from here */
        snapshot_drop(state->snapshot, commit);
    else
        state->live = commit;
    return rc;
}

/* Fetches the round's commit from a checkpoint. The agent finds the entries of the checkpoint by
 * their names, so it gets the list of the names. */
static int fetch_checkpoint(hvd_state *state, const struct msg *msg, struct hvd_err *err)
{
    struct msg_fetch what = { .commit = msg->u.round.commit,
                              .sources = msg->u.round.sources,
                              .rank = (uint32_t)hvd_rank(),
                              .size = (uint32_t)hvd_size() };
    struct arena arena;
    int rc;

    arena_init(&arena, LIMIT_DECODE_BYTES_MAX);
    rc = manifest_entries(&state->manifest, &arena, &what.entries);
    if (rc)
        rc = err_set(
            err, rc,
            "no memory for the list of the entries of a checkpoint; free memory on this host");
    else
        rc = fetch_commit(state, msg, &what, err);
    arena_release(&arena);
    return rc;
}

/* Fetches the round's commit from the members that hold it or, if no member does, from the agents
 * or the checkpoint that the ROUND names. The loop compares each member with each holder of the
 * commit; that is fast enough, because a worker fetches only when it has joined or lacks the newest
 * commit. */
static int fetch_from_others(hvd_state *state, const struct msg *msg, struct hvd_err *err)
{
    const struct msg_round *round = &msg->u.round;
    struct msg_fetch what = { .commit = round->commit, .sources = round->sources };
    struct msg_source *holders = NULL;
    struct timeline_events_copy shown = { .lane = TIMELINE_STATE,
                                          .what = "fetch",
                                          .commit = round->commit,
                                          .bytes = state->manifest.replicated_bytes };
    int rc;

    worker_begins(state->worker, WORKER_FETCHES);
    if (round->holders.count) {
        holders = mem_zalloc_array(round->members.count, sizeof(*holders));
        if (!holders)
            return err_set(err, HVD_E_NOMEM,
                           "no memory for the list of the workers that hold a commit; free memory "
                           "on this host");
        what.sources = (struct msg_source_list){ holders, 0 };
        for (size_t i = 0; i < round->members.count; i++) {
            const struct msg_member *member = &round->members.items[i];

            if (member->incarnation != state->worker->incarnation &&
                sync_is_holder(round, member->incarnation))
                holders[what.sources.count++] =
                    (struct msg_source){ member->incarnation, member->host, member->slot,
                                         member->addresses };
        }
    }
    timeline_events_begin_copy(&state->worker->events, &shown);
    if (state_reads_checkpoint(round))
        rc = fetch_checkpoint(state, msg, err);
    else if (what.sources.count)
        rc = fetch_commit(state, msg, &what, err);
    else
        rc = err_set(err, HVD_E_LOST,
                     "commit %" PRIu64 ".%" PRIu32 ": this worker lacks the commit with which the "
                     "round begins, and no other worker holds it",
                     COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit));
    mem_free(holders);
    timeline_events_end_copy(&state->worker->events, &shown, rc);
    return rc;
}

/* Loads the commit of a switch in a worker that was to make it, but whose round before failed
 * first: another member may have made the commit. HVD_E_NOTFOUND: no member can send it; most
 * likely the last step of the round before failed on all members, because one was lost in it. */
static int sync_after_cut(hvd_state *state, const struct msg *msg, struct hvd_err *err)
{
    const struct msg_round *round = &msg->u.round;
    int rc = fetch_from_others(state, msg, err);

    if (rc != HVD_E_LOST)
        return rc;
    return err_set(err, HVD_E_NOTFOUND,
                   "round %" PRIu64 " failed in its last step, and no member can send commit "
                   "%" PRIu64 ".%" PRIu32 ", which that step was to make",
                   round->previous, COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit));
}

/* Loads the state with which the round of the ROUND message `msg` begins. The message has the
 * number of the commit and the list of workers that hold it. `mine`: this worker is in that
 * list; `here`: its snapshot has the commit. */
int state_sync(hvd_state *state, const struct msg *msg, struct hvd_err *err)
{
    const struct msg_round *round = &msg->u.round;
    bool mine = sync_is_holder(round, state->worker->incarnation);
    bool here = mine && snapshot_find(state->snapshot, round->commit);
    struct coll *coll;
    int rc = 0;

    /* PROTOCOL.md: if no process holds a commit, the oldest member commits its live state as the
     * first commit of the round. At a switch the commit was made at the agreed check, or must be
     * fetched. */
    if (mine && !here && round->cause != CAUSE_SWITCH &&
        round->commit == COMMIT_FIRST_OF(msg->round)) {
        rc = state_commit_as(state, round->commit, err);
        here = rc == 0;
    }
    /* After this barrier all members that are to have the commit have made it, so the other members
     * may fetch it. */
    if (!rc && round->holders.count && round->holders.count < round->members.count) {
        rc = rounds_get(state->worker->rounds, true /* the library calls, not the program */, &coll,
                        err);
        if (!rc) {
            rc = coll_run(coll, &(struct coll_call){ .kind = COLL_BARRIER }, err);
            rounds_put(state->worker->rounds, rc);
        }
    }
    if (rc)
        return rc;
    if (!here && mine && round->cause == CAUSE_SWITCH)
        return sync_after_cut(state, msg, err);
    if (!here)
        return fetch_from_others(state, msg, err);
    if (state->live == round->commit)
        return 0;
    /* the round begins with this commit for all members, so newer commits of this worker are
     * dropped */
    drop_from(state, round->commit + 1);
    return state_restore_newest(state, COPY_ALL, err);
}
