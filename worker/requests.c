#include "base/limits.h"
#include "base/mem.h"
#include "os/thread.h"
#include "worker/call.h"
#include "worker/rounds_inside.h"

#include <inttypes.h>

/* A name is a number, from 1, and the request's place in `all`, from 1. */
#define PLACE_BITS 16
#define PLACE_MASK (((uintptr_t)1 << PLACE_BITS) - 1)
_Static_assert(LIMIT_REQUESTS < (1 << PLACE_BITS), "a place is part of a name");

static void lock(struct rounds *rounds)
{
    pthread_mutex_lock(&rounds->lock);
}

static void unlock(struct rounds *rounds)
{
    pthread_mutex_unlock(&rounds->lock);
}

/* ---- the table: under the lock --------------------------------------------------------------- */

void requests_init(struct requests *requests)
{
    *requests = (struct requests){ .threaded = false };
    pthread_cond_init(&requests->work, NULL);
    pthread_cond_init(&requests->done, NULL);
}

void requests_release(struct requests *requests)
{
    for (size_t i = 0; i < requests->all.count; i++)
        mem_free(requests->all.items[i]);
    VEC_RELEASE(&requests->all);
    pthread_cond_destroy(&requests->done);
    pthread_cond_destroy(&requests->work);
}

static size_t place_of(uintptr_t name)
{
    return (size_t)(name & PLACE_MASK) - 1;
}

/* One that is not in use, with a name that says its place. */
static int grow(struct requests *requests, struct hvd_err *err)
{
    struct request *request;
    int rc = VEC_RESERVE(&requests->all, 1, LIMIT_REQUESTS);

    if (rc == HVD_E_LIMIT)
        return err_set(err, rc,
                       "more than LIMIT_REQUESTS (%d) requests are not waited for; call hvd_wait "
                       "for each",
                       LIMIT_REQUESTS);
    request = rc ? NULL : mem_zalloc(sizeof(*request));
    if (!request)
        return err_set(err, HVD_E_NOMEM, "no memory for a request");
    requests->all.items[requests->all.count++] = request;
    request->name = requests->all.count;
    request->next = requests->unused;
    requests->unused = request;
    return 0;
}

/* The number is the process's: no name comes twice, whatever was shut down meanwhile. */
static struct request *take(struct requests *requests)
{
    static atomic_uintptr_t numbers;
    struct request *request = requests->unused;
    uintptr_t number = atomic_fetch_add(&numbers, 1) + 1;

    requests->unused = request->next;
    *request = (struct request){ .name = number << PLACE_BITS | (request->name & PLACE_MASK) };
    return request;
}

static void put_back(struct requests *requests, struct request *request)
{
    request->name &= PLACE_MASK; /* nobody knows it by that */
    request->next = requests->unused;
    requests->unused = request;
}

static struct request *find(const struct requests *requests, const hvd_request *known)
{
    uintptr_t name = (uintptr_t)known;
    size_t place = place_of(name);

    if (!(name >> PLACE_BITS) || place >= requests->all.count ||
        requests->all.items[place]->name != name)
        return NULL;
    return requests->all.items[place];
}

/* ---- the queue: under the lock --------------------------------------------------------------- */

static void push(struct rounds *rounds, struct request *request)
{
    struct requests *requests = &rounds->requests;

    if (requests->first)
        requests->last->next = request;
    else
        requests->first = request;
    requests->last = request;
    turns_settle(rounds);
    pthread_cond_signal(&requests->work);
}

/* Whoever has started it may free it from here on. */
static void finish_first(struct rounds *rounds)
{
    struct requests *requests = &rounds->requests;
    struct request *request = requests->first;

    requests->first = request->next;
    request->done = true;
    atomic_fetch_add_explicit(&rounds->calls, 1, memory_order_relaxed);
    if (!requests->first) {
        requests->blocked = false;
        turns_settle(rounds);
        turns_give(rounds);
    }
    pthread_cond_broadcast(&requests->done);
}

/* All that is pending and not in progress, the first of them being the next. */
static void revoke_rest(struct rounds *rounds, const char *why)
{
    while (rounds->requests.first) {
        err_set(&rounds->requests.first->outcome, HVD_E_REVOKED, "%s", why);
        finish_first(rounds);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void run_first(struct rounds *rounds)
{
    struct requests *requests = &rounds->requests;
    struct request *request = requests->first;
    struct hvd_err why = { 0 };
    int rc;

    requests->running = true;
    unlock(rounds);
    rc = coll_run(rounds->coll, &request->call, &why);
    why.code = rc;
    lock(rounds);
    requests->running = false;
    if (rc && requests->dropped)
        err_set(&why, rc, "%s", requests->dropped);
    if (rc && rounds->failed) /* somebody else's fault, who is told */
        why.code = HVD_E_REVOKED;
    if (rc)
        request->outcome = why;
    turns_note(rounds, rc);
    finish_first(rounds);
    if (rc)
        revoke_rest(rounds, why.text);
}

static void *run_all(void *arg)
{
    struct rounds *rounds = arg;
    struct requests *requests = &rounds->requests;

    lock(rounds);
    while (!requests->closing) {
        if (requests->first)
            run_first(rounds);
        else
            pthread_cond_wait(&requests->work, &rounds->lock);
    }
    unlock(rounds);
    return NULL;
}

static int start_thread(struct rounds *rounds, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;

    if (!requests->threaded && thread_start(&requests->thread, 0, run_all, rounds))
        return err_set(err, HVD_E_LIMIT,
                       "no thread can be started for requests; raise the limit of processes "
                       "(ulimit -u), or use hvd_run");
    requests->threaded = true;
    return 0;
}

void requests_close(struct rounds *rounds)
{
    struct requests *requests = &rounds->requests;

    if (!requests->threaded)
        return;
    lock(rounds);
    requests->closing = true;
    pthread_cond_signal(&requests->work);
    while (requests->awaited_by) /* all are done, and they are about to come out */
        pthread_cond_wait(&requests->done, &rounds->lock);
    unlock(rounds);
    pthread_join(requests->thread, NULL);
    requests->threaded = false;
}

/* The one in progress stays the first until the thread has come out of it; what is behind it fails
 * with it, or as the next. */
void requests_drop(struct rounds *rounds, const char *why)
{
    struct requests *requests = &rounds->requests;

    if (!requests->first)
        return;
    coll_cancel(rounds->coll);
    if (!requests->running) {
        revoke_rest(rounds, why);
        return;
    }
    requests->dropped = why;
    while (requests->first)
        pthread_cond_wait(&requests->done, &rounds->lock);
    requests->dropped = NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The lock is held, and let go meanwhile. */
static void await_done(struct rounds *rounds, const struct request *request)
{
    struct requests *requests = &rounds->requests;

    requests->awaited_by++;
    while (!request->done)
        pthread_cond_wait(&requests->done, &rounds->lock);
    requests->awaited_by--;
    if (requests->closing)
        pthread_cond_broadcast(&requests->done);
}

/* What is wrong with a call ends the round: the others would wait for this rank. Whoever is in a
 * collective hears of it as of any end of the round. */
static int refuse(struct rounds *rounds, const char *why, struct hvd_err *err)
{
    (void)coll_refuse(rounds->coll, NULL, "%s", why);
    return err_set(err, HVD_E_INVAL, "%s", why);
}

static int read_call(struct rounds *rounds, const hvd_call *call, struct coll_call *ret_call,
                     struct hvd_err *err)
{
    struct hvd_err why;

    if (!call_read(call, rounds->groups, rounds->roll, ret_call, &why))
        return 0;
    return refuse(rounds, why.text, err);
}

static int run_now(struct rounds *rounds, const hvd_call *call, struct hvd_err *err)
{
    struct coll_call read;
    int rc = read_call(rounds, call, &read, err);

    if (!rc)
        rc = coll_run(rounds->coll, &read, err);
    turns_end(rounds, rc);
    return rc;
}

/* May something be put behind what is pending? Only one thread at a time can mean an order. */
static int check_alone(const struct requests *requests, struct hvd_err *err)
{
    if (requests->blocked)
        return err_set(err, HVD_E_BUSY,
                       "another thread is in a collective, behind requests; all ranks must make "
                       "them in the same order, so one thread at a time");
    return 0;
}

/* The lock is held. */
static int run_behind(struct rounds *rounds, const hvd_call *call, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    struct request request = { .next = NULL };
    int rc = check_alone(requests, err);

    if (!rc) {
        rc = read_call(rounds, call, &request.call, err);
        turns_note(rounds, rc);
    }
    if (rc)
        return rc;
    push(rounds, &request);
    requests->blocked = true;
    await_done(rounds, &request);
    requests->blocked = false;
    if (request.outcome.code && err)
        *err = request.outcome;
    return request.outcome.code;
}

int requests_run(struct rounds *rounds, const hvd_call *call, struct hvd_err *err)
{
    bool behind;
    int rc;

    if (turns_try(rounds))
        return run_now(rounds, call, err);
    lock(rounds);
    rc = turns_allow(rounds, false, err);
    behind = rounds->requests.first != NULL;
    if (!rc && behind)
        rc = run_behind(rounds, call, err);
    else if (!rc)
        rc = turns_take(rounds, err);
    unlock(rounds);
    return rc || behind ? rc : run_now(rounds, call, err);
}

/* All that a start needs but its turn; the lock is held. */
static int prepare(struct rounds *rounds, struct hvd_err *err)
{
    int rc = rounds->requests.unused ? 0 : grow(&rounds->requests, err);

    return rc ? rc : start_thread(rounds, err);
}

/* With the turn, which is the requests' while any is pending; the lock is held. */
static int add(struct rounds *rounds, const hvd_call *call, hvd_request **ret_request,
               struct hvd_err *err)
{
    struct coll_call read;
    struct request *request;
    int rc;

    if (ret_request)
        rc = read_call(rounds, call, &read, err);
    else
        rc = refuse(rounds, "hvd_start: ret_request is NULL; say where to put it", err);
    turns_note(rounds, rc);
    if (rc || !ret_request)
        return rc;
    request = take(&rounds->requests);
    request->call = read;
    push(rounds, request);
    *ret_request = (hvd_request *)request->name;
    return 0;
}

int requests_start(struct rounds *rounds, const hvd_call *call, hvd_request **ret_request,
                   struct hvd_err *err)
{
    bool pending;
    int rc;

    lock(rounds);
    pending = rounds->requests.first != NULL;
    rc = turns_allow(rounds, false, err);
    if (!rc)
        rc = prepare(rounds, err);
    if (!rc)
        rc = pending ? check_alone(&rounds->requests, err) : turns_take(rounds, err);
    if (!rc) {
        rc = add(rounds, call, ret_request, err);
        if (rc && !pending)
            turns_give(rounds);
    }
    unlock(rounds);
    return rc;
}

static int no_such(struct hvd_err *err)
{
    return err_set(err, HVD_E_INVAL,
                   "the request is none, or has been waited for; wait once for what hvd_start has "
                   "given");
}

int requests_test(struct rounds *rounds, hvd_request *request, int *ret_done, struct hvd_err *err)
{
    const struct request *found;
    bool done = false;

    if (!ret_done)
        return err_set(err, HVD_E_INVAL, "hvd_test: ret_done is NULL; say where to put it");
    lock(rounds);
    found = find(&rounds->requests, request);
    if (found)
        done = found->done;
    unlock(rounds);
    if (!found)
        return no_such(err);
    *ret_done = done;
    return 0;
}

int requests_wait(struct rounds *rounds, hvd_request *request, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    struct request *found;
    int rc;

    lock(rounds);
    found = find(requests, request);
    if (!found || found->awaited) {
        unlock(rounds);
        return no_such(err);
    }
    found->awaited = true;
    await_done(rounds, found);
    rc = found->outcome.code;
    if (rc && err)
        *err = found->outcome;
    put_back(requests, found);
    unlock(rounds);
    return rc;
}
