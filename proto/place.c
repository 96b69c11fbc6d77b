#include "proto/place.h"

#include "base/mem.h"
#include "base/names.h"

#include <string.h>

static size_t index_of(const struct msg_member_list *members, uint64_t incarnation)
{
    size_t i = 0;

    while (i < members->count && members->items[i].incarnation != incarnation)
        i++;
    return i;
}

/* How many members each host has, the hosts numbered in the order in which they are first named. */
static int count_hosts(const struct msg_member_list *members, struct names *hosts, uint32_t *sizes)
{
    for (size_t i = 0; i < members->count; i++) {
        const char *host = members->items[i].host;
        size_t length = strlen(host);
        uint32_t number = names_find(hosts, host, length);
        int rc;

        if (number == NAMES_NONE) {
            number = (uint32_t)hosts->count;
            rc = names_put(hosts, host, length, number);
            if (rc)
                return rc;
        }
        sizes[number]++;
    }
    return 0;
}

static uint32_t local_rank_of(const struct msg_member_list *members, const struct msg_member *me)
{
    uint32_t lower = 0;

    for (size_t i = 0; i < members->count; i++) {
        const struct msg_member *other = &members->items[i];

        if (other->slot < me->slot && !strcmp(other->host, me->host))
            lower++;
    }
    return lower;
}

int place_find(const struct msg_member_list *members, uint64_t incarnation, struct place *ret_place)
{
    size_t rank = index_of(members, incarnation);
    const struct msg_member *me;
    struct place place;
    struct names hosts;
    uint32_t *sizes;
    uint32_t home;
    int rc;

    if (rank == members->count)
        return HVD_E_NOTFOUND;
    sizes = mem_zalloc_array(members->count, sizeof(*sizes));
    if (!sizes)
        return HVD_E_NOMEM;
    names_init(&hosts);
    rc = count_hosts(members, &hosts, sizes);
    if (rc)
        goto out;

    me = &members->items[rank];
    home = names_find(&hosts, me->host, strlen(me->host));
    place = (struct place){
        .rank = (uint32_t)rank,
        .size = (uint32_t)members->count,
        .local_rank = local_rank_of(members, me),
        .local_size = sizes[home],
    };
    /* The local ranks of a host are 0 to its size - 1: it has mine if it is larger than that. */
    for (uint32_t host = 0; host < hosts.count; host++) {
        if (sizes[host] > place.local_rank) {
            place.cross_size++;
            if (host < home)
                place.cross_rank++;
        }
    }
    *ret_place = place;
out:
    names_release(&hosts);
    mem_free(sizes);
    return rc;
}

/* ---- all of them ---- */

struct all {
    const struct msg_member_list *members;
    struct names hosts;
    uint32_t *sizes; /* of each host */
    uint32_t *first; /* member of each host, and the next of the same: from 1, 0 is the end */
    uint32_t *next;
    uint32_t *with; /* how many hosts so far have this local rank */
};

/* The members of each host, in any order. */
static void chain(struct all *all)
{
    for (size_t i = 0; i < all->members->count; i++) {
        const char *name = all->members->items[i].host;
        uint32_t host = names_find(&all->hosts, name, strlen(name));

        all->next[i] = all->first[host];
        all->first[host] = (uint32_t)i + 1;
    }
}

static void place_host(struct all *all, uint32_t host, struct place *places)
{
    for (uint32_t i = all->first[host]; i; i = all->next[i - 1]) {
        struct place *place = &places[i - 1];

        for (uint32_t k = all->first[host]; k; k = all->next[k - 1])
            place->local_rank += all->members->items[k - 1].slot < all->members->items[i - 1].slot;
        place->rank = i - 1;
        place->size = (uint32_t)all->members->count;
        place->local_size = all->sizes[host];
        place->cross_rank = all->with[place->local_rank];
    }
    for (uint32_t local = 0; local < all->sizes[host]; local++)
        all->with[local]++;
}

int place_all(const struct msg_member_list *members, struct place *ret_places)
{
    struct all all = { .members = members };
    uint32_t *room = mem_zalloc_array(members->count, 4 * sizeof(*room));
    int rc;

    if (!room)
        return HVD_E_NOMEM;
    all.sizes = room;
    all.first = room + members->count;
    all.next = room + 2 * members->count;
    all.with = room + 3 * members->count;
    names_init(&all.hosts);
    rc = count_hosts(members, &all.hosts, all.sizes);
    if (!rc) {
        memset(ret_places, 0, members->count * sizeof(*ret_places));
        chain(&all);
        for (uint32_t host = 0; host < all.hosts.count; host++)
            place_host(&all, host, ret_places);
        for (size_t i = 0; i < members->count; i++)
            ret_places[i].cross_size = all.with[ret_places[i].local_rank];
    }
    names_release(&all.hosts);
    mem_free(room);
    return rc;
}
