#include "collectives/coll.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "collectives/coll_inside.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

/* ---- making one ---- */

static uint64_t mixed(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

static uint64_t sum_roster(const struct coll_roster *roster)
{
    uint64_t sum = mixed(roster->round, roster->size);

    for (uint32_t i = 0; i < roster->size; i++)
        sum = mixed(sum, roster->peers[i].incarnation);
    return sum;
}

static int copy_members(struct coll *coll, const struct coll_roster *roster)
{
    coll->members = mem_zalloc_array(roster->size, sizeof(*coll->members));
    if (!coll->members)
        return HVD_E_NOMEM;
    for (uint32_t i = 0; i < roster->size; i++) {
        coll->members[i].incarnation = roster->peers[i].incarnation;
        if (!roster->peers[i].contact)
            continue;
        coll->members[i].contact = mem_strdup(roster->peers[i].contact);
        if (!coll->members[i].contact)
            return HVD_E_NOMEM;
    }
    return 0;
}

void coll_release(struct coll *coll)
{
    for (uint32_t i = 0; coll->members && i < coll->size; i++)
        mem_free(coll->members[i].contact);
    mem_free(coll->members);
    pthread_cond_destroy(&coll->changed);
    pthread_mutex_destroy(&coll->mutex);
    mem_free(coll);
}

static int fill(struct coll *coll, struct coll_engine *engine, const struct coll_roster *roster)
{
    coll->engine = engine;
    coll->round = roster->round;
    coll->rank = roster->rank;
    coll->size = roster->size;
    coll->roster = sum_roster(roster);
    atomic_init(&coll->awaited, MEET_NOBODY);
    pthread_mutex_init(&coll->mutex, NULL);
    if (thread_cond_init(&coll->changed))
        return HVD_E_NOMEM;
    coll_choose_partners(coll);
    return copy_members(coll, roster);
}

int coll_create(struct coll_engine *engine, const struct coll_roster *roster,
                struct coll **ret_coll, struct hvd_err *err)
{
    struct coll *coll;

    if (!roster->size || roster->rank >= roster->size || roster->size > LIMIT_WORKERS)
        return err_set(err, HVD_E_INVAL, "rank %u of %u is no place in a round", roster->rank,
                       roster->size);
    coll = mem_zalloc(sizeof(*coll));
    if (!coll)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    if (fill(coll, engine, roster)) {
        coll_release(coll);
        return err_set(err, HVD_E_NOMEM, "out of memory");
    }
    if (engine) {
        pthread_mutex_lock(&engine->mutex);
        engine->colls++;
        pthread_mutex_unlock(&engine->mutex);
    }
    *ret_coll = coll;
    return 0;
}

/* ---- failing ---- */

/* Whoever waits in the link, and whoever waits for our peers, is woken. */
static void fail_locked(struct coll *coll, int code, uint32_t rank, const char *why)
{
    coll->failed = true;
    (void)err_set(&coll->failure, code, "%s", why);
    if (coll->link)
        coll->link->ops->cancel(coll->link);
    if (coll->party && !coll->finished)
        meet_tell(coll->party, code, rank, coll->failure.text);
    pthread_cond_broadcast(&coll->changed);
}

int coll_fail(struct coll *coll, int code, uint32_t rank, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    text_line(why, sizeof(why), format, args);
    va_end(args);
    pthread_mutex_lock(&coll->mutex);
    if (!coll->failed)
        fail_locked(coll, code, rank, why);
    pthread_mutex_unlock(&coll->mutex);
    return code;
}

void coll_cancel(struct coll *coll)
{
    coll_fail(coll, HVD_E_REVOKED, MEET_NOBODY, "round %" PRIu64 " was revoked", coll->round);
}

int coll_refuse(struct coll *coll, struct hvd_err *err, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    text_line(why, sizeof(why), format, args);
    va_end(args);
    coll_fail(coll, HVD_E_INVAL, coll->rank, "rank %u: %s", coll->rank, why);
    return coll_failure(coll, err);
}

/* What has happened elsewhere has revoked the round; what has happened here is told once. */
int coll_failure(struct coll *coll, struct hvd_err *err)
{
    int code = 0;

    pthread_mutex_lock(&coll->mutex);
    if (coll->failed) {
        code = coll->failure.code;
        if (coll->reported || code == HVD_E_LOST || code == HVD_E_TIMEOUT)
            code = HVD_E_REVOKED;
        coll->reported = true;
        (void)err_set(err, code, "%s", coll->failure.text);
    }
    pthread_mutex_unlock(&coll->mutex);
    return code;
}

/* ---- the end ---- */

void coll_bye(struct coll *coll)
{
    struct meet_party *party = NULL;

    pthread_mutex_lock(&coll->mutex);
    if (!coll->failed && !coll->finished) {
        coll->finished = true;
        party = coll->party;
    }
    pthread_mutex_unlock(&coll->mutex);
    if (party)
        meet_bye(party);
}

static void free_on_reaper(void *arg)
{
    struct coll *coll = arg;
    struct coll_engine *engine = coll->engine;

    if (coll->link)
        coll->link->ops->free(coll->link);
    coll_release(coll);
    pthread_mutex_lock(&engine->mutex);
    engine->colls--;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

void coll_free(struct coll *coll)
{
    bool failed;

    if (!coll)
        return;
    if (!coll->engine) {
        coll_release(coll);
        return;
    }
    coll->freeing = (struct reaper_job){ .run = free_on_reaper, .arg = coll };
    pthread_mutex_lock(&coll->mutex);
    failed = coll->failed;
    pthread_mutex_unlock(&coll->mutex);
    if (coll->party)
        meet_leave(coll->party, !failed); /* then on to the reaper: see connect.c */
    else
        reaper_add(coll->engine->reaper, &coll->freeing);
}

/* ---- looking ---- */

void coll_wait_look(struct coll *coll, struct coll_wait *ret_wait)
{
    uint_fast32_t awaited = atomic_load(&coll->awaited);

    memset(ret_wait, 0, sizeof(*ret_wait));
    ret_wait->operation = atomic_load(&coll->operation);
    ret_wait->number = atomic_load(&coll->number);
    ret_wait->progress = atomic_load(&coll->progress);
    if (ret_wait->operation && awaited < coll->size)
        ret_wait->missing[ret_wait->missing_count++] = coll->members[awaited].incarnation;
}
