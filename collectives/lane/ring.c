#include "collectives/lane/inside.h"

/* Around the row: each reduces a part and passes it on. */

static int reduce_around(const struct numbers *numbers, uint32_t first)
{
    struct lane *lane = numbers->lane;
    int rc = 0;

    for (uint32_t step = 0; step < lane->size - 1 && !rc; step++) {
        uint32_t out = (lane->index + 2 * lane->size - 1 - step) % lane->size;
        uint32_t in = (out + lane->size - 1) % lane->size;
        const struct merge merge = {
            .to = lane_after(lane, 1),
            .from = lane_before(lane, 1),
            .out_at = numbers_at(numbers, out),
            .out_count = numbers_of(numbers, out),
            .in_at = numbers_at(numbers, in),
            .in_count = numbers_of(numbers, in),
            .theirs_first = true,
        };

        rc = numbers_merge(numbers, first + step, &merge);
    }
    return lane_settle(lane, rc);
}

static int pass_around(const struct numbers *numbers, uint32_t first)
{
    struct lane *lane = numbers->lane;
    int rc = 0;

    for (uint32_t step = 0; step < lane->size - 1 && !rc; step++) {
        uint32_t out = (lane->index + lane->size - step) % lane->size;
        uint32_t in = (out + lane->size - 1) % lane->size;
        const struct merge pass = {
            .to = lane_after(lane, 1),
            .from = lane_before(lane, 1),
            .out_at = numbers_at(numbers, out),
            .out_count = numbers_of(numbers, out),
            .in_at = numbers_at(numbers, in),
            .in_count = numbers_of(numbers, in),
        };

        rc = numbers_pass(numbers, first + step, &pass);
    }
    return rc;
}

static void narrow_own(const struct numbers *numbers, uint8_t *to)
{
    uint32_t own = numbers->lane->index;

    reduce_narrow(to, numbers->work + numbers_at(numbers, own) * numbers->work_bytes,
                  numbers_of(numbers, own), numbers->how);
}

static int ring(const struct numbers *numbers)
{
    uint32_t steps = numbers->lane->size - 1, first = lane_take(numbers->lane, 2 * steps);
    int rc = reduce_around(numbers, first);

    if (rc)
        return rc;
    narrow_own(numbers, numbers->out + numbers_at(numbers, numbers->lane->index) * numbers->bytes);
    return pass_around(numbers, first + steps);
}

static int ring_scatter(const struct numbers *numbers)
{
    int rc = reduce_around(numbers, lane_take(numbers->lane, numbers->lane->size - 1));

    if (!rc)
        narrow_own(numbers, numbers->out);
    return rc;
}

static size_t largest_part(const struct numbers *numbers)
{
    size_t largest = 0;

    for (uint32_t i = 0; i < numbers->lane->size; i++) {
        size_t count = numbers_of(numbers, i);

        largest = count > largest ? count : largest;
    }
    return largest;
}

int lane_ring_numbers(struct numbers *numbers)
{
    return numbers_run(numbers, numbers_window(numbers, largest_part(numbers)), ring);
}

int lane_ring_scatter(struct numbers *numbers)
{
    return numbers_run(numbers, numbers_window(numbers, largest_part(numbers)), ring_scatter);
}
