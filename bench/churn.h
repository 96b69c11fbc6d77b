/*
 * churn.h: the journal of a job that loses a worker again and again and replaces it, as a driver
 * would have written it: four workers on two hosts, a recovery and a switch for each loss.
 */
#ifndef BENCH_CHURN_H
#define BENCH_CHURN_H

#include "driver/core/journal.h"

#define CHURN_WORKERS 4
#define CHURN_RECORDS 9  /* for each loss */
#define CHURN_FIRST   11 /* before the first loss */

struct churn {
    uint64_t number; /* of the next record, from 0 on */
    uint64_t members[CHURN_WORKERS];
    uint64_t round, previous, incarnations, dead;
    uint64_t list[CHURN_WORKERS];
};

/* Makes the next record. It borrows from the churn until the next call. */
struct journal_record churn_next(struct churn *churn);

#endif
