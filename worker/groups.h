/*
 * groups.h: the groups that a program has made, and what they are in a round: that is worked out
 * anew for each, on every member alike, from the places of all.
 *
 *     groups_add, ... ──► groups_seal ──► roll_make, for each round ──► roll_free
 */
#ifndef WORKER_GROUPS_H
#define WORKER_GROUPS_H

#include "collectives/coll.h"
#include "proto/msg.h"

struct groups;

int groups_create(struct groups **ret_groups) MUST_CHECK;
void groups_free(struct groups *groups);

/* What belongs says of each place. Any thread. HVD_E_STATE: sealed. */
int groups_add(struct groups *groups, hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group,
               struct hvd_err *err) MUST_CHECK;
/* Those of a list, which is copied. */
int groups_add_ranks(struct groups *groups, const int *ranks, size_t count, hvd_group **ret_group,
                     struct hvd_err *err) MUST_CHECK;
/* From here on there are no more. */
void groups_seal(struct groups *groups);

/* The place of a group among all, from 0; never touches what the handle may point to. false: it is
 * none of these. */
bool groups_find(const struct groups *groups, const hvd_group *group, size_t *ret_index);

/* Who is who in one round. */
struct roll_group {
    size_t part;    /* what the round's collectives call that part of it that this rank is in, from
                     * 1; 0: it is in none */
    uint32_t place; /* in it */
};

struct roll {
    uint32_t rank, size;
    struct roll_group *groups; /* as many as were added */
    size_t group_count;
    struct coll_ranks *parts; /* of all groups, in an order that is the same on all members */
    size_t part_count;
    uint32_t *ranks; /* what the parts point to */
};

/* groups NULL: none. Calls belongs. A group that says what it cannot is HVD_E_INVAL. */
int roll_make(const struct groups *groups, const struct msg_member_list *members,
              uint64_t incarnation, struct roll **ret_roll, struct hvd_err *err) MUST_CHECK;
void roll_free(struct roll *roll);

/* Where a rank of the round stands in part p (0: all). false: it is not in it. */
bool roll_place(const struct roll *roll, size_t part, uint32_t rank, uint32_t *ret_place);
uint32_t roll_size(const struct roll *roll, size_t part);

#endif
