/*
 * group.c: computes the hosts of a group's members, and the lanes that join the hosts. coll.c calls
 * it once for each group of a round. All members compute it from the same roster, so all get the
 * same hosts and lanes; afterwards a group is only read.
 */
#include "collectives/group.h"

#include "base/mem.h"
#include "collectives/fingerprint.h"

/* Numbers the hosts of the members in the order of their first members, and sorts the members by
 * host. hosts[r]: the number of the host of rank r of the round. */
static int place_on_hosts(struct group *group, const uint32_t *hosts)
{
    uint32_t *seen = mem_zalloc_array(group->size + 1, sizeof(*seen));
    uint32_t host = 0, at = 0;

    if (!seen)
        return HVD_E_NOMEM;
    for (uint32_t i = 0; i < group->size; i++) {
        uint32_t number = hosts[group->ranks[i]];

        /* Neighbouring members are mostly on one host: try the host of the previous member
         * first. */
        if (!group->host_count || seen[host] != number)
            for (host = 0; host < group->host_count && seen[host] != number;)
                host++;
        if (host == group->host_count)
            seen[group->host_count++] = number;
        group->host_of[i] = host;
        group->local_of[i] = group->local_counts[host]++;
    }
    mem_free(seen);
    /* Sort the members by host. */
    for (uint32_t h = 0; h < group->host_count; h++) {
        group->host_at[h] = at;
        at += group->local_counts[h];
    }
    for (uint32_t i = 0; i < group->size; i++)
        group->by_host[group->host_at[group->host_of[i]] + group->local_of[i]] = i;
    if (group->place == GROUP_OUTSIDE)
        return 0;
    group->host = group->host_of[group->place];
    group->local = group->local_of[group->place];
    group->locals = group->by_host + group->host_at[group->host];
    group->local_count = group->local_counts[group->host];
    return 0;
}

/* Prepares a group: its hosts and its lanes (group.h). hosts[r]: the number of the host of rank r.
 * `fewest`: how many members the host with the fewest members has. */
int group_init(struct group *group, const uint32_t *ranks, uint32_t count, const uint32_t *hosts,
               uint32_t rank)
{
    uint32_t **const tables[] = { &group->ranks,        &group->host_of, &group->local_of,
                                  &group->local_counts, &group->by_host, &group->host_at };
    uint32_t fewest = count;
    int rc = 0;

    *group = (struct group){ .size = count, .place = GROUP_OUTSIDE, .hash = count };
    for (size_t i = 0; i < ARRAY_SIZE(tables) && !rc; i++) {
        *tables[i] = mem_zalloc_array((size_t)count + 1, sizeof(uint32_t));
        rc = *tables[i] ? 0 : HVD_E_NOMEM;
    }
    for (uint32_t i = 0; i < count && !rc; i++) {
        group->ranks[i] = ranks[i];
        group->hash = fingerprint_mix(group->hash, ranks[i]);
        if (ranks[i] == rank)
            group->place = i;
    }
    if (!rc)
        rc = place_on_hosts(group, hosts);
    /* There are as many lanes as members on that host: so each lane has a member of each host. */
    for (uint32_t h = 0; h < group->host_count && !rc; h++)
        fewest = group->local_counts[h] < fewest ? group->local_counts[h] : fewest;
    if (!rc) {
        group->lane_count = fewest;
        group->lane_ranks =
            mem_zalloc_array((size_t)fewest * group->host_count + 1, sizeof(uint32_t));
        rc = group->lane_ranks ? 0 : HVD_E_NOMEM;
    }
    if (rc) {
        group_release(group);
        return rc;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lane = group->local_of[i];

        if (lane < fewest)
            group->lane_ranks[(size_t)lane * group->host_count + group->host_of[i]] = ranks[i];
    }
    return 0;
}

/* Frees what group_init has allocated; some of it may be missing. */
void group_release(struct group *group)
{
    mem_free(group->ranks);
    mem_free(group->host_of);
    mem_free(group->local_of);
    mem_free(group->local_counts);
    mem_free(group->by_host);
    mem_free(group->host_at);
    mem_free(group->lane_ranks);
    *group = (struct group){ .place = GROUP_OUTSIDE };
}

/* true: every member is alone on its host. */
bool group_is_apart(const struct group *group)
{
    return group->host_count == group->size;
}
