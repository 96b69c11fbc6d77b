#include "base/mem.h"
#include "collectives/lane/inside.h"

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

size_t numbers_of(const struct numbers *numbers, uint32_t part)
{
    return numbers_at(numbers, part + 1) - numbers_at(numbers, part);
}

size_t numbers_window(const struct numbers *numbers, size_t count)
{
    size_t window = TRAFFIC_WINDOW * numbers->lane->traffic->segment_bytes;
    size_t bytes = count * numbers->work_bytes;

    return bytes < window ? bytes : window;
}

struct merging {
    const struct numbers *numbers;
    uint8_t *into;
    bool theirs_first;
};

static void merge_arrived(void *arg, size_t at, const void *bytes, size_t length)
{
    const struct merging *merging = arg;
    const struct numbers *numbers = merging->numbers;
    uint8_t *into = merging->into + at;
    const void *left = merging->theirs_first ? bytes : into;
    const void *right = merging->theirs_first ? into : bytes;

    reduce_two(into, left, right, length / numbers->work_bytes, numbers->how);
}

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

int numbers_fold(const struct numbers *numbers, uint32_t step)
{
    struct lane *lane = numbers->lane;
    uint32_t power = lane_power(lane);
    struct merge merge = { .to = TRAFFIC_NOBODY, .from = TRAFFIC_NOBODY };

    if (lane->index >= power) {
        merge.to = lane->ranks[lane->index - power];
        merge.out_count = numbers->count;
    } else if (lane->index + power < lane->size) {
        merge.from = lane->ranks[lane->index + power];
        merge.in_count = numbers->count;
    }
    return numbers_merge(numbers, step, &merge);
}

int numbers_unfold(const struct numbers *numbers, uint32_t step)
{
    struct lane *lane = numbers->lane;
    uint32_t power = lane_power(lane);
    struct merge pass = { .to = TRAFFIC_NOBODY, .from = TRAFFIC_NOBODY };

    if (lane->index >= power) {
        pass.from = lane->ranks[lane->index - power];
        pass.in_count = numbers->count;
    } else if (lane->index + power < lane->size) {
        pass.to = lane->ranks[lane->index + power];
        pass.out_count = numbers->count;
    }
    return numbers_pass(numbers, step, &pass);
}

int numbers_run(struct numbers *numbers, size_t scratch_bytes,
                int (*run)(const struct numbers *numbers))
{
    int rc = HVD_E_NOMEM;

    numbers->scratch = mem_alloc(scratch_bytes);
    if (numbers->scratch)
        rc = run(numbers);
    rc = lane_settle(numbers->lane, rc);
    mem_free(numbers->scratch);
    numbers->scratch = NULL;
    return rc;
}
