/* pairs.c: the sends and receives of one kernel, which all make progress together. */
#include "tests/standin/kernel.h"

#include "base/mem.h"

#include <string.h>

struct transfer {
    const struct operation *operation;
    char *at; /* the host's address for the memory */
    size_t bytes, done;
};

/* 1: a piece was sent; 0: not possible now. */
static bool send_piece(struct ncclComm *comm, struct transfer *one)
{
    struct meeting_pair *pair = &comm->meeting->pairs[comm->rank][one->operation->root];
    uint64_t sent = atomic_load(&pair->sent);
    size_t left = one->bytes - one->done;

    if (atomic_load(&pair->received) != sent)
        return false;
    pair->bytes = one->bytes;
    pair->length = left < MEETING_PAIR_PIECE ? left : MEETING_PAIR_PIECE;
    memcpy(pair->piece, one->at + one->done, pair->length);
    one->done += pair->length;
    atomic_store(&pair->sent, sent + 1);
    return true;
}

static bool receive_piece(struct ncclComm *comm, struct transfer *one)
{
    struct meeting_pair *pair = &comm->meeting->pairs[one->operation->root][comm->rank];
    uint64_t received = atomic_load(&pair->received);

    if (atomic_load(&pair->sent) == received ||
        meeting_has_left(&comm->meeting->members[one->operation->root]))
        return false;
    if (pair->bytes != one->bytes)
        standin_misuse("member %d sends %llu bytes, and member %d receives %zu",
                       one->operation->root, (unsigned long long)pair->bytes, comm->rank,
                       one->bytes);
    memcpy(one->at + one->done, pair->piece, pair->length);
    one->done += pair->length;
    atomic_store(&pair->received, received + 1);
    return true;
}

/* true: no earlier transfer has the same two members and direction; such transfers run one after
 * the other. */
static bool is_next(const struct transfer *all, size_t which)
{
    for (size_t i = 0; i < which; i++)
        if (all[i].done < all[i].bytes && all[i].operation->kind == all[which].operation->kind &&
            all[i].operation->root == all[which].operation->root)
            return false;
    return true;
}

/* Runs all transfers to their end. false: the communicator was broken or its device lost. */
static bool run(struct ncclComm *comm, struct transfer *all, size_t count)
{
    bool left = true;

    while (left) {
        uint32_t seen = meeting_see(comm->meeting);
        bool moved;

        if (comm_is_broken(comm) || comm_is_lost(comm))
            return false;
        /* Moves each transfer by one piece, if possible. */
        moved = false;
        left = false;
        for (size_t i = 0; i < count; i++) {
            if (all[i].done == all[i].bytes)
                continue;
            if (is_next(all, i))
                moved = (all[i].operation->kind == SEND ? send_piece(comm, &all[i])
                                                        : receive_piece(comm, &all[i])) ||
                        moved;
            left = left || all[i].done < all[i].bytes;
        }
        if (moved)
            meeting_ring(comm->meeting);
        else if (left)
            meeting_wait(comm->meeting, seen);
    }
    return true;
}

bool pairs_run(struct ncclComm *comm, struct operation *first)
{
    struct transfer *all;
    size_t count = 0;
    bool ended;

    for (struct operation *one = first; one; one = one->next)
        count += one->kind == SEND || one->kind == RECV;
    if (count == 0)
        return true;
    all = mem_zalloc_array(count, sizeof(*all));
    if (!all)
        standin_misuse("no memory");
    count = 0;
    for (struct operation *one = first; one; one = one->next) {
        const void *at = one->kind == SEND ? one->in : one->out;
        size_t bytes = one->count * numbers_bytes(one->type);

        if (one->kind == SEND || one->kind == RECV)
            all[count++] =
                (struct transfer){ .operation = one,
                                   .at = standin_range(comm->context, at, bytes, "a kernel"),
                                   .bytes = bytes };
    }
    ended = run(comm, all, count);
    mem_free(all);
    return ended;
}
