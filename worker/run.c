/*
 * run.c: hvd_elastic_run. The session (worker/core) decides what the training loop does next; this
 * file does it.
 *
 *     begin ──► next order ──► DO_ENTER: connect, reset callbacks, sync, train ──► next order ...
 *                         └──► DO_RESTORE          └──► DO_RETURN: end
 *
 * Runs on the thread that has called hvd_elastic_run. Invariant: each order is answered by one
 * event, also by a worker that cannot go on (run->broken): it enters the round and fails in it, so
 * that the other members learn of it.
 */
#include "os/clock.h"
#include "worker/addresses.h"
#include "worker/fail.h"
#include "worker/state_internal.h"

#include <stdio.h>

struct run {
    hvd_state *state;
    struct worker *worker;
    hvd_train_fn *train;
    void *arg;
    struct hvd_err broken; /* code not 0: this worker cannot go on, for this reason */
};

/* Prepares a run of hvd_elastic_run: finds the GPU of this process, opens the memory for commits,
 * and loads the per-rank entries that an earlier worker of this slot has left. */
static int begin_run(struct run *run, struct hvd_err *err)
{
    hvd_state *state = run->state;
    struct gpu_use *gpu = &run->worker->gpu;
    const struct gpu_device *device = NULL;
    const struct manifest *manifest = &state->manifest;
    struct snapshot_shape shape;
    struct msg_snapshot wanted;
    int fd = -1;
    int rc = 0;

    manifest_seal(&state->manifest);
    /* This process works with the GPU of the stream, or of an entry of the state, or with the
     * GPU that this thread uses now. READY tells the peers this GPU, so that they connect before
     * the first call on its memory. */
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

/* Sets to their first values the fields of the state that belong to one round. */
static void begin_round(hvd_state *state, uint64_t round)
{
    state->round = round;
    state->commits = 0;
    state->checks = 0;
    state->told = 0;
    state->stepped = false;
    state->entered = (struct msg_entered){ .commit = 0 };
    state->remark[0] = '\0';
}

/* Calls the reset callbacks of the program. After a failure run->broken has the code and the text:
 * this worker cannot go on. */
static int call_resets(struct run *run)
{
    hvd_state *state = run->state;

    for (size_t i = 0; i < state->resets.count; i++) {
        int rc = state->resets.items[i].call(state, state->resets.items[i].arg);
        /* A callback must not return codes that only the library gives. */
        bool reserved = rc > 0 || rc == HVD_E_REVOKED || rc == HVD_E_LOST;

        if (rc)
            return err_set(&run->broken, reserved ? HVD_E_STATE : rc,
                           "reset callback %zu of %zu returned %d instead of 0, so the worker "
                           "cannot train on; correct the callback, or what it needs",
                           i + 1, state->resets.count, rc);
    }
    return 0;
}

/* true: train was told to return before the training was done, by a code other than 0. Then
 * train is called again, even if it has returned 0. */
static bool is_interrupted(const struct run *run)
{
    return rounds_failed(run->worker->rounds) || run->state->told == HVD_HOSTS_UPDATED ||
           run->state->told == HVD_E_REVOKED;
}

/* Calls train once, and returns the code with which this round has ended for this worker. A code
 * below 0 has its text in fail_err() or in run->broken. 0: the training is done. */
static int call_train(struct run *run)
{
    hvd_state *state = run->state;
    struct worker *worker = run->worker;
    bool revoked;
    int failed;
    int fenced;
    int rc;

    state->began_us = clock_now_us();
    state->live = 0;
    state->phase = STATE_TRAINING;
    rounds_open(worker->rounds, true);
    worker_begins(worker, WORKER_TRAINS);
    timeline_events_trains(&worker->events);
    rc = run->train(state, run->arg);
    worker_begins(worker, WORKER_RESTS);
    rounds_open(worker->rounds, false);
    if (rounds_settle(worker->rounds, &run->broken))
        rc = run->broken.code;
    state->phase = STATE_BETWEEN;
    /* The last commit may need a copy to the snapshot, so that other processes can read it. When
     * the training is done, no process will. */
    if (rc == 0 && !is_interrupted(run))
        fenced = state_fence(state, fail_err());
    else
        fenced = state_settle(state, fail_err());
    rc = rc ? rc : fenced;

    /* Turns the result of train into the code of this round. HVD_E_REVOKED repeats the round, so it
     * is accepted only if the library has given it: a program that invents it would train the same
     * round for ever. */
    failed = rounds_failed(worker->rounds);
    revoked = worker_is_alone(worker) || failed ||
              session_thread_cancelled(worker->session, state->round);
    if (rc == 0 && is_interrupted(run)) /* train is called again, and may return 0 then */
        rc = failed ? failed : state->told;
    /* train may have made other calls after the failed one, which have changed this thread's
     * last error: the text of the first failure replaces it */
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
    else if (rc < 0 && fail_err()->code != rc) /* the program made the code up */
        rc = fail(rc, "train returned %d, a failure of the program itself", rc);
    timeline_events_returned(&worker->events, rc);
    return rc;
}

/* ---- with a session -------------------------------------------------------------------------- */

static void say_event(struct run *run, struct session_event event)
{
    session_thread_say(run->worker->session, &event);
}

/* Enters a round: connects the collectives, calls the reset callbacks, and loads the state with
 * which the round begins. After a failure *err has the reason; the session then revokes the
 * round, and the loop may enter a later one. If run->broken is set, the reason is there, and
 * this worker cannot enter any round. */
static int enter_round(struct run *run, const struct loop_order *order, struct hvd_err *err)
{
    hvd_state *state = run->state;
    struct worker *worker = run->worker;
    const struct rounds_order of_msg = { .incarnation = worker->incarnation,
                                         .round = order->round,
                                         .members = &order->msg.u.round.members,
                                         .secret = order->msg.u.round.secret };
    int64_t began_us = clock_now_us();
    int64_t connected_us;
    bool of_round;
    int rc;

    /* from here on the library sees from a pointer whether it points to GPU memory */
    (void)cuda_if_used();
    timeline_events_enters(&worker->events, order->msg.u.round.cause);
    worker_begins(worker, WORKER_CONNECTS);
    rc = rounds_enter(worker->rounds, &of_msg, order->prepared, err);
    timeline_events_phase(&worker->events, "connect", rc);
    if (rc == HVD_E_INVAL &&
        !run->broken.code) /* this worker has other groups or settings than the other members */
        run->broken = *err;
    if (rc)
        return rc;
    connected_us = clock_now_us();
    begin_round(state, order->round);
    worker_set_place(order->round, &order->place);
    timeline_events_round(&worker->events, order->round, &order->place);
    worker_begins(worker, WORKER_RESETS);
    rc = call_resets(run); /* a failure sets run->broken, and not *err */
    /* For the watchdog this is still WORKER_CONNECTS, because the members wait for each other
     * before a fetch, as they do when they connect. The fetch itself is WORKER_FETCHES. */
    worker_begins(worker, WORKER_CONNECTS);
    if (!rc)
        rc = state_sync(state, &order->msg, err);
    /* true: the failure is one of this round; a later round may succeed. When a checkpoint is
     * damaged or missing, the driver names the one before it for the next round. */
    of_round = rc == HVD_E_REVOKED || rc == HVD_E_LOST || rc == HVD_E_TIMEOUT ||
               rc == HVD_E_MISMATCH ||
               ((rc == HVD_E_CORRUPT || rc == HVD_E_NOTFOUND) &&
                state_reads_checkpoint(&order->msg.u.round));
    if (rc && !of_round && !run->broken.code)
        run->broken = *err;
    timeline_events_phase(&worker->events, "state", rc);
    state->entered.commit = state->live;
    state->entered.rebuild_us = connected_us - began_us;
    state->entered.state_us = clock_now_us() - connected_us;
    return rc;
}

/* Carries out DO_ENTER: enters the round, calls train, and tells the session how each of the two
 * has ended (SYNCED, RETURNED). A worker that cannot go on (run->broken) does not call train: its
 * SYNCED says 0, and its RETURNED has the reason, so that it fails in the round. */
static void take_round(struct run *run, const struct loop_order *order)
{
    struct rounds *rounds = run->worker->rounds;
    struct session_event returned = { .kind = SESSION_RETURNED };
    struct hvd_err err = { 0 };
    int rc = run->broken.code ? 0 : enter_round(run, order, &err);

    worker_begins(run->worker, WORKER_RESTS);
    if (rc && !run->broken.code) {
        say_event(run,
                  (struct session_event){ .kind = SESSION_SYNCED, .code = rc, .text = err.text });
        return;
    }
    say_event(run, (struct session_event){ .kind = SESSION_SYNCED });
    if (!run->broken.code && run->state->remark[0])
        say_event(run,
                  (struct session_event){ .kind = SESSION_REMARK, .text = run->state->remark });
    rc = run->broken.code ? run->broken.code : call_train(run);
    returned.code = rc;
    if (run->broken.code) {
        returned.text = run->broken.text;
    } else if (rc == HVD_E_REVOKED && rounds_failed(rounds)) {
        /* A call after the failed one says only that the round is dead: the other members get
         * the text of the first failure. */
        rounds_why(rounds, &err);
        returned.failed = err.code;
        returned.text = err.text;
    } else if (fail_err()->code == rc) {
        returned.text = fail_err()->text;
    }
    say_event(run, returned);
    if (rc >=
        0) /* members may still be in the last collective, or need this worker's last message */
        rounds_finish(rounds);
}

/* Carries out the orders of the session until DO_RETURN, and returns its code. */
static int obey_orders(struct run *run)
{
    struct msg_held held[2];
    struct msg_held_list list = { held, 0 };
    struct loop_order order;
    struct hvd_err err;
    int rc;

    for (;;) {
        session_thread_next(run->worker->session, &order);
        switch (order.kind) {
        case DO_ENTER: take_round(run, &order); break;
        case DO_RESTORE:
            list.count = 0;
            rc = 0;
            if (!run->broken.code) /* otherwise a GPU may still write into live memory */
                rc = state_restore_newest(run->state, COPY_ALL, &err);
            if (rc && rc != HVD_E_NOTFOUND) /* HVD_E_NOTFOUND: there is no commit yet */
                run->broken = err;
            else
                list.count = snapshot_held(run->state->snapshot, held);
            say_event(run, (struct session_event){ .kind = SESSION_SETTLED, .held = &list });
            break;
        case DO_RETURN: return order.code;
        default: PANIC("the loop is told to do %d between two rounds", (int)order.kind);
        }
        msg_release(&order.msg);
    }
}

/* Sends READY, and then carries out the orders of the session. */
static int run_in_job(struct run *run, struct hvd_err *err)
{
    const struct msg_texts *given = &run->worker->welcome.u.welcome_worker.addresses;
    struct arena arena;
    struct msg_held held[2];
    struct msg_ready ready = { .manifest = run->state->manifest.digest };
    const char *addresses[LIMIT_ADDRESSES];
    const char *device = coll_engine_device_text(run->worker->engine);
    char data[LIMIT_TEXT_BYTES];
    char gpu[LIMIT_TEXT_BYTES];
    int rc;

    arena_init(&arena, LIMIT_DECODE_BYTES_MAX);
    rc = manifest_entries(&run->state->manifest, &arena, &ready.entries);
    if (rc) {
        arena_release(&arena);
        return err_set(err, rc, "no memory for the manifest of the state");
    }
    ready.held = (struct msg_held_list){ held, snapshot_held(run->state->snapshot, held) };
    snprintf(data, sizeof(data), "data=%s", coll_engine_contact(run->worker->engine));
    addresses[ready.addresses.count++] = data;
    if (device) {
        snprintf(gpu, sizeof(gpu), "gpu=%s", device);
        addresses[ready.addresses.count++] = gpu;
    }
    for (size_t i = 0; i < given->count && ready.addresses.count < LIMIT_ADDRESSES; i++)
        addresses[ready.addresses.count++] = given->items[i];
    ready.addresses.items = addresses;
    say_event(run, (struct session_event){ .kind = SESSION_RUN, .ready = &ready });
    rc = obey_orders(run);
    arena_release(&arena);
    return rc;
}

/* Runs train, round after round, until the session says that hvd_elastic_run returns (run_in_job).
 * A worker without a driver has one round, and calls train once. */
int hvd_elastic_run(hvd_state *state, hvd_train_fn *train, void *arg)
{
    const struct place place = { .size = 1, .local_size = 1, .cross_size = 1 };
    const struct msg_member self = { .host = "localhost" };
    const struct msg_member_list members = { &self, 1 };
    struct rounds_order alone = { .members = &members };
    struct run run = { .state = state, .train = train, .arg = arg };
    int rc;

    if (!worker_get())
        return HVD_E_STATE;
    if (!state || !train)
        return fail(HVD_E_INVAL, "hvd_elastic_run: the state or train is NULL; pass both");
    rc = worker_begin_run(&run.worker);
    if (rc)
        return rc;
    state->worker = run.worker;
    state->loop = pthread_self();
    state->phase = STATE_BETWEEN;
    rc = begin_run(&run, fail_err());
    if (!rc && !worker_is_alone(run.worker)) {
        rc = run_in_job(&run, fail_err());
    } else if (!rc) {
        /* Runs without a driver: one worker and one round, which no other process revokes. */
        alone.round = hvd_round() + 1;
        (void)cuda_if_used();
        timeline_events_enters(&run.worker->events, CAUSE_FIRST);
        rc = rounds_enter(run.worker->rounds, &alone, false /* not prepared */, fail_err());
        if (!rc) {
            begin_round(state, hvd_round() + 1);
            worker_set_place(state->round, &place);
            timeline_events_round(&run.worker->events, state->round, &place);
            rc = call_resets(&run);
            if (rc)
                *fail_err() = run.broken;
            else if ((rc = call_train(&run)) > 0)
                rc = err_set(fail_err(), HVD_E_STATE,
                             "train returned %d (%s), but no call of the library has returned "
                             "this code; return only codes that a call has returned",
                             rc, err_text(rc));
        }
    }
    if (rc < 0 && run.broken.code)
        *fail_err() = run.broken;
    else if (rc < 0 && fail_err()->code != rc)
        fail_plain(rc);
    state->phase = STATE_IDLE;
    atomic_store(&run.worker->running, false);
    return rc;
}
