/*
 * place.c: rank, local rank and cross rank of members. Called by agents for their workers'
 * environment, and by worker sessions. The result depends only on the ordered list of members, so
 * all processes compute the same places.
 */
#include "proto/place.h"

#include "base/mem.h"
#include "base/names.h"

#include <string.h>

/* Computes the ranks and sizes of all members. Item i of ret_places is that of member i. */
int place_all(const struct msg_member_list *members, struct place *ret_places)
{
    const struct msg_member *items = members->items;
    size_t count = members->count;
    /* members of each host. One block of memory holds this array and the three after it */
    uint32_t *sizes = mem_zalloc_array(count, 4 * sizeof(*sizes));
    uint32_t *first, *next, *with;
    struct names hosts;
    int rc = 0;

    if (!sizes)
        return HVD_E_NOMEM;
    first = sizes + count; /* for each host: its first member (index + 1; 0: none) */
    /* for each member: the next member of the same host (index + 1; 0: none) */
    next = first + count;
    /* for each local rank: how many of the hosts so far have a member with this local rank */
    with = next + count;
    memset(ret_places, 0, count * sizeof(*ret_places));
    names_init(&hosts);
    /* Hosts are numbered in the order in which the list first names them. */
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(items[i].host);
        uint32_t host = names_find(&hosts, items[i].host, length);

        if (host == NAMES_NONE) {
            host = (uint32_t)hosts.count;
            rc = names_put(&hosts, items[i].host, length, host);
            if (rc)
                goto out;
        }
        sizes[host]++;
        next[i] = first[host];
        first[host] = (uint32_t)i + 1;
    }
    /* local rank: how many members of the host have a lower slot. Cross rank: how many earlier
     * hosts have a member of this local rank */
    for (uint32_t host = 0; host < hosts.count; host++) {
        for (uint32_t i = first[host]; i; i = next[i - 1]) {
            struct place *place = &ret_places[i - 1];

            for (uint32_t k = first[host]; k; k = next[k - 1])
                place->local_rank += items[k - 1].slot < items[i - 1].slot;
            place->rank = i - 1;
            place->size = (uint32_t)count;
            place->local_size = sizes[host];
            place->cross_rank = with[place->local_rank];
        }
        for (uint32_t local = 0; local < sizes[host]; local++)
            with[local]++;
    }
    for (size_t i = 0; i < count; i++)
        ret_places[i].cross_size = with[ret_places[i].local_rank];
out:
    names_release(&hosts);
    mem_free(sizes);
    return rc;
}

/* Computes the ranks and sizes of one member. All members are computed, because the ranks depend on
 * them. HVD_E_NOTFOUND: the incarnation is no member. */
int place_find(const struct msg_member_list *members, uint64_t incarnation, struct place *ret_place)
{
    size_t rank = 0;
    struct place *places;
    int rc;

    while (rank < members->count && members->items[rank].incarnation != incarnation)
        rank++;
    if (rank == members->count)
        return HVD_E_NOTFOUND;
    places = mem_zalloc_array(members->count, sizeof(*places));
    rc = places ? place_all(members, places) : HVD_E_NOMEM;
    if (!rc)
        *ret_place = places[rank];
    mem_free(places);
    return rc;
}
