/*
 * requests.c: the program's collectives: made at once (hvd_run), or started and made later by a
 * thread, in the order of the calls (hvd_start).
 *
 * collective.c calls here for the program, rounds.c when a round ends. Invariant: pending requests
 * are in one order; together they have the ticket (the right to be inside a collective) from the
 * first request to the last, and one thread at a time makes their calls: the library's, or one that
 * waits for a request; so all ranks make their calls in one order. fusion.c says which requests
 * become one operation. Unless a comment says otherwise the lock of struct rounds is held.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"
#include "proto/commit.h"
#include "worker/call.h"
#include "worker/fusion.h"
#include "worker/persist.h"
#include "worker/rounds_internal.h"

/* The handle of the program (hvd_request *) is no pointer. It is made of a number that is never
 * used twice, in the high bits, and of the index of the request in `all`, in the low PLACE_BITS;
 * both count from 1. */
#define PLACE_BITS 16
#define PLACE_MASK (((uintptr_t)1 << PLACE_BITS) - 1)
_Static_assert(LIMIT_REQUESTS < (1 << PLACE_BITS), "the index of a request is part of its name");

int requests_init(struct requests *requests)
{
    *requests = (struct requests){ .threaded = false };
    pthread_cond_init(&requests->work, NULL);
    return thread_cond_init(&requests->done);
}

void requests_release(struct requests *requests)
{
    for (size_t i = 0; i < requests->all.count; i++) {
        gpu_marks_release(&requests->all.items[i]->marks);
        mem_free(requests->all.items[i]);
    }
    VEC_RELEASE(&requests->all);
    pthread_cond_destroy(&requests->done);
    pthread_cond_destroy(&requests->work);
}

/* Makes a request unused: its handle is not found any more, and the struct can be taken for another
 * call. */
static void request_put_back(struct requests *requests, struct request *request)
{
    /* only the index is left: a handle without a number is never given to the program */
    request->name &= PLACE_MASK;
    request->next = requests->unused;
    requests->unused = request;
}

/* Finds the request with this handle. NULL: the handle is unknown, or its request was put back. */
static struct request *request_find(const struct requests *requests, const hvd_request *handle)
{
    uintptr_t name = (uintptr_t)handle;
    size_t place = (size_t)(name & PLACE_MASK) - 1;

    if (!(name >> PLACE_BITS) || place >= requests->all.count ||
        requests->all.items[place]->name != name)
        return NULL;
    return requests->all.items[place];
}

/* Makes sure that there is an unused request. */
static int request_reserve(struct requests *requests, struct hvd_err *err)
{
    struct request *request;
    int rc;

    if (requests->unused)
        return 0;
    rc = VEC_RESERVE(&requests->all, 1, LIMIT_REQUESTS);
    request = rc ? NULL : mem_zalloc(sizeof(*request));
    if (rc == HVD_E_LIMIT)
        return err_set(
            err, rc,
            "more than %d requests (LIMIT_REQUESTS) are open; call hvd_wait for each request",
            LIMIT_REQUESTS);
    if (!request)
        return err_set(err, HVD_E_NOMEM, "no memory for a request; free memory on this host");
    requests->all.items[requests->all.count++] = request;
    request->name = requests->all.count;
    request_put_back(requests, request);
    return 0;
}

/* Takes an unused request, which must be there, and gives it a new handle. */
static struct request *request_take(struct requests *requests)
{
    /* The counter belongs to the process, so no handle is given twice, even after hvd_shutdown and
     * hvd_init. */
    static atomic_uintptr_t numbers;
    struct request *request = requests->unused;
    uintptr_t number = atomic_fetch_add(&numbers, 1) + 1;

    requests->unused = request->next;
    *request = (struct request){ .name = number << PLACE_BITS | (request->name & PLACE_MASK),
                                 .marks = request->marks };
    return request;
}

/* ---- requests for a checkpoint --------------------------------------------------------------- */

/* Ends the requests for a checkpoint of a commit up to this number, with this code. A request
 * without a number in its handle is unused, one without a commit is a collective: neither is
 * touched. */
static void requests_end_persists(struct rounds *rounds, uint64_t commit, int code,
                                  const char *text)
{
    struct requests *requests = &rounds->requests;

    for (size_t i = 0; i < requests->all.count; i++) {
        struct request *request = requests->all.items[i];

        if (!(request->name >> PLACE_BITS) || !request->commit || request->done ||
            request->commit > commit)
            continue;
        if (code)
            (void)err_set(&request->outcome, code, "%s", text);
        request->done = true;
    }
    pthread_cond_broadcast(&requests->done);
}

/* Ends the requests for a checkpoint of a commit of this round or an earlier one, because the round
 * was revoked. UINT64_MAX: the agent is gone, which ends all of them. */
void requests_cancel_persists(struct rounds *rounds, uint64_t round)
{
    if (round == UINT64_MAX)
        requests_end_persists(rounds, round, HVD_E_LOST, "the agent of this host is gone");
    else
        requests_end_persists(rounds, COMMIT_FIRST_OF(round + 1) - 1, HVD_E_REVOKED,
                              "the round was revoked before the checkpoint was complete; ask again "
                              "after the next commit");
}

/* Makes a request for a checkpoint of this commit, and gives its handle to the program. The driver
 * is asked by the caller. */
int requests_persist(struct rounds *rounds, uint64_t commit, hvd_request **ret_request,
                     struct hvd_err *err)
{
    struct request *request;
    int rc;

    rounds_lock(rounds);
    rc = request_reserve(&rounds->requests, err);
    if (!rc) {
        request = request_take(&rounds->requests);
        request->commit = commit;
        request->owner = pthread_self();
        *ret_request = (hvd_request *)request->name;
        /* The round of this commit was cancelled already, and no later message ends this request:
         * it ends now. */
        if (COMMIT_ROUND_OF(commit) <= rounds->cancelled)
            requests_cancel_persists(rounds, rounds->cancelled);
    }
    rounds_unlock(rounds);
    return rc;
}

void requests_persisted(struct rounds *rounds, uint64_t commit, int code, const char *text)
{
    rounds_lock(rounds);
    requests_end_persists(rounds, commit, code, text);
    rounds_unlock(rounds);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Finishes the first `count` requests of the queue with this outcome. From then on the threads that
 * wait for these requests may free them. */
static void finish_first(struct rounds *rounds, size_t count, const struct hvd_err *outcome)
{
    struct requests *requests = &rounds->requests;

    for (size_t i = 0; i < count; i++) {
        struct request *request = requests->first;

        requests->first = request->next;
        if (outcome->code)
            request->outcome = *outcome;
        request->done = true;
        if (requests->blocked == request)
            requests->blocked = NULL;
    }
    atomic_fetch_add_explicit(&rounds->calls, count, memory_order_relaxed);
    /* no request is pending any more, so the ticket that they shared is given back */
    if (!requests_pend(requests)) {
        ticket_update(rounds);
        /* otherwise a thread is about to append a request, and keeps the ticket */
        if (!requests->coming)
            ticket_give(rounds);
    }
    pthread_cond_broadcast(&requests->done);
}

/* Ends all pending requests with HVD_E_REVOKED and the reason `why`. Called while no thread makes
 * the call of the first batch. */
static void revoke_pending(struct rounds *rounds, const char *why)
{
    struct hvd_err revoked;

    (void)err_set(&revoked, HVD_E_REVOKED, "%s", why);
    fusion_close(&rounds->requests);
    while (rounds->requests.first)
        finish_first(rounds, 1, &revoked);
}

/* Closes the open batch, to which more requests could be added. Then the thread of the requests, or
 * a thread that waits for one of them, makes the call of the batch. The caller does not hold the
 * lock. */
void requests_flush(struct rounds *rounds)
{
    if (!atomic_load_explicit(&rounds->requests.holds, memory_order_relaxed))
        return;
    rounds_lock(rounds);
    fusion_close(&rounds->requests);
    rounds_unlock(rounds);
}

/* Ends the round for all members, because the program's call is wrong or the GPU of this rank
 * fails: otherwise the other members would wait for this rank for ever. A thread that is inside
 * a collective gets HVD_E_REVOKED, as at any end of a round. The caller does not need the lock. */
static int refuse_call(struct rounds *rounds, int code, const char *why, struct hvd_err *err)
{
    (void)coll_refuse(rounds->coll, NULL, "%s", why);
    return err_set(err, code, "%s", why);
}

/* ---- making the calls ------------------------------------------------------------------------ */

/* Makes the call of the first batch of the queue, and finishes its requests. No other thread may be
 * making one. The lock is released while the call runs. */
static void run_first(struct rounds *rounds)
{
    struct requests *requests = &rounds->requests;
    struct hvd_err why = { 0 };
    struct coll_call call;
    size_t count = fusion_take(requests, &call);
    int broken = 0; /* the code of a failure of the GPU; 0: none */
    int rc;

    requests->running = true;
    rounds_unlock(rounds);
    /* A call on GPU memory goes in a stream of the library, after the work that was in the
     * program's stream when each request was started. */
    for (size_t i = 0; call.device && i < count && !broken; i++)
        broken = gpu_take_up(rounds->gpu, &requests->batch[i]->marks, &call.stream, &why);
    rc = broken ? 0 : coll_run(rounds->coll, &call, &why);
    for (size_t i = 0; call.device && i < count && !broken && !rc; i++) {
        if (requests->batch[i]->call.streamed)
            broken = gpu_done(rounds->gpu, &requests->batch[i]->marks, &why);
    }
    if (broken)
        rc = refuse_call(rounds, broken, why.text, &why);
    why.code = rc;
    rounds_lock(rounds);
    requests->running = false;
    if (rc && requests->dropped)
        err_set(&why, rc, "%s", requests->dropped);
    /* the caller of the call that failed first gets its code; all others get HVD_E_REVOKED */
    if (rc && rounds->failed)
        why.code = HVD_E_REVOKED;
    ticket_note(rounds, rc, &why);
    finish_first(rounds, count, &why);
    if (rc)
        revoke_pending(rounds, why.text);
}

/* The thread that makes the call of each batch, unless a thread that waits for a request is faster
 * (await_request). */
static void *run_requests(void *arg)
{
    struct rounds *rounds = arg;
    struct requests *requests = &rounds->requests;

    rounds_lock(rounds);
    while (!requests->closing) {
        if (!requests->first || requests->running)
            pthread_cond_wait(&requests->work, &rounds->lock);
        else
            run_first(rounds);
    }
    rounds_unlock(rounds);
    return NULL;
}

/* Ends the thread that makes the calls, when no request is pending. The caller does not hold the
 * lock. */
void requests_close(struct rounds *rounds)
{
    struct requests *requests = &rounds->requests;

    rounds_lock(rounds);
    requests_end_persists(rounds, UINT64_MAX /* of every commit */, HVD_E_STATE,
                          "hvd_shutdown was called before the checkpoint was complete; wait first");
    requests->closing = true;
    pthread_cond_signal(&requests->work);
    /* no request is pending any more; threads that have waited for one still use the lock, and are
     * about to return */
    while (requests->waiters)
        pthread_cond_wait(&requests->done, &rounds->lock);
    rounds_unlock(rounds);
    if (requests->threaded)
        pthread_join(requests->thread, NULL);
    requests->threaded = false;
}

/* Ends all pending requests with HVD_E_REVOKED and the reason `why`, and waits until all are done.
 * If the first batch is in progress, it stays first in the queue until its thread has left the
 * call; the requests behind it end when its call has failed, or when they become the first. */
void requests_drop(struct rounds *rounds, const char *why)
{
    struct requests *requests = &rounds->requests;

    if (!requests_pend(requests))
        return;
    fusion_close(requests);
    coll_cancel(rounds->coll);
    if (!requests->running) {
        revoke_pending(rounds, why);
        return;
    }
    requests->dropped = why;
    while (requests->first)
        pthread_cond_wait(&requests->done, &rounds->lock);
    requests->dropped = NULL;
}

/* Counts the collectives that the program has started and not waited for. Unused requests (whose
 * `name` has no number) do not count, nor do those for a checkpoint (`commit`) or a transfer
 * (`queue`). */
size_t requests_open(const struct requests *requests)
{
    size_t open = 0;

    for (size_t i = 0; i < requests->all.count; i++)
        open += requests->all.items[i]->name >> PLACE_BITS != 0 &&
                !requests->all.items[i]->commit && !requests->all.items[i]->queue;
    return open;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Checks a call and translates it for collectives/; a call on GPU memory also gets the program's
 * stream. A wrong call ends the round. The caller has the ticket, and does not hold the lock. */
static int read_call(struct rounds *rounds, const hvd_call *call, struct coll_call *ret_call,
                     struct hvd_err *err)
{
    struct hvd_err why;
    int rc = call_read(call, rounds->groups, rounds->roll, ret_call, &why);

    if (!rc && ret_call->device) {
        rc = gpu_use_device(rounds->gpu, ret_call->device, coll_kind_name(ret_call->kind), &why);
        ret_call->streamed = gpu_use_streamed(rounds->gpu, &ret_call->stream);
    }
    return rc ? refuse_call(rounds, rc, why.text, err) : 0;
}

/* Makes a call at once. The caller has the ticket, and does not hold the lock; the function
 * gives the ticket back. */
static int run_now(struct rounds *rounds, const hvd_call *call, struct hvd_err *err)
{
    struct coll_call read;
    int rc = read_call(rounds, call, &read, err);

    if (!rc)
        rc = coll_run(rounds->coll, &read, err);
    /* ranks may call hvd_join after different numbers of requests, so all count anew from here */
    if (!rc && read.kind == COLL_JOIN) {
        rounds_lock(rounds);
        fusion_begin(&rounds->requests);
        rounds_unlock(rounds);
    }
    ticket_end(rounds, rc);
    return rc;
}

/* Checks that this thread is the only one that makes collective calls. While requests are
 * pending, two threads must not add calls at the same time: each rank might add them in another
 * order. */
static int check_alone(const struct requests *requests, struct hvd_err *err)
{
    if (requests->blocked || requests->coming)
        return err_set(
            err, HVD_E_BUSY,
            "another thread is in a collective that waits for earlier requests; call collectives "
            "from one thread at a time, as all ranks must call them in the same order");
    return 0;
}

/* Begins a piece of work during which no other thread may make a call and the round stays (opening
 * a group): takes the ticket, or shares that of the pending requests, and notes that a thread is
 * coming. */
int requests_come(struct rounds *rounds, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    int rc;

    rounds_lock(rounds);
    rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    if (!rc)
        rc = requests_pend(requests) ? check_alone(requests, err) : ticket_take(rounds, err);
    if (!rc)
        requests->coming = true;
    rounds_unlock(rounds);
    return rc;
}

/* Ends the work that requests_come has begun; a failure of it (`code`, `why`) becomes the failure
 * of the round. */
void requests_leave(struct rounds *rounds, int code, const struct hvd_err *why)
{
    rounds_lock(rounds);
    rounds->requests.coming = false;
    ticket_note(rounds, code, why);
    if (!requests_pend(&rounds->requests))
        ticket_give(rounds);
    rounds_unlock(rounds);
}

/* Puts a call at the end of the queue. The caller has the lock and the ticket (its own, or the
 * ticket of the pending requests), so the round stays the same and no other thread adds a call. The
 * lock is released while the call is checked; after that the round may have ended. `wrong` is a
 * reason to refuse the call at once; NULL: there is none. waits true: this thread then waits for
 * the result, so the call is not fused with others. */
static int append_request(struct rounds *rounds, const hvd_call *call, const char *wrong,
                          bool waits, struct request *request, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    struct hvd_err why;
    int rc;

    requests->coming = true;
    rounds_unlock(rounds);
    rc = wrong ? refuse_call(rounds, HVD_E_INVAL, wrong, err)
               : read_call(rounds, call, &request->call, err);
    /* notes the work in the program's stream behind which the call must run */
    if (!rc && request->call.device) {
        rc = gpu_note(rounds->gpu, &request->marks, &why);
        if (rc)
            rc = refuse_call(rounds, rc, why.text, err);
    }
    rounds_lock(rounds);
    requests->coming = false;
    if (!rc && fusion_is_torn(rounds, request))
        rc = refuse_call(rounds, HVD_E_INVAL,
                         "a call in a group that its members alone have opened uses memory of an "
                         "earlier request, which may still be fused with later ones; wait for that "
                         "request first",
                         err);
    ticket_note(rounds, rc, err);
    if (!rc)
        rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    if (rc) {
        if (!requests_pend(requests))
            ticket_give(rounds);
        return rc;
    }
    fusion_append(rounds, request, waits);
    ticket_update(rounds);
    return 0;
}

/* Waits for a request until deadline_us, and returns the result of its call. HVD_E_TIMEOUT: the
 * request is not done. The lock is released while the thread waits. But once this function has
 * found that the request is not done, the lock is held until it returns: so the caller finds the
 * same, and keeps the handle. */
static int await_request(struct rounds *rounds, const struct request *request, int64_t deadline_us,
                         struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    bool persists = request->commit && pthread_equal(request->owner, pthread_self());
    bool late;
    int news; /* the code that train must return before the driver takes a checkpoint; 0: none */
    int rc;

    requests->waiters++;
    atomic_fetch_add(&requests->persisting, persists);
    /* a commit or check has told train to return; the driver takes no checkpoint before that, so
     * this thread must not wait for one */
    late = persists && rounds->news;
    if (deadline_us == TIME_NEVER && request->queue) {
        transfers_help(request);
    } else if (deadline_us == TIME_NEVER && !request->commit) {
        /* This thread makes the calls up to the request itself, as long as no other thread makes
         * one. A call on GPU memory may wait for the GPU, so it is left to the thread of the
         * requests. */
        while (!request->done && !requests->running && requests->first &&
               !requests->first->call.device)
            run_first(rounds);
        if (requests->first && !requests->running)
            pthread_cond_signal(&requests->work);
    }
    while (!request->done && !late)
        late = thread_cond_wait(&requests->done, &rounds->lock, deadline_us);
    late = !request->done;
    news = late && persists ? rounds->news : 0;
    rc = news ? HVD_E_STATE : late ? HVD_E_TIMEOUT : request->outcome.code;
    if (news)
        err_set(err, rc,
                "the checkpoint is not complete, and a commit or check has returned %s; return "
                "that code from train, and wait again when it is called again",
                err_name(news));
    else if (late)
        err_set(err, rc, "hvd_wait_for: the request is not done yet; call hvd_wait_for again");
    else if (rc && err)
        *err = request->outcome;
    /* work that the program queues in its stream from now on comes after the result */
    if (!rc && request->call.streamed) {
        rounds_unlock(rounds);
        rc = gpu_pass_on(rounds->gpu, &request->marks, err);
        rounds_lock(rounds);
    }
    requests->waiters--;
    atomic_fetch_sub(&requests->persisting, persists);
    if (requests->closing)
        pthread_cond_broadcast(&requests->done);
    return rc;
}

/* Makes a call and waits for its result. If no request is pending, the calling thread makes the
 * call itself (run_now). Otherwise the call goes to the end of the queue, and the thread waits for
 * it. A send or a receive goes to the queue of its channel instead. The caller does not hold the
 * lock. */
int requests_run(struct rounds *rounds, const hvd_call *call, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    struct request request = { .next = NULL };
    bool is_behind;
    int rc;

    if (call_is_transfer(call)) {
        rounds_lock(rounds);
        rc = transfers_append(rounds, call, true /* this thread waits for the result */, &request,
                              err);
        if (!rc)
            rc = await_request(rounds, &request, TIME_NEVER, err);
        rounds_unlock(rounds);
        return rc;
    }
    if (ticket_try(rounds))
        return run_now(rounds, call, err);
    /* The ticket is not free: requests are pending, another thread is in a call, or the round
     * has ended. */
    rounds_lock(rounds);
    rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    is_behind = requests_pend(requests);
    if (!rc && is_behind) { /* the call goes to the end of the queue, and this thread waits */
        rc = check_alone(requests, err);
        if (!rc)
            rc = append_request(rounds, call, NULL, true /* this thread waits for the result */,
                                &request, err);
        if (!rc) {
            requests->blocked = &request;
            rc = await_request(rounds, &request, TIME_NEVER, err);
        }
    } else if (!rc) {
        rc = ticket_take(rounds, err);
    }
    rounds_unlock(rounds);
    gpu_marks_release(&request.marks);
    return rc || is_behind ? rc : run_now(rounds, call, err);
}

/* Starts a call: puts it at the end of the queue and returns its handle. The thread that makes the
 * calls is started by the first request. The caller does not hold the lock. */
int requests_start(struct rounds *rounds, const hvd_call *call, hvd_request **ret_request,
                   struct hvd_err *err)
{
    const char *wrong = /* why the call is refused; NULL: nothing is wrong */
        ret_request ? NULL : "hvd_start: ret_request is NULL; pass a pointer that gets the request";
    bool transfers = call_is_transfer(call) && ret_request;
    struct requests *requests = &rounds->requests;
    struct request *request;
    int rc;

    rounds_lock(rounds);
    rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    if (!rc)
        rc = request_reserve(requests, err);
    if (!rc && transfers) {
        request = request_take(requests);
        rc = transfers_append(rounds, call, false /* this thread goes on at once */, request, err);
        if (rc)
            request_put_back(requests, request);
        else
            *ret_request = (hvd_request *)request->name;
    }
    if (rc || transfers) {
        rounds_unlock(rounds);
        return rc;
    }
    if (!requests->threaded) {
        if (thread_start(&requests->thread, 0, run_requests, rounds))
            rc = err_set(err, HVD_E_LIMIT,
                         "no thread can be started for requests; raise the limit of processes "
                         "(ulimit -u), or use hvd_run");
        requests->threaded = !rc;
    }
    if (!rc)
        rc = requests_pend(requests) ? check_alone(requests, err) : ticket_take(rounds, err);
    if (!rc) {
        request = request_take(requests);
        rc = append_request(rounds, call, wrong, false /* this thread goes on at once */, request,
                            err);
        if (!rc && ret_request)
            *ret_request = (hvd_request *)request->name;
        else
            request_put_back(requests, request);
    }
    rounds_unlock(rounds);
    return rc;
}

static int no_such_request(struct hvd_err *err)
{
    return err_set(err, HVD_E_INVAL,
                   "the request is unknown, or hvd_wait was called for it already; wait once for "
                   "each request of hvd_start and hvd_checkpoint");
}

/* Tells whether a request is done. A program that asks wants the request to be done, so an open
 * batch that has the request is closed, and its call is made. The caller does not hold the lock. */
int requests_test(struct rounds *rounds, hvd_request *request, int *ret_done, struct hvd_err *err)
{
    const struct request *found;
    bool done = false;

    if (!ret_done)
        return err_set(err, HVD_E_INVAL,
                       "hvd_test: ret_done is NULL; pass a pointer that gets the result");
    rounds_lock(rounds);
    found = request_find(&rounds->requests, request);
    if (found) {
        done = found->done;
        if (!done && !found->commit && !found->queue && fusion_holds(&rounds->requests, found))
            fusion_close(&rounds->requests);
    }
    rounds_unlock(rounds);
    if (!found)
        return no_such_request(err);
    *ret_done = done;
    return 0;
}

int requests_wait(struct rounds *rounds, hvd_request *request, struct hvd_err *err)
{
    return requests_wait_for(rounds, request, -1 /* no time limit */, err);
}

/* Waits for a request, returns the result of its call, and ends its handle. The request counts as
 * waited for from the first wait on, also if that wait times out: what is fused must follow from
 * the calls of the program alone, which are the same on all ranks, and not from times. The caller
 * does not hold the lock. */
int requests_wait_for(struct rounds *rounds, hvd_request *request, int64_t timeout_us,
                      struct hvd_err *err)
{
    int64_t deadline_us = timeout_us < 0 ? TIME_NEVER : time_add(clock_now_us(), timeout_us);
    struct requests *requests = &rounds->requests;
    struct request *found;
    int rc;

    rounds_lock(rounds);
    found = request_find(requests, request);
    if (!found || found->awaited) {
        rounds_unlock(rounds);
        return no_such_request(err);
    }
    found->awaited = true;
    if (!found->counted && !found->commit && !found->queue)
        fusion_await(requests, found);
    found->counted = true;
    rc = await_request(rounds, found, deadline_us, err);
    if (found->done)
        request_put_back(requests, found);
    found->awaited = false;
    rounds_unlock(rounds);
    return rc;
}
