#include "base/mem.h"
#include "base/time.h"
#include "collectives/coll_inside.h"
#include "collectives/link/gloo_link.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

#define LOOK_US TIME_S

/* ---- whom the algorithms need ---- */

static void add_partner(struct coll *coll, uint32_t rank)
{
    if (rank == coll->rank)
        return;
    for (size_t i = 0; i < coll->partner_count; i++) {
        if (coll->partners[i].rank == rank)
            return;
    }
    coll->partners[coll->partner_count++].rank = rank;
}

/* Those at the distance of a power of two, around the ring. */
void coll_choose_partners(struct coll *coll)
{
    for (uint32_t distance = 1; distance < coll->size; distance *= 2) {
        add_partner(coll, (coll->rank + distance) % coll->size);
        add_partner(coll, (coll->rank + coll->size - distance) % coll->size);
    }
}

/* ---- what meet says, on its thread ---- */

static void met(void *arg, size_t peer, const uint8_t *address, size_t length)
{
    struct coll *coll = arg;
    struct coll_partner *partner = &coll->partners[peer];

    pthread_mutex_lock(&coll->mutex);
    memcpy(partner->address, address, length);
    partner->address_length = length;
    partner->met = true;
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
}

static void missed(void *arg, size_t peer, int code, const char *why)
{
    struct coll *coll = arg;
    uint32_t rank = coll->partners[peer].rank;

    coll_fail(coll, code == HVD_E_NOMEM ? code : HVD_E_LOST, rank,
              "rank %u (incarnation %" PRIu64 ") could not be met: %s", rank,
              coll->members[rank].incarnation, why);
}

static void heard(void *arg, size_t peer, int code, uint32_t rank, const char *why)
{
    struct coll *coll = arg;

    if (code == HVD_E_MISMATCH)
        coll_fail(coll, code, rank, "%s", why);
    else if (rank == MEET_NOBODY)
        coll_fail(coll, HVD_E_LOST, rank, "rank %u has left the round: %s",
                  coll->partners[peer].rank, why);
    else
        coll_fail(coll, HVD_E_LOST, rank, "%s", why);
}

static void parted(void *arg, size_t peer)
{
    struct coll *coll = arg;
    uint32_t rank = coll->partners[peer].rank;

    coll_fail(coll, HVD_E_LOST, rank, "rank %u (incarnation %" PRIu64 ") is gone", rank,
              coll->members[rank].incarnation);
}

static void gone(void *arg)
{
    struct coll *coll = arg;

    reaper_add(coll->engine->reaper, &coll->freeing);
}

static const struct meet_ops meet_ops = { met, missed, heard, parted, gone };

/* ---- connecting ---- */

static int make_link(struct coll *coll, struct hvd_err *err)
{
    uint32_t ranks[PARTNERS_MAX];
    struct link *link;
    int rc;

    for (size_t i = 0; i < coll->partner_count; i++)
        ranks[i] = coll->partners[i].rank;
    rc = gloo_link_create(coll->engine->device, coll->engine->reaper, coll->rank, coll->size, ranks,
                          coll->partner_count, &link, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&coll->mutex);
    coll->link = link;
    if (coll->failed)
        link->ops->cancel(link);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

static int join(struct coll *coll, struct hvd_err *err)
{
    struct meet_peer *peers = mem_zalloc_array(coll->partner_count, sizeof(*peers));
    const struct meet_spec spec = {
        .round = coll->round,
        .incarnation = coll->members[coll->rank].incarnation,
        .rank = coll->rank,
        .roster = coll->roster,
        .peers = peers,
        .peer_count = coll->partner_count,
        .ops = &meet_ops,
        .arg = coll,
    };
    int rc = 0;

    if (!peers)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    for (size_t i = 0; i < coll->partner_count && !rc; i++) {
        uint32_t rank = coll->partners[i].rank;

        peers[i].rank = rank;
        peers[i].incarnation = coll->members[rank].incarnation;
        peers[i].contact = coll->members[rank].contact;
        rc = coll->link->ops->address(coll->link, rank, peers[i].address, &peers[i].address_length,
                                      err);
    }
    if (!rc) {
        pthread_mutex_lock(&coll->mutex);
        rc = meet_join(coll->engine->meet, &spec, &coll->party, err);
        pthread_mutex_unlock(&coll->mutex);
    }
    mem_free(peers);
    return rc;
}

/* One that is met and not begun to be connected; NULL: none, and *ret_missing is one that is not
 * met either, or NULL. Locked. */
static struct coll_partner *next_met(struct coll *coll, struct coll_partner **ret_missing)
{
    *ret_missing = NULL;
    for (size_t i = 0; i < coll->partner_count; i++) {
        struct coll_partner *partner = &coll->partners[i];

        if (partner->met && !partner->connecting)
            return partner;
        if (!partner->met && !*ret_missing)
            *ret_missing = partner;
    }
    return NULL;
}

static int not_met(struct coll *coll, uint32_t rank, int code, const char *why)
{
    return coll_fail(coll, code, rank, "rank %u (incarnation %" PRIu64 "): %s", rank,
                     coll->members[rank].incarnation, why);
}

/* Each is connected as soon as it is met. */
static int meet_all(struct coll *coll, int64_t deadline_us, struct hvd_err *err)
{
    struct coll_partner *partner, *missing;
    bool late = false;
    int rc = 0;

    pthread_mutex_lock(&coll->mutex);
    while (!rc && !coll->failed) {
        partner = next_met(coll, &missing);
        if (!partner && !missing)
            break;
        if (!partner && late) {
            pthread_mutex_unlock(&coll->mutex);
            return not_met(coll, missing->rank, HVD_E_TIMEOUT, "it did not come in time");
        }
        if (!partner) {
            atomic_store(&coll->awaited, missing->rank);
            late = thread_cond_wait(&coll->changed, &coll->mutex, deadline_us);
            atomic_store(&coll->awaited, MEET_NOBODY);
            continue;
        }
        partner->connecting = true;
        atomic_fetch_add(&coll->progress, 1);
        pthread_mutex_unlock(&coll->mutex);
        rc = coll->link->ops->connect(coll->link, partner->rank, partner->address,
                                      partner->address_length, err);
        pthread_mutex_lock(&coll->mutex);
    }
    pthread_mutex_unlock(&coll->mutex);
    return rc;
}

/* The link says who is missing when time is over: it gets it in slices, for whoever looks on. */
static int await_connections(struct coll *coll, int64_t deadline_us, uint32_t *ret_rank,
                             struct hvd_err *err)
{
    int64_t until_us;
    int rc;

    do {
        until_us = clock_now_us() + LOOK_US;
        rc = coll->link->ops->connected(coll->link, until_us < deadline_us ? until_us : deadline_us,
                                        ret_rank, err);
        if (rc == HVD_E_TIMEOUT)
            atomic_store(&coll->awaited, *ret_rank);
    } while (rc == HVD_E_TIMEOUT && until_us < deadline_us);
    return rc;
}

static int connect_all(struct coll *coll, int64_t deadline_us, struct hvd_err *err)
{
    struct hvd_err why = { .text = "" };
    uint32_t rank = 0;
    int rc = make_link(coll, err);

    if (!rc)
        rc = join(coll, err);
    if (!rc)
        rc = meet_all(coll, deadline_us, err);
    if (rc)
        return rc;
    rc = await_connections(coll, deadline_us, &rank, &why);
    if (rc == HVD_E_LOST || rc == HVD_E_TIMEOUT)
        return not_met(coll, rank, rc, why.text);
    return rc;
}

int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err)
{
    struct hvd_err local = { .text = "" };
    int rc = 0;

    if (coll->size > 1 && !coll->engine)
        return err_set(err, HVD_E_INVAL, "a round of %u needs an engine", coll->size);
    if (coll->link)
        return err_set(err, HVD_E_STATE, "the round has been connected");
    atomic_store(&coll->operation, "connect");
    if (coll->size > 1)
        rc = connect_all(coll, clock_now_us() + timeout_us, &local);
    atomic_store(&coll->awaited, MEET_NOBODY);
    atomic_store(&coll->operation, NULL);
    if (rc)
        coll_fail(coll, rc, MEET_NOBODY, "%s", local.text);
    pthread_mutex_lock(&coll->mutex);
    rc = coll->failed ? coll->failure.code : 0;
    if (rc)
        (void)err_set(err, rc, "round %" PRIu64 ": %s", coll->round, coll->failure.text);
    coll->reported = rc != 0;
    pthread_mutex_unlock(&coll->mutex);
    return rc;
}
