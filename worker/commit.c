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
        show(state, "commit beside", copier->commit, rc, copier->begun_us, copier->ended_us);
    copier->ended_us = 0;
    return rc;
}

int state_commit_as(hvd_state *state, uint64_t commit, struct hvd_err *err)
{
    const struct copy copy = state_copy(state, COPY_ALL);
    enum state_phase phase = state->phase;
    int64_t begun_us;
    int rc = state_fence(state, err);

    if (rc)
        return rc;
    begun_us = clock_now_us();
    state->phase = STATE_COPYING;
    rc = copy_commit(state->snapshot, &copy, err);
    state->phase = phase;
    show(state, "commit", commit, rc, begun_us, clock_now_us());
    if (rc)
        return rc;
    snapshot_end(state->snapshot, commit);
    state->live = commit;
    return 0;
}

int state_restore_newest(hvd_state *state, unsigned which, struct hvd_err *err)
{
    const struct copy copy = state_copy(state, which);
    uint64_t newest = snapshot_newest(state->snapshot);
    enum state_phase phase = state->phase;
    int64_t begun_us = clock_now_us();
    int rc;

    if (!newest)
        return err_set(err, HVD_E_NOTFOUND, "nothing has been committed yet");
    state->phase = STATE_COPYING;
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

/* A state that was committed a moment ago only gets the other name. */
static int commit_for_switch(hvd_state *state, uint64_t commit)
{
    if (!state->live)
        return state_commit_as(state, commit, fail_err());
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
        rc = state_commit_as(state, next_commit(state), fail_err());
    return rc ? rc : check(state);
}

int hvd_state_commit_async(hvd_state *state)
{
    struct copy copy;
    int rc = begin(state, "hvd_state_commit_async");

    if (rc)
        return rc;
    copy = state_copy(state, COPY_ALL);
    state->live = 0;
    return copier_begin(&state->copier, state->snapshot, &copy, next_commit(state), fail_err());
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
