/*
 * run.c: hvd_elastic_begin and hvd_elastic_next, and hvd_elastic_run, which calls both. The session
 * (worker/core) decides what the training loop does next; this file does it.
 *
 *     next ──► order ─┬─► DO_ENTER: connect, reset callbacks, load the state; the program trains,
 *                     │   and then calls next with the value that train has returned
 *                     ├─► DO_RESTORE: back to the last commit, and on to the next order
 *                     └─► DO_RETURN: the run ends
 *
 * Runs on the thread that calls hvd_elastic_next, which is the training thread from then on.
 * Invariant: each order is answered by one event, also by a worker that cannot go on
 * (state->broken): it enters the round and fails in it, so that the other members learn of it.
 */
#include "os/clock.h"
#include "worker/addresses.h"
#include "worker/fail.h"
#include "worker/news.h"
#include "worker/persist.h"
#include "worker/state_device.h"
#include "worker/store_calls.h"

#include <stdio.h>

/* Prepares a run: finds the GPU of this process, opens the memory for commits, and loads the
 * per-rank entries that an earlier worker of this slot has left. */
static int begin_run(hvd_state *state, struct hvd_err *err)
{
    struct gpu_use *gpu = &state->worker->gpu;
    const struct gpu_device *device = NULL;
    const struct manifest *manifest = &state->manifest;
    struct snapshot_shape shape;
    struct msg_snapshot wanted;
    int fd = -1;
    int rc = 0;

    manifest_seal(&state->manifest);
    /* This process works with the GPU of the stream, or of an entry of the state, or with the GPU
     * that this thread uses now. READY tells the other members this GPU, so that their GPUs connect
     * to it before the first call on its memory. */
    if (cuda_if_used() && !atomic_load(&gpu->device)) {
        for (size_t i = 0; i < state->parts.count && !device; i++)
            device = gpu_device_of(state->parts.items[i].at);
        if (!device)
            device = gpu_device_current();
        if (device)
            rc = gpu_use_device(gpu, device, "the state", err);
    }
    if (!rc)
        rc = state_open_device(state, err);
    if (!rc && !state->snapshot) {
        shape = (struct snapshot_shape){ manifest->digest, manifest->replicated_bytes,
                                         manifest->bytes };
        wanted = (struct msg_snapshot){ shape.manifest, shape.replicated_bytes, shape.bytes };
        if (worker_is_alone(state->worker))
            rc = snapshot_create(&shape, &state->snapshot, err);
        else if (!(rc = session_thread_snapshot(state->worker->session, &wanted, &fd, err)))
            rc = snapshot_open(fd, &shape, &state->snapshot, err);
    }
    /* The per-rank entries of an earlier worker in this slot are loaded now; replicated entries
     * are loaded when the round begins. */
    if (!rc)
        rc = state_restore_newest(state, COPY_PER_RANK, err);
    return rc == HVD_E_NOTFOUND ? 0 : rc;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Called when a round begins: sets the fields of the state that are about one round to their first
 * values, and ends the calls of hvd/store.h that are about earlier rounds. */
static void begin_round(hvd_state *state, uint64_t round)
{
    state->round = round;
    state->commits = 0;
    state->checks = 0;
    state->told = 0;
    state->stepped = false;
    state->entered = (struct msg_entered){ .commit = 0 };
    state->remark[0] = '\0';
    store_cancel(state->worker->store, round - 1);
}

/* Calls the reset callbacks of the program. After a failure state->broken has the code and the
 * text: this worker cannot go on. */
static int call_resets(hvd_state *state)
{
    for (size_t i = 0; i < state->resets.count; i++) {
        int rc = state->resets.items[i].call(state, state->resets.items[i].arg);
        /* These codes mean something that only the library can say, so a callback's use of one
         * becomes HVD_E_STATE. */
        bool reserved = rc > 0 || rc == HVD_E_REVOKED || rc == HVD_E_LOST;

        if (rc)
            return err_set(
                &state->broken, reserved ? HVD_E_STATE : rc,
                "reset callback %zu of %zu returned %d instead of 0, so the worker cannot train "
                "on; let the callback return 0, or remove the cause of its error",
                i + 1, state->resets.count, rc);
    }
    return 0;
}

/* true: a collective, a commit or a check has told train to return before the training was done.
 * Then train is called again, even if it has returned 0. */
static bool is_interrupted(const hvd_state *state)
{
    return rounds_failed(state->worker->rounds) || state->told == HVD_HOSTS_UPDATED ||
           state->told == HVD_E_REVOKED;
}

/* Lets the program train: collectives, commits and checks are allowed from now on. */
static void open_train(hvd_state *state)
{
    struct worker *worker = state->worker;

    state->began_us = clock_now_us();
    state->live = 0;
    worker_begins(worker, WORKER_TRAINS);
    timeline_events_trains(&worker->events);
    rounds_open(worker->rounds, true /* collectives may be called */);
    state->phase = STATE_TRAINING;
}

/* Ends the training of this round, for which train has returned rc. Returns the code with which the
 * round has ended for this worker: a code below 0 has its text in fail_err() or in state->broken.
 * 0: the training is done. */
static int close_train(hvd_state *state, int rc)
{
    struct worker *worker = state->worker;
    /* the last error that a call of train has left in this thread; calls of this function may
     * replace it */
    const struct hvd_err given = *fail_latest();
    char reason[ERR_TEXT_MAX];
    bool revoked;
    int failed;
    int fenced;

    worker_begins(worker, WORKER_RESTS);
    rounds_open(worker->rounds, false /* no collectives any more */);
    if (rounds_settle(worker->rounds, &state->broken))
        rc = state->broken.code;
    /* Other processes must be able to read the last commit, so it is copied to the snapshot (the
     * memory that outlives this worker) if only the GPU has it. When the training is done, no
     * process will read it. */
    if (rc == 0 && !is_interrupted(state))
        fenced = state_fence(state, fail_err());
    else
        fenced = state_commit_to_snapshot(state, fail_err());
    rc = rc ? rc : fenced;

    /* Turns the result of train into the code of this round. HVD_E_REVOKED repeats the round, so it
     * is accepted only if the library has given it: a program that invents it would train the same
     * round for ever. */
    failed = rounds_failed(worker->rounds);
    revoked = worker_is_alone(worker) || failed ||
              session_thread_cancelled(worker->session, state->round);
    if (rc == 0 && is_interrupted(state)) /* the training is not done: train is called again */
        rc = failed ? failed : state->told;
    /* train may have made calls after the call that failed, which have changed this thread's last
     * error: the text of the first failure is set again */
    if (rc < 0 && rc == failed)
        rounds_why(worker->rounds, fail_err());
    if (rc > HVD_DONE)
        rc = fail(HVD_E_STATE,
                  "train returned %d, which is not a code of the library; return 0, a code below "
                  "0, or a code that a call has returned",
                  rc);
    else if (rc == HVD_E_REVOKED && !revoked)
        rc = fail(HVD_E_STATE,
                  "train returned %s, but no call of the library has returned this code; return "
                  "only codes that a call has returned",
                  err_name(rc));
    else if (rc < 0 && rc != HVD_E_REVOKED && rc != HVD_E_LOST &&
             rounds_reason(worker->rounds, reason)) /* hvd_fail has given the reason */
        rc = fail(rc, "%s", reason);
    else if (rc < 0 && fail_err()->code != rc && given.code == rc)
        *fail_err() = given;
    else if (rc < 0 && fail_err()->code != rc) /* train's own code: no call has returned it */
        rc = fail(rc,
                  "train returned %d, an error of the program itself; look at the output of this "
                  "worker, and let the program call hvd_fail with the reason",
                  rc);
    timeline_events_returned(&worker->events, rc);
    return rc;
}

/* ---- the steps of a worker with a driver ----------------------------------------------------- */

/* Passes an event of the training loop to the session. */
static void say_event(const hvd_state *state, struct session_event event)
{
    session_thread_say(state->worker->session, &event);
}

/* Enters a round: connects the collectives, calls the reset callbacks, and loads the state with
 * which the round begins. After a failure *err has the reason; the session then revokes the round,
 * and the loop may enter a later one. If this worker cannot enter any round, state->broken has the
 * code and the reason. */
static int enter_round(hvd_state *state, const struct loop_order *order, struct hvd_err *err)
{
    struct worker *worker = state->worker;
    const struct rounds_order of_msg = { .incarnation = worker->incarnation,
                                         .round = order->round,
                                         .members = &order->msg.u.round.members,
                                         .secret = order->msg.u.round.secret };
    int64_t began_us = clock_now_us();
    int64_t connected_us;
    bool of_round;
    int rc;

    /* if the process uses CUDA, the library sees from here on which pointers are to GPU memory */
    (void)cuda_if_used();
    timeline_events_enters(&worker->events, order->round, order->msg.u.round.cause);
    worker_begins(worker, WORKER_CONNECTS);
    rc = rounds_enter(worker->rounds, &of_msg, order->prepared, err);
    timeline_events_phase(&worker->events, "connect", rc);
    /* HVD_E_INVAL: this worker has other groups or settings than the other members, and so it will
     * be in each round */
    if (rc == HVD_E_INVAL && !state->broken.code)
        state->broken = *err;
    if (rc)
        return rc;
    connected_us = clock_now_us();
    begin_round(state, order->round);
    worker_set_place(order->round, &order->place);
    timeline_events_round(&worker->events, order->round, &order->place);
    worker_begins(worker, WORKER_RESETS);
    rc = call_resets(state); /* a failure sets state->broken, and not *err */
    /* To the watchdog the worker connects again: before a fetch the members wait for each other, as
     * they do when they connect. The fetch itself is WORKER_FETCHES. */
    worker_begins(worker, WORKER_CONNECTS);
    if (!rc)
        rc = state_sync(state, &order->msg, err);
    /* true: the failure concerns this round alone, and a later round may succeed. After a damaged
     * or missing checkpoint the driver names an earlier checkpoint for the next round. After a
     * switch whose commit was not made the next round resumes from the commit before. */
    of_round = rc == HVD_E_REVOKED || rc == HVD_E_LOST || rc == HVD_E_TIMEOUT ||
               rc == HVD_E_MISMATCH ||
               (rc == HVD_E_NOTFOUND && order->msg.u.round.cause == CAUSE_SWITCH) ||
               ((rc == HVD_E_CORRUPT || rc == HVD_E_NOTFOUND) &&
                state_reads_checkpoint(&order->msg.u.round));
    if (rc && !of_round && !state->broken.code)
        state->broken = *err;
    timeline_events_phase(&worker->events, "state", rc);
    state->entered.commit = state->live;
    if (!rc)
        worker_note_commit(worker, order->msg.u.round.commit);
    state->entered.rebuild_us = connected_us - began_us;
    state->entered.state_us = clock_now_us() - connected_us;
    return rc;
}

/* Sends SESSION_RETURNED: `code` is how train has ended; `failed` is the first failure of the
 * round, if train has returned only that the round is dead. A worker that cannot go on
 * (state->broken) sends the reason for that instead of rc. A round that ended without an error is
 * then left by rounds_finish, which waits for members that still use memory of this worker's GPU.
 */
static void run_leave_round(hvd_state *state, int rc)
{
    struct rounds *rounds = state->worker->rounds;
    struct session_event returned = { .kind = SESSION_RETURNED, .code = rc };
    struct hvd_err err;

    if (state->broken.code) {
        returned.code = state->broken.code;
        returned.text = state->broken.text;
    } else if (rc == HVD_E_REVOKED && rounds_failed(rounds)) {
        /* A call after the failed one says only that the round is dead: the other members get
         * the text of the first failure. */
        rounds_why(rounds, &err);
        returned.failed = err.code;
        returned.text = err.text;
    } else if (rc == 0 && rounds_reason(rounds, err.text)) {
        /* the training is done, but the program has failed, and has said why (hvd_fail) */
        returned.text = err.text;
    } else if (rc && fail_err()->code == rc) {
        returned.text = fail_err()->text;
    }
    say_event(state, returned);
    /* 0 or news, no error: other members may still be in the last collective, or need a message of
     * this worker */
    if (returned.code >= 0)
        rounds_finish(rounds);
}

/* Carries out DO_ENTER: enters the round, and tells the session how that has ended (SYNCED). true:
 * the program trains now. A worker that cannot go on (state->broken) does not train: its SYNCED
 * says 0, and its RETURNED has the reason, so that it fails in the round. */
static bool take_round(hvd_state *state, const struct loop_order *order)
{
    struct hvd_err err = { 0 };
    int rc = state->broken.code ? 0 : enter_round(state, order, &err);

    worker_begins(state->worker, WORKER_RESTS);
    if (rc && !state->broken.code) {
        say_event(state,
                  (struct session_event){ .kind = SESSION_SYNCED, .code = rc, .text = err.text });
        return false;
    }
    say_event(state, (struct session_event){ .kind = SESSION_SYNCED });
    if (state->broken.code) {
        run_leave_round(state, state->broken.code);
        return false;
    }
    if (state->remark[0])
        say_event(state, (struct session_event){ .kind = SESSION_REMARK, .text = state->remark });
    open_train(state);
    return true;
}

/* Sends READY, with the addresses at which other members reach this worker and the commits that it
 * holds, and waits for the first order of the session. */
static int get_ready(hvd_state *state, struct loop_order *ret_order, struct hvd_err *err)
{
    const struct worker *worker = state->worker;
    const struct msg_texts *given = &worker->welcome.u.welcome_worker.addresses;
    struct arena arena;
    struct msg_held held[2];
    struct msg_ready ready = { .manifest = state->manifest.digest };
    const char *addresses[LIMIT_ADDRESSES];
    const char *device = coll_engine_device_text(worker->engine);
    char data[LIMIT_TEXT_BYTES];
    char gpu[LIMIT_TEXT_BYTES];
    int rc;

    arena_init(&arena, LIMIT_DECODE_BYTES_MAX);
    rc = manifest_entries(&state->manifest, &arena, &ready.entries);
    if (rc) {
        arena_release(&arena);
        return err_set(err, rc,
                       "no memory for the manifest of the state; free memory on this host");
    }
    ready.held = (struct msg_held_list){ held, snapshot_held(state->snapshot, held) };
    snprintf(data, sizeof(data), "data=%s", coll_engine_contact(worker->engine));
    addresses[ready.addresses.count++] = data;
    if (device) {
        snprintf(gpu, sizeof(gpu), "gpu=%s", device);
        addresses[ready.addresses.count++] = gpu;
    }
    for (size_t i = 0; i < given->count && ready.addresses.count < LIMIT_ADDRESSES; i++)
        addresses[ready.addresses.count++] = given->items[i];
    ready.addresses.items = addresses;
    say_event(state, (struct session_event){ .kind = SESSION_RUN, .ready = &ready });
    /* the session reads `ready` and its arena until this call returns */
    session_thread_next(worker->session, ret_order);
    arena_release(&arena);
    return 0;
}

/* Carries out hvd_elastic_next for a worker of a job: ends the round that the program has trained
 * in (trained true, with the code of train) or sends READY, and then carries out the session's
 * orders until the program trains again or the run ends. */
static int next_in_job(hvd_state *state, bool trained, int code)
{
    struct loop_order order;
    struct msg_held held[2];
    struct msg_held_list list;
    struct hvd_err err;
    bool trains = false;
    int rc = 0;

    if (trained) {
        run_leave_round(state, close_train(state, code));
        session_thread_next(state->worker->session, &order);
    } else {
        rc = get_ready(state, &order, fail_err());
    }
    if (rc)
        return rc;
    /* Orders of the session are carried out until the program trains (0), or the run has ended
     * (HVD_FINISHED, other news, or an error). */
    for (;;) {
        switch (order.kind) {
        case DO_ENTER: trains = take_round(state, &order); break;
        /* goes back to the last commit, and tells the session which commits this worker holds */
        case DO_RESTORE:
            list = (struct msg_held_list){ held, 0 };
            rc = 0;
            /* of a worker that cannot go on nothing is restored: a GPU may still write to its
             * memory */
            if (!state->broken.code)
                rc = state_restore_newest(state, COPY_ALL, &err);
            if (rc && rc != HVD_E_NOTFOUND) /* HVD_E_NOTFOUND: there is no commit yet */
                state->broken = err;
            else
                list.count = snapshot_held(state->snapshot, held);
            say_event(state, (struct session_event){ .kind = SESSION_RESTORED, .held = &list });
            break;
        case DO_RETURN: return order.code ? order.code : HVD_FINISHED;
        default:
            PANIC("the training loop has got an action of kind %d between two rounds",
                  (int)order.kind);
        }
        msg_release(&order.msg);
        if (trains)
            return 0;
        session_thread_next(state->worker->session, &order);
    }
}

/* Ends the round of a worker without a driver. 0: the program has revoked the round (hvd_revoke),
 * so the worker has gone back to its last commit, and trains again. */
static int close_alone(hvd_state *state, int code)
{
    int rc = close_train(state, code);

    if (rc == HVD_E_REVOKED && rounds_failed(state->worker->rounds) == HVD_E_REVOKED) {
        rc = state_restore_newest(state, COPY_ALL, fail_err());
        return rc == HVD_E_NOTFOUND ? 0 : rc; /* HVD_E_NOTFOUND: there is no commit yet */
    }
    if (rc > 0)
        return fail(HVD_E_STATE,
                    "train returned %d (%s), but no call of the library has returned this code; "
                    "return only codes that a call of the library has returned",
                    rc, err_text(rc));
    return rc ? rc : HVD_FINISHED;
}

/* Carries out hvd_elastic_next for a worker without a driver: its round has one member, which no
 * other process revokes. */
static int next_alone(hvd_state *state, bool trained, int code)
{
    const struct place place = { .size = 1, .local_size = 1, .cross_size = 1 };
    const struct msg_member self = { .host = "localhost" };
    const struct msg_member_list members = { &self, 1 };
    const struct rounds_order alone = { .members = &members, .round = hvd_round() + 1 };
    int rc = trained ? close_alone(state, code) : 0;

    if (rc)
        return rc;
    /* notes whether the program uses CUDA by now; cuda_known tells it later */
    (void)cuda_if_used();
    timeline_events_enters(&state->worker->events, alone.round, CAUSE_FIRST);
    rc = rounds_enter(state->worker->rounds, &alone, false /* nothing is connected yet */,
                      fail_err());
    if (rc)
        return rc;
    begin_round(state, alone.round);
    worker_set_place(state->round, &place);
    timeline_events_round(&state->worker->events, state->round, &place);
    rc = call_resets(state);
    if (!rc)
        open_train(state);
    return rc;
}

/* ---- the run ----------------------------------------------------------------------------------
 */

/* Ends the run with this code (news or an error), and sees to it that hvd_last_error has its
 * text. */
static int run_end(hvd_state *state, int rc)
{
    struct worker *worker = state->worker;

    if (rc < 0 && state->broken.code)
        *fail_err() = state->broken;
    else if (rc < 0 && fail_err()->code != rc)
        fail_plain(rc);
    requests_persisted(
        worker->rounds, UINT64_MAX, HVD_E_STATE,
        "the run has ended before the checkpoint was complete; wait for it in train");
    state->phase = STATE_IDLE;
    atomic_store(&worker->running, false);
    return rc;
}

/* Begins the run: from here on the entries of the state are fixed. A failure ends the run at
 * once. */
int hvd_elastic_begin(hvd_state *state)
{
    int rc;

    if (!worker_enter())
        return HVD_E_STATE;
    if (!state)
        return fail(HVD_E_INVAL, "hvd_elastic_begin: the state is NULL; pass what "
                                 "hvd_state_create has returned");
    rc = worker_begin_run(&state->worker);
    if (rc)
        return rc;
    state->broken = (struct hvd_err){ 0 };
    state->phase = STATE_BETWEEN;
    rc = begin_run(state, fail_err());
    if (rc)
        return run_end(state, rc);
    fail_forget();
    state->phase = STATE_BEGUN;
    return 0;
}

/* Ends the last round with `code`, waits for the next one, and enters it. */
static int next_round(hvd_state *state, int code)
{
    enum state_phase begun = STATE_BEGUN, training = STATE_TRAINING;
    bool trained = atomic_compare_exchange_strong(&state->phase, &training, STATE_BETWEEN);
    int rc;

    /* The phase changes in one atomic step, so that of two threads one is refused. */
    if (!trained && !atomic_compare_exchange_strong(&state->phase, &begun, STATE_BETWEEN))
        return training == STATE_IDLE
                   ? fail(HVD_E_STATE,
                          "hvd_elastic_next: hvd_elastic_begin has not been called for this state, "
                          "or the run has ended; call hvd_elastic_begin first")
                   : fail(HVD_E_BUSY,
                          "hvd_elastic_next: the training thread is in another call of the "
                          "library; call hvd_elastic_next when that call has returned");
    state->loop = pthread_self();
    if (code && !trained)
        rc = fail(code < 0 ? code : HVD_E_INVAL,
                  "hvd_elastic_next: the first call got the code %d, but the program has not "
                  "trained yet; pass 0 in the first call",
                  code);
    else if (worker_is_alone(state->worker))
        rc = next_alone(state, trained, code);
    else
        rc = next_in_job(state, trained, code);
    if (rc)
        return run_end(state, rc);
    fail_forget(); /* hvd_last_error is "" when the call succeeds */
    return 0;
}

/* The call of a program that has the training loop itself. In hvd_elastic_run the library makes
 * this call, so the program must not. */
int hvd_elastic_next(hvd_state *state, int code)
{
    if (!worker_enter())
        return HVD_E_STATE;
    if (!state)
        return fail(HVD_E_INVAL, "hvd_elastic_next: the state is NULL; pass the state of "
                                 "hvd_elastic_begin");
    if (state->calls_train)
        return fail(HVD_E_STATE, "hvd_elastic_next: hvd_elastic_run is running, and calls "
                                 "hvd_elastic_next itself; return from train instead");
    return next_round(state, code);
}

/* Runs train, round after round, until the run has ended. */
int hvd_elastic_run(hvd_state *state, hvd_train_fn *train, void *arg)
{
    int code = 0;
    int rc;

    if (!worker_enter())
        return HVD_E_STATE;
    if (!state || !train)
        return fail(HVD_E_INVAL, "hvd_elastic_run: the state or train is NULL; pass both");
    rc = hvd_elastic_begin(state);
    if (rc)
        return rc;
    state->calls_train = true;
    while (!(rc = next_round(state, code)))
        code = train(state, arg);
    state->calls_train = false;
    return rc == HVD_FINISHED ? 0 : rc;
}
