/*
 * mesh.c: a mesh: a link between each two members of a group. A round connects each member with a
 * few other members only; the first operation that needs all pairs (alltoall.c) makes the mesh. For
 * that the members exchange their addresses in an allgather, and connect.
 */
#include "base/mem.h"
#include "base/time.h"
#include "collectives/dispatch.h"
#include "os/clock.h"

#define CONNECT_US TIME_MIN /* how long a member may take to connect */

/* The address at which one member reaches another member. */
struct mesh_address {
    uint32_t length;
    uint8_t bytes[LINK_ADDRESS_MAX];
};

/* Makes our link, and exchanges the addresses of all members. table[i * size + k]: the address at
 * which member k reaches member i. This function writes the row of this member; the allgather
 * brings the rows of the other members. */
static int exchange_addresses(struct operation *operation, struct mesh_address *table,
                              struct hvd_err *err)
{
    struct coll_group *group = operation->group;
    uint32_t size = group->group.size;
    struct mesh_address *own = table + (size_t)group->group.place * size;
    const struct coll_call gather = { .kind = COLL_ALLGATHER,
                                      .type = HVD_UINT8,
                                      .in = own,
                                      .out = table,
                                      .count = size * sizeof(*own) };
    uint32_t *others = mem_zalloc_array(size, sizeof(*others));
    size_t count = 0;
    int rc = others ? 0 : HVD_E_NOMEM;

    for (uint32_t i = 0; i < size && !rc; i++) {
        if (i != group->group.place)
            others[count++] = group->group.ranks[i];
    }
    if (!rc)
        rc = coll_make_link(operation->coll, others, count, &group->mesh_link, err);
    for (uint32_t i = 0; i < size && !rc; i++) {
        size_t length = 0;

        if (i != group->group.place)
            rc = group->mesh_link->ops->address(group->mesh_link, group->group.ranks[i],
                                                own[i].bytes, &length, err);
        own[i].length = (uint32_t)length;
    }
    mem_free(others);
    return rc ? rc : allgather_before(operation, &gather);
}

/* Makes the links between all pairs of the group, unless they are made already. Runs an allgather
 * first, which takes the operation's number (allgather_before). */
int operation_mesh(struct operation *operation)
{
    struct coll *coll = operation->coll;
    struct coll_group *group = operation->group;
    uint32_t size = group->group.size, own = group->group.place;
    struct hvd_err why = { .text = "" };
    struct mesh_address *table;
    int rc;

    if (group->mesh_lane.size || size == 1)
        return 0;
    table = mem_zalloc_array((size_t)size * size, sizeof(*table));
    if (!table)
        return HVD_E_NOMEM;
    rc = exchange_addresses(operation, table, &why);
    for (uint32_t i = 0; i < size && !rc; i++) {
        const struct mesh_address *to = table + (size_t)i * size + own;

        if (i != own)
            rc = group->mesh_link->ops->connect(group->mesh_link, group->group.ranks[i], to->bytes,
                                                to->length, &why);
    }
    mem_free(table);
    if (rc && why.text[0])
        coll_fail(coll, rc, coll->rank, "rank %u: %s", coll->rank, why.text);
    if (rc)
        return rc;
    rc = coll_await_link(coll, group->mesh_link, &coll->traffic, clock_now_us() + CONNECT_US);
    if (rc)
        return rc;
    group->mesh.link = group->mesh_link;
    group->mesh.segment_bytes = coll_segment_bytes(coll->engine);
    group->mesh_lane = (struct lane){
        .traffic = &group->mesh, .ranks = group->group.ranks, .index = own, .size = size
    };
    return 0;
}
