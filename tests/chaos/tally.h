/*
 * tally.h: what the faults of each kind have cost together.
 */
#ifndef TESTS_CHAOS_TALLY_H
#define TESTS_CHAOS_TALLY_H

#include "tests/chaos/record.h"

/* Of so many numbers: the least that half, nine in ten, 99 in a hundred do not exceed; the most. */
struct tally_times {
    int64_t median_us, p90_us, p99_us, most_us;
    int64_t sum_us;
};

struct tally_kind {
    char name[32];
    size_t count, violations, hangs;
    struct tally_times pause;
    struct tally_times whole; /* without those that hang */
    uint64_t repeated, rounds;
};

struct tally {
    struct tally_kind *kinds; /* in the order of their names */
    size_t count, room;
    struct tally_kind all;
};

/* To be released either way. */
int tally_take(struct tally *tally, const struct record *record) MUST_CHECK;
void tally_release(struct tally *tally);

/* The place of that kind; it is there. */
size_t tally_find(const struct tally *tally, const char *name);

/* Sorts them. */
struct tally_times tally_times(int64_t *times, size_t count);

#endif
