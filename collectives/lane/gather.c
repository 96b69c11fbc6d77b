#include "collectives/lane/inside.h"

#include <string.h>

/* Everybody gets what everybody has; each step doubles how many blocks there are. */

#define STEPS 32

/* Of it, what has come or gone with the opening is left out. */
static int first_step(struct lane *lane, uint32_t step, uint8_t *packed, const size_t *lengths)
{
    uint8_t *theirs = packed + lengths[0];
    struct exchange exchange = {
        .to = lane_after(lane, 1),
        .from = lane_before(lane, 1),
        .out = packed,
        .in = theirs,
        .out_bytes = lengths[0],
        .in_bytes = lengths[1],
    };

    if (step == 0 && lane->said.takes_first)
        exchange.out_bytes = 0;
    if (step == 0 && lane->heard.takes_first) {
        if (lane->heard.length != lengths[1])
            return HVD_E_MISMATCH;
        if (lengths[1])
            memcpy(theirs, lane->heard.first, lengths[1]);
        exchange.in_bytes = 0;
    }
    return traffic_exchange(lane->traffic, lane_tag(lane, step), &exchange);
}

static size_t sum_of(const size_t *lengths, uint32_t count)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += lengths[i];
    return sum;
}

int lane_gather(struct lane *lane, uint8_t *packed, const size_t *lengths)
{
    uint32_t step = lane_take(lane, STEPS);
    int rc = first_step(lane, step, packed, lengths);

    for (uint32_t have = 2; have < lane->size && !rc; have *= 2) {
        uint32_t more = have < lane->size - have ? have : lane->size - have;
        const struct exchange exchange = {
            .to = lane_after(lane, have),
            .from = lane_before(lane, have),
            .out = packed,
            .in = packed + sum_of(lengths, have),
            .out_bytes = sum_of(lengths, more),
            .in_bytes = sum_of(lengths + have, more),
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, ++step), &exchange);
    }
    return rc;
}

/* ---- and reduces it alone ---- */

static void reduce_gathered(const struct numbers *numbers, const uint8_t *blocks)
{
    uint32_t size = numbers->lane->size, index = numbers->lane->index;
    size_t width = numbers->count * numbers->work_bytes;

    for (uint32_t i = 0; i < size; i++) {
        const uint8_t *block = blocks + (size_t)((index + size - i) % size) * width;

        if (i == 0)
            memcpy(numbers->work, block, width);
        else
            reduce_two(numbers->work, numbers->work, block, numbers->count, numbers->how);
    }
    reduce_narrow(numbers->out, numbers->work, numbers->count, numbers->how);
}

static int gather_and_reduce(const struct numbers *numbers)
{
    size_t *lengths = (size_t *)(void *)numbers->scratch;
    size_t width = numbers->count * numbers->work_bytes;
    uint8_t *blocks = numbers->scratch + numbers->lane->size * sizeof(*lengths);
    int rc;

    for (uint32_t i = 0; i < numbers->lane->size; i++)
        lengths[i] = width;
    memcpy(blocks, numbers->work, width);
    rc = lane_gather(numbers->lane, blocks, lengths);
    if (!rc)
        reduce_gathered(numbers, blocks);
    return rc;
}

int lane_gather_numbers(struct numbers *numbers)
{
    size_t each = sizeof(size_t) + numbers->count * numbers->work_bytes;

    return numbers_run(numbers, numbers->lane->size * each, gather_and_reduce);
}
