#include "collectives/lane/inside.h"

/* In pairs: with the one whose place differs in one bit. Both of a pair take what the lower one has
 * first, so both compute the same. */

#define STEPS     64
#define BACK      24 /* the steps back again begin here */
#define LAST      48
#define LEVEL_MAX 20 /* of powers of two: LIMIT_WORKERS is the 17th */

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

/* What this member keeps of a range when it meets the one at that distance, and what that one. */
static void split(const struct lane *lane, uint32_t distance, struct range all,
                  struct range *ret_ours, struct range *ret_theirs)
{
    const struct range low = { all.at, all.count / 2 };
    const struct range high = { all.at + low.count, all.count - low.count };

    *ret_ours = lane->index & distance ? high : low;
    *ret_theirs = lane->index & distance ? low : high;
}

/* From the farthest to the nearest. ours[0] is all, and ours[levels] what we have reduced. */
static int halve(const struct numbers *numbers, uint32_t step, struct range *ours,
                 struct range *theirs, size_t *ret_levels)
{
    struct lane *lane = numbers->lane;
    size_t level = 0;
    int rc = 0;

    ours[0] = (struct range){ 0, numbers->count };
    for (uint32_t distance = lane_power(lane) / 2; distance && !rc; distance /= 2) {
        struct merge merge = { .to = other_of(lane, distance), .from = other_of(lane, distance) };

        split(lane, distance, ours[level], &ours[level + 1], &theirs[level + 1]);
        level++;
        merge.out_at = theirs[level].at;
        merge.out_count = theirs[level].count;
        merge.in_at = ours[level].at;
        merge.in_count = ours[level].count;
        merge.theirs_first = lane->index & distance;
        rc = numbers_merge(numbers, step++, &merge);
    }
    *ret_levels = level;
    return rc;
}

static int put_together(const struct numbers *numbers, uint32_t step, const struct range *ours,
                        const struct range *theirs, size_t levels)
{
    struct lane *lane = numbers->lane;
    uint32_t distance = 1;
    int rc = 0;

    for (size_t level = levels; level && !rc; level--) {
        const struct merge pass = {
            .to = other_of(lane, distance),
            .from = other_of(lane, distance),
            .out_at = ours[level].at,
            .out_count = ours[level].count,
            .in_at = theirs[level].at,
            .in_count = theirs[level].count,
        };

        rc = numbers_pass(numbers, step++, &pass);
        distance *= 2;
    }
    return rc;
}

static int halve_and_back(const struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t first = lane_take(lane, STEPS);
    struct range ours[LEVEL_MAX], theirs[LEVEL_MAX], *own;
    size_t levels;
    int rc = numbers_fold(numbers, first);

    if (lane->index < lane_power(lane)) {
        if (!rc)
            rc = halve(numbers, first + 1, ours, theirs, &levels);
        rc = lane_settle(lane, rc); /* where the others' results come to */
        if (rc)
            return rc;
        own = &ours[levels];
        reduce_narrow(numbers->out + own->at * numbers->bytes,
                      numbers->work + own->at * numbers->work_bytes, own->count, numbers->how);
        rc = put_together(numbers, first + BACK, ours, theirs, levels);
    }
    /* What one past the power has sent may be where its result comes to. */
    rc = lane_settle(lane, rc);
    return rc ? rc : numbers_unfold(numbers, first + LAST);
}

int lane_halve_numbers(struct numbers *numbers)
{
    return numbers_run(numbers, numbers_window(numbers, numbers->count), halve_and_back);
}
