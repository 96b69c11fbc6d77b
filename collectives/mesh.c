#include "base/mem.h"
#include "base/time.h"
#include "collectives/operation.h"
#include "os/clock.h"

#include <inttypes.h>
#include <string.h>

/* A round connects each member with a few. What needs all pairs makes them when it comes the first
 * time: the members tell each other their addresses by an allgather. */

#define CONNECT_US TIME_MIN

/* How a member is reached by one other. */
struct mesh_address {
    uint32_t length;
    uint8_t bytes[LINK_ADDRESS_MAX];
};

static int make_link(struct coll *coll, struct coll_group *group, struct hvd_err *err)
{
    uint32_t *others = mem_zalloc_array(group->group.size, sizeof(*others));
    struct link_device *device = NULL;
    struct link *link = NULL;
    size_t count = 0;
    int rc = others ? 0 : HVD_E_NOMEM;

    for (uint32_t i = 0; i < group->group.size && !rc; i++) {
        if (i != group->group.place)
            others[count++] = group->group.ranks[i];
    }
    if (!rc)
        rc = coll_engine_device(coll->engine, &device, err);
    if (!rc)
        rc = link_create(device, coll->engine->reaper, coll->rank, coll->size, others, count, &link,
                         err);
    mem_free(others);
    if (rc)
        return rc;
    pthread_mutex_lock(&coll->mutex);
    group->mesh_link = link;
    if (coll_has_failed(coll))
        link->ops->cancel(link);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

/* table: of each member, how each is told to reach it. */
static int exchange(struct operation *operation, struct mesh_address *table, struct hvd_err *err)
{
    struct coll_group *group = operation->group;
    uint32_t size = group->group.size;
    struct mesh_address *own = table + (size_t)group->group.place * size;
    const struct coll_call gather = { .kind = COLL_ALLGATHER,
                                      .type = HVD_UINT8,
                                      .in = own,
                                      .out = table,
                                      .count = size * sizeof(*own) };
    int rc = 0;

    for (uint32_t i = 0; i < size && !rc; i++) {
        size_t length = 0;

        if (i == group->group.place)
            continue;
        rc = group->mesh_link->ops->address(group->mesh_link, group->group.ranks[i], own[i].bytes,
                                            &length, err);
        own[i].length = (uint32_t)length;
    }
    return rc ? rc : operation_before(operation, &gather);
}

static int connect_all(struct operation *operation, const struct mesh_address *table,
                       struct hvd_err *err)
{
    struct coll *coll = operation->coll;
    struct coll_group *group = operation->group;
    uint32_t size = group->group.size, missing = 0;
    int rc = 0;

    for (uint32_t i = 0; i < size && !rc; i++) {
        const struct mesh_address *to = table + (size_t)i * size + group->group.place;

        if (i != group->group.place)
            rc = group->mesh_link->ops->connect(group->mesh_link, group->group.ranks[i], to->bytes,
                                                to->length, err);
    }
    if (rc)
        return rc;
    rc = group->mesh_link->ops->connected(group->mesh_link, clock_now_us() + CONNECT_US, &missing,
                                          NULL);
    if (rc == HVD_E_LOST)
        return coll_lost(coll, missing);
    if (rc == HVD_E_TIMEOUT)
        return coll_fail(coll, rc, missing,
                         "rank %u (incarnation %" PRIu64 ") was not reached in time", missing,
                         coll->members[missing].incarnation);
    return rc;
}

int operation_mesh(struct operation *operation)
{
    struct coll_group *group = operation->group;
    uint32_t size = group->group.size;
    struct hvd_err why = { .text = "" };
    struct mesh_address *table;
    int rc;

    if (group->mesh_lane.size || size == 1)
        return 0;
    table = mem_zalloc_array((size_t)size * size, sizeof(*table));
    if (!table)
        return HVD_E_NOMEM;
    rc = make_link(operation->coll, group, &why);
    if (!rc)
        rc = exchange(operation, table, &why);
    if (!rc)
        rc = connect_all(operation, table, &why);
    mem_free(table);
    if (rc && why.text[0])
        coll_fail(operation->coll, rc, operation->coll->rank, "rank %u: %s", operation->coll->rank,
                  why.text);
    if (rc)
        return rc;
    group->mesh.link = group->mesh_link;
    group->mesh.segment_bytes = coll_segment_bytes(operation->coll->engine);
    group->mesh_lane = (struct lane){ .traffic = &group->mesh,
                                      .ranks = group->group.ranks,
                                      .index = group->group.place,
                                      .size = size };
    return 0;
}
