/*
 * pairs.c: LANE_DOUBLE and LANE_HALVE. Members work in pairs whose indices in the row differ in one
 * bit. In each pair the numbers of the lower index are the left operand on both members, so both
 * compute the same result.
 *
 * The members in pairs are a power of two (lane_power). Each further member gives its numbers to
 * one of these members before the pairs work, and gets the result from it afterwards
 * (numbers_fold).
 */
#include "base/panic.h"
#include "collectives/lane/lane_internal.h"

#define STEPS     64 /* more step numbers than an operation uses: BACK and LAST are fixed */
#define BACK      24 /* number of the step in which the first results are sent back */
#define LAST      48 /* number of the step in which members without a pair get the result */
#define DEPTH_MAX 20 /* entries for the halvings: at most 17, as a job has at most 2^17 workers */

/* The rank of the partner at this distance, a power of two: its index differs from ours in that
 * bit. */
static uint32_t other_of(const struct lane *lane, uint32_t distance)
{
    return lane->ranks[lane->index ^ distance];
}

/* LANE_DOUBLE: the members of each pair exchange all numbers, and both compute the same sums. A
 * member that is not in a pair takes part only in the two folds. */
int lane_double_numbers(struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t power = lane_power(lane), first = lane_take(lane, STEPS), step = first;
    size_t bytes = numbers->count * numbers->work_bytes;
    bool in_pairs = lane->index < power;
    int rc = numbers_begin(numbers, bytes);

    if (!rc)
        rc = numbers_fold(numbers, step, false /* members without a pair give their numbers */);
    for (uint32_t distance = 1; in_pairs && distance < power && !rc; distance *= 2) {
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

        rc = traffic_exchange(lane->traffic, lane_tag(lane, ++step), &exchange);
        rc = lane_settle(lane, rc); /* the next line changes the memory of the sent numbers */
        if (!rc)
            reduce_two(numbers->work, low, high, numbers->count, numbers->how);
    }
    /* members without a pair have no sums: they get results, in their own type, from numbers_fold
     */
    if (!rc && in_pairs)
        reduce_narrow(numbers->out, numbers->work, numbers->count, numbers->how);
    if (!rc)
        rc = numbers_fold(numbers, first + LAST, true /* members without a pair get the results */);
    return numbers_end(numbers, rc);
}

/* Some of the numbers: `count` of them, from index `at` on. */
struct range {
    size_t at, count;
};

/* Describes an exchange with the partner at this distance: sends the range `out` of the numbers,
 * and receives the range `in`. */
static struct merge pair_step(const struct lane *lane, uint32_t distance, struct range out,
                              struct range in)
{
    return (struct merge){ .to = other_of(lane, distance),
                           .from = other_of(lane, distance),
                           .out_at = out.at,
                           .out_count = out.count,
                           .in_at = in.at,
                           .in_count = in.count,
                           .theirs_first = lane->index & distance };
}

/* LANE_HALVE: with each partner a member gives away half of its range and reduces the other half.
 * Then the partners exchange their results in the opposite order, from the nearest to the farthest.
 * A member that is not in a pair takes part only in the two folds. */
int lane_halve_numbers(struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    /* ours[0]: all numbers; ours[i]: the range that this member reduces after i halvings;
     * theirs[i]: the range that the partner of that halving reduces */
    struct range ours[DEPTH_MAX] = { { 0, numbers->count } }, theirs[DEPTH_MAX] = { { 0, 0 } };
    uint32_t first = lane_take(lane, STEPS), step = first + 1, distance;
    bool halves = lane->index < lane_power(lane);
    size_t depth = 0;
    int rc = numbers_begin(numbers, numbers_window(numbers, numbers->count));

    if (!rc)
        rc = numbers_fold(numbers, first, false /* members without a pair give their numbers */);
    /* Halves the range with each partner, from the farthest partner to the nearest; in each pair
     * the member with the lower index keeps the lower half. */
    for (distance = lane_power(lane) / 2; distance && halves && !rc; distance /= 2) {
        bool we_are_higher = lane->index & distance;
        const struct range all = ours[depth++];
        const struct range low = { all.at, all.count / 2 };
        const struct range high = { all.at + low.count, all.count - low.count };
        struct merge merge;

        ASSERT(depth < DEPTH_MAX);
        ours[depth] = we_are_higher ? high : low;
        theirs[depth] = we_are_higher ? low : high;
        merge = pair_step(lane, distance, theirs[depth], ours[depth]);
        rc = numbers_merge(numbers, step++, &merge);
    }
    /* Exchanges the results with the same partners, from the nearest to the farthest. */
    if (halves)
        rc = lane_settle(lane, rc); /* the next sends and receives use the same memory */
    if (halves && !rc)
        reduce_narrow(numbers->out + ours[depth].at * numbers->bytes,
                      numbers->work + ours[depth].at * numbers->work_bytes, ours[depth].count,
                      numbers->how);
    step = first + BACK;
    for (distance = 1; depth && !rc; depth--, distance *= 2) {
        const struct merge pass = pair_step(lane, distance, ours[depth], theirs[depth]);

        rc = numbers_pass(numbers, step++, &pass);
    }
    /* The sends may still read the memory into which numbers_fold receives results. This is so also
     * on the members that are in no pair (index lane_power or more). */
    rc = lane_settle(lane, rc);
    if (!rc)
        rc = numbers_fold(numbers, first + LAST, true /* members without a pair get the results */);
    return numbers_end(numbers, rc);
}
