/*
 * ragged.c: an allgather and an alltoall in which a member knows only its own counts; run.c calls
 * it. The opening also carries the counts of all members: on each host they are on the stages
 * (shared memory) that the board step of the opening publishes; between hosts they follow the
 * fingerprint along the lanes. Then each member gets memory for what it receives, and an operation
 * with counts moves the numbers, on memory of the host or of a GPU.
 *
 * Invariant: the caller's struct coll_received is written when all numbers have come, not before.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/device.h"
#include "collectives/reduce/reduce.h"
#include "collectives/shm/pool.h"

#include <inttypes.h>
#include <string.h>

/* so the sum of the counts of all members fits into a size_t */
_Static_assert(LIMIT_RAGGED_BYTES <= SIZE_MAX / 2 / LIMIT_WORKERS, "no sum of counts overflows");

struct ragged {
    struct coll *coll;
    struct coll_group *group;
    const struct coll_call *call;
    /* sizes[i * row + k]: in an alltoall: how many numbers member i gives to member k. In an
     * allgather `row` is 1, and sizes[i] is how many numbers member i gives to all members. */
    uint64_t *sizes;
    size_t row;
    size_t *counts; /* how many numbers we get from each member */
    size_t bytes;   /* bytes of all that we get */
    void *data;     /* memory for the numbers that we get; NULL: we get none */
};

/* Computes from `sizes` how many numbers come from each member. HVD_E_PROTO: a member gives too
 * many. All members have the same `sizes`, so all name the same member as the cause. */
static int ragged_count(struct ragged *ragged)
{
    const struct group *members = &ragged->group->group;
    size_t bytes = reduce_type_bytes(ragged->call->type), sum = 0;

    for (uint32_t i = 0; i < members->size; i++) {
        const uint64_t *row = ragged->sizes + i * ragged->row;
        uint64_t left = LIMIT_RAGGED_BYTES / bytes;

        for (size_t k = 0; k < ragged->row; k++) {
            if (row[k] > left)
                return coll_fail(ragged->coll, HVD_E_PROTO, members->ranks[i],
                                 "%s: rank %u announces %" PRIu64
                                 " numbers of %s, more than %" PRIu64
                                 " bytes (LIMIT_RAGGED_BYTES); run the same libhvd on all hosts",
                                 coll_kind_name(ragged->call->kind), members->ranks[i], row[k],
                                 reduce_type_name(ragged->call->type), LIMIT_RAGGED_BYTES);
            left -= row[k];
        }
        /* an alltoall has a size for each receiver, an allgather has one for all */
        ragged->counts[i] = (size_t)row[ragged->row > 1 ? members->place : 0];
        sum += ragged->counts[i];
    }
    ragged->bytes = sum * bytes;
    return 0;
}

/* Gets memory for the numbers that this member receives: from the program's function, or from
 * pool_alloc, whose memory the program frees with hvd_free. */
static int ragged_get_memory(struct ragged *ragged)
{
    const struct coll_call *call = ragged->call;
    const struct coll_received *received = call->received;
    const char *name = coll_kind_name(call->kind);
    uint32_t rank = ragged->coll->rank;

    if (!ragged->bytes)
        return 0;
    ragged->data = received->memory ? received->memory(received->arg, ragged->bytes)
                                    : pool_alloc(ragged->bytes, NULL);
    if (!ragged->data)
        return coll_fail(ragged->coll, HVD_E_NOMEM, rank,
                         "rank %u: %s: %s no memory for the %zu bytes that %u ranks give; give "
                         "less in one call, or give rank %u more memory",
                         rank, name, received->memory ? "the program has" : "there is",
                         ragged->bytes, ragged->group->group.size, rank);
    if (gpu_device_of(ragged->data) != call->device)
        return coll_fail(ragged->coll, HVD_E_INVAL, rank,
                         "rank %u: %s: the memory for the result is not on the same device as the "
                         "buffer \"in\"; give memory of %s",
                         rank, name, call->device ? "the same GPU" : "the host");
    return 0;
}

/* Runs a ragged call (see the top of this file): the opening gathers all counts, this member gets
 * memory for its result, and an operation with counts moves the numbers. On a failure the memory is
 * freed, unless it is the program's. */
int ragged_run(struct coll *coll, struct coll_group *group, const struct coll_call *call,
               const char **ret_by)
{
    size_t size = group->group.size;
    struct ragged ragged = { .coll = coll,
                             .group = group,
                             .call = call,
                             .row = call->kind == COLL_ALLTOALL_RAGGED ? size : 1 };
    struct coll_call moved = *call;
    int rc = HVD_E_NOMEM;

    ragged.sizes = mem_zalloc_array(size * ragged.row, sizeof(*ragged.sizes));
    ragged.counts = mem_zalloc_array(size, sizeof(*ragged.counts));
    /* An allgather brings the counts of all members; with it the members compare the fingerprints
     * of the ragged call itself. */
    if (ragged.sizes && ragged.counts) {
        uint64_t *own = ragged.sizes + group->group.place * ragged.row;
        const struct coll_call gather = { .kind = COLL_ALLGATHER,
                                          .type = HVD_INT64,
                                          .in = own,
                                          .out = ragged.sizes,
                                          .count = ragged.row };
        struct operation operation = operation_make(coll, group, call);

        own[0] = call->count;
        for (size_t i = 0; call->counts && i < ragged.row; i++)
            own[i] = call->counts[i];
        /* `call` is the allgather; but the fingerprint, which the members compare, is that of the
         * ragged call */
        operation.call = &gather;
        rc = lane_close(&group->lane, allgather_run(&operation));
    }
    if (!rc)
        rc = ragged_count(&ragged);
    if (!rc)
        rc = ragged_get_memory(&ragged);
    /* Then run the operation with counts: every member knows now how much it gives and how much it
     * gets. */
    moved.out = ragged.data;
    moved.received = NULL;
    if (call->kind == COLL_ALLGATHER_RAGGED) {
        moved.kind = COLL_ALLGATHER;
        moved.counts = ragged.counts;
    } else {
        moved.kind = COLL_ALLTOALL;
        moved.out_counts = ragged.counts;
        moved.given = ragged.sizes;
    }
    if (!rc)
        rc = call->device ? device_run(coll, group, &moved, ret_by)
                          : operation_inside(coll, group, &moved);
    if (!rc) {
        call->received->data = ragged.data;
        memcpy(call->received->counts, ragged.counts, size * sizeof(*ragged.counts));
    } else if (!call->received->memory) {
        pool_free(ragged.data);
    }
    mem_free(ragged.sizes);
    mem_free(ragged.counts);
    return rc;
}
