/*
 * coll.c: creates the object of a round from the roster, tells what it waits for (coll_wait_look),
 * says goodbye to the peers (coll_bye), and frees it. The worker may have the objects of two rounds
 * at a time. An object is never repaired: it is freed when its round ends. Links and segments take
 * time to close, so the engine's reaper thread frees them.
 */
#include "collectives/coll.h"

#include "base/limits.h"
#include "base/mem.h"
#include "collectives/device.h"
#include "collectives/nccl/nccl_thread.h"
#include "os/thread.h"
#include "seal/seal.h"

#include <inttypes.h>
#include <string.h>

/* Copies the members of the roster, numbers their hosts, and computes a hash of members, groups
 * and options. When two members connect, they compare their hashes, and so notice that they were
 * given different ones. */
static int copy_members(struct coll *coll, const struct coll_roster *roster)
{
    const struct coll_engine *engine = coll->engine;
    struct coll_members *members = &coll->members;
    uint64_t hash = fingerprint_mix(roster->round, roster->size);

    members->incarnations = mem_zalloc_array(roster->size, sizeof(*members->incarnations));
    members->contacts = mem_zalloc_array(roster->size, sizeof(*members->contacts));
    members->hosts = mem_zalloc_array(roster->size, sizeof(*members->hosts));
    members->names = mem_zalloc_array(roster->size, sizeof(*members->names));
    members->ranks = mem_zalloc_array(roster->size, sizeof(*members->ranks));
    if (!members->incarnations || !members->contacts || !members->hosts || !members->names ||
        !members->ranks)
        return HVD_E_NOMEM;
    if (roster->size > 1)
        memcpy(members->secret, roster->secret, sizeof(members->secret));
    coll->devices_told = true;
    for (uint32_t i = 0; i < roster->size; i++) {
        const struct coll_peer *peer = &roster->peers[i];
        uint32_t first = i ? members->hosts[i - 1] : 0;

        members->ranks[i] = i;
        members->incarnations[i] = peer->incarnation;
        hash = fingerprint_mix(hash, peer->incarnation);
        coll->devices_told = coll->devices_told && peer->device;
        /* The number of a host is the lowest rank on it. The host of the previous rank is tried
         * first, because neighbouring ranks are mostly on one host. With `flat` each rank counts as
         * a host. */
        if (engine && engine->options.flat)
            first = i;
        else if (strcmp(peer->host, roster->peers[first].host) != 0)
            for (first = 0; strcmp(peer->host, roster->peers[first].host) != 0;)
                first++;
        members->hosts[i] = first;
        if (first == i && !(members->names[i] = mem_strdup(peer->host)))
            return HVD_E_NOMEM;
        if (peer->contact && !(members->contacts[i] = mem_strdup(peer->contact)))
            return HVD_E_NOMEM;
    }
    /* Groups and options are in the hash too. A member with other groups or options has another
     * hash, and its peers refuse to connect with it. */
    for (size_t i = 0; i < roster->group_count; i++) {
        hash = fingerprint_mix(hash, roster->groups[i].count);
        for (uint32_t k = 0; k < roster->groups[i].count; k++)
            hash = fingerprint_mix(hash, roster->groups[i].items[k]);
    }
    if (engine) {
        hash = fingerprint_mix(
            hash,
            (uint64_t)engine->options.carrier | (uint64_t)engine->options.flat << 8 |
                (uint64_t)engine->options.fixed_order << 9 | (uint64_t)engine->options.gpu << 10 |
                (uint64_t)engine->options.security << 12 | (uint64_t)engine->options.unfused << 18);
        hash = fingerprint_mix(hash, engine->options.fusion_bytes);
    }
    members->hash = hash;
    coll->identity = (struct link_round){
        .round = roster->round,
        .roster = hash,
        .incarnations = members->incarnations,
        .secret = members->secret,
        .security = engine ? engine->options.security : LINK_SECURITY_AUTO,
    };
    return 0;
}

/* Makes the groups of the round: group 0 has all members, then come those of the roster. The array
 * also has entries for LIMIT_OPENED groups that are opened later, so that no group ever moves in
 * memory. */
static int make_groups(struct coll *coll, const struct coll_roster *roster)
{
    const struct coll_ranks all = { coll->members.ranks, roster->size };

    coll->group_room = roster->group_count + 1 + LIMIT_OPENED;
    coll->groups = mem_zalloc_array(coll->group_room, sizeof(*coll->groups));
    if (!coll->groups)
        return HVD_E_NOMEM;
    for (size_t i = 0; i <= roster->group_count; i++) {
        const struct coll_ranks *ranks = i ? &roster->groups[i - 1] : &all;
        struct coll_group *group = &coll->groups[i];
        int rc =
            group_init(&group->group, ranks->items, ranks->count, coll->members.hosts, coll->rank);

        if (rc)
            return rc;
        coll->group_count++;
        traffic_init(&group->mesh, coll_lost, coll);
        traffic_init(&group->own, coll_lost, coll);
        group->sources = mem_zalloc_array(group->group.local_count + 1, sizeof(*group->sources));
        if (!group->sources)
            return HVD_E_NOMEM;
    }
    return 0;
}

/* Frees everything of the round except communicators, links and control connections, which must be
 * freed before. */
static void coll_release(struct coll *coll)
{
    struct coll_circle *circle;

    for (uint32_t i = 0; coll->members.contacts && i < coll->size; i++)
        mem_free(coll->members.contacts[i]);
    for (uint32_t i = 0; coll->members.names && i < coll->size; i++)
        mem_free(coll->members.names[i]);
    for (size_t i = 0; i < coll->group_count; i++) {
        group_release(&coll->groups[i].group);
        mem_free(coll->groups[i].sources);
    }
    for (size_t i = 0; coll->groups && (circle = coll_circle_at(coll, i)) != NULL; i++) {
        segment_free(circle->segment);
        VEC_RELEASE(&circle->partners);
    }
    for (size_t i = 0; coll->groups && i < coll->group_count; i++)
        mem_free(coll->groups[i].circle);
    for (size_t i = 0; i < coll->channel_count; i++) {
        group_release(&coll->channels[i]->group.group);
        mem_free(coll->channels[i]);
    }
    if (!coll->engine) /* otherwise the engine has opened it, for all rounds */
        staging_close(coll->memory.staging);
    pool_views_free(coll->memory.views);
    seal_wipe(coll->members.secret, sizeof(coll->members.secret));
    mem_free(coll->members.incarnations);
    mem_free(coll->members.contacts);
    mem_free(coll->members.hosts);
    mem_free(coll->members.names);
    mem_free(coll->members.ranks);
    mem_free(coll->groups);
    mem_free(coll->memory.scratch);
    pthread_cond_destroy(&coll->changed);
    pthread_mutex_destroy(&coll->mutex);
    mem_free(coll);
}

/* Makes the object of a round for this member (coll.h). coll_connect connects it later. */
int coll_create(struct coll_engine *engine, const struct coll_roster *roster,
                struct coll **ret_coll, struct hvd_err *err)
{
    struct coll *coll;
    int rc;

    if (!roster->size || roster->rank >= roster->size || roster->size > LIMIT_WORKERS)
        return err_set(err, HVD_E_INVAL,
                       "rank %u is not possible in a round of %u members; this is a bug of "
                       "hvd-elastic, please report it",
                       roster->rank, roster->size);
    for (size_t i = 0; i < roster->group_count; i++) {
        const struct coll_ranks *ranks = &roster->groups[i];

        for (uint32_t k = 0; k < ranks->count; k++) {
            if (ranks->items[k] >= roster->size || (k && ranks->items[k] <= ranks->items[k - 1]))
                return err_set(err, HVD_E_INVAL,
                               "group %zu: the ranks of its members do not rise, or are not below "
                               "%u; this is a bug of hvd-elastic, please report it",
                               i, roster->size);
        }
    }
    if (roster->size > 1 && roster->secret_length != LIMIT_ROUND_SECRET_BYTES)
        return err_set(
            err, HVD_E_PROTO,
            "the driver has sent no secret for round %" PRIu64
            "; use a driver and agents of the version of this library, " HVD_VERSION_TEXT,
            roster->round);
    coll = mem_zalloc(sizeof(*coll));
    if (!coll)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the collectives of a round; free memory on this host");
    coll->engine = engine;
    coll->round = roster->round;
    coll->timeline = roster->timeline;
    coll->rank = roster->rank;
    coll->size = roster->size;
    coll->circle.coll = coll;
    coll->circle.shown = &coll->traffic;
    traffic_init(&coll->traffic, coll_lost, coll);
    pthread_mutex_init(&coll->mutex, NULL);
    rc = thread_cond_init(&coll->changed) ? HVD_E_NOMEM : copy_members(coll, roster);
    if (!rc)
        rc = make_groups(coll, roster);
    if (!rc)
        rc = coll_choose_partners(coll);
    if (rc) {
        coll_release(coll);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the groups and members of a round; free memory on this host");
    }
    if (engine) {
        pthread_mutex_lock(&engine->mutex);
        engine->colls++;
        pthread_mutex_unlock(&engine->mutex);
    }
    *ret_coll = coll;
    return 0;
}

/* Tells the peers that this member has finished, so that its end is no failure for them (coll.h).
 * After a failure of the round the peers know already, and nothing is sent. */
void coll_bye(struct coll *coll)
{
    struct coll_circle *circle;
    bool silent;

    pthread_mutex_lock(&coll->mutex);
    /* a failure, or an earlier call, has told the peers */
    silent = coll_has_failed(coll) || coll->finished;
    coll->finished = coll->finished || !silent;
    pthread_mutex_unlock(&coll->mutex);
    for (size_t i = 0; !silent && (circle = coll_circle_at(coll, i)) != NULL; i++) {
        if (circle->meeting)
            meet_bye(circle->meeting);
    }
}

/* Task of the reaper: frees a round after its control connections are closed. Closing links and
 * communicators may take long, so no thread of the program does it. coll_engine_close waits for
 * `colls` to become 0. */
static void free_on_reaper(void *arg)
{
    struct coll *coll = arg;
    struct coll_engine *engine = coll->engine;
    struct coll_circle *circle;

    for (size_t i = 0; i < coll->group_count; i++)
        comm_free(atomic_load(&coll->groups[i].nccl.comm));
    for (size_t i = 0; (circle = coll_circle_at(coll, i)) != NULL; i++) {
        if (circle->link)
            circle->link->ops->free(circle->link);
    }
    for (size_t i = 0; i < coll->group_count; i++) {
        struct link *mesh = coll->groups[i].mesh_link, *own = coll->groups[i].own_link;

        if (mesh)
            mesh->ops->free(mesh);
        if (own)
            own->ops->free(own);
    }
    coll_release(coll);
    pthread_mutex_lock(&engine->mutex);
    engine->colls--;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* meet has left one circle of a round that is being freed. After the last one no callback of meet
 * can come, and the reaper frees the round. */
void coll_circle_left(struct coll *coll)
{
    if (atomic_fetch_sub(&coll->staying, 1) == 1)
        reaper_add(coll->engine->reaper, &coll->freeing);
}

/* Frees the round; does not wait. The reaper frees it later (free_on_reaper), after meet has closed
 * the control connections. If the round has not failed, meet sends the peers a BYE first. */
void coll_free(struct coll *coll)
{
    struct coll_circle *circle;

    if (!coll)
        return;
    if (!coll->engine) {
        coll_release(coll);
        return;
    }
    coll->freeing = (struct reaper_task){ .run = free_on_reaper, .arg = coll };
    /* coll_circle_left adds the round to the reaper's tasks when the control connections of all
     * circles are closed. This function itself counts as a circle in `staying`, until it has told
     * meet to leave all circles. */
    atomic_store(&coll->staying, 1);
    for (size_t i = 0; (circle = coll_circle_at(coll, i)) != NULL; i++) {
        if (!circle->meeting)
            continue;
        atomic_fetch_add(&coll->staying, 1);
        meet_leave(circle->meeting, !coll_has_failed(coll));
    }
    coll_circle_left(coll);
}

/* Returns how many groups the round has, which is the number of the next one that is opened. */
size_t coll_group_count(const struct coll *coll)
{
    return coll->group_count;
}

/* Adds a member to those that are waited for; a `rank` that is none (TRAFFIC_NOBODY) is left out.
 */
static void add_missing(const struct coll *coll, struct coll_wait *wait, uint32_t rank)
{
    if (rank < coll->size && wait->missing_count < COLL_MISSING_MAX)
        wait->missing[wait->missing_count++] = coll->members.incarnations[rank];
}

/* Describes the operation in progress for a thread that watches it, and names the members for which
 * it waits: those that are behind at the board, or else those whose message is awaited over a
 * link. */
void coll_wait_look(struct coll *coll, struct coll_wait *ret_wait)
{
    struct coll_group *group = atomic_load(&coll->activity.group);
    uint32_t locals[COLL_MISSING_MAX];
    uint64_t steps = 0;
    size_t behind = 0;

    memset(ret_wait, 0, sizeof(*ret_wait));
    ret_wait->operation = atomic_load(&coll->activity.operation);
    ret_wait->round = coll->round;
    ret_wait->number = atomic_load(&coll->activity.number);
    if (group && group->board)
        behind = board_behind(group->board, locals, ARRAY_SIZE(locals), &steps);
    ret_wait->progress = steps + atomic_load(&coll->traffic.progress);
    if (group)
        ret_wait->progress += atomic_load(&group->mesh.progress) +
                              atomic_load(&group->own.progress) + device_progress(group);
    if (!ret_wait->operation)
        return;
    for (size_t i = 0; i < behind; i++)
        add_missing(coll, ret_wait, group->group.ranks[group->group.locals[locals[i]]]);
    if (!behind) {
        add_missing(coll, ret_wait, (uint32_t)atomic_load(&coll->traffic.awaited));
        if (group)
            add_missing(coll, ret_wait, (uint32_t)atomic_load(&group->mesh.awaited));
        if (group)
            add_missing(coll, ret_wait, (uint32_t)atomic_load(&group->own.awaited));
    }
}
