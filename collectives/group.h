/*
 * group.h: some or all members of a round, and where they are.
 *
 *     host a:  rank 0   rank 1   rank 4        the members on a host are its locals
 *                │        │
 *     host b:  rank 2   rank 3                 lane i joins the i-th local of each host; there are
 *                │        │                    as many as the host with the fewest has locals
 *              lane 0   lane 1
 */
#ifndef COLLECTIVES_GROUP_H
#define COLLECTIVES_GROUP_H

#include "base/err.h"

#define GROUP_OUTSIDE UINT32_MAX

struct group {
    uint32_t size, place; /* members; ours among them, or GROUP_OUTSIDE */
    uint32_t *ranks;      /* of the round, rising */
    uint64_t sum;         /* of them */

    uint32_t host_count, host; /* in the order of their first members; ours, if we are in it */
    uint32_t *host_of;         /* of each member */
    uint32_t *local_of;        /* its place among those of its host */
    uint32_t *local_counts;    /* of each host */
    uint32_t *by_host;         /* the members in the order of hosts, those of host h from */
    uint32_t *host_at;         /* by_host[host_at[h]] on */
    const uint32_t *locals;    /* those of our host */
    uint32_t local_count;

    uint32_t lane_count;
    uint32_t *lane_ranks; /* those of lane i begin at i * host_count */
};

/* ranks: of the round, rising; hosts: a number for the host of each rank of the round; rank: ours.
 * All is copied. HVD_E_NOMEM. */
int group_init(struct group *group, const uint32_t *ranks, uint32_t count, const uint32_t *hosts,
               uint32_t rank) MUST_CHECK;
void group_release(struct group *group);

uint32_t group_find(const struct group *group, uint32_t rank); /* its place, or GROUP_OUTSIDE */

/* Every member is alone on its host. */
bool group_is_apart(const struct group *group);

/* Ours, among the members on our host. */
uint32_t group_local(const struct group *group);

#endif
