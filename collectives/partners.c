/*
 * partners.c: the partners of a member: the members with which it connects. A member has few
 * partners, so that a round is connected quickly:
 *
 *     on its host          the lowest rank, which creates the shared memory and meets all others
 *     on its lanes         members at the distance of a power of two, before and after it
 *     with --fixed-order   every member of the group, as the sum is made in the order of ranks
 *
 * coll_create chooses the partners once. All members of a round choose by the same rules, so if one
 * member chooses another, that one chooses it too.
 */
#include "base/limits.h"
#include "base/time.h"
#include "collectives/coll_internal.h"
#include "os/clock.h"

#define LOOK_US TIME_S /* how often coll_await_link shows which rank is missing */

/* Returns the partner with this rank, and adds it if it is new. NULL: out of memory. */
static struct coll_partner *add_partner(struct coll_partners *partners, uint32_t rank)
{
    for (size_t i = 0; i < partners->count; i++) {
        if (partners->items[i].rank == rank)
            return &partners->items[i];
    }
    if (VEC_RESERVE(partners, 1, LIMIT_WORKERS))
        return NULL;
    partners->items[partners->count] = (struct coll_partner){ .rank = rank };
    return &partners->items[partners->count++];
}

/* Notes that this member needs a link to the member with this rank. HVD_E_NOMEM: no memory is left.
 */
static int add_linked(struct coll_partners *partners, uint32_t rank)
{
    struct coll_partner *partner = add_partner(partners, rank);

    if (!partner)
        return HVD_E_NOMEM;
    partner->linked = true;
    return 0;
}

/* Adds the partners for the shared memory of this host: the leader (the first member of the group
 * on this host) meets the other members there, and tells each of them where the memory is. */
static int add_host_partners(const struct coll *coll, const struct group *members,
                             struct coll_partners *partners)
{
    const uint32_t *hosts = coll->members.hosts;
    uint32_t leader = coll->rank;

    for (uint32_t i = members->size; i-- > 0;) {
        if (hosts[members->ranks[i]] == hosts[coll->rank])
            leader = members->ranks[i];
    }
    for (uint32_t i = 0; i < members->size; i++) {
        uint32_t rank = members->ranks[i];
        struct coll_partner *partner;

        /* of two partners one must be the leader */
        if (hosts[rank] != hosts[coll->rank] || rank == coll->rank ||
            (rank != leader && coll->rank != leader))
            continue;
        partner = add_partner(partners, rank);
        if (!partner)
            return HVD_E_NOMEM;
        partner->leads = rank == leader;
    }
    return 0;
}

/* Adds the partners to which this member's lane in the group needs a link, and prepares that lane;
 * with --fixed-order also the group's mesh. `traffic`: the messages over that link. */
static int add_lane_partners(const struct coll *coll, struct coll_group *group,
                             struct traffic *traffic, struct coll_partners *partners)
{
    bool fixed_order = coll->engine && coll->engine->options.fixed_order;
    const struct group *members = &group->group;
    uint32_t places[LANE_PARTNERS_MAX];
    int rc = 0;

    /* The lane of this member; size 1 if the member is in none. */
    group->lane =
        (struct lane){ .traffic = traffic, .ranks = &coll->members.ranks[coll->rank], .size = 1 };
    if (members->place == GROUP_OUTSIDE || members->host_count == 1)
        return 0;
    if (members->local < members->lane_count) {
        size_t count = lane_partners(members->host, members->host_count, places);

        group->lane.ranks = &members->lane_ranks[(size_t)members->local * members->host_count];
        group->lane.index = members->host;
        group->lane.size = members->host_count;
        for (size_t k = 0; k < count && !rc; k++)
            rc = add_linked(partners, group->lane.ranks[places[k]]);
    }
    if (!fixed_order)
        return rc;
    for (uint32_t k = 0; k < members->size && !rc; k++) {
        if (k != members->place)
            rc = add_linked(partners, members->ranks[k]);
    }
    group->mesh_lane = (struct lane){
        .traffic = traffic, .ranks = members->ranks, .index = members->place, .size = members->size
    };
    return rc;
}

/* Chooses the members with which this member connects. Within a host these are, for the shared
 * memory, the leader (the lowest rank there) or, for the leader, all others. Between hosts these
 * are the members to which a lane of some group needs a link. */
int coll_choose_partners(struct coll *coll)
{
    struct coll_partners *partners = &coll->circle.partners;
    int rc = add_host_partners(coll, &coll->groups[0].group, partners);

    for (size_t i = 0; i < coll->group_count && !rc; i++)
        rc = add_lane_partners(coll, &coll->groups[i], &coll->traffic, partners);
    return rc;
}

/* Chooses the partners of a group that its members alone have opened, or of a channel, by the same
 * rules: the group has a segment and a link of its own. */
int coll_choose_group_partners(struct coll_circle *circle)
{
    struct coll_group *group = circle->group;
    int rc = add_host_partners(circle->coll, &group->group, &circle->partners);

    return rc ? rc : add_lane_partners(circle->coll, group, &group->own, &circle->partners);
}

/* Makes a link to these ranks (coll_internal.h). The mutex is held while the link is stored and the
 * failure is looked at. So this function sees a failure that came before, and cancels the link; a
 * later failure finds the link and cancels it. */
int coll_make_link(struct coll *coll, const uint32_t *ranks, size_t count, struct link **ret_link,
                   struct hvd_err *err)
{
    const struct link_spec spec = { .round = &coll->identity,
                                    .reaper = coll->engine->reaper,
                                    .rank = coll->rank,
                                    .size = coll->size,
                                    .peers = ranks,
                                    .peer_count = count };
    struct link_device *device = NULL;
    struct link *link = NULL;
    int rc = coll_engine_device(coll->engine, &device, err);

    if (!rc)
        rc = link_create(device, &spec, &link, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&coll->mutex);
    *ret_link = link;
    if (coll_has_failed(coll))
        link->ops->cancel(link);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

/* Waits until this member is connected to all peers of the link. If a peer is not connected in
 * time, or is lost, the round fails. Meanwhile shown->awaited tells other threads the rank of a
 * peer that is missing. */
int coll_await_link(struct coll *coll, struct link *link, struct traffic *shown,
                    int64_t deadline_us)
{
    const char *operation = atomic_load(&coll->activity.operation);
    char name[COLL_NAME_MAX];
    uint32_t missing = 0;
    int64_t until_us;
    int rc;

    /* Wait LOOK_US at a time: after each wait the link names a rank that is not connected yet, and
     * coll_wait_look shows that rank. */
    do {
        until_us = clock_now_us() + LOOK_US;
        rc = link->ops->connected(link, until_us < deadline_us ? until_us : deadline_us, &missing,
                                  NULL);
        if (rc == HVD_E_TIMEOUT)
            atomic_store(&shown->awaited, missing);
    } while (rc == HVD_E_TIMEOUT && until_us < deadline_us);
    atomic_store(&shown->awaited, TRAFFIC_NOBODY);
    if (rc == HVD_E_LOST) /* the peer may have failed before, and have sent the reason */
        return shown->lost(shown->arg, missing);
    if (rc == HVD_E_TIMEOUT)
        return coll_fail(
            coll, rc, missing,
            "%s: the connection to this rank was not made in time (%s); look for a firewall "
            "between the hosts",
            coll_name(coll, missing, name), operation ? operation : "connect");
    return rc;
}
