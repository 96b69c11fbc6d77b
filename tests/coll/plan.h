/*
 * plan.h: random collectives, each a function of a seed and its number. Some that follow each other
 * are of one round: a batch. The first batches go through every operation, type, op and size of 1
 * to 9; all others are random.
 *
 * With fixed_order batches come in twins, one even and one odd: the same collectives on other
 * hosts.
 */
#ifndef TESTS_COLL_PLAN_H
#define TESTS_COLL_PLAN_H

#include "collectives/coll.h"
#include "tests/coll/crew.h"
#include "tests/coll/numbers.h"

#define BATCH_CASES   64
#define BATCH_GROUPS  4 /* besides all */
#define PLAN_PIECES   12
#define PLAN_BEFORE   4 /* what a member does before it joins, at most */
#define PLAN_TEXT_MAX 320

struct batch {
    uint64_t number;
    uint64_t key; /* of what its cases are; equal for twins */
    struct crew_layout layout;
    enum coll_carrier carrier;
    bool flat, fixed_order;
    size_t fusion_bytes;                        /* 0: the default */
    struct coll_ranks groups[BATCH_GROUPS + 1]; /* the first one is all */
    uint32_t ranks[BATCH_GROUPS + 1][CREW_MAX];
};

/* Not to be copied: the groups point into it. */
void batch_make(struct batch *batch, uint64_t seed, uint64_t number);
bool batch_is_second_twin(const struct batch *batch);

enum plan_form { PLAN_PLAIN, PLAN_COUNTS, PLAN_OF_PIECES };

struct plan {
    uint64_t number;
    enum coll_kind kind;
    enum plan_form form;
    struct numbers numbers;
    size_t group;            /* BATCH_GROUPS + 1: all groups in turn */
    uint32_t root;           /* modulo the size of the group */
    size_t count;            /* of each member */
    size_t counts[CREW_MAX]; /* PLAN_COUNTS: by place in the group */
    size_t pieces[PLAN_PIECES];
    size_t piece_count;
    unsigned before[CREW_MAX]; /* JOIN: how much each does before it */
};

void plan_make(const struct batch *batch, uint64_t number, struct plan *plan);

/* ALLTOALL: how many from one place to another. */
size_t plan_between(const struct plan *plan, uint32_t from, uint32_t to);

/* What is a rank's own affair. */
struct plan_own {
    bool in_place;
    bool pooled;                  /* its buffers are where its neighbours can read them */
    size_t in_offset, out_offset; /* bytes that its buffers are off their alignment */
    unsigned spins;               /* it comes late */
};
void plan_own(const struct plan *plan, const struct batch *batch, uint32_t rank,
              struct plan_own *ret_own);

void plan_show(const struct plan *plan, const struct batch *batch, char text[PLAN_TEXT_MAX]);

#endif
