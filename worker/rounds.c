#include "base/mem.h"
#include "base/time.h"
#include "os/thread.h"
#include "worker/addresses.h"
#include "worker/rounds_inside.h"

#include <inttypes.h>

/* Everybody is at the gate when a round begins: whom one cannot reach by then is behind a wall. */
#define CONNECT_US TIME_MIN

/* While the round before still trains, the next one's GPUs are connected too, if it takes no
 * longer.
 */
#define DEVICE_US (20 * TIME_S)

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
    roll_free(opening->roll);
    msg_release(&opening->prepare);
    mem_free(opening);
}

static int make_coll(struct rounds *rounds, const struct roll *roll, uint64_t round,
                     const struct msg_member_list *members, struct coll **ret_coll,
                     struct hvd_err *err)
{
    struct coll_peer *peers = mem_zalloc_array(members->count, sizeof(*peers));
    struct coll_roster roster = { .round = round,
                                  .rank = roll->rank,
                                  .size = roll->size,
                                  .peers = peers,
                                  .groups = roll->parts,
                                  .group_count = roll->part_count,
                                  .timeline = rounds->timeline };
    int rc;

    if (!peers)
        return err_set(err, HVD_E_NOMEM, "no memory for %zu members", members->count);
    for (uint32_t i = 0; i < roster.size; i++) {
        const struct msg_member *member = &members->items[i];

        peers[i] = (struct coll_peer){ .incarnation = member->incarnation,
                                       .host = member->host,
                                       .contact = addresses_find(&member->addresses, "data"),
                                       .device = addresses_find(&member->addresses, "gpu") };
    }
    rc = coll_create(rounds->engine, &roster, ret_coll, err);
    mem_free(peers);
    return rc;
}

/* The program's groups are asked, which may take as long as it pleases them. */
static int make(struct rounds *rounds, uint64_t incarnation, uint64_t round,
                const struct msg_member_list *members, struct coll **ret_coll,
                struct roll **ret_roll, struct hvd_err *err)
{
    struct roll *roll = NULL;
    int rc = roll_make(rounds->groups, members, incarnation, &roll, err);

    if (!rc)
        rc = make_coll(rounds, roll, round, members, ret_coll, err);
    if (rc)
        roll_free(roll);
    else
        *ret_roll = roll;
    return rc;
}

/* Nobody wants what is prepared any more. The lock is held. */
static void give_up(struct rounds *rounds)
{
    struct opening *opening = rounds->next;

    rounds->next = NULL;
    if (!opening)
        return;
    if (opening->coll)
        coll_cancel(opening->coll);
    if (opening->taken && !opening->done)
        opening->abandoned = true;
    else
        opening_free(opening);
}

/* ---- the thread that connects ---------------------------------------------------------------- */

/* The lock is held, and let go meanwhile. From the moment that there is a coll it can be cancelled.
 */
static int make_and_connect(struct rounds *rounds, struct opening *opening, struct hvd_err *err)
{
    const struct msg *prepare = &opening->prepare;
    struct coll *coll = NULL;
    struct roll *roll = NULL;
    int rc;

    unlock(rounds);
    rc = make(rounds, opening->incarnation, opening->round, &prepare->u.prepare.members, &coll,
              &roll, err);
    lock(rounds);
    opening->coll = coll;
    opening->roll = roll;
    if (rc || opening->abandoned)
        return rc;
    unlock(rounds);
    rc = coll_connect(coll, CONNECT_US, err);
    if (!rc)
        coll_await_device(coll, DEVICE_US);
    lock(rounds);
    return rc;
}

/* The lock is held, and let go meanwhile. */
static void connect_one(struct rounds *rounds, struct opening *opening)
{
    struct hvd_err outcome = { 0 };
    uint64_t round = opening->round;
    int rc;

    opening->taken = true;
    rc = make_and_connect(rounds, opening, &outcome);
    outcome.code = rc;
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

int rounds_create(const struct groups *groups, rounds_prepared_fn *prepared, void *arg,
                  struct rounds **ret_rounds, struct hvd_err *err)
{
    struct rounds *rounds = mem_zalloc(sizeof(*rounds));

    if (!rounds)
        return err_set(err, HVD_E_NOMEM, "no memory for collectives");
    rounds->groups = groups;
    rounds->prepared = prepared;
    rounds->arg = arg;
    atomic_init(&rounds->turn, TURN_SHUT);
    requests_init(&rounds->requests);
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

void rounds_use_gpu(struct rounds *rounds, struct gpu_use *gpu)
{
    rounds->gpu = gpu;
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

/* Until nobody is inside. To cancel them would disturb peers that still have their last one to end.
 * The lock is held, and let go meanwhile. */
static void empty(struct rounds *rounds)
{
    if (rounds->coll && atomic_load(&rounds->turn) & TURN_TAKEN)
        coll_cancel(rounds->coll);
    turns_await(rounds);
}

/* What train has queued has failed when it had returned: as if a call of it had. */
static void note_late(struct rounds *rounds, const struct hvd_err *why)
{
    lock(rounds);
    if (!rounds->failed) {
        rounds->failed = HVD_E_REVOKED;
        (void)err_set(&rounds->why, HVD_E_REVOKED, "%s", why->text);
    }
    unlock(rounds);
}

int rounds_settle(struct rounds *rounds, struct hvd_err *err)
{
    struct hvd_err why;
    struct coll *coll;
    int rc;

    if (!rounds->gpu || !atomic_load(&rounds->gpu->device))
        return 0;
    lock(rounds);
    empty(rounds);
    coll = rounds->coll;
    unlock(rounds);
    rc = coll && !rounds->unsettled.code ? coll_settle(coll, &why) : 0;
    if (rc == HVD_E_REVOKED)
        note_late(rounds, &why);
    else if (rc)
        rounds->unsettled = why;
    if (rounds->unsettled.code && err)
        *err = rounds->unsettled;
    return rounds->unsettled.code;
}

/* The collectives of before are freed once nobody is inside. */
static int leave(struct rounds *rounds, struct hvd_err *err)
{
    struct coll *old;
    int rc;

    rounds_open(rounds, false);
    rc = rounds_settle(rounds, err);
    lock(rounds);
    empty(rounds);
    old = rounds->coll;
    rounds->coll = NULL;
    unlock(rounds);
    coll_free(old);
    return rc;
}

void rounds_free(struct rounds *rounds)
{
    if (!rounds)
        return;
    rounds_close(rounds);
    lock(rounds);
    give_up(rounds); /* what came after the close */
    unlock(rounds);
    (void)leave(rounds, NULL);
    requests_close(rounds);
    requests_release(&rounds->requests);
    roll_free(rounds->roll);
    pthread_cond_destroy(&rounds->changed);
    pthread_mutex_destroy(&rounds->lock);
    mem_free(rounds);
}

/* ---- by the session's thread ----------------------------------------------------------------- */

void rounds_prepare(struct rounds *rounds, uint64_t incarnation, const struct msg *prepare)
{
    struct opening *opening = mem_zalloc(sizeof(*opening));
    struct hvd_err err = { 0 };

    if (opening && !msg_copy(prepare, &opening->prepare)) {
        opening->round = prepare->round;
        opening->incarnation = incarnation;
        lock(rounds);
        give_up(rounds);
        rounds->next = opening;
        pthread_cond_broadcast(&rounds->changed);
        unlock(rounds);
        return;
    }
    mem_free(opening);
    err_set(&err, HVD_E_NOMEM, "no memory for %zu members", prepare->u.prepare.members.count);
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
static struct coll *take_prepared(struct rounds *rounds, uint64_t round, struct roll **ret_roll)
{
    struct opening *opening = rounds->next;
    struct coll *coll;

    if (!opening || opening->round != round || !opening->done) {
        give_up(rounds);
        return NULL;
    }
    rounds->next = NULL;
    coll = opening->coll;
    *ret_roll = opening->roll;
    opening->coll = NULL;
    opening->roll = NULL;
    opening_free(opening);
    return coll;
}

/* From here on a cancel finds it. HVD_E_REVOKED: it came before. */
static int install(struct rounds *rounds, uint64_t round, struct coll *coll, struct roll *roll,
                   struct hvd_err *err)
{
    roll_free(rounds->roll);
    rounds->coll = coll;
    rounds->roll = roll;
    rounds->round = round;
    rounds->failed = 0;
    rounds->why.text[0] = '\0';
    rounds->news = 0;
    turns_settle(rounds);
    if (round <= rounds->cancelled)
        return err_set(err, HVD_E_REVOKED, "round %" PRIu64 " is revoked", round);
    return 0;
}

int rounds_enter(struct rounds *rounds, uint64_t incarnation, uint64_t round,
                 const struct msg_member_list *members, bool prepared, struct hvd_err *err)
{
    struct coll *coll = NULL;
    struct roll *roll = NULL;
    int rc = leave(rounds, err);

    if (rc)
        return rc;
    lock(rounds);
    if (prepared)
        coll = take_prepared(rounds, round, &roll);
    prepared = coll != NULL;
    unlock(rounds);
    if (!coll)
        rc = make(rounds, incarnation, round, members, &coll, &roll, err);
    if (rc)
        return rc;
    lock(rounds);
    rc = install(rounds, round, coll, roll, err);
    unlock(rounds);
    if (!rc && !prepared)
        rc = coll_connect(coll, CONNECT_US, err);
    return rc;
}
