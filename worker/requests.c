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
    for (size_t i = 0; i < requests->all.count; i++) {
        gpu_marks_release(&requests->all.items[i]->marks);
        mem_free(requests->all.items[i]);
    }
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
    *request = (struct request){ .name = number << PLACE_BITS | (request->name & PLACE_MASK),
                                 .marks = request->marks };
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
        if (!requests->coming)
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

/* What is wrong with a call, or with the GPU here, ends the round: the others would wait for this
 * rank. Whoever is in a collective hears of it as of any end of the round. */
static int refuse(struct rounds *rounds, int code, const char *why, struct hvd_err *err)
{
    (void)coll_refuse(rounds->coll, NULL, "%s", why);
    return err_set(err, code, "%s", why);
}

/* Of memory of a GPU: after what was queued when it was asked for, and in a stream of ours. */
static int run_one(struct rounds *rounds, struct request *request, struct hvd_err *why)
{
    struct gpu_use *gpu = rounds->gpu;
    struct hvd_err broken;
    int rc;

    if (!request->call.device)
        return coll_run(rounds->coll, &request->call, why);
    rc = gpu_take_up(gpu, &request->marks, &request->call.stream, &broken);
    if (rc)
        return refuse(rounds, rc, broken.text, why);
    rc = coll_run(rounds->coll, &request->call, why);
    if (rc || !request->call.streamed)
        return rc;
    rc = gpu_done(gpu, &request->marks, &broken);
    return rc ? refuse(rounds, rc, broken.text, why) : 0;
}

static void run_first(struct rounds *rounds)
{
    struct requests *requests = &rounds->requests;
    struct request *request = requests->first;
    struct hvd_err why = { 0 };
    int rc;

    requests->running = true;
    unlock(rounds);
    rc = run_one(rounds, request, &why);
    why.code = rc;
    lock(rounds);
    requests->running = false;
    if (rc && requests->dropped)
        err_set(&why, rc, "%s", requests->dropped);
    if (rc && rounds->failed) /* somebody else's fault, who is told */
        why.code = HVD_E_REVOKED;
    if (rc)
        request->outcome = why;
    turns_note(rounds, rc, &why);
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

static int read_call(struct rounds *rounds, const hvd_call *call, struct coll_call *ret_call,
                     struct hvd_err *err)
{
    struct hvd_err why;
    int rc = call_read(call, rounds->groups, rounds->roll, ret_call, &why);

    if (!rc && ret_call->device) {
        rc = gpu_use_device(rounds->gpu, ret_call->device, accord_kind_name(ret_call->kind), &why);
        ret_call->streamed = gpu_use_streamed(rounds->gpu, &ret_call->stream);
    }
    return rc ? refuse(rounds, rc, why.text, err) : 0;
}

/* What a call that is done later comes after. */
static int note(struct rounds *rounds, const struct coll_call *call, struct gpu_marks *marks,
                struct hvd_err *err)
{
    struct hvd_err why;
    int rc = call->device ? gpu_note(rounds->gpu, marks, &why) : 0;

    return rc ? refuse(rounds, rc, why.text, err) : 0;
}

/* What comes after it in its stream finds its result: nothing else waits. */
static int pass_on(struct rounds *rounds, const struct request *request, struct hvd_err *err)
{
    if (request->outcome.code && err)
        *err = request->outcome;
    if (request->outcome.code || !request->call.streamed)
        return request->outcome.code;
    return gpu_pass_on(rounds->gpu, &request->marks, err);
}

/* The lock is held, and let go meanwhile. */
static int await(struct rounds *rounds, const struct request *request, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    int rc;

    requests->awaited_by++;
    while (!request->done)
        pthread_cond_wait(&requests->done, &rounds->lock);
    unlock(rounds);
    rc = pass_on(rounds, request, err);
    lock(rounds);
    requests->awaited_by--;
    if (requests->closing)
        pthread_cond_broadcast(&requests->done);
    return rc;
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
    if (requests->blocked || requests->coming)
        return err_set(err, HVD_E_BUSY,
                       "another thread is in a collective, behind requests; all ranks must make "
                       "them in the same order, so one thread at a time");
    return 0;
}

static int read_and_note(struct rounds *rounds, const hvd_call *call, struct request *request,
                         struct hvd_err *err)
{
    int rc = read_call(rounds, call, &request->call, err);

    return rc ? rc : note(rounds, &request->call, &request->marks, err);
}

/* With the turn, which is also that of what is pending: the round stays what it is, and nobody else
 * comes. The lock is held, and let go meanwhile; then the round may be at its end. wrong: why
 * nothing can come of it; NULL. */
static int add(struct rounds *rounds, const hvd_call *call, const char *wrong,
               struct request *request, struct hvd_err *err)
{
    struct requests *requests = &rounds->requests;
    int rc;

    requests->coming = true;
    unlock(rounds);
    rc =
        wrong ? refuse(rounds, HVD_E_INVAL, wrong, err) : read_and_note(rounds, call, request, err);
    lock(rounds);
    requests->coming = false;
    turns_note(rounds, rc, err);
    if (!rc)
        rc = turns_allow(rounds, false, err);
    if (!rc)
        push(rounds, request);
    else if (!requests->first)
        turns_give(rounds);
    return rc;
}

/* The lock is held, and let go meanwhile. */
static int run_behind(struct rounds *rounds, const hvd_call *call, struct request *request,
                      struct hvd_err *err)
{
    int rc = check_alone(&rounds->requests, err);

    if (!rc)
        rc = add(rounds, call, NULL, request, err);
    if (rc)
        return rc;
    rounds->requests.blocked = true; /* until nothing is pending */
    return await(rounds, request, err);
}

int requests_run(struct rounds *rounds, const hvd_call *call, struct hvd_err *err)
{
    struct request request;
    bool behind;
    int rc;

    if (turns_try(rounds))
        return run_now(rounds, call, err);
    request = (struct request){ .next = NULL };
    lock(rounds);
    rc = turns_allow(rounds, false, err);
    behind = rounds->requests.first != NULL;
    if (!rc && behind)
        rc = run_behind(rounds, call, &request, err);
    else if (!rc)
        rc = turns_take(rounds, err);
    unlock(rounds);
    gpu_marks_release(&request.marks);
    return rc || behind ? rc : run_now(rounds, call, err);
}

/* All that a start needs but its turn; the lock is held. */
static int prepare(struct rounds *rounds, struct hvd_err *err)
{
    int rc = rounds->requests.unused ? 0 : grow(&rounds->requests, err);

    return rc ? rc : start_thread(rounds, err);
}

int requests_start(struct rounds *rounds, const hvd_call *call, hvd_request **ret_request,
                   struct hvd_err *err)
{
    const char *wrong = ret_request ? NULL : "hvd_start: ret_request is NULL; say where to put it";
    struct requests *requests = &rounds->requests;
    struct request *request;
    int rc;

    lock(rounds);
    rc = turns_allow(rounds, false, err);
    if (!rc)
        rc = prepare(rounds, err);
    if (!rc)
        rc = requests->first ? check_alone(requests, err) : turns_take(rounds, err);
    if (!rc) {
        request = take(requests);
        rc = add(rounds, call, wrong, request, err);
        if (!rc && ret_request)
            *ret_request = (hvd_request *)request->name;
        else
            put_back(requests, request);
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
    rc = await(rounds, found, err);
    put_back(requests, found);
    unlock(rounds);
    return rc;
}
