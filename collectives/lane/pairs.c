#include "base/panic.h"
#include "collectives/lane/inside.h"

/* In pairs: with the one whose place differs in one bit. Both of a pair take what the lower one has
 * first, so both compute the same. */

#define STEPS     64
#define BACK      24 /* the steps back again begin here */
#define LAST      48
#define DEPTH_MAX 20 /* of halvings: 2^17 members are the limit (LIMIT_WORKERS) */

static uint32_t other_of(const struct lane *lane, uint32_t distance)
{
    return lane->ranks[lane->index ^ distance];
}

/* ---- all of it each time ---- */

static int trade(const struct numbers *numbers, uint32_t step, uint32_t distance)
{
    struct lane *lane = numbers->lane;
    size_t bytes = numbers->count * numbers->work_bytes;
    bool we_are_higher = lane->index & distance;
    const uint8_t *low = we_are_higher ? numbers->scratch : numbers->work;
    const uint8_t *high = we_are_higher ? numbers->work : numbers->scratch;
    const struct exchange exchange = {
        .to = other_of(lane, distance),
        .from = other_of(lane, distance),
        .out = numbers->work,
        .in = numbers->scratch,
        .out_bytes = bytes,
        .in_bytes = bytes,
    };
    int rc = traffic_exchange(lane->traffic, lane_tag(lane, step), &exchange);

    rc = lane_settle(lane, rc); /* what was sent is about to change */
    if (!rc)
        reduce_two(numbers->work, low, high, numbers->count, numbers->how);
    return rc;
}

static int double_up(const struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t power = lane_power(lane), first = lane_take(lane, STEPS), step = first;
    int rc = numbers_fold(numbers, step);

    if (lane->index < power) {
        for (uint32_t distance = 1; distance < power && !rc; distance *= 2)
            rc = trade(numbers, ++step, distance);
        if (!rc)
            reduce_narrow(numbers->out, numbers->work, numbers->count, numbers->how);
    }
    return rc ? rc : numbers_unfold(numbers, first + LAST);
}

int lane_double_numbers(struct numbers *numbers)
{
    return numbers_run(numbers, numbers->count * numbers->work_bytes, double_up);
}

/* ---- half of it each time ---- */

struct range {
    size_t at, count;
};

/* ours[0] is all, and ours[depth] what this member reduces. */
struct ranges {
    size_t depth;
    struct range ours[DEPTH_MAX], theirs[DEPTH_MAX];
};

/* The range of the last time is divided: the lower one of a pair has the lower half. */
static void divide(const struct lane *lane, struct ranges *ranges, uint32_t distance)
{
    const struct range all = ranges->ours[ranges->depth];
    const struct range low = { all.at, all.count / 2 };
    const struct range high = { all.at + low.count, all.count - low.count };
    bool we_are_higher = lane->index & distance;

    ranges->depth++;
    ASSERT(ranges->depth < DEPTH_MAX);
    ranges->ours[ranges->depth] = we_are_higher ? high : low;
    ranges->theirs[ranges->depth] = we_are_higher ? low : high;
}

/* From the farthest to the nearest. */
static int halve(const struct numbers *numbers, uint32_t step, struct ranges *ranges)
{
    struct lane *lane = numbers->lane;
    int rc = 0;

    for (uint32_t distance = lane_power(lane) / 2; distance && !rc; distance /= 2) {
        struct merge merge = { .to = other_of(lane, distance), .from = other_of(lane, distance) };

        divide(lane, ranges, distance);
        merge.out_at = ranges->theirs[ranges->depth].at;
        merge.out_count = ranges->theirs[ranges->depth].count;
        merge.in_at = ranges->ours[ranges->depth].at;
        merge.in_count = ranges->ours[ranges->depth].count;
        merge.theirs_first = lane->index & distance;
        rc = numbers_merge(numbers, step++, &merge);
    }
    return rc;
}

static int put_together(const struct numbers *numbers, uint32_t step, const struct ranges *ranges)
{
    struct lane *lane = numbers->lane;
    uint32_t distance = 1;
    int rc = 0;

    for (size_t depth = ranges->depth; depth && !rc; depth--) {
        const struct merge pass = {
            .to = other_of(lane, distance),
            .from = other_of(lane, distance),
            .out_at = ranges->ours[depth].at,
            .out_count = ranges->ours[depth].count,
            .in_at = ranges->theirs[depth].at,
            .in_count = ranges->theirs[depth].count,
        };

        rc = numbers_pass(numbers, step++, &pass);
        distance *= 2;
    }
    return rc;
}

static int halve_and_back(const struct numbers *numbers, uint32_t first)
{
    struct ranges ranges = { .ours = { { 0, numbers->count } } };
    const struct range *own;
    int rc = halve(numbers, first + 1, &ranges);

    rc = lane_settle(numbers->lane, rc); /* results come where the numbers were */
    if (rc)
        return rc;
    own = &ranges.ours[ranges.depth];
    reduce_narrow(numbers->out + own->at * numbers->bytes,
                  numbers->work + own->at * numbers->work_bytes, own->count, numbers->how);
    return put_together(numbers, first + BACK, &ranges);
}

static int halve_among_all(const struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t first = lane_take(lane, STEPS);
    int rc = numbers_fold(numbers, first);

    if (!rc && lane->index < lane_power(lane))
        rc = halve_and_back(numbers, first);
    rc = lane_settle(lane, rc); /* likewise, for those past the power */
    return rc ? rc : numbers_unfold(numbers, first + LAST);
}

int lane_halve_numbers(struct numbers *numbers)
{
    return numbers_run(numbers, numbers_window(numbers, numbers->count), halve_among_all);
}
