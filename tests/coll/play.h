/*
 * play.h: one member's part in a random collective, and whether it got what it should.
 */
#ifndef TESTS_COLL_PLAY_H
#define TESTS_COLL_PLAY_H

#include "tests/coll/plan.h"
#include "tests/coll/shelf.h"

#include <stdatomic.h>

#define PLAY_WRONG_MAX 1024

/* What all members see. */
struct play_shared {
    atomic_uint arrived[BATCH_CASES][BATCH_GROUPS + 1]; /* at a barrier */
};

struct player {
    struct coll *coll;
    struct shelf *shelf; /* NULL: its buffers are memory of the host */
    const struct batch *batch;
    const struct plan *plan;
    struct play_shared *shared;
    uint32_t rank;
    bool judges; /* looks at each number also where there are many of them */

    /* sums of what has come out, by group; 0: nothing */
    uint64_t sums[BATCH_GROUPS + 1];
    char wrong[PLAY_WRONG_MAX]; /* "": nothing */
};

/* 0, or what coll_run has returned; wrong says what. */
int play(struct player *player);

/* Are the sums of a plan to be equal on all members of a group? */
bool play_is_equal_on_all(const struct plan *plan);

#endif
