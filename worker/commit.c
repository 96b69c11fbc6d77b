/* commit.c: commits, restores and checks, as train calls them. */
#include "proto/commit.h"
#include "base/time.h"
#include "os/clock.h"
#include "worker/fail.h"
#include "worker/state_inside.h"

#include <inttypes.h>

/* ---- copies ---------------------------------------------------------------------------------- */

static void show(hvd_state *state, const char *what, uint64_t commit, int code, int64_t begun_us,
                 int64_t ended_us)
{
    shown_copy(&state->worker->shown, &(struct shown_copy){ .what = what,
                                                            .commit = commit,
                                                            .bytes = state->manifest.bytes,
                                                            .code = code,
                                                            .begun_us = begun_us,
                                                            .ended_us = ended_us });
}

/* What was done beside the loop is shown when that waits for it. */
int state_fence(hvd_state *state, struct hvd_err *err)
{
    struct copier *copier = &state->copier;
    int rc = copier_wait(copier, err);

    if (copier->ended_us)
        show(state, "commit beside", copier->job.commit, rc, copier->begun_us, copier->ended_us);
    copier->ended_us = 0;
    if (rc && state->live == copier->job.commit)
        state->live = 0;
    return rc;
}

static int bring(hvd_state *state, const struct slot *slot, struct hvd_err *err)
{
    const struct copy copy = slot_copy(slot);
    int64_t begun_us = clock_now_us();
    int rc = copy_commit(state->snapshot, &copy, err);

    if (!rc)
        snapshot_end(state->snapshot, slot_commit(slot));
    show(state, "to the host", slot_commit(slot), rc, begun_us, clock_now_us());
    return rc;
}

int state_settle(hvd_state *state, struct hvd_err *err)
{
    int fenced = state_fence(state, err);
    const struct slot *slot = state_newest_slot(state);
    int rc = 0;

    if (slot && slot_commit(slot) > snapshot_newest(state->snapshot))
        rc = bring(state, slot, fenced ? NULL : err);
    return fenced ? fenced : rc;
}

static int judge_round(void *rounds, struct hvd_err *err)
{
    return rounds_judge(rounds, err);
}

/* beside: it need not be there when this returns, and the program waits for it before it changes
 * anything. What has been copied on the device is always brought to the host so. */
static int make(hvd_state *state, uint64_t commit, bool beside, struct hvd_err *err)
{
    struct copier_job job = { .copy = state_copy(state, COPY_ALL),
                              .commit = commit,
                              .snapshot = state->snapshot,
                              .judge = judge_round,
                              .arg = state->worker->rounds };
    int rc = state_take(state, &job, beside, err);

    if (rc)
        return rc;
    if (!beside && !job.slot)
        return copier_make(&job, err);
    rc = copier_begin(&state->copier, &job, err);
    return rc == HVD_E_LIMIT && !beside ? copier_make(&job, err) : rc;
}

/* The copy before this one has been waited for. */
static int commit_live(hvd_state *state, uint64_t commit, bool beside, struct hvd_err *err)
{
    enum state_phase phase = state->phase;
    int64_t begun_us = clock_now_us();
    int rc;

    state->live = 0;
    for (size_t i = 0; i < state->owned.count; i++)
        state->owned.items[i].commits(state->owned.items[i].object);
    state->phase = STATE_COPYING;
    rc = make(state, commit, beside, err);
    state->phase = phase;
    if (!beside)
        show(state, "commit", commit, rc, begun_us, clock_now_us());
    if (!rc && !beside)
        state->live = commit;
    return rc;
}

int state_commit_as(hvd_state *state, uint64_t commit, struct hvd_err *err)
{
    int rc = state_fence(state, err);

    if (!rc)
        rc = commit_live(state, commit, false, err);
    return rc ? rc : state_settle(state, err);
}

int state_restore_newest(hvd_state *state, unsigned which, struct hvd_err *err)
{
    const struct copy copy = state_copy(state, which);
    const struct slot *slot = state_newest_slot(state);
    uint64_t newest = snapshot_newest(state->snapshot);
    enum state_phase phase = state->phase;
    int64_t begun_us = clock_now_us();
    int rc;

    if (slot && slot_commit(slot) >= newest)
        newest = slot_commit(slot);
    else
        slot = NULL;
    if (!newest)
        return err_set(err, HVD_E_NOTFOUND, "nothing has been committed yet");
    state->phase = STATE_COPYING;
    rc = slot ? state_restore_slot(state, slot, &copy, err) : state_follow(state, err);
    if (!rc && !slot)
        rc = copy_restore(state->snapshot, newest, &copy, err);
    state->phase = phase;
    show(state, "restore", newest, rc, begun_us, clock_now_us());
    if (!rc && which == COPY_ALL)
        state->live = newest;
    return rc;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void note_call(hvd_state *state)
{
    atomic_fetch_add_explicit(&state->worker->calls, 1, memory_order_relaxed);
}

/* Up to here one step of this round has been made. */
static void note_first_step(hvd_state *state)
{
    state->stepped = true;
    shown_stepped(&state->worker->shown);
    if (worker_is_alone(state->worker))
        return;
    state->entered.first_step_us = clock_now_us() - state->began_us;
    session_thread_say(state->worker->session,
                       &(struct session_event){ .kind = SESSION_STEPPED,
                                                .round = state->round,
                                                .entered = &state->entered });
}

/* A state that was committed a moment ago only gets the other name. It must be whole before anybody
 * hears of it. */
static int commit_for_switch(hvd_state *state, uint64_t commit)
{
    struct slot *slot;
    int rc = state->live ? state_settle(state, fail_err()) : 0;

    if (rc)
        return rc;
    if (!state->live)
        return state_commit_as(state, commit, fail_err());
    slot = state_slot_of(state, state->live);
    if (slot)
        slot_name(slot, commit);
    snapshot_rename(state->snapshot, commit);
    state->live = commit;
    return 0;
}

/* What the session has to say to this check: it may want the state committed first. */
static int hear_answer(hvd_state *state)
{
    struct loop_order order;
    int rc = 0;

    for (;;) {
        session_thread_next(state->worker->session, &order);
        if (order.kind == DO_COMMIT)
            rc = commit_for_switch(state, order.commit);
        else
            break;
    }
    ASSERT(order.kind == DO_ANSWER || order.kind == DO_RETURN);
    return rc ? rc : fail_plain(order.code);
}

static void tell(hvd_state *state, int code)
{
    shown_news(&state->worker->shown);
    state->told = code;
    rounds_tell(state->worker->rounds, code);
}

static int check(hvd_state *state)
{
    struct session_thread *session = state->worker->session;
    uint64_t number = state->checks++;
    int rc = 0;

    note_call(state);
    if (!state->stepped)
        note_first_step(state);
    if (session && session_thread_counts(session, number)) {
        session_thread_say(session,
                           &(struct session_event){ .kind = SESSION_CHECK, .check = number });
        rc = hear_answer(state);
    }
    if (!rc)
        state->live = 0; /* train goes on */
    else if (rc > 0 || rc == HVD_E_REVOKED)
        tell(state, rc);
    return rc;
}

int hvd_state_check(hvd_state *state)
{
    int rc = state_in_train(state, "hvd_state_check");

    if (!rc && rounds_failed(state->worker->rounds))
        rc = state_goes_on(state, "hvd_state_check");
    if (rc)
        return rc;
    state->live = 0;
    return check(state);
}

/* ---- commits --------------------------------------------------------------------------------- */

/* Of a round in which a collective has failed, the buffers of some rank hold rubbish. */
static int begin(hvd_state *state, const char *call)
{
    int rc = state_goes_on(state, call);

    return rc ? rc : state_fence(state, fail_err());
}

static uint64_t next_commit(hvd_state *state)
{
    return COMMIT_FIRST_OF(state->round) | ++state->commits;
}

int hvd_state_commit(hvd_state *state)
{
    int rc = begin(state, "hvd_state_commit");

    if (!rc)
        rc = commit_live(state, next_commit(state), false, fail_err());
    return rc ? rc : check(state);
}

int hvd_state_commit_async(hvd_state *state)
{
    int rc = begin(state, "hvd_state_commit_async");

    return rc ? rc : commit_live(state, next_commit(state), true, fail_err());
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
