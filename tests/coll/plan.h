/*
 * plan.h: random collectives, each a function of a seed and a number. Consecutive collectives of
 * one round are a batch. The first batches go through every operation, type, op and size from 1 to
 * 9; all further batches are random.
 *
 * With fixed_order batches come in pairs of twins, an even and an odd number: the same collectives
 * on other hosts.
 */
#ifndef TESTS_COLL_PLAN_H
#define TESTS_COLL_PLAN_H

#include "collectives/coll.h"
#include "tests/coll/numbers.h"
#include "tests/coll/processes.h"

#define BATCH_CASES   96 /* SLOTS batches of them hold every variant of plan.c */
#define BATCH_GROUPS  4  /* beside the group of all members */
#define PLAN_PIECES   12
#define PLAN_BEFORE   4 /* operations of a member before it joins, at most */
#define PLAN_TEXT_MAX 320

struct batch {
    uint64_t number;
    uint64_t key; /* its cases are a function of this; twins have equal keys */
    struct processes_layout layout;
    enum coll_carrier carrier;
    bool flat, fixed_order;
    bool opened;                                /* its groups are opened while the round runs */
    bool apart;                                 /* and by their members alone */
    size_t fusion_bytes;                        /* 0: the default */
    struct coll_ranks groups[BATCH_GROUPS + 1]; /* groups[0] is all members */
    uint32_t ranks[BATCH_GROUPS + 1][PROCESSES_MAX];
};

/* A batch must not be copied or moved: its groups point into it. */
void batch_make(struct batch *batch, uint64_t seed, uint64_t number);
bool batch_is_second_twin(const struct batch *batch);

enum plan_form { PLAN_PLAIN, PLAN_COUNTS, PLAN_OF_PIECES };

struct plan {
    uint64_t number;
    enum coll_kind kind;
    enum plan_form form;
    struct numbers numbers;
    size_t group;  /* BATCH_GROUPS + 1: all groups, one after the other */
    uint32_t root; /* taken modulo the size of the group */
    uint64_t tag;
    size_t count;                 /* elements of each member */
    size_t counts[PROCESSES_MAX]; /* PLAN_COUNTS: elements by place in the group */
    size_t pieces[PLAN_PIECES];
    size_t piece_count;
    unsigned before[PROCESSES_MAX]; /* JOIN: operations of each member before it joins */
};

void plan_make(const struct batch *batch, uint64_t number, struct plan *plan);

/* ALLTOALL: elements that go from one place to another. */
size_t plan_between(const struct plan *plan, uint32_t from, uint32_t to);

/* The choices that each rank makes for itself. */
struct plan_own {
    bool in_place;
    /* true: its buffers are where its neighbours can read them directly */
    bool pooled;
    size_t in_offset, out_offset; /* bytes by which its buffers are off their alignment */
    unsigned spins;               /* iterations of a delay before the call */
};
void plan_own(const struct plan *plan, const struct batch *batch, uint32_t rank,
              struct plan_own *ret_own);

void plan_show(const struct plan *plan, const struct batch *batch, char text[PLAN_TEXT_MAX]);

#endif
