/*
 * fake_coll.c: collectives of one process that begin, wait, fail and end when the test says so, in
 * place of the real ones, so that a test of worker/requests can stop a call at any point.
 */
#include "tests/lib/fake_coll.h"

#include "collectives/channel.h"
#include "collectives/circle.h"
#include "collectives/revoke.h"

#include "base/mem.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/thread.h"

#include <string.h>

#define PATIENCE_US (100 * INT64_C(1000000))

/* A channel of a fake round is known by its coll alone. */
struct coll_channel {
    struct coll *coll;
};

struct coll {
    uint64_t round;
    bool failed;
    struct coll_channel channel;
    struct coll *next; /* in the list of living objects */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct fake_coll_seen seen;
static size_t held, inside, failing;
static int failure;

/* ---- for the test ---------------------------------------------------------------------------- */

void fake_coll_reset(void)
{
    pthread_mutex_lock(&mutex);
    memset(&seen, 0, sizeof(seen));
    held = inside = failing = 0;
    failure = 0;
    pthread_mutex_unlock(&mutex);
}

struct fake_coll_seen fake_coll_seen(void)
{
    struct fake_coll_seen copy;

    pthread_mutex_lock(&mutex);
    copy = seen;
    pthread_mutex_unlock(&mutex);
    return copy;
}

void fake_coll_hold(size_t count)
{
    pthread_mutex_lock(&mutex);
    held = count;
    pthread_mutex_unlock(&mutex);
}

void fake_coll_go(void)
{
    pthread_mutex_lock(&mutex);
    held = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void fake_coll_fail(size_t count, int code)
{
    pthread_mutex_lock(&mutex);
    failing = count;
    failure = code;
    pthread_mutex_unlock(&mutex);
}

bool fake_coll_await(size_t count)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;
    bool found = false;

    while (!found && clock_now_us() < deadline_us) {
        pthread_mutex_lock(&mutex);
        found = inside == count;
        pthread_mutex_unlock(&mutex);
        sched_yield();
    }
    return found;
}

/* ---- the functions of collectives/ that this file replaces ----------------------------------- */

int coll_create(struct coll_engine *engine, const struct coll_roster *roster,
                struct coll **ret_coll, struct hvd_err *err)
{
    struct coll *coll = mem_zalloc(sizeof(*coll));

    (void)engine;
    if (!coll)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    coll->round = roster->round;
    pthread_mutex_lock(&mutex);
    seen.made++;
    seen.group_count = roster->group_count;
    pthread_mutex_unlock(&mutex);
    *ret_coll = coll;
    return 0;
}

int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err)
{
    (void)coll;
    (void)timeout_us;
    (void)err;
    return 0;
}

int coll_open_group(struct coll *coll, const struct coll_ranks *ranks, uint64_t tag,
                    struct hvd_err *err)
{
    bool failed;

    (void)ranks;
    pthread_mutex_lock(&mutex);
    seen.opened_tag = tag;
    seen.opened++;
    failed = coll->failed;
    pthread_mutex_unlock(&mutex);
    return failed ? err_set(err, HVD_E_REVOKED, "the round is over") : 0;
}

void coll_await_device(struct coll *coll, int64_t timeout_us)
{
    (void)coll;
    (void)timeout_us;
}

void coll_part(struct coll *coll)
{
    (void)coll;
}

int coll_settle(struct coll *coll, struct hvd_err *err)
{
    (void)coll;
    (void)err;
    return 0;
}

int coll_engine_use_device(struct coll_engine *engine, const struct gpu_device *device,
                           struct hvd_err *err)
{
    (void)engine;
    (void)device;
    (void)err;
    return 0;
}

void coll_cancel(struct coll *coll)
{
    pthread_mutex_lock(&mutex);
    coll->failed = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

bool coll_is_whole(struct coll *coll)
{
    bool failed;

    pthread_mutex_lock(&mutex);
    failed = coll->failed;
    pthread_mutex_unlock(&mutex);
    return !failed;
}

void coll_bye(struct coll *coll)
{
    (void)coll;
}

void coll_free(struct coll *coll)
{
    if (!coll)
        return;
    pthread_mutex_lock(&mutex);
    seen.freed++;
    pthread_mutex_unlock(&mutex);
    mem_free(coll);
}

/* Runs one operation. The caller holds the mutex. */
static int run(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    size_t number = call->count;

    for (size_t i = 0; call->pieces && i < call->piece_count; i++)
        number += call->pieces[i].count;
    inside = number;
    while (held && held == number && !coll->failed)
        pthread_cond_wait(&changed, &mutex);
    inside = 0;
    if (coll->failed)
        return err_set(err, HVD_E_REVOKED, "the round was revoked");
    if (failing && failing == number) {
        coll->failed = true;
        return err_set(err, failure, "count %zu does not please", number);
    }
    if (seen.ran_count < FAKE_RAN_MAX) {
        seen.fused[seen.ran_count] = call->fused;
        seen.ran[seen.ran_count++] = number;
    }
    seen.group = call->group;
    if (call->kind == COLL_CLOSE)
        seen.closed = call->opening->group;
    seen.root = call->root;
    return 0;
}

int coll_run(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    int rc;

    pthread_mutex_lock(&mutex);
    rc = run(coll, call, err);
    pthread_mutex_unlock(&mutex);
    return rc;
}

int coll_open_channel(struct coll *coll, uint32_t peer, bool sends,
                      struct coll_channel **ret_channel, struct hvd_err *err)
{
    (void)peer;
    (void)sends;
    (void)err;
    pthread_mutex_lock(&mutex);
    coll->channel.coll = coll;
    seen.channels++;
    pthread_mutex_unlock(&mutex);
    *ret_channel = &coll->channel;
    return 0;
}

/* A transfer is held, fails and is seen as an operation is; `inside` does not count it. */
int coll_transfer(struct coll_channel *channel, const struct coll_call *call, struct hvd_err *err)
{
    size_t kept;
    int rc;

    pthread_mutex_lock(&mutex);
    kept = inside;
    rc = run(channel->coll, call, err);
    inside = kept;
    pthread_mutex_unlock(&mutex);
    return rc;
}

void coll_transfer_look(struct coll *coll, struct coll_wait *ret_wait)
{
    memset(ret_wait, 0, sizeof(*ret_wait));
    ret_wait->round = coll->round;
}

void coll_revoke(struct coll *coll, struct hvd_err *ret_told, const char *why)
{
    (void)err_set(ret_told, HVD_E_REVOKED, "rank 0 has revoked the round: %s", why);
    coll_cancel(coll);
}

int coll_refuse(struct coll *coll, struct hvd_err *err, const char *format, ...)
{
    int rc = HVD_E_INVAL;
    va_list args;

    pthread_mutex_lock(&mutex);
    if (coll->failed)
        rc = HVD_E_REVOKED;
    coll->failed = true;
    va_start(args, format);
    text_line(seen.refused, sizeof(seen.refused), format, args);
    va_end(args);
    pthread_cond_broadcast(&changed);
    (void)err_set(err, rc, "%s", seen.refused);
    pthread_mutex_unlock(&mutex);
    return rc;
}

void coll_wait_look(struct coll *coll, struct coll_wait *ret_wait)
{
    memset(ret_wait, 0, sizeof(*ret_wait));
    pthread_mutex_lock(&mutex);
    ret_wait->operation = inside ? "allreduce" : NULL;
    ret_wait->round = coll->round;
    pthread_mutex_unlock(&mutex);
}

uint64_t fingerprint_mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

const char *coll_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [COLL_ALLREDUCE] = "allreduce",
        [COLL_BROADCAST] = "broadcast",
        [COLL_ALLGATHER] = "allgather",
        [COLL_REDUCESCATTER] = "reducescatter",
        [COLL_ALLTOALL] = "alltoall",
        [COLL_BARRIER] = "barrier",
        [COLL_JOIN] = "join",
        [COLL_ALLGATHER_RAGGED] = "ragged allgather",
        [COLL_ALLTOALL_RAGGED] = "ragged alltoall",
        [COLL_REDUCE] = "reduce",
        [COLL_GATHER] = "gather",
        [COLL_SCATTER] = "scatter",
        [COLL_SEND] = "send",
        [COLL_RECEIVE] = "receive",
    };

    return kind < ARRAY_SIZE(names) && names[kind] ? names[kind] : "?";
}
