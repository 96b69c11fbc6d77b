/*
 * opened.c: groups that all members of the round open and close while it runs; run.c calls it. All
 * members make the call, also those outside the group. The call is an operation of all members: its
 * fingerprint holds a hash of the group's ranks, and its numbers are the addresses for the group's
 * link. The group has a link of its own and no board; its members count as alone on their hosts.
 *
 * Invariant: the array of groups has entries for these groups from the beginning of the round, and
 * no group is freed before the round ends. So other threads may read a group while it is being
 * closed.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "collectives/dispatch.h"
#include "os/clock.h"

#define CONNECT_US TIME_MIN /* how long a member may take to connect */

/* The address at which one member of the group reaches another; the members exchange a table of
 * these. */
struct opened_address {
    uint32_t rank; /* rank of the member that uses the address, plus one; 0: the entry is free */
    uint32_t length;
    uint8_t bytes[LINK_ADDRESS_MAX];
};

/* Runs the operation of all members that opens or closes groups: it compares the fingerprints, and
 * gathers `bytes` bytes from each member; those of member i begin at i * bytes in `table`. */
static int opened_tell(struct coll *coll, struct coll_group *all, const struct coll_call *call,
                       void *table, size_t bytes)
{
    const struct coll_call gather = { .kind = COLL_ALLGATHER,
                                      .type = HVD_UINT8,
                                      .in = (uint8_t *)table + coll->rank * bytes,
                                      .out = table,
                                      .count = bytes };
    struct operation operation = operation_make(coll, all, call);

    /* `call` is the allgather; but the fingerprint, which the members compare, is that of the open
     * or close */
    operation.call = &gather;
    return lane_close(&all->lane, allgather_run(&operation));
}

/* Adds a group to the groups of the round. From now on other threads see the group. Its lane has
 * one member until opened_run connects the group. */
static int opened_add(struct coll *coll, const struct coll_ranks *ranks,
                      struct coll_group **ret_group)
{
    struct coll_group *group = &coll->groups[coll->group_count];
    int rc = group_init(&group->group, ranks->items, ranks->count, coll->members.ranks, coll->rank);

    if (rc)
        return rc;
    traffic_init(&group->mesh, coll_lost, coll);
    traffic_init(&group->own, coll_lost, coll);
    group->lane = (struct lane){ .traffic = &group->own,
                                 .ranks = &coll->members.ranks[coll->rank],
                                 .size = 1 };
    group->board_index = SIZE_MAX;
    coll->group_count++;
    group->sources = mem_zalloc_array(group->group.local_count + 1, sizeof(*group->sources));
    *ret_group = group;
    return group->sources ? 0 : HVD_E_NOMEM;
}

/* Lists the members to which a member of the group has links, as indices in the group: at most
 * LANE_PARTNERS_MAX, or with --fixed-order all other members. */
static size_t opened_partners(const struct coll *coll, uint32_t place, uint32_t size,
                              uint32_t *ret_places)
{
    size_t count = 0;

    if (!coll->engine || !coll->engine->options.fixed_order)
        return lane_partners(place, size, ret_places);
    for (uint32_t i = 0; i < size; i++) {
        if (i != place)
            ret_places[count++] = i;
    }
    return count;
}

/* Returns the most partners that opened_partners lists in a group of this size. All members compute
 * the same number, which is the length of the table's rows. */
static size_t opened_most_partners(const struct coll *coll, uint32_t size)
{
    size_t most = 0;

    if (coll->engine && coll->engine->options.fixed_order)
        return size ? size - 1 : 0;
    for (uint64_t distance = 1; distance < size; distance *= 2)
        most += 2; /* one partner at this distance before the member, and one after */
    return most;
}

/* Connects the group's link with the partners, the members to which this member has a link. table:
 * a row of `row` entries for each rank of the round. A partner's row holds the addresses at which
 * its own partners reach it; the entry for us is the one whose `rank` is our rank plus one. */
static int opened_connect(struct coll *coll, struct coll_group *group, const uint32_t *partners,
                          size_t count, const struct opened_address *table, size_t row,
                          struct hvd_err *err)
{
    struct link *link = group->own_link;
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        const struct opened_address *theirs = &table[partners[i] * row];
        size_t at = 0;

        while (at < row && theirs[at].rank != coll->rank + 1)
            at++;
        if (at == row)
            return err_set(err, HVD_E_PROTO,
                           "rank %u has sent no address for the links of an opened group; all "
                           "workers must use the same release of libhvd",
                           partners[i]);
        rc = link->ops->connect(link, partners[i], theirs[at].bytes, theirs[at].length, err);
    }
    return rc ? rc : coll_await_link(coll, link, &coll->traffic, clock_now_us() + CONNECT_US);
}

/* Opens a group, or closes one (coll.h). Every member of the round makes this call, also those
 * outside the group: by the operation each member knows that all agree. To close a group nothing
 * else is done; its objects stay until the round ends. A member that is in no new group gives no
 * addresses (an empty row). */
int opened_run(struct coll *coll, struct coll_group *all, const struct coll_call *call)
{
    struct coll_opening *opening = call->opening;
    size_t room, row, length, count = 0;
    struct hvd_err why = { .text = "" };
    struct opened_address *table, *ours;
    struct coll_group *group = NULL;
    uint32_t *partners;
    uint8_t none[1];
    int rc = HVD_E_NOMEM;

    /* a close gathers no bytes: `none` is there because the table must have an address */
    if (call->kind != COLL_OPEN)
        return opened_tell(coll, all, call, none, 0);
    /* All members gather one table with a row for each rank: the addresses of its links. All rows
     * have the same length, which is enough for the largest of the new groups. */
    room = opening->most > LANE_PARTNERS_MAX ? opening->most : LANE_PARTNERS_MAX;
    row = opened_most_partners(coll, opening->most);
    partners = mem_zalloc_array(room, sizeof(*partners));
    table = mem_zalloc_array(coll->size * (row + 1), sizeof(*table));
    if (partners && table)
        rc = opened_add(coll, &opening->ranks, &group);
    if (!rc && group->group.place != GROUP_OUTSIDE && group->group.size > 1) {
        count = opened_partners(coll, group->group.place, group->group.size, partners);
        for (size_t i = 0; i < count; i++)
            partners[i] = group->group.ranks[partners[i]];
        /* Make our link, and write into our row how each partner reaches us. */
        rc = coll_make_link(coll, partners, count, &group->own_link, &why);
        ours = &table[coll->rank * row];
        for (size_t i = 0; i < count && !rc; i++) {
            length = 0;
            rc = group->own_link->ops->address(group->own_link, partners[i], ours[i].bytes, &length,
                                               &why);
            ours[i].rank = partners[i] + 1;
            ours[i].length = (uint32_t)length;
        }
    }
    if (!rc)
        rc = opened_tell(coll, all, call, table, row * sizeof(*table));
    if (!rc && count)
        rc = opened_connect(coll, group, partners, count, table, row, &why);
    /* The lanes of the group use the group's own link. */
    if (!rc && count) {
        group->own.link = group->own_link;
        group->own.segment_bytes = coll_segment_bytes(coll->engine);
        group->lane = (struct lane){ .traffic = &group->own,
                                     .ranks = group->group.lane_ranks,
                                     .index = group->group.host,
                                     .size = group->group.host_count };
        if (coll->engine->options.fixed_order)
            group->mesh_lane = (struct lane){ .traffic = &group->own,
                                              .ranks = group->group.ranks,
                                              .index = group->group.place,
                                              .size = group->group.size };
    }
    if (rc && why.text[0])
        coll_fail(coll, rc, coll->rank, "rank %u: a group cannot be opened: %s", coll->rank,
                  why.text);
    mem_free(partners);
    mem_free(table);
    return rc;
}
