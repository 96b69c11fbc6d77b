#include "worker/groups.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"
#include "proto/place.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A handle is no pointer but a number that is never given twice in a process: what it was made by,
 * and its place there, from 1. */
#define PLACE_BITS 16
#define PLACE_MASK (((uintptr_t)1 << PLACE_BITS) - 1)

struct group {
    hvd_belongs_fn *belongs; /* NULL: the list says it */
    void *arg;
    uint32_t *ranks; /* rising */
    size_t count;
};

struct groups {
    pthread_mutex_t lock;
    uintptr_t serial;
    bool sealed; /* the rest does not change then, and needs no lock */
    struct VEC(struct group) made;
};

int groups_create(struct groups **ret_groups)
{
    static atomic_uintptr_t serials;
    struct groups *groups = mem_zalloc(sizeof(*groups));

    if (!groups)
        return HVD_E_NOMEM;
    groups->serial = atomic_fetch_add(&serials, 1) + 1;
    pthread_mutex_init(&groups->lock, NULL);
    *ret_groups = groups;
    return 0;
}

void groups_free(struct groups *groups)
{
    if (!groups)
        return;
    for (size_t i = 0; i < groups->made.count; i++)
        mem_free(groups->made.items[i].ranks);
    VEC_RELEASE(&groups->made);
    pthread_mutex_destroy(&groups->lock);
    mem_free(groups);
}

/* ---- making them ----------------------------------------------------------------------------- */

/* The lock is held. What ranks points to is given. */
static int add(struct groups *groups, const struct group *group, hvd_group **ret_group,
               struct hvd_err *err)
{
    int rc;

    if (groups->sealed)
        return err_set(err, HVD_E_STATE,
                       "a group after hvd_elastic_run has begun; make all groups before it");
    rc = VEC_RESERVE(&groups->made, 1, LIMIT_GROUPS);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc, "more than LIMIT_GROUPS (%d) groups; use one of them again",
                       LIMIT_GROUPS);
    if (rc)
        return err_set(err, rc, "no memory for a group");
    groups->made.items[groups->made.count++] = *group;
    *ret_group = (hvd_group *)(groups->serial << PLACE_BITS | groups->made.count);
    return 0;
}

int groups_add(struct groups *groups, hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group,
               struct hvd_err *err)
{
    const struct group group = { .belongs = belongs, .arg = arg };
    int rc;

    if (!belongs || !ret_group)
        return err_set(err, HVD_E_INVAL, "hvd_group_create: %s is NULL",
                       belongs ? "ret_group" : "belongs");
    pthread_mutex_lock(&groups->lock);
    rc = add(groups, &group, ret_group, err);
    pthread_mutex_unlock(&groups->lock);
    return rc;
}

static int compare_ranks(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static int copy_ranks(struct group *group, const int *ranks, size_t count, struct hvd_err *err)
{
    if (count > LIMIT_WORKERS)
        return err_set(err, HVD_E_LIMIT,
                       "hvd_group_create_of: %zu ranks are more than LIMIT_WORKERS (%d)", count,
                       LIMIT_WORKERS);
    group->ranks = mem_zalloc_array(count ? count : 1, sizeof(*group->ranks));
    if (!group->ranks)
        return err_set(err, HVD_E_NOMEM, "no memory for a group of %zu ranks", count);
    group->count = count;
    for (size_t i = 0; i < count; i++) {
        if (ranks[i] < 0)
            return err_set(err, HVD_E_INVAL,
                           "hvd_group_create_of: ranks[%zu] is %d; a rank is 0 or more", i,
                           ranks[i]);
        group->ranks[i] = (uint32_t)ranks[i];
    }
    qsort(group->ranks, count, sizeof(*group->ranks), compare_ranks);
    for (size_t i = 1; i < count; i++) {
        if (group->ranks[i] == group->ranks[i - 1])
            return err_set(err, HVD_E_INVAL,
                           "hvd_group_create_of: rank %u is in the list twice; name it once",
                           group->ranks[i]);
    }
    return 0;
}

int groups_add_ranks(struct groups *groups, const int *ranks, size_t count, hvd_group **ret_group,
                     struct hvd_err *err)
{
    struct group group = { .count = 0 };
    int rc;

    if (!ret_group || (count && !ranks))
        return err_set(err, HVD_E_INVAL, "hvd_group_create_of: %s is NULL",
                       ret_group ? "ranks" : "ret_group");
    rc = copy_ranks(&group, ranks, count, err);
    if (!rc) {
        pthread_mutex_lock(&groups->lock);
        rc = add(groups, &group, ret_group, err);
        pthread_mutex_unlock(&groups->lock);
    }
    if (rc)
        mem_free(group.ranks);
    return rc;
}

void groups_seal(struct groups *groups)
{
    pthread_mutex_lock(&groups->lock);
    groups->sealed = true;
    pthread_mutex_unlock(&groups->lock);
}

bool groups_find(const struct groups *groups, const hvd_group *group, size_t *ret_index)
{
    uintptr_t handle = (uintptr_t)group;
    uintptr_t place = handle & PLACE_MASK;

    if (!groups || handle >> PLACE_BITS != groups->serial || !place || place > groups->made.count)
        return false;
    *ret_index = place - 1;
    return true;
}

/* ---- what they are in a round ---------------------------------------------------------------- */

struct member {
    int colour;
    uint32_t rank;
};

/* What a roll is made with. */
struct making {
    const struct groups *groups;
    struct roll *roll;
    struct place *places;
    struct member *members; /* of the group at hand */
    uint32_t *next;         /* where the ranks of the next part go */
};

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;

    if (a->colour != b->colour)
        return a->colour < b->colour ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int colour_of(const struct group *group, const struct place *place)
{
    const hvd_place shown = { .rank = (int)place->rank,
                              .size = (int)place->size,
                              .local_rank = (int)place->local_rank,
                              .local_size = (int)place->local_size,
                              .cross_rank = (int)place->cross_rank,
                              .cross_size = (int)place->cross_size };

    if (group->belongs)
        return group->belongs(&shown, group->arg);
    return bsearch(&place->rank, group->ranks, group->count, sizeof(*group->ranks), compare_ranks)
               ? 0
               : -1;
}

/* One part after the other, by colour. There is room: no rank is in two parts of a group. */
static void deal(struct making *making, struct roll_group *group)
{
    struct roll *roll = making->roll;
    struct coll_ranks *part = NULL;
    int colour = -1;

    for (uint32_t i = 0; i < roll->size; i++) {
        const struct member *member = &making->members[i];

        if (member->colour < 0)
            continue;
        if (member->colour != colour) {
            part = &roll->parts[roll->part_count++];
            *part = (struct coll_ranks){ making->next, 0 };
            colour = member->colour;
        }
        if (member->rank == roll->rank)
            *group = (struct roll_group){ roll->part_count, part->count };
        *making->next++ = member->rank;
        part->count++;
    }
}

static int place_group(struct making *making, size_t index, struct hvd_err *err)
{
    const struct group *group = &making->groups->made.items[index];
    struct roll *roll = making->roll;

    for (uint32_t i = 0; i < roll->size; i++) {
        int colour = colour_of(group, &making->places[i]);

        if (colour < -1)
            return err_set(err, HVD_E_INVAL,
                           "group %zu: belongs returned %d for rank %u; return -1 for none, or 0 "
                           "or more",
                           index + 1, colour, i);
        making->members[i] = (struct member){ colour, i };
    }
    qsort(making->members, roll->size, sizeof(*making->members), compare_members);
    deal(making, &roll->groups[index]);
    return 0;
}

/* Each rank is in one part of each group at most. */
static int allot(struct roll *roll, size_t count)
{
    size_t most = count * roll->size;

    roll->groups = mem_zalloc_array(count, sizeof(*roll->groups));
    roll->parts = mem_zalloc_array(most, sizeof(*roll->parts));
    roll->ranks = mem_zalloc_array(most, sizeof(*roll->ranks));
    roll->group_count = count;
    return roll->groups && roll->parts && roll->ranks ? 0 : HVD_E_NOMEM;
}

static int place_groups(const struct groups *groups, const struct msg_member_list *members,
                        struct roll *roll, struct hvd_err *err)
{
    struct making making = { .groups = groups, .roll = roll };
    size_t count = groups->made.count;
    int rc;

    making.places = mem_zalloc_array(roll->size, sizeof(*making.places));
    making.members = mem_zalloc_array(roll->size, sizeof(*making.members));
    rc = making.places && making.members ? allot(roll, count) : HVD_E_NOMEM;
    if (!rc)
        rc = place_all(members, making.places);
    if (rc)
        err_set(err, rc, "no memory for %zu groups of %u ranks", count, roll->size);
    making.next = roll->ranks;
    for (size_t i = 0; i < count && !rc; i++)
        rc = place_group(&making, i, err);
    mem_free(making.members);
    mem_free(making.places);
    return rc;
}

int roll_make(const struct groups *groups, const struct msg_member_list *members,
              uint64_t incarnation, struct roll **ret_roll, struct hvd_err *err)
{
    struct roll *roll = mem_zalloc(sizeof(*roll));
    int rc = 0;

    if (!roll)
        return err_set(err, HVD_E_NOMEM, "no memory for a round");
    roll->size = (uint32_t)members->count;
    for (uint32_t i = 0; i < roll->size; i++) {
        if (members->items[i].incarnation == incarnation)
            roll->rank = i;
    }
    if (groups && groups->made.count)
        rc = place_groups(groups, members, roll, err);
    if (rc) {
        roll_free(roll);
        return rc;
    }
    *ret_roll = roll;
    return 0;
}

void roll_free(struct roll *roll)
{
    if (!roll)
        return;
    mem_free(roll->groups);
    mem_free(roll->parts);
    mem_free(roll->ranks);
    mem_free(roll);
}

bool roll_place(const struct roll *roll, size_t part, uint32_t rank, uint32_t *ret_place)
{
    const struct coll_ranks *ranks = part ? &roll->parts[part - 1] : NULL;
    const uint32_t *found;

    if (!ranks) {
        *ret_place = rank;
        return rank < roll->size;
    }
    found = bsearch(&rank, ranks->items, ranks->count, sizeof(rank), compare_ranks);
    if (!found)
        return false;
    *ret_place = (uint32_t)(found - ranks->items);
    return true;
}

uint32_t roll_size(const struct roll *roll, size_t part)
{
    return part ? roll->parts[part - 1].count : roll->size;
}
