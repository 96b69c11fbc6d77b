/*
 * groups.h: the groups that a program has created, and the roll: which ranks of a round are in
 * which part of each group. Each member computes the roll for each round, from the places of all
 * members.
 *
 *     groups_add, ... ──► groups_seal ──► roll_make, for each round ──► roll_free
 */
#ifndef WORKER_GROUPS_H
#define WORKER_GROUPS_H

#include "base/limits.h"
#include "collectives/coll.h"
#include "proto/msg.h"

struct groups;

int groups_create(struct groups **ret_groups) MUST_CHECK;
void groups_free(struct groups *groups);

/* Adds a group. For each place (the ranks and sizes of one worker), `belongs` says to which part of
 * the group the worker belongs. Any thread may call this function. HVD_E_STATE: called after
 * groups_seal. */
int groups_add(struct groups *groups, hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group,
               struct hvd_err *err) MUST_CHECK;
/* Adds a group of the listed ranks; the list is copied. */
int groups_add_ranks(struct groups *groups, const int *ranks, size_t count, hvd_group **ret_group,
                     struct hvd_err *err) MUST_CHECK;
/* Called when hvd_elastic_run begins: no group can be added after this call. */
void groups_seal(struct groups *groups);
bool groups_are_sealed(struct groups *groups);

/* Finds the index of a group, counted from 0. The handle is only compared, never used as a pointer.
 * false: there is no such group. */
bool groups_find(const struct groups *groups, const hvd_group *group, size_t *ret_index);

/* How the ranks of a round are divided into the parts of a group: by a list of ranks (`listed`
 * true), or by the function `belongs`. */
struct group_rule {
    hvd_belongs_fn *belongs;
    void *arg;
    bool listed;
    const int *ranks;
    size_t count;
};

/* A group that was opened while the round runs; it ends with the round. */
struct roll_opened {
    uintptr_t handle; /* the handle that the program has; 0: the group is closed */
    /* only its members have opened the group (hvd_group_open); other ranks do not know of it */
    bool apart;
    /* this is the n-th group that all ranks have opened in the round, counted from 1; 0: `apart` */
    size_t number;
    struct coll_ranks ranks; /* the ranks of this rank's part, which make collectives together;
                                count 0: this rank is in no part */
    uint32_t place;          /* index of this rank in `ranks` */
    uint32_t *memory;        /* holds the items of `ranks` */
};

/* The part of one group to which this rank belongs in one round. */
struct roll_group {
    /* number of the part in the round's collectives, from 1; 0: this rank is in no part */
    size_t part;
    uint32_t place; /* index of this rank in that part */
};

struct roll {
    uint32_t rank, size;
    struct roll_group *groups; /* one item for each group that was added before the run */
    size_t group_count;
    /* the parts of all groups, in an order that is equal on all members */
    struct coll_ranks *parts;
    size_t part_count;
    uint32_t *ranks;      /* the memory in which the ranks of all `parts` are */
    struct place *places; /* the ranks and sizes of each rank, for `belongs` */
    /* The first opened group has the part number part_count + 1. The entry behind the last opened
     * group is used while one more group is being divided. */
    struct roll_opened opened[LIMIT_OPENED + 1];
    size_t opened_count;
    size_t shared_count; /* the number of groups that all ranks have opened: equal on all members */
};

/* Makes the roll of a round: which ranks are in which part of each group. Calls the `belongs` of
 * each group for each member. groups NULL: the program has created none. HVD_E_INVAL: a `belongs`
 * function returned less than -1. */
int roll_make(const struct groups *groups, const struct msg_member_list *members,
              uint64_t incarnation, struct roll **ret_roll, struct hvd_err *err) MUST_CHECK;
void roll_free(struct roll *roll);

/* Divides the ranks of the round by the rule of a new group, and describes the result in
 * *opening. The group is not in the roll until roll_add. The memory that `opening` points to
 * belongs to the roll, until roll_add or roll_give_up is called. Errors are those of groups_add,
 * groups_add_ranks and roll_make. */
int roll_divide(struct roll *roll, hvd_belongs_fn *belongs, void *arg, struct coll_opening *opening,
                struct hvd_err *err) MUST_CHECK;
int roll_divide_ranks(struct roll *roll, const int *ranks, size_t count,
                      struct coll_opening *opening, struct hvd_err *err) MUST_CHECK;
/* Does the same for a group that its members alone open: *ret_ranks gets the listed ranks, in
 * rising order. HVD_E_INVAL: also if this rank is not in the list, or the round does not have a
 * rank. */
int roll_gather(struct roll *roll, const int *ranks, size_t count, struct coll_ranks *ret_ranks,
                struct hvd_err *err) MUST_CHECK;
/* roll_add adds the group that was divided last; roll_give_up drops it. */
void roll_add(struct roll *roll, hvd_group **ret_group);
void roll_give_up(struct roll *roll);
/* Finds the opened group that has this handle; NULL: no such group was opened, or it is closed.
 * *ret_part gets the number of the group in the round's collectives. */
const struct roll_opened *roll_find(const struct roll *roll, const hvd_group *group,
                                    size_t *ret_part);
/* closes the opened group: from now on roll_find does not find it */
void roll_close(struct roll *roll, size_t part);

/* true: the members of this part alone have opened it, so other ranks do not know of its calls. */
bool roll_is_apart(const struct roll *roll, size_t part);

/* Finds the index of a rank of the round within a part (part 0: all ranks). Returns false if the
 * rank is not in the part. */
bool roll_place(const struct roll *roll, size_t part, uint32_t rank, uint32_t *ret_place);
uint32_t roll_size(const struct roll *roll, size_t part);

#endif
