#include "base/mem.h"
#include "collectives/lane/inside.h"

#include <string.h>

/* Around the row: each passes on what it has got the step before. */
static int pass_around(struct lane *lane, uint8_t *const *blocks, const size_t *lengths)
{
    uint32_t first = lane_take(lane, lane->size - 1);
    int rc = 0;

    for (uint32_t step = 0; step < lane->size - 1 && !rc; step++) {
        uint32_t out = (lane->index + lane->size - step) % lane->size;
        uint32_t in = (out + lane->size - 1) % lane->size;
        const struct exchange exchange = {
            .to = lane_after(lane, 1),
            .from = lane_before(lane, 1),
            .out = blocks[out],
            .in = blocks[in],
            .out_bytes = lengths[out],
            .in_bytes = lengths[in],
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, first + step), &exchange);
    }
    return lane_settle(lane, rc);
}

/* ---- small: all of it in a few steps ---- */

#define SMALL_BYTES ((size_t)64 * 1024) /* of all members together */

static bool is_small(const struct lane *lane, const size_t *lengths)
{
    size_t left = SMALL_BYTES;

    for (uint32_t i = 0; i < lane->size; i++) {
        if (lengths[i] > left)
            return false;
        left -= lengths[i];
    }
    return true;
}

/* The block that stands at a place of what lane_gather packs. */
static uint32_t packed_at(const struct lane *lane, uint32_t place)
{
    return (lane->index + lane->size - place) % lane->size;
}

static void unpack(const struct lane *lane, uint8_t *const *blocks, const uint8_t *packed,
                   const size_t *packed_lengths)
{
    packed += packed_lengths[0];
    for (uint32_t i = 1; i < lane->size; i++) {
        if (packed_lengths[i])
            memcpy(blocks[packed_at(lane, i)], packed, packed_lengths[i]);
        packed += packed_lengths[i];
    }
}

static int gather(struct lane *lane, uint8_t *const *blocks, const size_t *lengths)
{
    size_t *packed_lengths = mem_zalloc_array(lane->size, sizeof(*packed_lengths));
    uint8_t *packed = mem_alloc(SMALL_BYTES);
    int rc = HVD_E_NOMEM;

    if (packed && packed_lengths) {
        for (uint32_t i = 0; i < lane->size; i++)
            packed_lengths[i] = lengths[packed_at(lane, i)];
        if (packed_lengths[0])
            memcpy(packed, blocks[lane->index], packed_lengths[0]);
        rc = lane_gather(lane, packed, packed_lengths);
    }
    if (!rc)
        unpack(lane, blocks, packed, packed_lengths);
    rc = lane_settle(lane, rc);
    mem_free(packed);
    mem_free(packed_lengths);
    return rc;
}

int lane_allgather(struct lane *lane, uint8_t *const *blocks, const size_t *lengths)
{
    if (lane->size == 1)
        return 0;
    return is_small(lane, lengths) ? gather(lane, blocks, lengths)
                                   : pass_around(lane, blocks, lengths);
}
