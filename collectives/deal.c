/*
 * deal.c: a deal: the layout of a chunk of an allgather or a reducescatter, which says where in the
 * chunk each member's numbers begin. Each member computes the layout by itself. All get the same
 * layout, because they compute it from counts that the fingerprints have compared.
 */
#include "collectives/deal.h"

#include "base/panic.h"

/* The memory of a deal: its arrays `first` and `at`, with an entry for each member. */
size_t deal_bytes(const struct group *group)
{
    return 2 * (size_t)group->size * sizeof(size_t);
}

/* Returns how many numbers the part of this member has, in all chunks together. */
size_t deal_count(const struct deal *deal, uint32_t member)
{
    return deal->counts ? deal->counts[member] : deal->each;
}

/* Prepares the layout (deal.h): where the part of each member begins among all numbers, how many
 * numbers of a part one chunk holds, and how many chunks the longest part needs. */
void deal_init(struct deal *deal, size_t room, void *memory)
{
    uint32_t size = deal->group->size;
    size_t before = 0, most = 0;

    ASSERT(size > 0); /* the caller is a member */
    deal->first = memory;
    deal->at = deal->first + size;
    for (uint32_t i = 0; i < size; i++) {
        size_t count = deal_count(deal, i);

        deal->first[i] = before;
        before += count;
        most = count > most ? count : most;
    }
    deal->piece = room / deal->bytes / size;
    if (!deal->piece) /* there are more members than numbers fit: a chunk is longer */
        deal->piece = 1;
    deal->chunks = (most + deal->piece - 1) / deal->piece;
}

/* Returns how many numbers of this member's part are in the chunk; 0: its part has ended in an
 * earlier chunk. */
size_t deal_piece(const struct deal *deal, uint32_t member, size_t chunk)
{
    size_t count = deal_count(deal, member), from = chunk * deal->piece;

    if (from >= count)
        return 0;
    return count - from < deal->piece ? count - from : deal->piece;
}

/* Computes for this chunk where each member's piece begins: by lane, then by host. A host with more
 * members than lanes gives lane i its members i, i + lane_count, and so on. */
void deal_chunk(struct deal *deal, size_t chunk)
{
    const struct group *group = deal->group;
    size_t at = 0;

    for (uint32_t lane = 0; lane < group->lane_count; lane++) {
        for (uint32_t host = 0; host < group->host_count; host++) {
            for (uint32_t i = lane; i < group->local_counts[host]; i += group->lane_count) {
                uint32_t member = group->by_host[group->host_at[host] + i];

                deal->at[member] = at;
                at += deal_piece(deal, member, chunk);
            }
        }
    }
}

/* Finds the pieces of one host that one lane carries (deal.h). They are stored one after another,
 * so the index of the first piece is the index of all. */
size_t deal_block(const struct deal *deal, size_t chunk, uint32_t lane, uint32_t host,
                  size_t *ret_count)
{
    const struct group *group = deal->group;
    const uint32_t *members = group->by_host + group->host_at[host];

    *ret_count = 0;
    for (uint32_t i = lane; i < group->local_counts[host]; i += group->lane_count)
        *ret_count += deal_piece(deal, members[i], chunk);
    return deal->at[members[lane]];
}
