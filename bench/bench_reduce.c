/*
 * bench_reduce: the speed of a reduction compared with that of a copy, with each kind of
 * instructions that this machine has. Gigabytes per second count the bytes read plus the bytes
 * written, so a copy of 1 GB counts as 2 GB.
 */
#include "base/mem.h"
#include "bench/bench.h"
#include "collectives/reduce/levels.h"
#include "collectives/reduce/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS  0.1
#define FROM_MAX 4
#define TO_MAX   2
#define PAGE     4096

struct load {
    struct reduction how;
    size_t bytes, count, from_count, to_count;
    void *from[FROM_MAX], *to[TO_MAX];
};

static void copy(void *arg)
{
    struct load *load = arg;

    memcpy(load->to[0], load->from[0], load->bytes);
    bench_keep(load->to[0]);
}

static void two(void *arg)
{
    struct load *load = arg;

    reduce_two(load->to[0], load->from[0], load->from[1], load->count, &load->how);
    bench_keep(load->to[0]);
}

static void finish(void *arg)
{
    struct load *load = arg;

    reduce_finish(load->to, load->to_count, (const void *const *)load->from, load->from_count,
                  load->count, &load->how);
    bench_keep(load->to[0]);
}

/* Prints a line with the speed in gigabytes per second, and returns that speed. */
static double measure(struct load *load, void (*work)(void *arg), const char *name, double copying)
{
    struct bench_result result = bench_time(work, load, SECONDS);
    double moved = (double)load->bytes * (double)(load->from_count + load->to_count);
    double rate = moved / result.median_ns;

    printf("%-44s %6.1f GB/s (%.1f to %.1f)", name, rate, moved / result.high_ns,
           moved / result.low_ns);
    if (copying > 0)
        printf("  %5.2f of copy", rate / copying);
    printf("\n");
    return rate;
}

static void measure_ways(struct load *load, const char *level)
{
    static const struct {
        size_t from_count, to_count;
        hvd_op op;
    } ways[] = {
        {2,  1, HVD_SUM    },
        { 2, 2, HVD_SUM    },
        { 2, 1, HVD_AVERAGE},
        { 4, 1, HVD_SUM    },
        { 4, 1, HVD_AVERAGE},
    };
    const char *type = reduce_type_name(load->how.type);
    double copying;
    char name[64];

    load->from_count = load->to_count = 1;
    copying = measure(load, copy, "  copy", 0); /* again: others use the memory too */
    load->count = load->bytes / reduce_type_bytes(load->how.type);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        load->how.op = ways[i].op;
        load->from_count = ways[i].from_count;
        load->to_count = ways[i].to_count;
        load->how.size = 3;
        snprintf(name, sizeof(name), "  %s %s: finish %s, %zu to %zu", level, type,
                 reduce_op_name(load->how.op), load->from_count, load->to_count);
        measure(load, finish, name, copying);
    }
    if (reduce_work_type(&load->how) != load->how.type)
        return;
    load->how.op = HVD_SUM;
    load->from_count = 2;
    load->to_count = 1;
    snprintf(name, sizeof(name), "  %s %s: two, sum", level, type);
    measure(load, two, name, copying);
}

static void measure_size(size_t bytes, const char *name)
{
    static const hvd_dtype types[] = { HVD_FLOAT32, HVD_BFLOAT16, HVD_FLOAT16 };
    struct load load = { .bytes = bytes };
    unsigned char *blocks = mem_alloc((FROM_MAX + TO_MAX) * bytes + PAGE), *first = blocks;

    if (!blocks)
        abort();
    first += PAGE - (uintptr_t)blocks % PAGE; /* as shared memory lies */
    for (size_t i = 0; i < FROM_MAX; i++)
        load.from[i] = first + i * bytes;
    for (size_t i = 0; i < TO_MAX; i++)
        load.to[i] = first + (FROM_MAX + i) * bytes;
    memset(first, 0x3c, (FROM_MAX + TO_MAX) * bytes); /* small numbers, of each type */
    printf("%s\n", name);
    for (size_t i = 0; i < REDUCE_LEVELS * ARRAY_SIZE(types); i++) {
        enum reduce_level level = (enum reduce_level)(i / ARRAY_SIZE(types));

        if (!reduce_level_is_here(level))
            continue;
        reduce_level_use(level);
        load.how = (struct reduction){ types[i % ARRAY_SIZE(types)], HVD_SUM, 1, 1, 1 };
        measure_ways(&load, reduce_level_name(level));
    }
    mem_free(blocks);
}

int main(void)
{
    measure_size(64 << 10, "64 KiB");
    measure_size(64 << 20, "64 MiB");
    return 0;
}
