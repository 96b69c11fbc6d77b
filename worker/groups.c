/*
 * groups.c: the program's groups (hvd_group_create), and the roll of a round: the table that says,
 * for each group, which ranks of the round are together in one part of it.
 *
 * collective.c adds groups; rounds_prepare.c makes a roll for each round; call.c reads it.
 * Invariant: a roll depends only on the list of members and on the answers of the program's
 * function `belongs`. So all members have the same roll.
 */
#include "worker/groups.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/vec.h"
#include "proto/place.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The handle hvd_group of the program is not a pointer, but a number that a process never gives
 * twice: the serial number of the struct groups in the high bits, and the index of the group in it,
 * counted from 1, in the low PLACE_BITS. An opened group has a serial number of its own, and an
 * index above LIMIT_GROUPS. */
#define PLACE_BITS 16
#define PLACE_MASK (((uintptr_t)1 << PLACE_BITS) - 1)

/* Serial numbers for handles: each struct groups and each opened group has one of its own. */
static atomic_uintptr_t serials;

struct group {
    hvd_belongs_fn *belongs; /* decides which ranks belong together; NULL: the list `ranks` does */
    void *arg;
    uint32_t *ranks; /* in rising order */
    size_t count;
};

struct groups {
    pthread_mutex_t lock;
    uintptr_t serial;
    bool sealed; /* no group is added any more, so readers need no lock */
    struct VEC(struct group) made;
};

int groups_create(struct groups **ret_groups)
{
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

/* ---- making groups --------------------------------------------------------------------------- */

/* Adds a group. group->ranks then belongs to `groups`; after a failure it still belongs to the
 * caller. HVD_E_STATE: hvd_elastic_run has begun. */
static int add_group(struct groups *groups, const struct group *group, hvd_group **ret_group,
                     struct hvd_err *err)
{
    int rc = HVD_E_STATE;

    pthread_mutex_lock(&groups->lock);
    if (!groups->sealed)
        rc = VEC_RESERVE(&groups->made, 1, LIMIT_GROUPS);
    if (!rc) {
        groups->made.items[groups->made.count++] = *group;
        *ret_group = (hvd_group *)(groups->serial << PLACE_BITS | groups->made.count);
    }
    pthread_mutex_unlock(&groups->lock);
    if (rc == HVD_E_STATE)
        err_set(err, rc,
                "a group is created after hvd_elastic_run has begun; create all groups before "
                "hvd_elastic_run, or open the group in train");
    else if (rc == HVD_E_LIMIT)
        err_set(err, rc,
                "more than %d groups (LIMIT_GROUPS) were created; use an existing group again",
                LIMIT_GROUPS);
    else if (rc)
        err_set(err, rc, "no memory for a group; free memory on this host");
    return rc;
}

int groups_add(struct groups *groups, hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group,
               struct hvd_err *err)
{
    const struct group group = { .belongs = belongs, .arg = arg };

    if (!belongs || !ret_group)
        return err_set(err, HVD_E_INVAL,
                       "hvd_group_create: the argument %s is NULL; pass both belongs and ret_group",
                       belongs ? "ret_group" : "belongs");
    return add_group(groups, &group, ret_group, err);
}

/* For qsort and bsearch: by rank. */
static int compare_ranks(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

/* Checks a list of ranks and copies it to ret_group->ranks, in rising order; the caller frees it.
 * `name`: the function of hvd.h, for errors. */
static int copy_ranks(const char *name, const int *ranks, size_t count, struct group *ret_group,
                      struct hvd_err *err)
{
    struct group group = { .count = count };
    int rc = 0;

    if (count && !ranks)
        return err_set(err, HVD_E_INVAL,
                       "%s: ranks is NULL, and count is not 0; pass a list of ranks", name);
    if (count > LIMIT_WORKERS)
        return err_set(err, HVD_E_LIMIT,
                       "%s: a list of %zu ranks is longer than %d (LIMIT_WORKERS); pass fewer "
                       "ranks",
                       name, count, LIMIT_WORKERS);
    group.ranks = mem_zalloc_array(count ? count : 1, sizeof(*group.ranks));
    if (!group.ranks)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for a group of %zu ranks; free memory on this host", count);
    for (size_t i = 0; i < count && !rc; i++) {
        if (ranks[i] < 0)
            rc = err_set(err, HVD_E_INVAL, "%s: ranks[%zu] is %d; pass a rank of 0 or more", name,
                         i, ranks[i]);
        group.ranks[i] = (uint32_t)ranks[i];
    }
    qsort(group.ranks, count, sizeof(*group.ranks), compare_ranks);
    for (size_t i = 1; i < count && !rc; i++) {
        if (group.ranks[i] == group.ranks[i - 1])
            rc = err_set(err, HVD_E_INVAL, "%s: rank %u is in the list twice; name each rank once",
                         name, group.ranks[i]);
    }
    if (rc)
        mem_free(group.ranks);
    else
        *ret_group = group;
    return rc;
}

/* Adds a group whose one part has the listed ranks; the list is copied. Called before
 * hvd_elastic_run begins. */
int groups_add_ranks(struct groups *groups, const int *ranks, size_t count, hvd_group **ret_group,
                     struct hvd_err *err)
{
    struct group group = { .count = 0 };
    int rc;

    if (!ret_group)
        return err_set(
            err, HVD_E_INVAL,
            "hvd_group_create_of: ret_group is NULL; pass a pointer that gets the group");
    rc = copy_ranks("hvd_group_create_of", ranks, count, &group, err);
    if (!rc) {
        rc = add_group(groups, &group, ret_group, err);
        if (rc)
            mem_free(group.ranks);
    }
    return rc;
}

/* Called when hvd_elastic_run begins: no group can be added any more, so readers need no lock. */
void groups_seal(struct groups *groups)
{
    pthread_mutex_lock(&groups->lock);
    groups->sealed = true;
    pthread_mutex_unlock(&groups->lock);
}

bool groups_are_sealed(struct groups *groups)
{
    bool sealed;

    pthread_mutex_lock(&groups->lock);
    sealed = groups->sealed;
    pthread_mutex_unlock(&groups->lock);
    return sealed;
}

/* Finds the index of the group with this handle. false: the handle is of no group in this struct
 * groups. */
bool groups_find(const struct groups *groups, const hvd_group *group, size_t *ret_index)
{
    uintptr_t handle = (uintptr_t)group;
    uintptr_t place = handle & PLACE_MASK;

    /* the program may have created no group (NULL); a handle of another job or run has another
     * serial number */
    if (!groups || handle >> PLACE_BITS != groups->serial || !place || place > groups->made.count)
        return false;
    *ret_index = place - 1;
    return true;
}

/* ---- the roll of a round --------------------------------------------------------------------- */

/* A rank of the round, and its colour in the group that is being divided: the number that the
 * group's `belongs` has returned for it; -1: the rank is in no part. */
struct member {
    int colour;
    uint32_t rank;
};

/* The data of roll_make while it divides one group after the other. */
struct roll_maker {
    const struct groups *groups;
    struct roll *roll;
    /* the members of the round, sorted for the group that is being divided */
    struct member *members;
    uint32_t *next; /* where the ranks of the next part are written */
};

/* For qsort: by colour; members of one colour by rank. */
static int groups_compare_members(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;

    if (a->colour != b->colour)
        return a->colour < b->colour ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Finds the colour of each member (the number that `belongs` returns for it; for a group with a
 * list: 0 if the list has it, else -1), and sorts the members by colour. `number` is the number of
 * the group, for errors. */
static int sort_members(const struct group *group, size_t number, const struct place *places,
                        struct member *members, uint32_t size, struct hvd_err *err)
{
    for (uint32_t i = 0; i < size; i++) {
        const struct place *place = &places[i];
        const hvd_place shown = { .rank = (int)place->rank,
                                  .size = (int)place->size,
                                  .local_rank = (int)place->local_rank,
                                  .local_size = (int)place->local_size,
                                  .cross_rank = (int)place->cross_rank,
                                  .cross_size = (int)place->cross_size };
        struct member member = { .rank = i };

        if (group->belongs)
            member.colour = group->belongs(&shown, group->arg);
        else if (!group->ranks || !bsearch(&place->rank, group->ranks, group->count,
                                           sizeof(*group->ranks), compare_ranks))
            member.colour = -1;
        if (member.colour < -1)
            return err_set(err, HVD_E_INVAL,
                           "group %zu: the function \"belongs\" returned %d for rank %u; return -1 "
                           "for a rank outside of all groups, or else 0 or more",
                           number, member.colour, i);
        members[i] = member;
    }
    qsort(members, size, sizeof(*members), groups_compare_members);
    return 0;
}

/* Divides a group: the members whose `belongs` returned the same number (colour) become one part
 * of the group. The arrays are large enough, because no rank is in two parts. */
static int divide_group(struct roll_maker *making, size_t index, struct hvd_err *err)
{
    const struct group *group = &making->groups->made.items[index];
    struct roll *roll = making->roll;
    struct coll_ranks *part = NULL;
    int colour = -1;
    int rc = sort_members(group, index + 1, roll->places, making->members, roll->size, err);

    for (uint32_t i = 0; i < roll->size && !rc; i++) {
        const struct member *member = &making->members[i];

        if (member->colour < 0) /* this rank is in no part */
            continue;
        if (member->colour != colour) {
            part = &roll->parts[roll->part_count++];
            *part = (struct coll_ranks){ making->next, 0 };
            colour = member->colour;
        }
        if (member->rank == roll->rank)
            roll->groups[index] = (struct roll_group){ roll->part_count, part->count };
        *making->next++ = member->rank;
        part->count++;
    }
    return rc;
}

/* Makes the roll of a round: for each group, the parts into which its rule divides the members, and
 * the ranks of each part. This worker's rank is the index of its incarnation in the list of
 * members. */
int roll_make(const struct groups *groups, const struct msg_member_list *members,
              uint64_t incarnation, struct roll **ret_roll, struct hvd_err *err)
{
    struct roll *roll = mem_zalloc(sizeof(*roll));
    struct roll_maker making = { .groups = groups, .roll = roll };
    size_t count = groups ? groups->made.count : 0;
    size_t most = count * members->count; /* each rank is in at most one part of each group */
    int rc = 0;

    if (!roll)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the groups of a round; free memory on this host");
    roll->size = (uint32_t)members->count;
    for (uint32_t i = 0; i < roll->size; i++) {
        if (members->items[i].incarnation == incarnation)
            roll->rank = i;
    }
    roll->places = mem_zalloc_array(roll->size, sizeof(*roll->places));
    rc = roll->places ? place_all(members, roll->places) : HVD_E_NOMEM;
    if (rc)
        err_set(err, rc,
                "no memory for the list of the %u ranks of a round; free memory on this host",
                roll->size);
    if (count && !rc) {
        making.members = mem_zalloc_array(roll->size, sizeof(*making.members));
        roll->group_count = count;
        rc = HVD_E_NOMEM;
        if (making.members &&
            (roll->groups = mem_zalloc_array(count, sizeof(*roll->groups))) != NULL &&
            (roll->parts = mem_zalloc_array(most, sizeof(*roll->parts))) != NULL &&
            (roll->ranks = mem_zalloc_array(most, sizeof(*roll->ranks))) != NULL)
            rc = 0;
        if (rc)
            err_set(err, rc,
                    "no memory for %zu groups in a round of %u ranks; free memory on this host",
                    count, roll->size);
    }
    making.next = roll->ranks;
    for (size_t i = 0; i < count && !rc; i++)
        rc = divide_group(&making, i, err);
    mem_free(making.members);
    if (rc) {
        roll_free(roll);
        return rc;
    }
    *ret_roll = roll;
    return 0;
}

static void opened_free(struct roll_opened *opened)
{
    mem_free(opened->memory);
    *opened = (struct roll_opened){ .handle = 0 };
}

void roll_free(struct roll *roll)
{
    if (!roll)
        return;
    for (size_t i = 0; i < roll->opened_count; i++)
        opened_free(&roll->opened[i]);
    mem_free(roll->groups);
    mem_free(roll->parts);
    mem_free(roll->ranks);
    mem_free(roll->places);
    mem_free(roll);
}

/* ---- groups that are opened while the round runs ------------------------------------------------
 */

/* Checks that one more group may be opened in this round. */
static int check_room(const struct roll *roll, struct hvd_err *err)
{
    if (roll->opened_count < LIMIT_OPENED)
        return 0;
    return err_set(
        err, HVD_E_LIMIT,
        "more than %d groups (LIMIT_OPENED) were opened in this round; use an open group "
        "again, or create groups before hvd_elastic_run",
        LIMIT_OPENED);
}

/* Divides the ranks of the round by the rule of a group that is being opened. *opening gets this
 * rank's part, the size of the largest part, and a hash of all parts, by which the members notice
 * that they do not agree. The new group is written behind the last entry of roll->opened, where no
 * other thread looks; roll_add makes it visible. */
static int divide_opened(struct roll *roll, const struct group *group, struct coll_opening *opening,
                         struct hvd_err *err)
{
    size_t number = LIMIT_GROUPS + roll->opened_count + 1;
    struct member *members = mem_zalloc_array(roll->size, sizeof(*members));
    uint32_t *ranks = mem_zalloc_array(roll->size, sizeof(*ranks));
    struct roll_opened opened = { .handle = 0 };
    uint32_t first = 0; /* index of the first member with the present colour */
    int rc = HVD_E_NOMEM;

    *opening = (struct coll_opening){ .hash = roll->size };
    if (members && ranks)
        rc = check_room(roll, err);
    else
        err_set(err, rc, "no memory for a group of %u ranks; free memory on this host", roll->size);
    if (!rc)
        rc = sort_members(group, number, roll->places, members, roll->size, err);
    /* The members are sorted by colour, so the ranks of one part are neighbours. */
    for (uint32_t i = 0; i < roll->size && !rc; i++) {
        if (members[i].colour < 0) { /* this rank is in no part */
            first = i + 1;
            continue;
        }
        if (members[i].colour != members[first].colour)
            first = i;
        if (i - first + 1 > opening->most)
            opening->most = i - first + 1;
        opening->hash =
            fingerprint_mix(opening->hash, (uint64_t)(i - first) << 32 | members[i].rank);
        ranks[i] = members[i].rank;
        if (members[i].rank == roll->rank)
            opened.place = i - first;
        /* `first` is the same for all members of this colour: so this rank's part gets all of
         * them */
        if (members[i].rank == roll->rank)
            opened.ranks.items = &ranks[first];
        if (opened.ranks.items == &ranks[first])
            opened.ranks.count = i - first + 1;
    }
    mem_free(members);
    if (rc) {
        mem_free(ranks);
        return rc;
    }
    opened.memory = ranks;
    roll->opened[roll->opened_count] = opened;
    opening->ranks = opened.ranks;
    return 0;
}

/* Divides the ranks for a group that is being opened, whose parts the function `belongs`
 * decides. */
int roll_divide(struct roll *roll, hvd_belongs_fn *belongs, void *arg, struct coll_opening *opening,
                struct hvd_err *err)
{
    const struct group group = { .belongs = belongs, .arg = arg };

    if (!belongs)
        return err_set(err, HVD_E_INVAL, "hvd_group_create: belongs is NULL; pass a function");
    return divide_opened(roll, &group, opening, err);
}

/* Divides the ranks for a group that is being opened: its one part has the listed ranks. */
int roll_divide_ranks(struct roll *roll, const int *ranks, size_t count,
                      struct coll_opening *opening, struct hvd_err *err)
{
    struct group group = { .count = 0 };
    int rc = copy_ranks("hvd_group_create_of", ranks, count, &group, err);

    if (rc)
        return rc;
    rc = divide_opened(roll, &group, opening, err);
    mem_free(group.ranks); /* the roll has a copy of the ranks of this rank's part */
    return rc;
}

/* Makes the list of a group that its members alone open (groups.h). The list is written behind the
 * last entry of roll->opened, where no other thread looks until roll_add. */
int roll_gather(struct roll *roll, const int *ranks, size_t count, struct coll_ranks *ret_ranks,
                struct hvd_err *err)
{
    struct roll_opened *opened = &roll->opened[roll->opened_count];
    struct group group = { .count = 0 };
    const uint32_t *found;
    int rc = check_room(roll, err);

    if (!rc)
        rc = copy_ranks("hvd_group_open", ranks, count, &group, err);
    if (rc)
        return rc;
    ASSERT(group.ranks); /* copy_ranks gives a list, also an empty one */
    found = bsearch(&roll->rank, group.ranks, count, sizeof(*group.ranks), compare_ranks);
    if (!found)
        rc = err_set(err, HVD_E_INVAL,
                     "hvd_group_open: rank %u, which makes the call, is not in the list; only the "
                     "listed ranks make the call",
                     roll->rank);
    else if (group.ranks[count - 1] >= roll->size)
        rc = err_set(err, HVD_E_INVAL,
                     "hvd_group_open: rank %u is no rank of this round; use 0 to %u",
                     group.ranks[count - 1], roll->size - 1);
    if (rc) {
        mem_free(group.ranks);
        return rc;
    }
    *opened = (struct roll_opened){
        .apart = true,
        .ranks = {group.ranks, (uint32_t)count},
        .place = (uint32_t)(found - group.ranks),
        .memory = group.ranks
    };
    *ret_ranks = opened->ranks;
    return 0;
}

/* Adds the group that roll_divide or roll_gather has prepared last: from now on roll_find finds it
 * by its handle, and the parts of the round count it. A group that all ranks have opened also gets
 * a number, which is equal on all members. A group that its members alone have opened (`apart`) has
 * none, because the other ranks have not counted it. */
void roll_add(struct roll *roll, hvd_group **ret_group)
{
    struct roll_opened *opened = &roll->opened[roll->opened_count++];
    uintptr_t serial = atomic_fetch_add(&serials, 1) + 1;

    if (!opened->apart)
        opened->number = ++roll->shared_count;
    /* the low bits are above LIMIT_GROUPS, so no handle of groups_add has the same (PLACE_BITS) */
    opened->handle = serial << PLACE_BITS | (LIMIT_GROUPS + roll->opened_count);
    *ret_group = (hvd_group *)opened->handle;
}

/* Drops the group that roll_divide or roll_gather has made, because it could not be opened. */
void roll_give_up(struct roll *roll)
{
    opened_free(&roll->opened[roll->opened_count]);
}

/* Finds a group that was opened in this round by its handle. The low bits of such a handle
 * (PLACE_MASK) are LIMIT_GROUPS + n for the n-th opened group, counted from 1. *ret_part gets the
 * number of the group's part: those of opened groups follow the parts of all groups that were
 * created before the run (part_count). NULL: the group is closed, or the handle is of another
 * round, or of a group that was created before the run. */
const struct roll_opened *roll_find(const struct roll *roll, const hvd_group *group,
                                    size_t *ret_part)
{
    uintptr_t handle = (uintptr_t)group;
    uintptr_t place = handle & PLACE_MASK;

    if (place <= LIMIT_GROUPS || place - LIMIT_GROUPS > roll->opened_count ||
        roll->opened[place - LIMIT_GROUPS - 1].handle != handle)
        return NULL;
    *ret_part = roll->part_count + place - LIMIT_GROUPS;
    return &roll->opened[place - LIMIT_GROUPS - 1];
}

void roll_close(struct roll *roll, size_t part)
{
    roll->opened[part - roll->part_count - 1].handle = 0;
}

/* Returns the ranks of a part, by its number from 1. The parts of groups that were opened in this
 * round have the numbers after the parts of all other groups. */
static const struct coll_ranks *roll_part(const struct roll *roll, size_t part)
{
    return part <= roll->part_count ? &roll->parts[part - 1]
                                    : &roll->opened[part - roll->part_count - 1].ranks;
}

/* true: the members of this part alone have opened its group, so other ranks do not know of its
 * calls. */
bool roll_is_apart(const struct roll *roll, size_t part)
{
    return part > roll->part_count && roll->opened[part - roll->part_count - 1].apart;
}

/* Finds the index of a rank within a part (part 0: all ranks). false: the rank is not in the
 * part. */
bool roll_place(const struct roll *roll, size_t part, uint32_t rank, uint32_t *ret_place)
{
    const struct coll_ranks *ranks = part ? roll_part(roll, part) : NULL;
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
    return part ? roll_part(roll, part)->count : roll->size;
}
