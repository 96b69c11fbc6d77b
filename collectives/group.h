/*
 * group.h: a group: some or all members of a round, and the host of each member.
 *
 *     host a:  rank 0   rank 1   rank 4        the members on a host are its locals
 *                │        │
 *     host b:  rank 2   rank 3                 lane i joins the i-th local of each host; the number
 *                │        │                    of lanes is the number of locals of the host that
 *              lane 0   lane 1                 has the fewest
 */
#ifndef COLLECTIVES_GROUP_H
#define COLLECTIVES_GROUP_H

#include "base/err.h"

#define GROUP_OUTSIDE UINT32_MAX /* the `place` of a process that is no member */

struct group {
    /* number of members; index of this process among them, or GROUP_OUTSIDE: it is no member */
    uint32_t size, place;
    uint32_t *ranks; /* ranks in the round, in rising order */
    uint64_t hash;   /* hash of the ranks */

    /* number of hosts, in the order of their first members; index of this process's host among
     * them, if this process is a member */
    uint32_t host_count, host;
    uint32_t *host_of;           /* for each member: the index of its host */
    uint32_t *local_of;          /* for each member: its index among the members of its host */
    uint32_t *local_counts;      /* for each host: its number of members */
    uint32_t *by_host;           /* the members sorted by host */
    uint32_t *host_at;           /* for each host: the index of its first member in by_host */
    const uint32_t *locals;      /* the members on this host: indices in `ranks` */
    uint32_t local, local_count; /* index of this process in `locals`; length of `locals` */

    uint32_t lane_count;  /* how many lanes there are */
    uint32_t *lane_ranks; /* the ranks of lane i begin at i * host_count */
};

/* Computes everything in a group. ranks: the members' ranks in the round, rising. hosts[r]: the
 * number of the host of rank r of the round. rank: that of this process. Everything is copied.
 * HVD_E_NOMEM. */
int group_init(struct group *group, const uint32_t *ranks, uint32_t count, const uint32_t *hosts,
               uint32_t rank) MUST_CHECK;
void group_release(struct group *group);

/* true: every member is alone on its host. */
bool group_is_apart(const struct group *group);

#endif
