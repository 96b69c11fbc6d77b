/*
 * run.c: hvd_elastic_run. The session says what the loop is to do next; here it is done.
 *
 *     begin ──► next order ──► DO_ENTER: connect, reset callbacks, sync, train ──► next order ...
 *                         └──► DO_RESTORE          └──► DO_RETURN: end
 */
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "worker/addresses.h"
#include "worker/fail.h"
#include "worker/state_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct run {
    hvd_state *state;
    struct worker *worker;
    hvd_train_fn *train;
    void *arg;
    struct hvd_err broken; /* its code is not 0: this worker cannot go on, and is to say so */
};

static bool is_news(int code)
{
    return code > 0 || code == HVD_E_REVOKED || code == HVD_E_LOST;
}

/* Another round may do better; anything else that goes wrong between two rounds is this worker's.
 */
static bool is_of_round(int code)
{
    return code == HVD_E_REVOKED || code == HVD_E_LOST || code == HVD_E_TIMEOUT ||
           code == HVD_E_MISMATCH;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static int open_snapshot(hvd_state *state, struct hvd_err *err)
{
    const struct manifest *manifest = &state->manifest;
    const struct snapshot_shape shape = { manifest->digest, manifest->replicated_bytes,
                                          manifest->bytes };
    const struct msg_snapshot wanted = { manifest->digest, manifest->replicated_bytes,
                                         manifest->bytes };
    int fd = -1;
    int rc;

    if (state->snapshot)
        return 0;
    if (worker_is_alone(state->worker))
        return snapshot_create(&shape, &state->snapshot, err);
    rc = session_thread_snapshot(state->worker->session, &wanted, &fd, err);
    return rc ? rc : snapshot_open(fd, &shape, &state->snapshot, err);
}

/* What a predecessor in this slot has left of its rank is this one's from the start; what is
 * replicated comes with the round. */
static int inherit(hvd_state *state, struct hvd_err *err)
{
    int rc = state_restore_newest(state, COPY_PER_RANK, err);

    return rc == HVD_E_NOTFOUND ? 0 : rc;
}

/* So that its peers know of it before the first call on its memory: that of the stream, of an entry
 * of the state, or the one that this thread works with. */
static int find_gpu(struct run *run, struct hvd_err *err)
{
    struct gpu_use *gpu = &run->worker->gpu;
    const struct gpu_device *device = NULL;

    if (!cuda_if_used() || atomic_load(&gpu->device))
        return 0;
    for (size_t i = 0; i < run->state->parts.count && !device; i++)
        device = gpu_device_of(run->state->parts.items[i].at);
    if (!device)
        device = gpu_device_current();
    return device ? gpu_use_device(gpu, device, "the state", err) : 0;
}

static int begin(struct run *run, struct hvd_err *err)
{
    hvd_state *state = run->state;
    int rc;

    manifest_seal(&state->manifest);
    rc = find_gpu(run, err);
    if (!rc)
        rc = state_open_device(state, err);
    if (!rc)
        rc = open_snapshot(state, err);
    return rc ? rc : inherit(state, err);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void reset_counts(hvd_state *state, uint64_t round)
{
    state->round = round;
    state->commits = 0;
    state->checks = 0;
    state->told = 0;
    state->stepped = false;
    state->entered = (struct msg_entered){ .commit = 0 };
}

/* What is news to train makes no sense from a callback. */
static int call_resets(struct run *run)
{
    hvd_state *state = run->state;

    for (size_t i = 0; i < state->resets.count; i++) {
        int rc = state->resets.items[i].call(state, state->resets.items[i].arg);

        if (rc) {
            err_set(&run->broken, is_news(rc) ? HVD_E_STATE : rc,
                    "reset callback %zu of %zu returned %d", i + 1, state->resets.count, rc);
            return run->broken.code;
        }
    }
    return 0;
}

/* A loop that drops what it is told and returns 0 would end the training in the middle. */
static bool has_not_ended(const struct run *run)
{
    return rounds_failed(run->worker->rounds) || run->state->told == HVD_HOSTS_UPDATED ||
           run->state->told == HVD_E_REVOKED;
}

/* A round that nobody has revoked is not repeated: it would come to the same again and again. */
static int judge_returned(struct run *run, int rc)
{
    const struct worker *worker = run->worker;
    bool told = worker_is_alone(worker) ||
                session_thread_cancelled(worker->session, run->state->round) ||
                rounds_failed(worker->rounds) != 0;

    if (rc == 0 && has_not_ended(run)) /* it is called again; if it was through, it says so then */
        rc = rounds_failed(worker->rounds) ? rounds_failed(worker->rounds) : run->state->told;
    if (rc > HVD_DONE)
        return fail(HVD_E_STATE, "train returned %d, which is no code of the library's", rc);
    if (rc == HVD_E_REVOKED && !told)
        return fail(HVD_E_STATE, "train returned %s without being told", err_name(rc));
    if (rc < 0 && rc == rounds_failed(worker->rounds)) /* others have failed after it */
        rounds_why(worker->rounds, fail_err());
    if (rc < 0 && fail_err()->code != rc) /* no call of the library returned it */
        return fail(rc, "%d is a code of train's own", rc);
    return rc;
}

static int call_train(struct run *run)
{
    hvd_state *state = run->state;
    bool over;
    int fenced;
    int rc;

    state->began_us = clock_now_us();
    state->live = 0;
    state->phase = STATE_TRAINING;
    rounds_open(run->worker->rounds, true);
    worker_begins(run->worker, WORKER_TRAINS);
    shown_trains(&run->worker->shown);
    rc = run->train(state, run->arg);
    worker_begins(run->worker, WORKER_RESTS);
    rounds_open(run->worker->rounds, false);
    if (rounds_settle(run->worker->rounds, &run->broken))
        rc = run->broken.code;
    state->phase = STATE_BETWEEN;
    over = rc == 0 && !has_not_ended(run);
    fenced = over ? state_fence(state, fail_err()) : state_settle(state, fail_err());
    if (rc == 0 && fenced)
        rc = fenced;
    rc = judge_returned(run, rc);
    shown_returned(&run->worker->shown, rc);
    return rc;
}

/* ---- with a session -------------------------------------------------------------------------- */

static void say(struct run *run, struct session_event event)
{
    session_thread_say(run->worker->session, &event);
}

/* From the ROUND to the state that it begins with. A failure is one of the round, which is then
 * given up, unless run->broken is set: that is one of this worker. */
static int enter(struct run *run, const struct loop_order *order, struct hvd_err *err)
{
    hvd_state *state = run->state;
    int64_t began_us = clock_now_us();
    int64_t connected_us;
    int rc;

    (void)cuda_if_used(); /* from here on its memory is known by the pointer */
    shown_enters(&run->worker->shown, order->msg.u.round.cause);
    worker_begins(run->worker, WORKER_CONNECTS);
    rc = rounds_enter(run->worker->rounds, run->worker->incarnation, order->round,
                      &order->msg.u.round.members, order->prepared, err);
    shown_phase(&run->worker->shown, "connect", rc);
    if (rc == HVD_E_INVAL &&
        !run->broken.code) /* it has other groups or settings than the others */
        run->broken = *err;
    if (rc)
        return rc;
    connected_us = clock_now_us();
    reset_counts(state, order->round);
    worker_set_place(order->round, &order->place);
    shown_round(&run->worker->shown, order->round, &order->place);
    worker_begins(run->worker, WORKER_RESETS);
    rc = call_resets(run);
    worker_begins(run->worker, WORKER_CONNECTS);
    if (!rc)
        rc = state_sync(state, &order->msg, err);
    if (rc && !is_of_round(rc) && !run->broken.code)
        run->broken = *err;
    shown_phase(&run->worker->shown, "state", rc);
    state->entered.commit = state->live;
    state->entered.rebuild_us = connected_us - began_us;
    state->entered.state_us = clock_now_us() - connected_us;
    return rc;
}

/* What the others hear of it. A call after the one that has failed says no more than that the round
 * is dead: what has failed is known all the same. */
static void say_returned(struct run *run, int rc)
{
    struct rounds *rounds = run->worker->rounds;
    struct session_event event = { .kind = SESSION_RETURNED, .code = rc };
    struct hvd_err why;

    if (run->broken.code) {
        event.text = run->broken.text;
    } else if (rc == HVD_E_REVOKED && rounds_failed(rounds)) {
        rounds_why(rounds, &why);
        event.failed = why.code;
        event.text = why.text;
    } else if (fail_err()->code == rc) {
        event.text = fail_err()->text;
    }
    say(run, event);
}

/* One that cannot go on enters the round all the same, to fail in it: so the others hear of it. */
static void take_round(struct run *run, const struct loop_order *order)
{
    struct hvd_err err = { 0 };
    int rc = run->broken.code ? 0 : enter(run, order, &err);

    worker_begins(run->worker, WORKER_RESTS);
    if (rc && !run->broken.code) {
        say(run, (struct session_event){ .kind = SESSION_SYNCED, .code = rc, .text = err.text });
        return;
    }
    say(run, (struct session_event){ .kind = SESSION_SYNCED });
    rc = run->broken.code ? run->broken.code : call_train(run);
    say_returned(run, rc);
    if (rc >= 0) /* others may still be in the last collective, or wait for what we have said */
        rounds_finish(run->worker->rounds);
}

static void restore(struct run *run)
{
    struct msg_held held[2];
    struct msg_held_list list = { held, 0 };
    struct hvd_err err = { 0 };
    int rc = 0;

    if (!run->broken.code) /* else something may still be written there */
        rc = state_restore_newest(run->state, COPY_ALL, &err);
    if (rc && rc != HVD_E_NOTFOUND)
        run->broken = err;
    else
        list.count = snapshot_held(run->state->snapshot, held);
    say(run, (struct session_event){ .kind = SESSION_SETTLED, .held = &list });
}

static int obey(struct run *run)
{
    struct loop_order order;

    for (;;) {
        session_thread_next(run->worker->session, &order);
        switch (order.kind) {
        case DO_ENTER: take_round(run, &order); break;
        case DO_RESTORE: restore(run); break;
        case DO_RETURN: return order.code;
        default: PANIC("the loop is told to do %d between two rounds", (int)order.kind);
        }
        msg_release(&order.msg);
    }
}

/* READY, and then as the session says. */
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
        return err_set(err, rc, "no memory for the manifest");
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
    say(run, (struct session_event){ .kind = SESSION_RUN, .ready = &ready });
    rc = obey(run);
    arena_release(&arena);
    return rc;
}

/* ---- alone ----------------------------------------------------------------------------------- */

/* One round of one, that nobody revokes. */
static int run_alone(struct run *run, struct hvd_err *err)
{
    const struct place place = { .size = 1, .local_size = 1, .cross_size = 1 };
    const struct msg_member self = { .host = "localhost" };
    const struct msg_member_list members = { &self, 1 };
    int rc;

    (void)cuda_if_used();
    shown_enters(&run->worker->shown, CAUSE_FIRST);
    rc = rounds_enter(run->worker->rounds, 0, hvd_round() + 1, &members, false, err);
    if (rc)
        return rc;
    reset_counts(run->state, hvd_round() + 1);
    worker_set_place(run->state->round, &place);
    shown_round(&run->worker->shown, run->state->round, &place);
    rc = call_resets(run);
    if (rc) {
        *err = run->broken;
        return rc;
    }
    rc = call_train(run);
    if (rc > 0)
        return err_set(err, HVD_E_STATE, "train returned %d (%s) without being told", rc,
                       err_text(rc));
    return rc;
}

/* ---- the call -------------------------------------------------------------------------------- */

static int can_run(hvd_state *state, hvd_train_fn *train, struct worker **ret_worker)
{
    if (!worker_get())
        return HVD_E_STATE;
    if (!state || !train) {
        fail(HVD_E_INVAL, "hvd_elastic_run: the state or train is NULL");
        return HVD_E_INVAL;
    }
    return worker_begin_run(ret_worker);
}

int hvd_elastic_run(hvd_state *state, hvd_train_fn *train, void *arg)
{
    struct run run = { .state = state, .train = train, .arg = arg };
    int rc = can_run(state, train, &run.worker);

    if (rc)
        return rc;
    state->worker = run.worker;
    state->loop = pthread_self();
    state->phase = STATE_BETWEEN;
    rc = begin(&run, fail_err());
    if (!rc && worker_is_alone(run.worker))
        rc = run_alone(&run, fail_err());
    else if (!rc)
        rc = run_in_job(&run, fail_err());
    if (rc < 0 && run.broken.code)
        *fail_err() = run.broken;
    else if (rc < 0 && fail_err()->code != rc)
        fail_plain(rc);
    state->phase = STATE_IDLE;
    atomic_store(&run.worker->running, false);
    return rc;
}
