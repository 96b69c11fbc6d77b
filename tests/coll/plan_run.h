/*
 * plan_run.h: runs one member's part of a random collective, and checks the result.
 */
#ifndef TESTS_COLL_PLAN_RUN_H
#define TESTS_COLL_PLAN_RUN_H

#include "tests/coll/device_buffers.h"
#include "tests/coll/plan.h"

#include <stdatomic.h>

#define PLAN_RUN_WRONG_MAX 1024

/* Memory that all members share. */
struct plan_run_shared {
    atomic_uint arrived[BATCH_CASES][BATCH_GROUPS + 1]; /* members that have come to a barrier */
};

struct plan_run {
    struct coll *coll;
    struct device_buffers *device; /* NULL: its buffers are memory of the host */
    const struct batch *batch;
    const struct plan *plan;
    struct plan_run_shared *shared;
    uint32_t rank;
    struct coll_channel *channels[PROCESSES_MAX][2]; /* from and to each rank; NULL: not opened */
    size_t groups[BATCH_GROUPS + 1]; /* the number of each group in the round, on this member */
    bool judges; /* true: this member checks every number, however many there are */

    /* checksums of the results, by group; 0: no result */
    uint64_t sums[BATCH_GROUPS + 1];
    char wrong[PLAN_RUN_WRONG_MAX]; /* what was wrong; "": nothing */
};

/* Returns 0, or the code that coll_run has returned; run->wrong says what was wrong. */
int plan_run(struct plan_run *run);

/* Must the checksums of this plan be equal on all members of a group? */
bool plan_is_equal_on_all(const struct plan *plan);

#endif
