/* device_group.c: who gets a communicator of NCCL: groups whose members all have a device and NCCL.
 * What they have they tell each other over the CPU, and with it the first one's id. */
#include "base/mem.h"
#include "base/time.h"
#include "collectives/device.h"
#include "collectives/nccl/hand.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a member tells the others. The same bytes are sent as they lie here. */
struct card {
    struct cuda_uuid uuid;
    int32_t version;
    uint8_t can;    /* 0: it has no NCCL */
    uint8_t shares; /* one device may be of several members */
    uint8_t unused[2];
};

/* Then the first one's id, if it could make one: only when it will be used, as it cannot be given
 * back (hand.h). */
struct offer {
    struct nccl_id id;
    uint64_t made;
};

/* NCCL takes members of one device for a mistake, unless it is told otherwise. */
static bool may_share(void)
{
    return getenv("NCCL_HOSTID") || getenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

static void fill_card(const struct coll *coll, struct card *card)
{
    struct coll_engine *engine = coll->engine;

    *card = (struct card){ .version = engine->nccl_version, .shares = may_share() };
    if (!engine->hand)
        return;
    card->uuid = atomic_load(&engine->gpu)->uuid;
    card->can = 1;
}

static int share_id(struct coll *coll, struct coll_group *group, struct offer *offer)
{
    const struct coll_call call = {
        .kind = COLL_BROADCAST, .type = HVD_UINT8, .out = offer, .count = sizeof(*offer)
    };

    *offer = (struct offer){ .made = 0 };
    if (group->group.place == 0)
        offer->made = !comm_make_id(coll->engine->hand, &offer->id, NULL);
    return operation_inside(coll, group, &call);
}

static int differ(const struct card *cards, uint32_t i, struct hvd_err *err)
{
    char one[NCCL_VERSION_TEXT_MAX];
    char first[NCCL_VERSION_TEXT_MAX];

    nccl_version_text(cards[i].version, one);
    nccl_version_text(cards[0].version, first);
    return err_set(err, HVD_E_UNSUPPORTED,
                   "rank %" PRIu32 " of it has version %s, and rank 0 of it %s", i, one, first);
}

/* All judge the same cards, and come to the same. Ranks are those in the group. */
static int judge(const struct card *cards, uint32_t size, struct hvd_err *err)
{
    for (uint32_t i = 0; i < size; i++) {
        if (!cards[i].can)
            return err_set(err, HVD_E_UNSUPPORTED,
                           "rank %" PRIu32 " of it has none that can be used", i);
        if (cards[i].version != cards[0].version)
            return differ(cards, i, err);
    }
    for (uint32_t i = 0; i < size; i++) {
        for (uint32_t k = 0; k < i; k++) {
            bool same = !memcmp(&cards[i].uuid, &cards[k].uuid, sizeof(cards[i].uuid));

            if (same && !(cards[i].shares && cards[k].shares))
                return err_set(err, HVD_E_UNSUPPORTED,
                               "ranks %" PRIu32 " and %" PRIu32 " of it use the same GPU", k, i);
        }
    }
    return 0;
}

static void keep(struct coll *coll, struct coll_group *group, struct comm *comm)
{
    pthread_mutex_lock(&coll->mutex);
    atomic_store(&group->comm, comm);
    if (coll_has_failed(coll))
        comm_revoke(comm);
    pthread_mutex_unlock(&coll->mutex);
}

void device_give_up(struct coll_group *group, const char *why)
{
    struct comm *comm = atomic_load(&group->comm);

    if (!group->no_comm) {
        err_set(&group->no_comm_why, HVD_E_UNSUPPORTED, "NCCL cannot be used in this group: %s",
                why ? why : "a member of it cannot");
        group->remarked = !why;
    }
    group->no_comm = true;
    if (comm)
        comm_revoke(comm);
}

static void begin(struct coll *coll, struct coll_group *group, const struct nccl_id *id)
{
    const struct comm_spec spec = {
        .id = *id, .round = coll->round, .rank = group->group.place, .size = group->group.size
    };
    struct hvd_err failed = { .text = "" };
    struct comm *comm = NULL;

    if (comm_begin(coll->engine->hand, &spec, &comm, &failed))
        device_give_up(group, failed.text);
    else
        keep(coll, group, comm);
}

int device_tie(struct coll *coll, struct coll_group *group)
{
    struct card *cards = mem_zalloc_array((size_t)group->group.size + 1, sizeof(*cards));
    struct card *own = cards + (cards ? group->group.size : 0);
    const struct coll_call call = {
        .kind = COLL_ALLGATHER, .type = HVD_UINT8, .in = own, .out = cards, .count = sizeof(*own)
    };
    struct hvd_err why = { .text = "" };
    struct offer offer;
    bool can = false;
    int rc;

    if (!cards)
        return HVD_E_NOMEM;
    fill_card(coll, own);
    rc = operation_inside(coll, group, &call);
    if (!rc)
        can = !judge(cards, group->group.size, &why);
    mem_free(cards);
    if (can)
        rc = share_id(coll, group, &offer);
    if (rc)
        return rc;
    if (can && offer.made) {
        begin(coll, group, &offer.id);
        return 0;
    }
    device_give_up(group, can ? "its first member can make no id for it" : why.text);
    group->remarked |= group->group.place != 0; /* all have come to the same */
    return 0;
}

static const char *no_hand(const struct coll_engine *engine)
{
    bool known = engine && engine->no_hand_why.code;

    return known ? engine->no_hand_why.text : "this member has none that can be used";
}

enum device_stand device_stand(struct coll *coll, struct coll_group *group)
{
    struct comm *comm = atomic_load(&group->comm);
    struct hvd_err why = { .text = "" };

    if (!group->no_comm && !comm && (!coll->engine || !coll->engine->hand))
        device_give_up(group, no_hand(coll->engine));
    if (group->no_comm)
        return DEVICE_CANNOT;
    if (!comm)
        return DEVICE_UNTIED;
    switch (comm_look(comm, &why)) {
    case COMM_READY: return DEVICE_READY;
    case COMM_STARTING: return DEVICE_STARTING;
    default: break;
    }
    if (atomic_load(&group->used)) /* it is told by the call */
        return DEVICE_READY;
    device_give_up(group, why.text);
    return DEVICE_CANNOT;
}

/* ---- what people are told -------------------------------------------------------------------- */

static bool is_slow(struct coll_group *group, int64_t slow_us)
{
    if (!group->awaited_us)
        group->awaited_us = clock_now_us();
    return slow_us && clock_now_us() - group->awaited_us >= slow_us;
}

static void remark(const struct coll_engine *engine, const char *why)
{
    struct hvd_err line;

    err_set(&line, 0, "collectives on memory of GPUs go through the host: %s", why);
    engine->options.remark(engine->options.arg, line.text);
}

/* What was asked for is not remarked on, and what the call fails with neither. */
void device_remark(const struct coll *coll, struct coll_group *group, enum device_stand stand)
{
    const struct coll_engine *engine = coll->engine;
    char slow[TIME_TEXT_MAX];
    struct hvd_err late;

    if (group->remarked || !engine || !engine->options.remark || engine->options.fixed_order ||
        engine->options.gpu == COLL_GPU_CPU)
        return;
    if (stand == DEVICE_CANNOT && engine->options.gpu == COLL_GPU_AUTO) {
        group->remarked = true;
        remark(engine, group->no_comm_why.text);
    } else if (stand == DEVICE_STARTING && is_slow(group, engine->options.slow_us)) {
        group->remarked = true;
        err_set(&late, 0,
                "NCCL's communicator is not ready after %s; NCCL_DEBUG=INFO in the environment of "
                "the workers says more",
                time_format(engine->options.slow_us, slow));
        remark(engine, late.text);
    }
}

/* ---- for all groups of a round --------------------------------------------------------------- */

void device_revoke_all(struct coll *coll)
{
    for (size_t i = 0; i < coll->group_count; i++) {
        struct comm *comm = atomic_load(&coll->groups[i].comm);

        if (comm)
            comm_revoke(comm);
    }
}

bool coll_is_whole(struct coll *coll)
{
    for (size_t i = 0; i < coll->group_count; i++) {
        struct comm *comm = atomic_load(&coll->groups[i].comm);

        if (comm && !comm_is_whole(comm))
            return false;
    }
    return true;
}

int device_failure(struct coll *coll, struct hvd_err *err)
{
    for (size_t i = 0; i < coll->group_count; i++) {
        struct coll_group *group = &coll->groups[i];
        struct hvd_err why = { .code = 0 };

        if (!atomic_load(&group->used) ||
            comm_look(atomic_load(&group->comm), &why) != COMM_FAILED || why.code == HVD_E_REVOKED)
            continue;
        return err_set(err, why.code, "%s", why.text);
    }
    return 0;
}

void device_free_all(struct coll *coll)
{
    for (size_t i = 0; i < coll->group_count; i++)
        comm_free(atomic_load(&coll->groups[i].comm));
}

void device_agreed(struct coll *coll)
{
    if (coll->engine && coll->engine->hand)
        hand_agreed(coll->engine->hand, coll->round);
}

int device_settle_all(struct coll *coll, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < coll->group_count && !rc; i++) {
        struct comm *comm = atomic_load(&coll->groups[i].comm);

        rc = comm ? comm_settle(comm, err) : 0;
    }
    return rc;
}

uint64_t device_progress(const struct coll_group *group)
{
    struct comm *comm = atomic_load(&group->comm);

    return comm ? comm_progress(comm) : 0;
}

/* ---- waiting for it -------------------------------------------------------------------------- */

#define LOOK_US (50 * TIME_MS)

enum await { AWAIT_STARTING, AWAIT_CANNOT, AWAIT_LATE, AWAIT_COUNT }; /* how many say so */

/* One that cannot tells the others, who would never be ready. */
void coll_await_device(struct coll *coll, int64_t timeout_us)
{
    struct coll_group *all = &coll->groups[0];
    int64_t until_us = clock_now_us() + timeout_us;
    int32_t say[AWAIT_COUNT];
    const struct coll_call vote = {
        .kind = COLL_ALLREDUCE, .type = HVD_INT32, .in = say, .out = say, .count = AWAIT_COUNT
    };
    int rc = coll->devices_told && coll->size > 1 ? 0 : HVD_E_STATE;

    say[AWAIT_STARTING] = 1;
    say[AWAIT_CANNOT] = say[AWAIT_LATE] = 0;
    while (!rc && say[AWAIT_STARTING] && !say[AWAIT_CANNOT] && !say[AWAIT_LATE]) {
        struct comm *comm = atomic_load(&all->comm);
        enum device_stand stand;

        if (comm)
            (void)comm_await(comm, clock_now_us() + LOOK_US);
        stand = device_stand(coll, all);
        say[AWAIT_STARTING] = stand == DEVICE_STARTING;
        say[AWAIT_CANNOT] = stand == DEVICE_CANNOT;
        say[AWAIT_LATE] = clock_now_us() >= until_us;
        rc = operation_inside(coll, all, &vote);
    }
    if (!rc && say[AWAIT_CANNOT])
        device_give_up(all, NULL);
}
