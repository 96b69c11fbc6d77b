/*
 * journal_random.h: makes journal records with random contents, and compares records.
 */
#ifndef TESTS_LIB_JOURNAL_RANDOM_H
#define TESTS_LIB_JOURNAL_RANDOM_H

#include "base/rng.h"
#include "driver/core/journal.h"

#define JOURNAL_RANDOM_IDS 40

struct journal_random {
    struct journal_record record;
    uint64_t members[JOURNAL_RANDOM_IDS];
    uint64_t holders[JOURNAL_RANDOM_IDS];
    const char *addresses[LIMIT_ADDRESSES];
    char address[LIMIT_ADDRESSES][LIMIT_TEXT_BYTES + 1];
    char host[LIMIT_HOST_NAME_BYTES + 1];
    char text[LIMIT_REASON_BYTES + 1];
};

/* Fills the record: every field has a value, of any possible kind; the same seed always makes the
 * same record. The record points into `random`, which must stay where it is. */
void journal_random_make(struct journal_random *random, uint64_t seed);

bool journal_same(const struct journal_record *a, const struct journal_record *b);

#endif
