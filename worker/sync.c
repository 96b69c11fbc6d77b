/* sync.c: the commit with which a round begins, from whoever holds it. */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/commit.h"
#include "worker/fail.h"
#include "worker/state_inside.h"

#include <inttypes.h>

#define RETRY_US (100 * TIME_MS)

static bool is_holder(const struct msg_round *round, uint64_t incarnation)
{
    for (size_t i = 0; i < round->holders.count; i++) {
        if (round->holders.items[i] == incarnation)
            return true;
    }
    return false;
}

/* Those that hold it and are members. With few holders and many members, or the reverse, it is the
 * shorter list times the longer; a round has a fetch only when somebody has joined or fallen
 * behind. */
static int find_holders(const struct msg_round *round, uint64_t self,
                        struct msg_source **ret_sources, size_t *ret_count)
{
    struct msg_source *sources = mem_zalloc_array(round->members.count, sizeof(*sources));
    size_t count = 0;

    if (!sources)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < round->members.count; i++) {
        const struct msg_member *member = &round->members.items[i];

        if (member->incarnation == self || !is_holder(round, member->incarnation))
            continue;
        sources[count++] = (struct msg_source){ member->incarnation, member->host, member->slot,
                                                member->addresses };
    }
    *ret_sources = sources;
    *ret_count = count;
    return 0;
}

/* What is held here and is not what the others hold: a commit of the same number that differs, or
 * one that was made by somebody who was alone with it. */
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

/* At a switch in which all leave, their commit may still be under way when we ask for it. */
static int fetch_when_there(hvd_state *state, const struct msg *msg,
                            const struct msg_source_list *sources, struct hvd_err *err)
{
    struct session_thread *session = state->worker->session;
    bool under_way = msg->u.round.cause == CAUSE_SWITCH && !msg->u.round.holders.count;
    struct msg_fetched fetched;
    int rc;

    do
        rc = session_thread_fetch(session, msg->round, msg->u.round.commit, sources, &fetched, err);
    while (rc == HVD_E_LOST && under_way && !session_thread_pause(session, msg->round, RETRY_US));
    return rc;
}

/* The replicated part comes from others; what stays with this rank is put beside it. */
static int fetch(hvd_state *state, const struct msg *msg, const struct msg_source_list *sources,
                 struct hvd_err *err)
{
    const struct copy mine = state_copy(state, COPY_PER_RANK);
    const struct copy theirs = state_copy(state, COPY_REPLICATED);
    uint64_t commit = msg->u.round.commit;
    int rc;

    drop_from(state, commit);
    rc = fetch_when_there(state, msg, sources, err);
    if (!rc)
        rc = state_follow(state, err);
    if (!rc)
        rc = copy_commit(state->snapshot, &mine, err);
    if (rc)
        return rc;
    snapshot_end(state->snapshot, commit);
    rc = copy_restore(state->snapshot, commit, &theirs, err);
    if (rc)
        snapshot_drop(state->snapshot, commit); /* nobody is to have it from here */
    else
        state->live = commit;
    return rc;
}

static int fetch_from_others(hvd_state *state, const struct msg *msg, struct hvd_err *err)
{
    const struct msg_round *round = &msg->u.round;
    struct msg_source_list sources = round->sources;
    struct msg_source *holders = NULL;
    int64_t begun_us = clock_now_us();
    int rc = 0;

    worker_begins(state->worker, WORKER_FETCHES);
    if (round->holders.count) {
        rc = find_holders(round, state->worker->incarnation, &holders, &sources.count);
        sources.items = holders;
    }
    if (rc)
        return err_set(err, rc, "no memory for the holders of a commit");
    if (sources.count)
        rc = fetch(state, msg, &sources, err);
    else
        rc = err_set(err, HVD_E_LOST, "commit %" PRIu64 ".%" PRIu32 ": nobody else holds it",
                     COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit));
    mem_free(holders);
    shown_copy(&state->worker->shown,
               &(struct shown_copy){ .what = "fetch",
                                     .commit = round->commit,
                                     .bytes = state->manifest.replicated_bytes,
                                     .code = rc,
                                     .begun_us = begun_us,
                                     .ended_us = clock_now_us() });
    return rc;
}

/* Holders have made the commit, the others are there to fetch it. */
static int meet(hvd_state *state, struct hvd_err *err)
{
    struct coll *coll;
    int rc = rounds_get(state->worker->rounds, true, &coll, err);

    if (rc)
        return rc;
    rc = coll_run(coll, &(struct coll_call){ .kind = COLL_BARRIER }, err);
    rounds_put(state->worker->rounds, rc);
    return rc;
}

int state_sync(hvd_state *state, const struct msg *msg, struct hvd_err *err)
{
    const struct msg_round *round = &msg->u.round;
    bool mine = is_holder(round, state->worker->incarnation);
    bool here = mine && snapshot_find(state->snapshot, round->commit);
    int rc = 0;

    /* Nobody has committed yet: what this one has now is what the round begins with. At a switch it
     * was made at the agreed check, or must come from those who were there. */
    if (mine && !here && round->cause != CAUSE_SWITCH &&
        round->commit == COMMIT_FIRST_OF(msg->round)) {
        rc = state_commit_as(state, round->commit, err);
        here = rc == 0;
    }
    if (!rc && round->holders.count && round->holders.count < round->members.count)
        rc = meet(state, err);
    if (rc)
        return rc;
    if (!here)
        return fetch_from_others(state, msg, err);
    if (state->live == round->commit)
        return 0;
    drop_from(state, round->commit + 1); /* the newest is now the one that the others have */
    return state_restore_newest(state, COPY_ALL, err);
}
