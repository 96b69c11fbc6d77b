#include "collectives/group.h"

#include "base/mem.h"
#include "collectives/accord.h"

/* ---- which hosts they are on ---- */

/* Neighbours are mostly on one host: the last one is tried first. hosts_seen: the numbers of those
 * found so far. */
static uint32_t host_place(struct group *group, uint32_t *hosts_seen, uint32_t number,
                           uint32_t previous)
{
    if (group->host_count && hosts_seen[previous] == number)
        return previous;
    for (uint32_t h = 0; h < group->host_count; h++) {
        if (hosts_seen[h] == number)
            return h;
    }
    hosts_seen[group->host_count] = number;
    return group->host_count++;
}

static int place_on_hosts(struct group *group, const uint32_t *hosts)
{
    uint32_t *hosts_seen = mem_zalloc_array(group->size + 1, sizeof(*hosts_seen));
    uint32_t host = 0;

    if (!hosts_seen)
        return HVD_E_NOMEM;
    for (uint32_t i = 0; i < group->size; i++) {
        host = host_place(group, hosts_seen, hosts[group->ranks[i]], host);
        group->host_of[i] = host;
        group->local_of[i] = group->local_counts[host]++;
    }
    mem_free(hosts_seen);
    return 0;
}

static void list_by_host(struct group *group)
{
    uint32_t at = 0;

    for (uint32_t h = 0; h < group->host_count; h++) {
        group->host_at[h] = at;
        at += group->local_counts[h];
    }
    for (uint32_t i = 0; i < group->size; i++)
        group->by_host[group->host_at[group->host_of[i]] + group->local_of[i]] = i;
    if (group->place == GROUP_OUTSIDE)
        return;
    group->host = group->host_of[group->place];
    group->locals = group->by_host + group->host_at[group->host];
    group->local_count = group->local_counts[group->host];
}

/* ---- which lanes join them ---- */

static int list_lanes(struct group *group)
{
    uint32_t fewest = group->size;

    for (uint32_t h = 0; h < group->host_count; h++)
        fewest = group->local_counts[h] < fewest ? group->local_counts[h] : fewest;
    group->lane_count = fewest;
    group->lane_ranks = mem_zalloc_array((size_t)fewest * group->host_count + 1, sizeof(uint32_t));
    if (!group->lane_ranks)
        return HVD_E_NOMEM;
    for (uint32_t i = 0; i < group->size; i++) {
        uint32_t lane = group->local_of[i];

        if (lane < fewest)
            group->lane_ranks[(size_t)lane * group->host_count + group->host_of[i]] =
                group->ranks[i];
    }
    return 0;
}

/* ---- */

static int allocate(struct group *group, uint32_t count)
{
    uint32_t **const tables[] = { &group->ranks,        &group->host_of, &group->local_of,
                                  &group->local_counts, &group->by_host, &group->host_at };

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        *tables[i] = mem_zalloc_array((size_t)count + 1, sizeof(uint32_t));
        if (!*tables[i])
            return HVD_E_NOMEM;
    }
    return 0;
}

int group_init(struct group *group, const uint32_t *ranks, uint32_t count, const uint32_t *hosts,
               uint32_t rank)
{
    int rc;

    *group = (struct group){ .size = count, .place = GROUP_OUTSIDE, .sum = count };
    rc = allocate(group, count);
    for (uint32_t i = 0; i < count && !rc; i++) {
        group->ranks[i] = ranks[i];
        group->sum = accord_mix(group->sum, ranks[i]);
        if (ranks[i] == rank)
            group->place = i;
    }
    if (!rc)
        rc = place_on_hosts(group, hosts);
    if (!rc) {
        list_by_host(group);
        rc = list_lanes(group);
    }
    if (rc)
        group_release(group);
    return rc;
}

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

uint32_t group_find(const struct group *group, uint32_t rank)
{
    uint32_t low = 0, high = group->size;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (group->ranks[middle] == rank)
            return middle;
        if (group->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return GROUP_OUTSIDE;
}

uint32_t group_local(const struct group *group)
{
    return group->local_of[group->place];
}

bool group_is_apart(const struct group *group)
{
    return group->host_count == group->size;
}
