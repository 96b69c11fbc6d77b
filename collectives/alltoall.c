/*
 * alltoall.c: each member gives each other member its own numbers. Members of one host exchange the
 * numbers over the board; all other members over the mesh, a link for each pair.
 *
 * The fingerprint of an alltoall with counts does not hold the counts. So an allgather first tells
 * the counts of each member to all members, and each member checks for every pair that the sender's
 * and the receiver's count are equal. In a ragged operation (ragged.c) all members know the counts
 * already. For a call on memory of a GPU, device.c uses only this check (alltoall_agree).
 */
#include "base/mem.h"
#include "base/panic.h"
#include "collectives/dispatch.h"

#include <inttypes.h>
#include <string.h>

struct alltoall {
    struct operation *operation;
    size_t bytes; /* bytes of one number */
    /* given[i * size + k]: how many numbers member i gives to member k; NULL: call->count for each
     * pair */
    const uint64_t *given;
    const uint8_t **out_blocks;       /* for each member: the numbers for it */
    uint8_t **in_blocks;              /* for each member: where its numbers go */
    size_t *out_lengths, *in_lengths; /* for each member: bytes of these numbers */
    size_t piece;                     /* how many bytes of a sender's stage are for each receiver */
};

/* How many bytes member `from` gives to member `to`. */
static size_t length_between(const struct alltoall *all, uint32_t from, uint32_t to)
{
    if (!all->given)
        return all->operation->call->count * all->bytes;
    return (size_t)all->given[(size_t)from * all->operation->group->group.size + to] * all->bytes;
}

/* Collects the counts of all members, and compares the sender's with the receiver's. operation: the
 * alltoall, which has got its number already; NULL: it has not. *ret_given: as in struct alltoall;
 * the caller frees it. */
static int learn_counts(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                        struct operation *operation, uint64_t **ret_given)
{
    const struct group *members = &group->group;
    size_t size = members->size;
    /* The table has two rows for each member: the counts that the member gives, and the counts that
     * it expects. After these rows it has room for the result (`given`). */
    uint64_t *table = mem_zalloc_array(3 * size * size, sizeof(*table));
    uint64_t *own, *given;
    struct coll_call gather;
    int rc;

    if (!table)
        return HVD_E_NOMEM;
    own = table + members->place * 2 * size;
    given = table + 2 * size * size;
    for (size_t i = 0; i < size; i++) {
        own[i] = call->counts[i];
        own[size + i] = call->out_counts[i];
    }
    gather = (struct coll_call){
        .kind = COLL_ALLGATHER, .type = HVD_INT64, .in = own, .out = table, .count = 2 * size
    };
    rc = operation ? allgather_before(operation, &gather) : allgather_whole(coll, group, &gather);
    for (uint32_t from = 0; from < size && !rc; from++) {
        for (uint32_t to = 0; to < size && !rc; to++) {
            uint64_t gives = table[from * 2 * size + to];
            uint64_t expects = table[to * 2 * size + size + from];

            given[from * size + to] = gives;
            if (gives != expects)
                rc =
                    coll_fail(coll, HVD_E_MISMATCH, members->ranks[from],
                              "alltoall: rank %u gives rank %u %" PRIu64
                              " numbers, but the receiver expects %" PRIu64
                              "; counts of the sender and out_counts of the receiver must be equal",
                              members->ranks[from], members->ranks[to], gives, expects);
        }
    }
    if (rc) {
        mem_free(table);
        return rc;
    }
    /* the caller frees what it gets, so the result is moved to the beginning of the table */
    memmove(table, given, size * size * sizeof(*table));
    *ret_given = table;
    return 0;
}

/* Called for an alltoall with counts on memory of a GPU: fails the round if a sender's counts and a
 * receiver's counts differ. *ret_most: the largest count of all. If the members know all counts
 * already (`given`), nothing is exchanged. */
int alltoall_agree(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   size_t *ret_most)
{
    size_t size = group->group.size;
    uint64_t *learnt = NULL;
    const uint64_t *given;
    int rc = call->given ? 0 : learn_counts(coll, group, call, NULL, &learnt);

    if (rc)
        return rc;
    given = call->given ? call->given : learnt;
    *ret_most = 0;
    for (size_t i = 0; i < size * size; i++)
        *ret_most = given[i] > *ret_most ? given[i] : *ret_most;
    mem_free(learnt);
    return 0;
}

/* Returns how many bytes of a block, which has `length` bytes, are in chunk number `chunk`. */
static size_t piece_length(const struct alltoall *all, size_t length, size_t chunk)
{
    size_t from = chunk * all->piece;

    if (from >= length)
        return 0;
    return length - from < all->piece ? length - from : all->piece;
}

/* Stage `in`: copies our piece of each block for a member of this host to our stage, which has a
 * part for each receiver. */
static void put_blocks(void *arg, size_t chunk, uint64_t turn)
{
    struct alltoall *all = arg;
    const struct group *members = &all->operation->group->group;
    struct board *board = all->operation->group->board;
    uint8_t *stage = board_stage(board, board_local(board), turn);

    for (uint32_t local = 0; local < members->local_count; local++) {
        uint32_t to = members->locals[local];
        size_t length = piece_length(all, all->out_lengths[to], chunk);

        if (length)
            memcpy(stage + local * all->piece, all->out_blocks[to] + chunk * all->piece, length);
    }
}

/* Stage `out`: copies the piece for us out of the stage of each member of this host. */
static void take_blocks(void *arg, size_t chunk, uint64_t turn)
{
    struct alltoall *all = arg;
    const struct group *members = &all->operation->group->group;
    struct board *board = all->operation->group->board;

    for (uint32_t local = 0; local < members->local_count; local++) {
        uint32_t from = members->locals[local];
        size_t length = piece_length(all, all->in_lengths[from], chunk);

        if (length)
            memcpy(all->in_blocks[from] + chunk * all->piece,
                   board_stage(board, local, turn) + board_local(board) * all->piece, length);
    }
}

/* Moves the blocks: within the host over the board, then between hosts over the mesh. */
static int exchange_all(struct alltoall *all)
{
    const struct coll_call *call = all->operation->call;
    struct coll_group *group = all->operation->group;
    const struct group *members = &group->group;
    struct stages stages = { .in = put_blocks, .out = take_blocks, .arg = all };
    uint32_t own = members->place, last;
    struct fingerprint theirs;
    size_t out = 0, in = 0, most = 0;
    int rc;

    for (uint32_t i = 0; i < members->size; i++) {
        all->out_blocks[i] = (const uint8_t *)call->in + out;
        all->in_blocks[i] = (uint8_t *)call->out + in;
        all->out_lengths[i] = length_between(all, own, i);
        all->in_lengths[i] = length_between(all, i, own);
        out += all->out_lengths[i];
        in += all->in_lengths[i];
    }
    /* First the members of this host; without a board that is only this member. The number of
     * chunks follows from the longest block between two of them, so it is equal on all of them. */
    for (uint32_t i = 0; i < members->local_count; i++) {
        for (uint32_t k = 0; k < members->local_count; k++) {
            size_t length = length_between(all, members->locals[i], members->locals[k]);

            most = length > most ? length : most;
        }
    }
    ASSERT(members->local_count); /* this member is one of the locals */
    if (group->board) {
        /* a multiple of the cache line, so that two receivers share none */
        all->piece = BOARD_STAGE_BYTES / members->local_count / 64 * 64;
        stages.chunks = (most + all->piece - 1) / all->piece;
        rc = stages_run(all->operation, &stages);
    } else {
        rc = operation_open(all->operation, &last);
        if (!rc && most)
            memcpy(all->in_blocks[own], all->out_blocks[own], most);
    }
    if (rc || members->host_count == 1)
        return rc;
    /* Then exchange blocks with the members of the other hosts: those of this host have theirs. */
    for (uint32_t i = 0; i < members->local_count; i++) {
        all->out_lengths[members->locals[i]] = 0;
        all->in_lengths[members->locals[i]] = 0;
    }
    rc = lane_open(&group->mesh_lane, &all->operation->fingerprint, &theirs);
    if (!rc)
        rc = lane_alltoall(&group->mesh_lane, all->out_blocks, all->out_lengths, all->in_blocks,
                           all->in_lengths);
    return lane_close(&group->mesh_lane, rc);
}

/* Runs an alltoall. Two things come first: the mesh between the hosts is made, and the members tell
 * each other their counts, if the call has counts that not every member knows. given[i * size + k]:
 * how many numbers member i gives to member k. */
int alltoall_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    size_t size = operation->group->group.size;
    struct alltoall all = { .operation = operation, .bytes = reduce_type_bytes(call->type) };
    uint64_t *given = NULL;
    void *memory;
    int rc = 0;

    if (operation->group->group.host_count > 1)
        rc = operation_mesh(operation);
    if (!rc && call->counts && !call->given)
        rc = learn_counts(operation->coll, operation->group, call, operation, &given);
    if (rc)
        return rc;
    all.given = call->given ? call->given : given;
    memory = mem_alloc(size * (2 * sizeof(size_t) + 2 * sizeof(void *)));
    if (memory) {
        all.out_lengths = memory;
        all.in_lengths = all.out_lengths + size;
        all.out_blocks = (const uint8_t **)(void *)(all.in_lengths + size);
        all.in_blocks = (uint8_t **)(void *)(all.out_blocks + size);
        rc = exchange_all(&all);
    }
    mem_free(memory);
    mem_free(given);
    return memory ? rc : HVD_E_NOMEM;
}
