#include "worker/rounds.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/thread.h"
#include "worker/addresses.h"

#include <inttypes.h>
#include <stdatomic.h>

/* Everybody is at the gate when a round begins: whom one cannot reach by then is behind a wall. */
#define CONNECT_US TIME_MIN

/* The collectives of one round, from PREPARE until they are entered or given up. */
struct opening {
    uint64_t round;
    struct coll *coll;
    bool taken;     /* the connecting thread has it */
    bool done;      /* it is connected */
    bool abandoned; /* whoever has it then frees it */
};

struct rounds {
    struct coll_engine *engine;
    struct timeline *timeline;
    rounds_prepared_fn *prepared;
    void *arg;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread; /* that connects */
    bool threaded;
    bool closing;
    struct opening *next; /* what is, or was, prepared */
    struct coll *coll;    /* of the running round */
    uint64_t round;
    uint64_t cancelled; /* this round and all before it */
    bool open;
    int news;           /* that train has been told; 0 */
    _Atomic int failed; /* the code of the first that did; 0 */
    bool busy;          /* a thread is inside */
};

static void lock(struct rounds *rounds)
{
    pthread_mutex_lock(&rounds->lock);
}

static void unlock(struct rounds *rounds)
{
    pthread_mutex_unlock(&rounds->lock);
}

/* ---- one opening ----------------------------------------------------------------------------- */

static void opening_free(struct opening *opening)
{
    coll_free(opening->coll);
    mem_free(opening);
}

static int make_coll(struct rounds *rounds, uint64_t incarnation, uint64_t round,
                     const struct msg_member_list *members, struct coll **ret_coll,
                     struct hvd_err *err)
{
    struct coll_peer *peers = mem_zalloc_array(members->count, sizeof(*peers));
    struct coll_roster roster = { .round = round,
                                  .size = (uint32_t)members->count,
                                  .peers = peers,
                                  .timeline = rounds->timeline };
    int rc;

    if (!peers)
        return err_set(err, HVD_E_NOMEM, "no memory for %zu members", members->count);
    for (uint32_t i = 0; i < roster.size; i++) {
        const struct msg_member *member = &members->items[i];

        if (member->incarnation == incarnation)
            roster.rank = i;
        peers[i] = (struct coll_peer){ .incarnation = member->incarnation,
                                       .host = member->host,
                                       .contact = addresses_find(&member->addresses, "data") };
    }
    rc = coll_create(rounds->engine, &roster, ret_coll, err);
    mem_free(peers);
    return rc;
}

/* Nobody wants what is prepared any more. The lock is held. */
static void give_up(struct rounds *rounds)
{
    struct opening *opening = rounds->next;

    rounds->next = NULL;
    if (!opening)
        return;
    coll_cancel(opening->coll);
    if (opening->taken && !opening->done)
        opening->abandoned = true;
    else
        opening_free(opening);
}

/* ---- the thread that connects ---------------------------------------------------------------- */

/* The lock is held, and let go meanwhile. */
static void connect_one(struct rounds *rounds, struct opening *opening)
{
    struct hvd_err outcome = { 0 };
    uint64_t round = opening->round;
    int rc;

    opening->taken = true;
    unlock(rounds);
    rc = coll_connect(opening->coll, CONNECT_US, &outcome);
    outcome.code = rc;
    lock(rounds);
    opening->done = true;
    if (opening->abandoned) {
        opening_free(opening);
        return;
    }
    if (rc) {
        rounds->next = NULL;
        opening_free(opening);
    }
    unlock(rounds);
    rounds->prepared(rounds->arg, round, &outcome);
    lock(rounds);
}

static void *connect_all(void *arg)
{
    struct rounds *rounds = arg;

    lock(rounds);
    while (!rounds->closing) {
        if (rounds->next && !rounds->next->taken)
            connect_one(rounds, rounds->next);
        else
            pthread_cond_wait(&rounds->changed, &rounds->lock);
    }
    unlock(rounds);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int rounds_create(rounds_prepared_fn *prepared, void *arg, struct rounds **ret_rounds,
                  struct hvd_err *err)
{
    struct rounds *rounds = mem_zalloc(sizeof(*rounds));

    if (!rounds)
        return err_set(err, HVD_E_NOMEM, "no memory for collectives");
    rounds->prepared = prepared;
    rounds->arg = arg;
    pthread_mutex_init(&rounds->lock, NULL);
    pthread_cond_init(&rounds->changed, NULL);
    *ret_rounds = rounds;
    return 0;
}

int rounds_use_engine(struct rounds *rounds, struct coll_engine *engine, struct hvd_err *err)
{
    if (thread_start(&rounds->thread, 0, connect_all, rounds))
        return err_set(err, HVD_E_LIMIT, "no thread can be started");
    rounds->engine = engine;
    rounds->threaded = true;
    return 0;
}

void rounds_use_timeline(struct rounds *rounds, struct timeline *timeline)
{
    rounds->timeline = timeline;
}

void rounds_close(struct rounds *rounds)
{
    if (!rounds || !rounds->threaded)
        return;
    lock(rounds);
    rounds->closing = true;
    give_up(rounds);
    pthread_cond_broadcast(&rounds->changed);
    unlock(rounds);
    pthread_join(rounds->thread, NULL);
    rounds->threaded = false;
}

/* The collectives of before are freed once nobody is inside. To cancel them would disturb peers
 * that still have their last one to end. */
static void leave(struct rounds *rounds)
{
    struct coll *old;

    lock(rounds);
    rounds->open = false;
    if (rounds->coll && rounds->busy)
        coll_cancel(rounds->coll);
    while (rounds->busy)
        pthread_cond_wait(&rounds->changed, &rounds->lock);
    old = rounds->coll;
    rounds->coll = NULL;
    unlock(rounds);
    coll_free(old);
}

void rounds_free(struct rounds *rounds)
{
    if (!rounds)
        return;
    rounds_close(rounds);
    lock(rounds);
    give_up(rounds); /* what came after the close */
    unlock(rounds);
    leave(rounds);
    pthread_cond_destroy(&rounds->changed);
    pthread_mutex_destroy(&rounds->lock);
    mem_free(rounds);
}

/* ---- by the session's thread ----------------------------------------------------------------- */

void rounds_prepare(struct rounds *rounds, uint64_t incarnation, const struct msg *prepare)
{
    struct opening *opening = mem_zalloc(sizeof(*opening));
    struct hvd_err err = { .code = HVD_E_NOMEM };

    if (opening && !make_coll(rounds, incarnation, prepare->round, &prepare->u.prepare.members,
                              &opening->coll, &err)) {
        opening->round = prepare->round;
        lock(rounds);
        give_up(rounds);
        rounds->next = opening;
        pthread_cond_broadcast(&rounds->changed);
        unlock(rounds);
        return;
    }
    mem_free(opening);
    rounds->prepared(rounds->arg, prepare->round, &err);
}

void rounds_abandon(struct rounds *rounds, uint64_t round)
{
    lock(rounds);
    if (rounds->next && rounds->next->round <= round)
        give_up(rounds);
    unlock(rounds);
}

void rounds_cancel(struct rounds *rounds, uint64_t round)
{
    lock(rounds);
    if (round > rounds->cancelled)
        rounds->cancelled = round;
    if (rounds->next && rounds->next->round <= round)
        give_up(rounds);
    if (rounds->coll && rounds->round <= round)
        coll_cancel(rounds->coll);
    unlock(rounds);
}

/* ---- by the loop ----------------------------------------------------------------------------- */

/* What was prepared for this round, if it is there. The lock is held. */
static struct coll *take_prepared(struct rounds *rounds, uint64_t round)
{
    struct opening *opening = rounds->next;
    struct coll *coll;

    if (!opening || opening->round != round || !opening->done) {
        give_up(rounds);
        return NULL;
    }
    rounds->next = NULL;
    coll = opening->coll;
    mem_free(opening);
    return coll;
}

/* From here on a cancel finds it. HVD_E_REVOKED: it came before. */
static int install(struct rounds *rounds, uint64_t round, struct coll *coll, struct hvd_err *err)
{
    rounds->coll = coll;
    rounds->round = round;
    rounds->failed = 0;
    rounds->news = 0;
    if (round <= rounds->cancelled)
        return err_set(err, HVD_E_REVOKED, "round %" PRIu64 " is revoked", round);
    return 0;
}

int rounds_enter(struct rounds *rounds, uint64_t incarnation, uint64_t round,
                 const struct msg_member_list *members, bool prepared, struct hvd_err *err)
{
    struct coll *coll = NULL;
    int rc = 0;

    leave(rounds);
    lock(rounds);
    if (prepared)
        coll = take_prepared(rounds, round);
    prepared = coll != NULL;
    unlock(rounds);
    if (!coll)
        rc = make_coll(rounds, incarnation, round, members, &coll, err);
    if (rc)
        return rc;
    lock(rounds);
    rc = install(rounds, round, coll, err);
    unlock(rounds);
    if (!rc && !prepared)
        rc = coll_connect(coll, CONNECT_US, err);
    return rc;
}

void rounds_open(struct rounds *rounds, bool open)
{
    lock(rounds);
    rounds->open = open;
    unlock(rounds);
}

void rounds_finish(struct rounds *rounds)
{
    struct coll *coll;

    lock(rounds);
    rounds->open = false;
    coll = rounds->busy ? NULL : rounds->coll; /* a thread that is inside still will not end it */
    rounds->busy = rounds->busy || coll;
    unlock(rounds);
    if (!coll)
        return;
    coll_bye(coll);
    rounds_put(rounds, 0);
}

void rounds_tell(struct rounds *rounds, int news)
{
    lock(rounds);
    rounds->news = news;
    unlock(rounds);
}

int rounds_failed(struct rounds *rounds)
{
    return atomic_load_explicit(&rounds->failed, memory_order_relaxed);
}

/* ---- by whoever uses them -------------------------------------------------------------------- */

int rounds_get(struct rounds *rounds, bool inside, struct coll **ret_coll, struct hvd_err *err)
{
    int rc = 0;

    lock(rounds);
    if (!rounds->coll || (!rounds->open && !inside))
        rc = err_set(err, HVD_E_STATE,
                     "a collective outside of a round; call it from train, which "
                     "hvd_elastic_run calls");
    else if (rounds->busy)
        rc = err_set(err, HVD_E_BUSY,
                     "another thread is in a collective; all ranks must make them in the same "
                     "order, so one thread at a time");
    else if (rounds->news > 0 && !inside)
        rc = err_set(err, HVD_E_STATE,
                     "a collective after a commit or check has returned %s; return that from train",
                     err_name(rounds->news));
    else if (rounds->failed)
        rc = err_set(err, HVD_E_REVOKED,
                     "a collective of round %" PRIu64 " has failed before; return from train",
                     rounds->round);
    if (!rc) {
        rounds->busy = true;
        *ret_coll = rounds->coll;
    }
    unlock(rounds);
    return rc;
}

void rounds_put(struct rounds *rounds, int code)
{
    lock(rounds);
    rounds->busy = false;
    if (code && !rounds->failed)
        rounds->failed = code;
    pthread_cond_broadcast(&rounds->changed);
    unlock(rounds);
}

bool rounds_look(struct rounds *rounds, struct coll_wait *ret_wait)
{
    lock(rounds);
    ret_wait->operation = NULL;
    if (rounds->coll)
        coll_wait_look(rounds->coll, ret_wait);
    unlock(rounds);
    return ret_wait->operation != NULL;
}
