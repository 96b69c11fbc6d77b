/*
 * tally.h: sums up what the faults of each kind have cost.
 */
#ifndef TESTS_CHAOS_TALLY_H
#define TESTS_CHAOS_TALLY_H

#include "tests/chaos/record.h"

/* Percentiles: the least time that half, 90 %, 99 % of the times do not exceed; and the longest. */
struct tally_times {
    int64_t median_us, p90_us, p99_us, most_us;
    int64_t sum_us;
};

struct tally_kind {
    char name[32];
    size_t count, violations, hangs;
    struct tally_times pause;
    struct tally_times whole; /* without the faults after which the job hung */
    uint64_t repeated, rounds;
    uint64_t named; /* victims that the log names */
    bool quiet;     /* no operator has to hear of the kind */
};

struct tally {
    struct tally_kind *kinds; /* ordered by name */
    size_t count, room;
    struct tally_kind all;
};

/* Release tally also after an error. */
int tally_take(struct tally *tally, const struct record *record) MUST_CHECK;
void tally_release(struct tally *tally);

/* The index of this kind, which must exist. */
size_t tally_find(const struct tally *tally, const char *name);

/* Sorts the times, and returns their percentiles. */
struct tally_times tally_times(int64_t *times, size_t count);

#endif
