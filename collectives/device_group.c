/*
 * device_group.c: which groups get a communicator of NCCL: groups whose members all have a GPU and
 * NCCL. Each member describes its GPU in a message (a card). The members exchange their cards in an
 * allgather on the host, and all judge the cards by the same rules. Then a broadcast takes the
 * first member's id to the other members, and each member begins the communicator. The communicator
 * of all members begins when the round connects, communicators of other groups at their first call
 * on memory of a GPU.
 *
 * Only the owner thread calls these functions. It sets a new communicator with the round's mutex
 * locked, because other threads read it.
 */
#include "base/mem.h"
#include "base/time.h"
#include "collectives/device.h"
#include "collectives/link/security.h"
#include "collectives/link/socket.h"
#include "collectives/nccl/nccl_thread.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A card: a member's message to the other members about its GPU; sent as raw memory. */
struct card {
    struct cuda_uuid uuid;
    int32_t version; /* of NCCL: 22809 is 2.28.9 */
    uint8_t can;     /* 0: the member cannot use NCCL */
    uint8_t shares;  /* 1: several members may use one GPU */
    uint8_t unused[2];
};

/* The message that the first member broadcasts: the id of the communicator. `made` is 0: the member
 * could not make an id. The id is made only after all cards are accepted, because NCCL cannot take
 * an id back (nccl/nccl_thread.h). */
struct offer {
    struct nccl_id id;
    uint64_t made;
};

/* Judges the cards of all members. 0: the group can have a communicator; else `err` says why not.
 * Ranks in the texts are ranks in the group. */
static int judge_cards(const struct card *cards, uint32_t size, struct hvd_err *err)
{
    char one[NCCL_VERSION_TEXT_MAX], first[NCCL_VERSION_TEXT_MAX];

    for (uint32_t i = 0; i < size; i++) {
        if (!cards[i].can)
            return err_set(err, HVD_E_UNSUPPORTED,
                           "rank %" PRIu32
                           " of the group has no usable NCCL; run hvd-elastic --check-build on the "
                           "host of this rank, which shows the reason",
                           i);
        if (cards[i].version == cards[0].version)
            continue;
        nccl_version_text(cards[i].version, one);
        nccl_version_text(cards[0].version, first);
        return err_set(err, HVD_E_UNSUPPORTED,
                       "rank %" PRIu32 " of the group has NCCL %s, and rank 0 has NCCL %s; install "
                       "the same version of NCCL on all hosts",
                       i, one, first);
    }
    for (uint32_t i = 0; i < size; i++) {
        for (uint32_t k = 0; k < i; k++) {
            bool same = !memcmp(&cards[i].uuid, &cards[k].uuid, sizeof(cards[i].uuid));

            if (same && !(cards[i].shares && cards[k].shares))
                return err_set(err, HVD_E_UNSUPPORTED,
                               "ranks %" PRIu32 " and %" PRIu32
                               " of the group use the same GPU; give each worker a GPU of its own",
                               k, i);
        }
    }
    return 0;
}

/* Marks the group as unable to use NCCL in this round, and revokes its communicator; the first
 * reason is kept. why is NULL: another member has the reason and tells the operator, so this member
 * tells nothing (`remarked` is set as if it had told already). */
void device_give_up(struct coll_group *group, const char *why)
{
    struct coll_comm *nccl = &group->nccl;
    struct comm *comm = atomic_load(&nccl->comm);

    if (!nccl->given_up) {
        err_set(&nccl->why, HVD_E_UNSUPPORTED, "NCCL cannot be used in this group: %s",
                why ? why
                    : "another member of the group has no usable NCCL; the log of the driver shows "
                      "the reason");
        nccl->remarked = !why;
    }
    nccl->given_up = true;
    if (comm)
        comm_revoke(comm);
}

/* Called when all members have accepted the cards: sends the first member's id to all members, and
 * each member begins the communicator. 0 also if the communicator cannot be begun: then calls go
 * through the host. */
static int share_id(struct coll *coll, struct coll_group *group)
{
    struct nccl_thread *thread = coll->engine->nccl_thread;
    struct offer offer = { .made = 0 };
    const struct coll_call call = {
        .kind = COLL_BROADCAST, .type = HVD_UINT8, .out = &offer, .count = sizeof(offer)
    };
    struct comm_spec spec = { .round = coll->round,
                              .rank = group->group.place,
                              .size = group->group.size };
    struct hvd_err failed = { .text = "" };
    struct comm *comm = NULL;
    int rc;

    if (group->group.place == 0)
        offer.made = !comm_make_id(thread, &offer.id, NULL);
    rc = operation_inside(coll, group, &call);
    if (rc)
        return rc;
    if (!offer.made) {
        device_give_up(group, "ncclGetUniqueId has failed on the first member of the group; "
                              "NCCL_DEBUG=INFO in the environment of the workers says why");
        /* Only the first member logs why NCCL is not used, so that the operator reads it once. */
        group->nccl.remarked |= group->group.place != 0;
        return 0;
    }
    spec.id = offer.id;
    /* only this member fails: by the next vote (device.c) the other members learn that */
    if (comm_begin(thread, &spec, &comm, &failed)) {
        device_give_up(group, failed.text);
        return 0;
    }
    pthread_mutex_lock(&coll->mutex);
    atomic_store(&group->nccl.comm, comm);
    if (coll_has_failed(coll))
        comm_revoke(comm);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

/* Begins the NCCL communicator of the group, if the cards of all members allow it (device.h). 0
 * also if they do not: then the group is marked as unable, and its calls go through the host. */
int device_begin_comm(struct coll *coll, struct coll_group *group)
{
    const struct coll_engine *engine = coll->engine;
    uint32_t size = group->group.size;
    struct card *cards = mem_zalloc_array(size, sizeof(*cards));
    struct card own = { .version = engine->nccl_version };
    const struct coll_call call = {
        .kind = COLL_ALLGATHER, .type = HVD_UINT8, .in = &own, .out = cards, .count = sizeof(own)
    };
    struct hvd_err why = { .text = "" };
    int rc, judged = 0;

    if (!cards)
        return HVD_E_NOMEM;
    /* NCCL refuses two members on one GPU, unless NCCL_HOSTID or NCCL_MULTI_RANK_GPU_ENABLE is set.
     */
    own.shares = getenv("NCCL_HOSTID") || getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (engine->nccl_thread) {
        own.uuid = atomic_load(&engine->gpu)->uuid;
        own.can = 1;
    }
    rc = operation_inside(coll, group, &call);
    if (!rc)
        judged = judge_cards(cards, size, &why);
    /* Between hosts NCCL sends numbers in clear: the options may forbid that. All members decide
     * the same, because they have the same options. */
    if (!judged && !security_allows_nccl(engine->options.security, group->group.host_count))
        judged = err_set(&why, HVD_E_UNSUPPORTED,
                         "NCCL sends numbers in clear between hosts; give --data-security auto or "
                         "none to allow this");
    mem_free(cards);
    if (rc)
        return rc;
    if (!judged)
        return share_id(coll, group);
    device_give_up(group, why.text);
    group->nccl.remarked |= group->group.place != 0; /* only the first member tells the operator */
    return 0;
}

/* Returns whether NCCL can carry the group's next call on this member: ready, starting or
 * impossible (device.h). If it is impossible, the group is marked (device_give_up): its calls go
 * through the host from now on. */
enum device_comm_state device_comm_state(struct coll *coll, struct coll_group *group)
{
    const struct coll_engine *engine = coll->engine;
    struct coll_comm *nccl = &group->nccl;
    struct comm *comm = atomic_load(&nccl->comm);
    struct hvd_err why = { .text = "" };

    if (!nccl->given_up && !comm && (!engine || !engine->nccl_thread))
        device_give_up(group, engine && engine->no_nccl_why.code
                                  ? engine->no_nccl_why.text
                                  : "this worker has no usable NCCL; run hvd-elastic --check-build "
                                    "on this host, which shows the reason");
    if (nccl->given_up)
        return DEVICE_CANNOT;
    if (!comm)
        return DEVICE_NOT_BEGUN;
    switch (comm_look(comm, &why)) {
    case COMM_READY: return DEVICE_READY;
    case COMM_STARTING: return DEVICE_STARTING;
    default: break;
    }
    if (atomic_load(&nccl->used)) /* the call on the failed communicator reports the failure */
        return DEVICE_READY;
    device_give_up(group, why.text);
    return DEVICE_CANNOT;
}

/* How many calls of the group have ended on the device; 0 without a communicator. Any thread. */
uint64_t device_progress(const struct coll_group *group)
{
    struct comm *comm = atomic_load(&group->nccl.comm);

    return comm ? comm_progress(comm) : 0;
}

/* Tells the operator that calls go through the host, and why. */
static void send_remark(const struct coll_engine *engine, const char *why)
{
    struct hvd_err line;

    err_set(&line, 0, "collectives on memory of GPUs go through the host: %s", why);
    engine->options.remark(engine->options.arg, line.text);
}

/* Tells the operator two things, each once: that NCCL sends numbers in clear between hosts, and why
 * collectives do not go through NCCL. It tells no reason if the user asked for the host, or if the
 * call itself fails with the reason. */
void device_remark(const struct coll *coll, struct coll_group *group, enum device_comm_state state)
{
    struct coll_engine *engine = coll->engine;
    struct coll_comm *nccl = &group->nccl;
    int64_t slow_us = engine ? engine->options.slow_us : 0;
    char slow[TIME_TEXT_MAX];
    struct hvd_err late;

    /* NCCL sends numbers in clear between hosts, and no option says that this is right or wrong */
    if (state == DEVICE_READY && engine && engine->options.remark && !engine->nccl_in_clear_told &&
        !group->group.place &&
        security_tells_of_nccl(engine->options.security, group->group.host_count,
                               socket_is_loopback(engine->host))) {
        engine->nccl_in_clear_told = true;
        err_set(&late, 0,
                "collectives on memory of GPUs go between hosts through NCCL, in clear, and a "
                "change on the way is not noticed; give --gpu-operations cpu to protect the "
                "numbers, or --data-security none to accept the risk");
        engine->options.remark(engine->options.arg, late.text);
    }
    if (nccl->remarked || !engine || !engine->options.remark || engine->options.fixed_order ||
        engine->options.gpu == COLL_GPU_CPU)
        return;
    if (state == DEVICE_CANNOT && engine->options.gpu == COLL_GPU_AUTO) {
        nccl->remarked = true;
        send_remark(engine, nccl->why.text);
    } else if (state == DEVICE_STARTING) {
        if (!nccl->awaited_us)
            nccl->awaited_us = clock_now_us();
        if (!slow_us || clock_now_us() - nccl->awaited_us < slow_us)
            return;
        nccl->remarked = true;
        err_set(&late, 0,
                "NCCL's communicator is not ready after %s; NCCL_DEBUG=INFO in the environment of "
                "the workers says more",
                time_format(slow_us, slow));
        send_remark(engine, late.text);
    }
}

#define LOOK_US (50 * TIME_MS) /* how often the members compare their states */

/* The states of the members, as indices of an array; an entry counts the members in that state. */
enum await { AWAIT_STARTING, AWAIT_CANNOT, AWAIT_LATE, AWAIT_COUNT };

/* Waits for the communicator of all members (coll.h). Every LOOK_US an allreduce adds up the states
 * of the members. So the wait ends on all members together: when all are ready, when a member
 * cannot have a communicator, or when a member has waited for too long. */
void coll_await_device(struct coll *coll, int64_t timeout_us)
{
    struct coll_group *all = &coll->groups[0];
    int64_t until_us = clock_now_us() + timeout_us;
    int32_t say[AWAIT_COUNT] = { [AWAIT_STARTING] = 1 };
    const struct coll_call vote = {
        .kind = COLL_ALLREDUCE, .type = HVD_INT32, .in = say, .out = say, .count = AWAIT_COUNT
    };
    int rc = coll->devices_told && coll->size > 1 ? 0 : HVD_E_STATE;

    while (!rc && say[AWAIT_STARTING] && !say[AWAIT_CANNOT] && !say[AWAIT_LATE]) {
        struct comm *comm = atomic_load(&all->nccl.comm);
        enum device_comm_state state;

        if (comm)
            (void)comm_await(comm, clock_now_us() + LOOK_US);
        state = device_comm_state(coll, all);
        say[AWAIT_STARTING] = state == DEVICE_STARTING;
        say[AWAIT_CANNOT] = state == DEVICE_CANNOT;
        say[AWAIT_LATE] = clock_now_us() >= until_us;
        rc = operation_inside(coll, all, &vote);
    }
    if (!rc && say[AWAIT_CANNOT])
        device_give_up(all, NULL /* another member knows the reason */);
}
