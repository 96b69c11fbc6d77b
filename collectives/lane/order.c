/*
 * order.c: LANE_ORDER, for jobs with --fixed-order. Each member gets its part of the numbers from
 * all members and adds these numbers in the order of the row, for every message size. So the sum
 * does not depend on how the numbers were divided among the members. Every two members of the lane
 * need a link.
 *
 * An allreduce handles at most CHUNK_BYTES of the numbers at a time, so that the scratch memory
 * stays small.
 */
#include "collectives/lane/lane_internal.h"

/* the bytes of a chunk: the parts of all members together */
#define CHUNK_BYTES ((size_t)8 * 1024 * 1024)

/* Returns the memory for the numbers of member `from` that belong to our part. */
static uint8_t *block_of(const struct numbers *numbers, uint32_t from)
{
    uint32_t own = numbers->lane->index;

    if (from == own)
        return numbers->work + numbers_at(numbers, from) * numbers->work_bytes;
    return numbers->scratch + from * numbers_of(numbers, own) * numbers->work_bytes;
}

/* Gets the numbers of our part from all members, and reduces them into `to`, in the result's type.
 * The sum begins with the numbers of member 0, wherever we are in the row. The caller calls
 * numbers_end, also after a failure. */
static int order_reduce_part(struct numbers *numbers, uint8_t *to)
{
    struct lane *lane = numbers->lane;
    uint32_t first = lane_take(lane, lane->size);
    size_t own_count = numbers_of(numbers, lane->index);
    int rc = numbers_begin(numbers, lane->size * own_count * numbers->work_bytes);
    uint8_t *sum;

    for (uint32_t distance = 1; distance < lane->size && !rc; distance++) {
        uint32_t other = (lane->index + distance) % lane->size;
        uint32_t from = (lane->index + lane->size - distance) % lane->size;
        const struct exchange exchange = {
            .to = lane->ranks[other],
            .from = lane->ranks[from],
            .out = numbers->work + numbers_at(numbers, other) * numbers->work_bytes,
            .in = block_of(numbers, from),
            .out_bytes = numbers_of(numbers, other) * numbers->work_bytes,
            .in_bytes = own_count * numbers->work_bytes,
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, first + distance), &exchange);
    }
    /* wait: after the return the caller receives results into memory that these sends still read */
    rc = lane_settle(lane, rc);
    if (rc)
        return rc;
    sum = block_of(numbers, 0); /* the order of the sum begins with member 0 of the row */
    for (uint32_t i = 1; i < lane->size; i++)
        reduce_two(sum, sum, block_of(numbers, i), own_count, numbers->how);
    reduce_narrow(to, sum, own_count, numbers->how);
    return 0;
}

/* LANE_ORDER: chunk by chunk, each member reduces its own part of the chunk, and sends the result
 * to all others. numbers_end follows each chunk, because order_reduce_part has allocated scratch
 * memory for that chunk. */
int lane_order_numbers(struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    struct numbers chunk = *numbers;
    size_t most = CHUNK_BYTES / numbers->work_bytes;
    int rc = 0;

    for (size_t at = 0; at < numbers->count && !rc; at += chunk.count) {
        size_t own_at;
        uint32_t first;

        chunk.count = numbers->count - at < most ? numbers->count - at : most;
        chunk.work = numbers->work + at * numbers->work_bytes;
        chunk.out = numbers->out + at * numbers->bytes;
        own_at = numbers_at(&chunk, lane->index);
        rc = order_reduce_part(&chunk, chunk.out + own_at * chunk.bytes);
        /* send the result of our part to every member, and receive from each the result of its part
         */
        first = lane_take(lane, lane->size);
        for (uint32_t distance = 1; distance < lane->size && !rc; distance++) {
            uint32_t from = (lane->index + lane->size - distance) % lane->size;
            const struct merge pass = {
                .to = lane_after(lane, distance),
                .from = lane->ranks[from],
                .out_at = own_at,
                .out_count = numbers_of(&chunk, lane->index),
                .in_at = numbers_at(&chunk, from),
                .in_count = numbers_of(&chunk, from),
            };

            rc = numbers_pass(&chunk, first + distance, &pass);
        }
        rc = numbers_end(&chunk, rc);
    }
    return rc;
}

/* The reduce-scatter of LANE_ORDER: each member reduces its own part, and keeps it. */
int lane_order_scatter(struct numbers *numbers)
{
    return numbers_end(numbers, order_reduce_part(numbers, numbers->out));
}
