/*
 * numbers.c: what the reducing algorithms of a lane share. It says which part of the numbers
 * belongs to which member, sends one part while it reduces another part that arrives
 * (numbers_merge), and serves lanes whose size is not a power of two (numbers_fold). Unreduced
 * numbers are sent in the work type, results in the numbers' own type.
 */
#include "base/mem.h"
#include "collectives/lane/lane_internal.h"

/* Returns the index of the first number of a part, which belongs to the member with the same index.
 * If the numbers are divided equally, each of the first `rest` parts has one number more than the
 * others. */
size_t numbers_at(const struct numbers *numbers, uint32_t part)
{
    size_t even = numbers->count / numbers->lane->size, rest = numbers->count % numbers->lane->size;
    size_t before = 0;

    if (!numbers->counts)
        return part * even + (part < rest ? part : rest);
    for (uint32_t i = 0; i < part; i++)
        before += numbers->counts[i];
    return before;
}

/* How many numbers a part has (numbers_at). */
size_t numbers_of(const struct numbers *numbers, uint32_t part)
{
    return numbers_at(numbers, part + 1) - numbers_at(numbers, part);
}

/* The scratch memory for `count` numbers that arrive: no more than the segments that are under way
 * at a time, because numbers_merge reduces each segment as soon as it has come. */
size_t numbers_window(const struct numbers *numbers, size_t count)
{
    size_t window = TRAFFIC_WINDOW * numbers->lane->traffic->segment_bytes;
    size_t bytes = count * numbers->work_bytes;

    return bytes < window ? bytes : window;
}

/* The argument of merge_arrived. `into`: our numbers, into which the peer's are reduced. */
struct merging {
    const struct numbers *numbers;
    uint8_t *into;
    bool theirs_first;
};

/* Reduces a segment of the peer's numbers into ours. traffic_exchange calls this for each segment,
 * in order, while later segments are still under way. `at`: where the segment begins in the peer's
 * message, in bytes; `bytes`: the segment, in the scratch memory. */
static void merge_arrived(void *arg, size_t at, const void *bytes, size_t length)
{
    const struct merging *merging = arg;
    const struct numbers *numbers = merging->numbers;
    uint8_t *into = merging->into + at;
    const void *left = merging->theirs_first ? bytes : into;
    const void *right = merging->theirs_first ? into : bytes;

    reduce_two(into, left, right, length / numbers->work_bytes, numbers->how);
}

/* Sends a part of this member's numbers, receives a part of a peer's numbers, and reduces the
 * peer's numbers into those of this member. The scratch memory holds only TRAFFIC_WINDOW segments,
 * so it is used again and again (`in_cycle`). */
int numbers_merge(const struct numbers *numbers, uint32_t step, const struct merge *merge)
{
    size_t width = numbers->work_bytes;
    struct merging merging = { numbers, numbers->work + merge->in_at * width, merge->theirs_first };
    const struct exchange exchange = {
        .to = merge->to,
        .from = merge->from,
        .out = numbers->work + merge->out_at * width,
        .in = numbers->scratch,
        .out_bytes = merge->out_count * width,
        .in_bytes = merge->in_count * width,
        .in_cycle = true,
        .arrived = merge_arrived,
        .arg = &merging,
    };

    return traffic_exchange(numbers->lane->traffic, lane_tag(numbers->lane, step), &exchange);
}

/* As numbers_merge, but for results: received numbers replace ours and go directly to `out`. */
int numbers_pass(const struct numbers *numbers, uint32_t step, const struct merge *pass)
{
    size_t width = numbers->bytes;
    const struct exchange exchange = {
        .to = pass->to,
        .from = pass->from,
        .out = numbers->out + pass->out_at * width,
        .in = numbers->out + pass->in_at * width,
        .out_bytes = pass->out_count * width,
        .in_bytes = pass->in_count * width,
    };

    return traffic_exchange(numbers->lane->traffic, lane_tag(numbers->lane, step), &exchange);
}

/* Serves the members of a lane that are in no pair, because the size of the lane is not a power
 * of two (`is_past`: this member is one of them). Each of them has a counterpart `power` places
 * lower. Before the pairs work (`back` is false) it gives its numbers to its counterpart;
 * afterwards (`back` is true) it gets the result from its counterpart. A member without a
 * counterpart exchanges nothing here. */
int numbers_fold(const struct numbers *numbers, uint32_t step, bool back)
{
    const struct lane *lane = numbers->lane;
    uint32_t power = lane_power(lane);
    bool is_past = lane->index >= power;
    uint32_t other = is_past ? lane->index - power : lane->index + power;
    struct merge merge = { .to = TRAFFIC_NOBODY, .from = TRAFFIC_NOBODY };

    if (other < lane->size && is_past != back) {
        merge.to = lane->ranks[other];
        merge.out_count = numbers->count;
    } else if (other < lane->size) {
        merge.from = lane->ranks[other];
        merge.in_count = numbers->count;
    }
    return back ? numbers_pass(numbers, step, &merge) : numbers_merge(numbers, step, &merge);
}

/* Allocates the scratch memory of an algorithm; numbers_end frees it. */
int numbers_begin(struct numbers *numbers, size_t scratch_bytes)
{
    numbers->scratch = mem_alloc(scratch_bytes);
    return numbers->scratch ? 0 : HVD_E_NOMEM;
}

/* Waits until the messages of an algorithm are sent or received (lane_settle), so that nothing uses
 * the scratch memory any more, and frees that memory. */
int numbers_end(struct numbers *numbers, int rc)
{
    rc = lane_settle(numbers->lane, rc);
    mem_free(numbers->scratch);
    numbers->scratch = NULL;
    return rc;
}
