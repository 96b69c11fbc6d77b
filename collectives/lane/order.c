#include "collectives/lane/inside.h"

/* Each gets its part from everybody, and reduces it in the order of the row. */

#define CHUNK_BYTES \
    ((size_t)8 * 1024 * 1024) /* of all parts together: of an allreduce, at a time */

static uint8_t *block_of(const struct numbers *numbers, uint32_t from)
{
    size_t own = numbers->lane->index;

    if (from == own)
        return numbers->work + numbers_at(numbers, from) * numbers->work_bytes;
    return numbers->scratch +
           from * numbers_of(numbers, numbers->lane->index) * numbers->work_bytes;
}

static int give_parts(const struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t first = lane_take(lane, lane->size);
    size_t own_bytes = numbers_of(numbers, lane->index) * numbers->work_bytes;
    int rc = 0;

    for (uint32_t distance = 1; distance < lane->size && !rc; distance++) {
        uint32_t to = (lane->index + distance) % lane->size;
        uint32_t from = (lane->index + lane->size - distance) % lane->size;
        const struct exchange exchange = {
            .to = lane->ranks[to],
            .from = lane->ranks[from],
            .out = numbers->work + numbers_at(numbers, to) * numbers->work_bytes,
            .in = block_of(numbers, from),
            .out_bytes = numbers_of(numbers, to) * numbers->work_bytes,
            .in_bytes = own_bytes,
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, first + distance), &exchange);
    }
    return lane_settle(lane, rc); /* the results come where the parts are */
}

static int reduce_own(const struct numbers *numbers, uint8_t *to)
{
    size_t count = numbers_of(numbers, numbers->lane->index);
    uint8_t *sum = block_of(numbers, 0);
    int rc = give_parts(numbers);

    if (rc)
        return rc;
    for (uint32_t i = 1; i < numbers->lane->size; i++)
        reduce_two(sum, sum, block_of(numbers, i), count, numbers->how);
    reduce_narrow(to, sum, count, numbers->how);
    return 0;
}

static int pass_to_all(const struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t first = lane_take(lane, lane->size);
    int rc = 0;

    for (uint32_t distance = 1; distance < lane->size && !rc; distance++) {
        uint32_t from = (lane->index + lane->size - distance) % lane->size;
        const struct merge pass = {
            .to = lane_after(lane, distance),
            .from = lane->ranks[from],
            .out_at = numbers_at(numbers, lane->index),
            .out_count = numbers_of(numbers, lane->index),
            .in_at = numbers_at(numbers, from),
            .in_count = numbers_of(numbers, from),
        };

        rc = numbers_pass(numbers, first + distance, &pass);
    }
    return rc;
}

static int order(const struct numbers *numbers)
{
    uint8_t *own = numbers->out + numbers_at(numbers, numbers->lane->index) * numbers->bytes;
    int rc = reduce_own(numbers, own);

    return rc ? rc : pass_to_all(numbers);
}

static int order_scatter(const struct numbers *numbers)
{
    return reduce_own(numbers, numbers->out);
}

static size_t scratch_bytes(const struct numbers *numbers)
{
    return numbers->lane->size * numbers_of(numbers, numbers->lane->index) * numbers->work_bytes;
}

int lane_order_numbers(struct numbers *numbers)
{
    struct numbers chunk = *numbers;
    size_t most = CHUNK_BYTES / numbers->work_bytes;
    int rc = 0;

    for (size_t at = 0; at < numbers->count && !rc; at += chunk.count) {
        chunk.count = numbers->count - at < most ? numbers->count - at : most;
        chunk.work = numbers->work + at * numbers->work_bytes;
        chunk.out = numbers->out + at * numbers->bytes;
        rc = numbers_run(&chunk, scratch_bytes(&chunk), order);
    }
    return rc;
}

int lane_order_scatter(struct numbers *numbers)
{
    return numbers_run(numbers, scratch_bytes(numbers), order_scatter);
}
