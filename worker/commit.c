/*
 * commit.c: commits, restores and checks: the functions of hvd.h that the program calls from train
 * (the function that it gives to hvd_elastic_run), and what the library does with commits between
 * two rounds.
 *
 * Called by the program from train, by sync.c for the first commit of a round, and by run.c when
 * train has returned. Invariant: state->live is the number of the commit that has the same bytes as
 * the program's memory, or 0 if no commit has. So at a switch directly after a commit, that commit
 * only gets a new number, and nothing is copied.
 */
#include "proto/commit.h"
#include "os/clock.h"
#include "worker/fail.h"
#include "worker/requests.h"
#include "worker/state_device.h"

/* Waits until the copier's thread has made its commit, as hvd_state_fence does for the program, and
 * returns the result; 0: no commit was being made. The copier itself writes nothing to the
 * timeline, so this function shows the copy there. After a failure state->live becomes 0: no commit
 * has the bytes of the program's memory. */
int state_fence(hvd_state *state, struct hvd_err *err)
{
    struct copier *copier = &state->copier;
    int rc = copier_wait(copier, err);

    if (copier->ended_us)
        state_show_copy(state, TIMELINE_COPIER, "commit beside", copier->task.commit, rc,
                        copier->begun_us, copier->ended_us);
    copier->ended_us = 0;
    if (rc && state->live == copier->task.commit)
        state->live = 0;
    return rc;
}

/* Waits for the copier's thread. Called when other processes must be able to read the newest
 * commit. If it exists only in a slot (memory on the GPU for one commit), copies it to the
 * snapshot, because other processes can read nothing but the snapshot. Returns the first
 * failure. */
int state_commit_to_snapshot(hvd_state *state, struct hvd_err *err)
{
    int fenced = state_fence(state, err);
    const struct slot *slot = state_newest_slot(state);
    struct timeline_events_copy shown;
    struct copy copy;
    int rc;

    if (!slot || slot_commit(slot) <= snapshot_newest(state->snapshot))
        return fenced;
    copy = slot_copy(slot);
    shown = state_note_copy_begin(state, "to the host", slot_commit(slot));
    rc = copy_commit(state->snapshot, &copy, fenced ? NULL : err);
    if (!rc)
        snapshot_end(state->snapshot, slot_commit(slot));
    timeline_events_end_copy(&state->worker->events, &shown, rc);
    return fenced ? fenced : rc;
}

/* Makes a commit of the program's memory, with this number. No other copy may be in progress.
 * beside is true: the copier's thread makes the copy while the training goes on, and the program
 * calls hvd_state_fence before it changes the state. If the state lies in GPU memory, it may first
 * be copied into a slot on the GPU (state_take): the program may then change the state at once, and
 * the copier's thread copies the slot to host memory. */
static int commit_live(hvd_state *state, uint64_t commit, bool beside, struct hvd_err *err)
{
    struct copier_task task = { .copy = state_copy(state, COPY_ALL),
                                .commit = commit,
                                .snapshot = state->snapshot,
                                .judge = rounds_judge,
                                .arg = state->worker->rounds };
    struct timeline_events_copy shown = state_note_copy_begin(state, "commit", commit);
    enum state_phase phase = state->phase;
    int rc;

    state->live = 0;
    for (size_t i = 0; i < state->owned.count; i++)
        state->owned.items[i].commits(state->owned.items[i].object);
    state->phase = STATE_COPYING;
    rc = state_take(state, &task, beside, err);
    if (!rc && (beside || task.slot)) {
        rc = copier_begin(&state->copier, &task, err);
        /* no thread could be started, so this thread makes the copy */
        if (rc == HVD_E_LIMIT && !beside)
            rc = copier_make(&task, err);
    } else if (!rc) {
        rc = copier_make(&task, err);
    }
    state->phase = phase;
    if (!beside)
        timeline_events_end_copy(&state->worker->events, &shown, rc);
    else /* only the ranges of this call end here: state_fence shows the copy when it is done */
        timeline_events_leave_copy(&state->worker->events, &shown, rc);
    if (!rc && !beside)
        state->live = commit;
    if (!rc)
        worker_note_commit(state->worker, commit);
    return rc;
}

/* Commits the program's memory under this number, and waits until the snapshot has the commit.
 * First waits for a commit that the copier's thread still makes (state_fence), because only one
 * copy may be in progress. After a failure of the copy there is no new commit, so nothing is
 * brought to the snapshot. */
int state_commit_as(hvd_state *state, uint64_t commit, struct hvd_err *err)
{
    int rc = state_fence(state, err);

    if (!rc)
        rc = commit_live(state, commit, false /* not beside the training */, err);
    return rc ? rc : state_commit_to_snapshot(state, err);
}

/* Restores the entries whose kinds are in `which` from the newest commit: from a slot on the GPU
 * if it has that commit, else from the snapshot. HVD_E_NOTFOUND: there is no commit. */
int state_restore_newest(hvd_state *state, unsigned which, struct hvd_err *err)
{
    const struct copy copy = state_copy(state, which);
    const struct slot *slot = state_newest_slot(state);
    uint64_t newest = snapshot_newest(state->snapshot);
    enum state_phase phase = state->phase;
    struct timeline_events_copy shown;
    int rc;

    /* the newer of the two is restored: from here on `slot` is NULL if the snapshot has it */
    if (slot && slot_commit(slot) >= newest)
        newest = slot_commit(slot);
    else
        slot = NULL;
    if (!newest)
        return err_set(
            err, HVD_E_NOTFOUND,
            "hvd_state_restore: there is no commit yet; make a commit with hvd_state_commit first");
    state->phase = STATE_COPYING;
    shown = state_note_copy_begin(state, "restore", newest);
    rc = slot ? state_restore_slot(state, slot, &copy, err) : state_follow(state, err);
    if (!rc && !slot)
        rc = copy_restore(state->snapshot, newest, &copy, err);
    state->phase = phase;
    timeline_events_end_copy(&state->worker->events, &shown, rc);
    if (!rc && which == COPY_ALL)
        state->live = newest;
    return rc;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Makes a check, with which each call of hvd_state_check and hvd_state_commit ends: asks whether
 * the round goes on. Returns 0: train goes on; news (such as HVD_HOSTS_UPDATED) or an error: train
 * must return this code. */
static int check_news(hvd_state *state)
{
    struct worker *worker = state->worker;
    struct session_thread *session = worker->session;
    uint64_t check = state->checks++, activity;
    struct loop_order order;
    int rc = 0;

    /* started allreduces that are fused wait in an open batch. All ranks make this check, so all of
     * them close their batch here, and the batches stay equal */
    requests_flush(worker->rounds);
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
    if (!state->stepped) { /* this is the first check of the round, so the first step is done */
        state->stepped = true;
        timeline_events_stepped(&worker->events);
        if (!worker_is_alone(worker)) {
            state->entered.first_step_us = clock_now_us() - state->began_us;
            session_thread_say(worker->session,
                               &(struct session_event){ .kind = SESSION_STEPPED,
                                                        .round = state->round,
                                                        .entered = &state->entered });
        }
    }
    if (session && session_thread_counts(session, check)) {
        /* The session answers the check. Before the answer it may order the commit of a switch. */
        state->phase = STATE_COPYING; /* in this phase no other thread may call hvd_elastic_next */
        activity =
            timeline_begin_activity(worker->events.timeline, "check", state->round, check + 1, 0);
        session_thread_say(session,
                           &(struct session_event){ .kind = SESSION_CHECK, .check = check });
        for (session_thread_next(session, &order); order.kind == DO_COMMIT;
             session_thread_next(session, &order)) {
            /* This commit belongs to a switch: all members make it at the agreed check. If the
             * program's memory has the same bytes as the last commit (`live`), that commit only
             * gets the new number. The commit must be in the snapshot before any other process is
             * told of it. */
            rc = state->live ? state_commit_to_snapshot(state, fail_err()) : 0;
            if (!rc && !state->live) {
                rc = state_commit_as(state, order.commit, fail_err());
            } else if (!rc) {
                struct slot *slot = state_slot_of(state, state->live);

                if (slot)
                    slot_name(slot, order.commit);
                snapshot_rename(state->snapshot, order.commit);
                state->live = order.commit;
            }
        }
        state->phase = STATE_TRAINING;
        ASSERT(order.kind == DO_ANSWER || order.kind == DO_RETURN);
        rc = rc ? rc : fail_plain(order.code);
        timeline_end_activity(worker->events.timeline, activity, rc);
    }
    timeline_events_step(&worker->events, rc ? 0 : state->checks + 1);
    if (!rc) {
        /* train goes on and changes the state, so no commit has the same bytes any more */
        state->live = 0;
    } else if (rc > 0 || rc == HVD_E_REVOKED) {
        timeline_events_news(&worker->events);
        state->told = rc;
    }
    if (rc)
        rounds_tell(worker->rounds, rc);
    return rc;
}

/* The check of the program without a commit. When the round has failed, train gets the error at
 * once, and the session is not asked. */
int hvd_state_check(hvd_state *state)
{
    int rc = state_in_train(state, "hvd_state_check");

    if (!rc && rounds_failed(state->worker->rounds))
        rc = state_goes_on(state, "hvd_state_check"); /* sets the code and the text */
    if (rc)
        return rc;
    state->live = 0; /* train may have changed the state since its last commit */
    return check_news(state);
}

/* ---- commits --------------------------------------------------------------------------------- */

/* Called at the beginning of each commit of the program: makes sure that the round has not failed,
 * closes the open batch of fused requests, and waits for the commit before. After a collective of
 * the round has failed no commit is made: the buffers of some rank are undefined. `call`: the
 * function of hvd.h, for errors. */
static int begin_commit(hvd_state *state, const char *call)
{
    int rc = state_goes_on(state, call);

    if (!rc)
        requests_flush(state->worker->rounds);
    return rc ? rc : state_fence(state, fail_err());
}

/* Returns the number of the next commit of this round: the round in the high bits, and the count of
 * its commits. */
static uint64_t next_commit(hvd_state *state)
{
    return COMMIT_FIRST_OF(state->round) | ++state->commits;
}

int hvd_state_commit(hvd_state *state)
{
    int rc = begin_commit(state, "hvd_state_commit");

    if (!rc)
        rc =
            commit_live(state, next_commit(state), false /* not beside the training */, fail_err());
    return rc ? rc : check_news(state);
}

int hvd_state_commit_async(hvd_state *state)
{
    int rc = begin_commit(state, "hvd_state_commit_async");

    return rc ? rc
              : commit_live(state, next_commit(state), true /* beside the training */, fail_err());
}

int hvd_state_fence(hvd_state *state)
{
    int rc = state_in_train(state, "hvd_state_fence");

    return rc ? rc : state_fence(state, fail_err());
}

int hvd_state_restore(hvd_state *state)
{
    int rc = state_in_train(state, "hvd_state_restore");

    if (!rc)
        rc = state_fence(state, fail_err());
    return rc ? rc : state_restore_newest(state, COPY_ALL, fail_err());
}
