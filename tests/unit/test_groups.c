/* Groups of ranks: their parts (a group divides the ranks into parts) and places in rounds of every
 * shape, and the arguments that each collective takes or refuses. The roll is the list of the ranks
 * and parts of a round. */
#include "tests/lib/fixture.h"
#include "worker/call.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS_MAX 8

static struct groups *groups;
static struct roll *roll;
static struct hvd_err err;
static char text[256];

static void end(void)
{
    roll_free(roll);
    roll = NULL;
    groups_free(groups);
    groups = NULL;
}

/* Makes the roll of a round. In "a0 b0 a1" the members are incarnations 1, 2 and 3, with their
 * hosts and slots. */
MUST_CHECK static int make(const char *members, uint64_t self)
{
    struct msg_member items[MEMBERS_MAX];
    char hosts[MEMBERS_MAX][2];
    struct msg_member_list list = { items, 0 };

    for (const char *at = members; *at; at += at[2] ? 3 : 2) {
        snprintf(hosts[list.count], sizeof(hosts[0]), "%c", at[0]);
        items[list.count] = (struct msg_member){ .incarnation = list.count + 1,
                                                 .host = hosts[list.count],
                                                 .slot = (uint32_t)(at[1] - '0') };
        list.count++;
    }
    roll_free(roll);
    roll = NULL;
    return roll_make(groups, &list, self, &roll, &err);
}

/* Returns the parts in their order, such as "0 1 | 2". */
static const char *parts(void)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < roll->part_count; i++) {
        for (uint32_t k = 0; k < roll->parts[i].count; k++)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u",
                                       k   ? " "
                                       : i ? " | "
                                           : "",
                                       roll->parts[i].items[k]);
    }
    return text;
}

static int by_host(const hvd_place *place, void *arg)
{
    (void)arg;
    /* cross_rank: the place of the host among the hosts with as many workers */
    return place->cross_rank;
}

static int by_local_rank(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->local_rank;
}

static int odd_backwards(const hvd_place *place, void *arg)
{
    int *calls = arg;

    ++*calls;
    return place->rank % 2 ? 100 - place->rank : -1;
}

static int rubbish(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->rank == 1 ? -2 : 0;
}

static int nobody(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->size > 0 ? -1 : 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void end_case(struct test *t)
{
    (void)t;
    end();
}
FIXTURE(NULL, end_case)

TEST(handles_are_never_touched)
{
    hvd_group *first = NULL;
    hvd_group *second = NULL;
    size_t index = 9;

    CHECK_OK(t, groups_create(&groups));
    CHECK_OK(t, groups_add(groups, by_host, NULL, &first, &err));
    CHECK_OK(t, groups_add(groups, by_local_rank, NULL, &second, &err));
    CHECK(t, groups_find(groups, second, &index) && index == 1);
    CHECK(t, groups_find(groups, first, &index) && index == 0);
    CHECK(t, !groups_find(groups, NULL, &index));
    CHECK(t, !groups_find(groups, (const hvd_group *)&index, &index));
    CHECK(t, !groups_find(groups, (const hvd_group *)((uintptr_t)second + 1), &index));
    CHECK(t, !groups_find(NULL, first, &index));
    end();
    CHECK_OK(t, groups_create(&groups)); /* as in a second hvd_init */
    CHECK_OK(t, groups_add(groups, by_host, NULL, &second, &err));
    CHECK(t, !groups_find(groups, first, &index));
    CHECK(t, groups_find(groups, second, &index));
}

TEST(a_value_that_is_no_group_is_refused)
{
    const int twice[] = { 2, 0, 2 };
    const int negative[] = { 0, -1 };
    hvd_group *group = NULL;

    CHECK_OK(t, groups_create(&groups));
    CHECK_CODE(t, groups_add(groups, NULL, NULL, &group, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "hvd_group_create: the argument belongs is NULL; pass both belongs and ret_group");
    CHECK_CODE(t, groups_add(groups, by_host, NULL, NULL, &err), HVD_E_INVAL);
    CHECK_CODE(t, groups_add_ranks(groups, NULL, 1, &group, &err), HVD_E_INVAL);
    CHECK_CODE(t, groups_add_ranks(groups, twice, 3, NULL, &err), HVD_E_INVAL);
    CHECK_CODE(t, groups_add_ranks(groups, twice, 3, &group, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "rank 2 is in the list twice");
    CHECK_CODE(t, groups_add_ranks(groups, negative, 2, &group, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "ranks[1] is -1");
    CHECK_CODE(t, groups_add_ranks(groups, twice, 1 << 20, &group, &err), HVD_E_LIMIT);
    CHECK_OK(t, groups_add_ranks(groups, NULL, 0, &group, &err));
    groups_seal(groups);
    CHECK_CODE(t, groups_add(groups, by_host, NULL, &group, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "hvd_elastic_run has begun");
    CHECK_CODE(t, groups_add_ranks(groups, twice, 2, &group, &err), HVD_E_STATE);
}

TEST_FLAGS(the_number_of_groups_is_limited, TEST_NO_TORTURE)
{
    hvd_group *group = NULL;

    CHECK_OK(t, groups_create(&groups));
    for (int i = 0; i < 1024; i++)
        CHECK_OK(t, groups_add(groups, by_host, NULL, &group, &err));
    CHECK_CODE(t, groups_add(groups, by_host, NULL, &group, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_GROUPS");
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* A group by local rank is made anew in each round; its parts follow the workers of the round. */
TEST(rounds_of_changing_size)
{
    hvd_group *group = NULL;

    CHECK_OK(t, groups_create(&groups));
    CHECK_OK(t, groups_add(groups, by_local_rank, NULL, &group, &err));
    CHECK_OK(t, make("a0 a1 b0 b1", 2));
    CHECK_TEXT(t, parts(), "0 2 | 1 3");
    CHECK_INT(t, roll->rank, ==, 1);
    CHECK_INT(t, roll->groups[0].part, ==, 2);
    CHECK_INT(t, roll->groups[0].place, ==, 0);
    CHECK_OK(t, make("a0 a1 b0 b1", 3));
    CHECK_TEXT(t, parts(), "0 2 | 1 3"); /* the same on all ranks */
    CHECK_INT(t, roll->groups[0].part, ==, 1);
    CHECK_INT(t, roll->groups[0].place, ==, 1);
    CHECK_OK(t, make("a0", 1));
    CHECK_TEXT(t, parts(), "0");
    CHECK_OK(t, make("a7 b3 a2 c0 c1 c2", 6));
    CHECK_TEXT(t, parts(), "1 2 3 | 0 4 | 5");
    CHECK_INT(t, roll->groups[0].part, ==, 3);
    CHECK_INT(t, roll_size(roll, 0), ==, 6);
    CHECK_INT(t, roll_size(roll, 1), ==, 3);
}

/* Three groups in one round: by colour in reverse order, without members, and of given ranks.
 * roll_place returns the place of a rank in a part. */
TEST(several_groups_stand_side_by_side)
{
    const int list[] = { 5, 0, 3, 1000 };
    hvd_group *group = NULL;
    uint32_t place = 9;
    int calls = 0;

    CHECK_OK(t, groups_create(&groups));
    CHECK_OK(t, groups_add(groups, odd_backwards, &calls, &group, &err));
    CHECK_OK(t, groups_add(groups, nobody, NULL, &group, &err));
    CHECK_OK(t, groups_add_ranks(groups, list, 4, &group, &err));
    CHECK_OK(t, make("a0 a1 a2 a3", 1));
    CHECK_INT(t, calls, ==, 4);
    CHECK_TEXT(t, parts(), "3 | 1 | 0 3"); /* by colour, then by rank */
    CHECK_INT(t, roll->groups[0].part, ==, 0);
    CHECK_INT(t, roll->groups[1].part, ==, 0);
    CHECK_INT(t, roll->groups[2].part, ==, 3);
    CHECK(t, roll_place(roll, 3, 3, &place) && place == 1);
    CHECK(t, !roll_place(roll, 3, 1, &place));
    CHECK(t, roll_place(roll, 0, 2, &place) && place == 2);
    CHECK(t, !roll_place(roll, 0, 4, &place));
    CHECK_OK(t, make("a0", 1));
    CHECK_TEXT(t, parts(), "0");
    CHECK_INT(t, roll->groups[2].part, ==, 1);
}

TEST(places_are_those_of_the_round)
{
    hvd_group *group = NULL;

    CHECK_OK(t, groups_create(&groups));
    CHECK_OK(t, groups_add(groups, by_host, NULL, &group, &err));
    CHECK_OK(t, make("b0 a0 b1 a1", 1));
    CHECK_TEXT(t, parts(), "0 2 | 1 3");
}

TEST(the_member_callback_may_fail)
{
    hvd_group *group = NULL;

    CHECK_OK(t, groups_create(&groups));
    CHECK_OK(t, groups_add(groups, by_host, NULL, &group, &err));
    CHECK_OK(t, groups_add(groups, rubbish, NULL, &group, &err));
    CHECK_OK(t, make("a0", 1));
    CHECK_CODE(t, make("a0 a1", 1), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "group 2: the function \"belongs\" returned -2 for rank 1; return -1 for a rank "
               "outside of all groups, or else 0 or more");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static float numbers[64];
static hvd_group *odd;  /* ranks 1 and 3 */
static hvd_group *even; /* ranks 0 and 2 */

/* Begins a round of 4 members, in which this process is rank 1. */
MUST_CHECK static int begin_calls(void)
{
    const int odds[] = { 1, 3 };
    const int evens[] = { 0, 2 };
    int rc = groups_create(&groups);

    if (!rc)
        rc = groups_add_ranks(groups, odds, 2, &odd, &err);
    if (!rc)
        rc = groups_add_ranks(groups, evens, 2, &even, &err);
    return rc ? rc : make("a0 a1 a2 a3", 2);
}

static struct coll_call into;

static bool refuses(hvd_call call, const char *why)
{
    int rc = call_read(&call, groups, roll, &into, &err);

    if (rc == HVD_E_INVAL && !strcmp(err.text, why))
        return true;
    printf("%s: %s\n", err_name(rc), rc ? err.text : "");
    return false;
}

static bool takes(hvd_call call)
{
    return call_read(&call, groups, roll, &into, &err) == 0;
}

#define F32 .type = HVD_FLOAT32
#define REDUCE(...)                             \
    (hvd_call)                                  \
    {                                           \
        .kind = HVD_ALLREDUCE, F32, __VA_ARGS__ \
    }
#define FROM_TO(n) .in = numbers, .out = numbers + 32, .count = (n)
#define OF(k, ...)                    \
    (hvd_call)                        \
    {                                 \
        .kind = (k), F32, __VA_ARGS__ \
    }

TEST(kinds_and_groups)
{
    CHECK_OK(t, begin_calls());
    CHECK(t, refuses((hvd_call){ .kind = (hvd_kind)8 },
                     "kind 8 is no collective; use one of hvd_kind"));
    CHECK(t, refuses((hvd_call){ .kind = (hvd_kind)16 },
                     "kind 16 is no collective; use one of hvd_kind"));
    CHECK(t, refuses((hvd_call){ .count = 1 }, "kind 0 is no collective; use one of hvd_kind"));
    CHECK_CODE(t, call_read(NULL, groups, roll, &into, &err), HVD_E_INVAL);
    CHECK(t, refuses(REDUCE(.group = (hvd_group *)numbers, FROM_TO(1)),
                     "allreduce: the group is unknown: it was not created since hvd_init, and not "
                     "opened in this round; use a group that hvd_group_create has returned, or "
                     "open the group again in this round"));
    CHECK(t, refuses((hvd_call){ .kind = HVD_BARRIER, .group = even },
                     "barrier: rank 1 is not a member of group 2; make this call only on the "
                     "members of the group, which hvd_group_rank shows"));
    CHECK(t, takes((hvd_call){ .kind = HVD_BARRIER, .group = odd }));
    CHECK_INT(t, into.group, ==, 1);
    CHECK(t, takes((hvd_call){ .kind = HVD_BARRIER, .type = (hvd_dtype)99 }));
    CHECK_INT(t, into.group, ==, 0);
}

TEST(numbers_and_scales)
{
    CHECK_OK(t, begin_calls());
    CHECK(t, refuses((hvd_call){ .kind = HVD_ALLREDUCE, .type = (hvd_dtype)98, FROM_TO(1) },
                     "allreduce: there is no type 98; use one of hvd_dtype"));
    CHECK(t, refuses((hvd_call){ .kind = HVD_ALLREDUCE, .type = (hvd_dtype)-1, FROM_TO(1) },
                     "allreduce: there is no type -1; use one of hvd_dtype"));
    CHECK(t, refuses(REDUCE(.op = (hvd_op)99, FROM_TO(1)),
                     "allreduce: there is no op 99; use one of hvd_op"));
    CHECK(
        t,
        refuses((hvd_call){ .kind = HVD_ALLREDUCE, .type = HVD_FLOAT16, .op = HVD_AND, FROM_TO(1) },
                "allreduce: float16 does not have the op and; use an integer type or "
                "HVD_BOOL"));
    CHECK(t,
          refuses(
              (hvd_call){ .kind = HVD_ALLREDUCE, .type = HVD_BOOL, .op = HVD_AVERAGE, FROM_TO(1) },
              "allreduce: bool does not have the op average; use HVD_AND, HVD_OR or "
              "HVD_XOR"));
    CHECK(t, refuses(
                 (hvd_call){
                     .kind = HVD_REDUCESCATTER, .type = HVD_INT64, .postscale = 0.5, FROM_TO(1) },
                 "reducescatter: int64 cannot be scaled; leave prescale and postscale 0, or "
                 "use a floating type"));
    CHECK(t, refuses(OF(HVD_BROADCAST, .prescale = 2, .out = numbers, .count = 1),
                     "broadcast: this collective computes nothing that could be scaled; leave "
                     "prescale and postscale 0"));
    CHECK(t,
          takes((hvd_call){ .kind = HVD_ALLREDUCE, .type = HVD_INT64, .prescale = 1, FROM_TO(1) }));
    CHECK(t, takes(REDUCE(.prescale = 0.5, .postscale = -2, FROM_TO(1))));
    CHECK(t, into.prescale > 0.4 && into.postscale < -1.9);
}

TEST(roots)
{
    CHECK_OK(t, begin_calls());
    CHECK(t, refuses(OF(HVD_BROADCAST, .root = -1, .out = numbers, .count = 1),
                     "broadcast: root -1 is no rank of this round; use 0 to 3"));
    CHECK(t, refuses(OF(HVD_BROADCAST, .root = 4, .out = numbers, .count = 1),
                     "broadcast: root 4 is no rank of this round; use 0 to 3"));
    CHECK(t, refuses(OF(HVD_BROADCAST, .root = 2, .group = odd, .out = numbers, .count = 1),
                     "broadcast: root 2 is not a member of the group; use the rank of a member"));
    CHECK(t, takes(OF(HVD_BROADCAST, .root = 3, .group = odd, .out = numbers, .count = 1)));
    CHECK_INT(t, into.root, ==, 1); /* the place of the root in the group */
    CHECK(t, takes(OF(HVD_BROADCAST, .root = 3, .out = numbers, .count = 1)));
    CHECK_INT(t, into.root, ==, 3);
}

/* This rank is 1: it is the root, or another rank is. */
TEST(to_and_from_a_root)
{
    const size_t four[] = { 1, 2, 3, 4 };

    CHECK_OK(t, begin_calls());
    CHECK(t, takes(OF(HVD_REDUCE, .in = numbers, .count = 2)));
    CHECK_INT(t, into.kind, ==, COLL_REDUCE);
    CHECK(t, takes(OF(HVD_REDUCE, .in = numbers, .out = numbers, .count = 2, .root = 1)));
    CHECK(t, refuses(OF(HVD_REDUCE, .in = numbers, .count = 2, .root = 1),
                     "reduce: the buffer \"out\" is NULL, and its count is not 0; give memory "
                     "for this buffer"));
    CHECK(t, refuses((hvd_call){ .kind = HVD_REDUCE, .type = HVD_FLOAT32, .op = HVD_XOR },
                     "reduce: float32 does not have the op xor; use an integer type or HVD_BOOL"));
    CHECK(t, takes(OF(HVD_GATHER, .in = numbers, .count = 2, .counts = four)));
    CHECK_INT(t, into.kind, ==, COLL_GATHER);
    CHECK(t, into.counts == four);
    CHECK(t, refuses(OF(HVD_GATHER, .in = numbers, .count = 1, .counts = four),
                     "gather: counts[1] is 2, but count is 1; both are this rank's part, so make "
                     "them equal"));
    CHECK(t, refuses(OF(HVD_GATHER, .in = numbers, .out = numbers, .count = 1, .root = 1),
                     "gather: the buffers \"in\" and \"out\" overlap; pass two separate buffers"));
    CHECK(t, takes(OF(HVD_SCATTER, .out = numbers, .count = 2, .counts = four)));
    CHECK_INT(t, into.kind, ==, COLL_SCATTER);
    CHECK(t, refuses(OF(HVD_SCATTER, .out = numbers, .count = 2, .root = 1),
                     "scatter: the buffer \"in\" is NULL, and its count is not 0; give memory "
                     "for this buffer"));
    CHECK(t, refuses(OF(HVD_SCATTER, .out = numbers, .count = 2, .root = 4),
                     "scatter: root 4 is no rank of this round; use 0 to 3"));
}

TEST(memory)
{
    CHECK_OK(t, begin_calls());
    CHECK(t, refuses(REDUCE(.out = numbers, .count = 1),
                     "allreduce: the buffer \"in\" is NULL, and its count is not 0; give memory "
                     "for this buffer"));
    CHECK(t, refuses(REDUCE(.in = numbers, .count = 1),
                     "allreduce: the buffer \"out\" is NULL, and its count is not 0; give "
                     "memory for this buffer"));
    CHECK(t, refuses(OF(HVD_BROADCAST, .in = numbers, .count = 1),
                     "broadcast: the buffer \"out\" is NULL, and its count is not 0; give "
                     "memory for this buffer"));
    CHECK(t, refuses(REDUCE(FROM_TO(SIZE_MAX / 4)),
                     "allreduce: 4611686018427387903 numbers of float32 are more than memory can "
                     "hold; correct the argument count"));
    CHECK(t, refuses(OF(HVD_ALLTOALL, FROM_TO(SIZE_MAX / 16)),
                     "alltoall: 1152921504606846975 numbers of float32 are more than memory can "
                     "hold; correct the argument count"));
    CHECK(t, refuses(REDUCE(.in = numbers, .out = numbers + 1, .count = 2),
                     "allreduce: the buffers \"in\" and \"out\" overlap; pass the same buffer "
                     "twice, or two separate buffers"));
    CHECK(t, refuses(REDUCE(.in = numbers + 1, .out = numbers, .count = 2),
                     "allreduce: the buffers \"in\" and \"out\" overlap; pass the same buffer "
                     "twice, or two separate buffers"));
    CHECK(t,
          refuses(
              OF(HVD_REDUCESCATTER, .in = numbers, .out = numbers + 7, .count = 2),
              "reducescatter: the buffers \"in\" and \"out\" overlap; pass two separate buffers"));
    CHECK(t, refuses(OF(HVD_ALLGATHER, .in = numbers, .out = numbers, .count = 2),
                     "allgather: the buffers \"in\" and \"out\" overlap; pass the same buffer "
                     "twice, or two separate buffers"));
    CHECK(t, takes(REDUCE(.in = numbers, .out = numbers, .count = 9)));
    CHECK(t, takes(REDUCE(.in = numbers, .out = numbers + 2, .count = 2)));
    CHECK(t, takes(REDUCE(.in = NULL)));
    CHECK(t, takes(OF(HVD_REDUCESCATTER, .in = numbers, .out = numbers + 8, .count = 2)));
    CHECK(t, takes(OF(HVD_ALLGATHER, .in = numbers + 2, .out = numbers, .count = 2)));
    CHECK(t, takes(OF(HVD_ALLTOALL, .in = numbers, .out = numbers + 8, .count = 2)));
}

TEST(counts)
{
    const size_t four[] = { 1, 2, 3, 4 };
    const size_t huge[] = { SIZE_MAX, 2, SIZE_MAX, 1 };
    const size_t two[] = { 0, 5 };

    CHECK_OK(t, begin_calls());
    CHECK(t,
          refuses(OF(HVD_ALLGATHER, FROM_TO(3), .counts = four),
                  "allgather: counts[1] is 2, but count is 3; both are this rank's part, so make "
                  "them equal"));
    CHECK(t, refuses(OF(HVD_ALLTOALL, FROM_TO(0), .counts = four),
                     "alltoall: counts is given without out_counts; give both or none"));
    CHECK(t, refuses(OF(HVD_ALLTOALL, FROM_TO(0), .out_counts = four),
                     "alltoall: out_counts is given without counts; give both or none"));
    CHECK(t, refuses(OF(HVD_ALLGATHER, FROM_TO(2), .counts = huge),
                     "allgather: 2 numbers of float32 are more than memory can hold; "
                     "correct the argument counts"));
    CHECK(t, takes(OF(HVD_ALLGATHER, FROM_TO(2), .counts = four)));
    CHECK(t, takes(OF(HVD_ALLGATHER, .in = numbers + 1, .out = numbers, .count = 2,
                      .counts = four))); /* in is this rank's place in out */
    CHECK(t, refuses(OF(HVD_REDUCESCATTER, FROM_TO(0), .counts = four),
                     "reducescatter: counts[1] is 2, but count is 0; both are this rank's part, so "
                     "make them equal"));
    CHECK(t, takes(OF(HVD_REDUCESCATTER, FROM_TO(2), .counts = four)));
    CHECK(t, takes(OF(HVD_ALLTOALL, FROM_TO(0), .counts = four, .out_counts = four)));
    CHECK(t, into.counts == four && into.out_counts == four);
    CHECK(t, takes(OF(HVD_ALLGATHER, .group = odd, .out = numbers, .counts = two)));
    CHECK(t, takes(REDUCE(FROM_TO(1), .counts = huge))); /* an allreduce has no counts */
    CHECK(t, !into.counts);
}

/* Groups that are opened in the round stand behind those that were created, and are the roll's. */
TEST(opened_groups)
{
    const int some[] = { 3, 1 };
    const int others[] = { 0 };
    struct coll_opening odds, evens, hosts;
    hvd_group *first = NULL;
    hvd_group *second = NULL;
    size_t part = 0;

    CHECK_OK(t, begin_calls());
    CHECK_OK(t, roll_divide_ranks(roll, some, 2, &odds, &err));
    CHECK_INT(t, odds.most, ==, 2);
    CHECK(t, odds.ranks.count == 2 && odds.ranks.items[0] == 1 && odds.ranks.items[1] == 3);
    CHECK(t, !roll_find(roll, NULL, &part) && !roll_find(roll, odd, &part));
    roll_add(roll, &first);
    CHECK(t, roll_find(roll, first, &part) && part == roll->part_count + 1);
    CHECK_INT(t, roll_size(roll, part), ==, 2);
    CHECK(t, takes(OF(HVD_BROADCAST, .group = first, .root = 3, .out = numbers, .count = 1)));
    CHECK_INT(t, into.group, ==, part);
    CHECK_INT(t, into.root, ==, 1);
    /* a group of others; this rank has no part in it */
    CHECK_OK(t, roll_divide_ranks(roll, others, 1, &evens, &err));
    CHECK(t, evens.ranks.count == 0 && evens.most == 1 && evens.hash != odds.hash);
    roll_add(roll, &second);
    CHECK(t, second != first);
    CHECK(t,
          refuses((hvd_call){ .kind = HVD_BARRIER, .group = second },
                  "barrier: rank 1 is not a member of the group that was opened as number 2; make "
                  "this call only on the members of the group, which hvd_group_rank shows"));
    /* one that comes to nothing: a mismatch of the ranks, for example */
    CHECK_OK(t, roll_divide(roll, by_host, NULL, &hosts, &err));
    CHECK(t, hosts.most >= 1 && hosts.ranks.count >= 1);
    roll_give_up(roll);
    CHECK_CODE(t, roll_divide(roll, rubbish, NULL, &hosts, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "returned -2 for rank 1");
    CHECK_CODE(t, roll_divide(roll, NULL, NULL, &hosts, &err), HVD_E_INVAL);
    CHECK_CODE(t, roll_divide_ranks(roll, NULL, 1, &hosts, &err), HVD_E_INVAL);
    CHECK(t, roll_find(roll, first, &part));
    roll_close(roll, part);
    CHECK(t, !roll_find(roll, first, &part) && roll_find(roll, second, &part));
    CHECK(t, refuses((hvd_call){ .kind = HVD_BARRIER, .group = first },
                     "barrier: the group is unknown: it was not created since hvd_init, and not "
                     "opened in this round; use a group that hvd_group_create has returned, or "
                     "open the group again in this round"));
    /* the next round knows none of them */
    CHECK_OK(t, make("a0 a1 a2 a3", 2));
    CHECK(t, !roll_find(roll, second, &part));
    CHECK(t, takes((hvd_call){ .kind = HVD_BARRIER, .group = odd }));
}

static bool not_gathered(const int *ranks, size_t count, const char *why)
{
    struct coll_ranks list;

    return roll_gather(roll, ranks, count, &list, &err) == HVD_E_INVAL && !strcmp(err.text, why);
}

/* Groups that their members alone open: they count as opened groups do, but not among those that
 * all ranks have opened. The caller is rank 1 of 4. */
TEST(groups_of_their_members_alone)
{
    const int some[] = { 3, 1 };
    const int others[] = { 0, 2 };
    const int strange[] = { 1, 4 };
    const int twice[] = { 1, 1 };
    struct coll_opening opening;
    struct coll_ranks list;
    hvd_group *first = NULL, *shared = NULL;
    size_t part = 0;

    CHECK_OK(t, begin_calls());
    CHECK_OK(t, roll_gather(roll, some, 2, &list, &err));
    CHECK(t, list.count == 2 && list.items[0] == 1 && list.items[1] == 3);
    CHECK(t, !roll->opened_count);
    roll_add(roll, &first);
    CHECK_INT(t, roll->shared_count, ==, 0);
    CHECK(t, roll_find(roll, first, &part) && part == roll->part_count + 1);
    CHECK(t, roll_is_apart(roll, part) && !roll_is_apart(roll, 0) && !roll_is_apart(roll, 1));
    CHECK(t, takes(OF(HVD_BROADCAST, .group = first, .root = 3, .out = numbers, .count = 1)));
    CHECK_INT(t, into.group, ==, part);
    CHECK_INT(t, into.root, ==, 1);
    /* the next one that all ranks open is their first, although this rank has opened one before */
    CHECK_OK(t, roll_divide_ranks(roll, some, 2, &opening, &err));
    roll_add(roll, &shared);
    CHECK_INT(t, roll->shared_count, ==, 1);
    CHECK_INT(t, roll_find(roll, shared, &part)->number, ==, 1);
    CHECK(t, part == roll->part_count + 2 && !roll_is_apart(roll, part));
    /* one that comes to nothing: the round is over, for example */
    CHECK_OK(t, roll_gather(roll, some, 2, &list, &err));
    roll_give_up(roll);
    CHECK(t, not_gathered(others, 2,
                          "hvd_group_open: rank 1, which makes the call, is not in the list; only "
                          "the listed ranks make the call"));
    CHECK(t,
          not_gathered(strange, 2, "hvd_group_open: rank 4 is no rank of this round; use 0 to 3"));
    CHECK(t, not_gathered(twice, 2,
                          "hvd_group_open: rank 1 is in the list twice; name each rank once"));
    CHECK(t, not_gathered(NULL, 2,
                          "hvd_group_open: ranks is NULL, and count is not 0; pass a list of "
                          "ranks"));
    CHECK(t, not_gathered(NULL, 0,
                          "hvd_group_open: rank 1, which makes the call, is not in the list; only "
                          "the listed ranks make the call"));
    while (roll->opened_count < LIMIT_OPENED) {
        CHECK_OK(t, roll_gather(roll, some, 2, &list, &err));
        roll_add(roll, &first);
    }
    CHECK_CODE(t, roll_gather(roll, some, 2, &list, &err), HVD_E_LIMIT);
}

TEST(opened_groups_are_limited)
{
    const int one[] = { 1 };
    struct coll_opening opening;
    hvd_group *group;

    CHECK_OK(t, begin_calls());
    for (int i = 0; i < LIMIT_OPENED; i++) {
        CHECK_OK(t, roll_divide_ranks(roll, one, 1, &opening, &err));
        roll_add(roll, &group);
    }
    CHECK_CODE(t, roll_divide_ranks(roll, one, 1, &opening, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text,
               "more than 128 groups (LIMIT_OPENED) were opened in this round; use an open group "
               "again, or create groups before hvd_elastic_run");
}

static bool is_limited(hvd_call call, const char *why)
{
    return call_read(&call, groups, roll, &into, &err) == HVD_E_LIMIT && !strcmp(err.text, why);
}

TEST(ragged_counts)
{
    const size_t four[] = { 1, 2, 3, 4 };
    const size_t none[] = { 0, 0 };
    const size_t huge[] = { SIZE_MAX, 2, SIZE_MAX, 1 };
    size_t counts[4];
    hvd_received received = { .counts = counts }, nowhere = { .counts = NULL };
    hvd_received *to = &received;

    CHECK_OK(t, begin_calls());
    CHECK(t, takes(OF(HVD_ALLGATHER_RAGGED, .in = numbers, .count = 3, .received = to)));
    CHECK(t, into.received == (void *)to && into.count == 3 && !into.counts && !into.out);
    CHECK(t, takes(OF(HVD_ALLGATHER_RAGGED, .received = to)));
    CHECK(t, takes(OF(HVD_ALLTOALL_RAGGED, .in = numbers, .counts = four, .received = to)));
    CHECK(t, into.counts == four);
    CHECK(t, takes(OF(HVD_ALLTOALL_RAGGED, .group = odd, .counts = none, .received = to)));
    CHECK(t, refuses(OF(HVD_ALLGATHER_RAGGED, .in = numbers, .count = 3),
                     "ragged allgather: received, the memory for the result (ret_out), is NULL; "
                     "pass memory for the result of the call"));
    CHECK(t, refuses(OF(HVD_ALLTOALL_RAGGED, .counts = four, .received = &nowhere),
                     "ragged alltoall: received.counts, the memory for the received counts, is "
                     "NULL; pass memory for the result of the call"));
    CHECK(t, refuses(OF(HVD_ALLGATHER_RAGGED, .out = numbers, .received = to),
                     "ragged allgather: out is not NULL; leave out NULL, because the result of "
                     "this collective goes to \"received\""));
    CHECK(t, refuses(OF(HVD_ALLTOALL_RAGGED, .counts = four, .out_counts = four, .received = to),
                     "ragged alltoall: out_counts is not NULL; leave out_counts NULL, because the "
                     "result of this collective goes to \"received\""));
    CHECK(t, refuses(OF(HVD_ALLGATHER_RAGGED, .counts = four, .received = to),
                     "ragged allgather: counts is not NULL; pass in count how many numbers this "
                     "rank gives, and no counts"));
    CHECK(t, refuses(OF(HVD_ALLTOALL_RAGGED, .in = numbers, .count = 4, .received = to),
                     "ragged alltoall: counts is NULL; pass how many numbers go to each rank"));
    CHECK(t, refuses(OF(HVD_ALLTOALL_RAGGED, .counts = four, .received = to),
                     "ragged alltoall: the buffer \"in\" is NULL, and its count is not 0; give "
                     "memory for this buffer"));
    CHECK(
        t,
        is_limited(
            OF(HVD_ALLGATHER_RAGGED, .in = numbers, .count = (size_t)1 << 39, .received = to),
            "ragged allgather: rank 1 gives more than 1099511627776 bytes "
            "(LIMIT_RAGGED_BYTES) of float32; correct the count of this rank, or give less in one "
            "call"));
    CHECK(
        t,
        is_limited(
            OF(HVD_ALLTOALL_RAGGED, .in = numbers, .counts = huge, .received = to),
            "ragged alltoall: rank 1 gives more than 1099511627776 bytes "
            "(LIMIT_RAGGED_BYTES) of float32; correct the counts of this rank, or give less in one "
            "call"));
}

TEST(pieces)
{
    hvd_piece three[] = {
        {numbers,      numbers,      8},
        { numbers + 8, numbers + 16, 8},
        { NULL,        NULL,         0}
    };

    CHECK_OK(t, begin_calls());
    CHECK(t, takes(REDUCE(.pieces = three, .piece_count = 3)));
    CHECK_INT(t, into.piece_count, ==, 3);
    CHECK(t, into.pieces[1].out == numbers + 16 && into.pieces[1].count == 8);
    CHECK(t, takes(REDUCE(.pieces = three)));
    CHECK(t, refuses(OF(HVD_REDUCE, .pieces = three, .piece_count = 3),
                     "reduce: pieces is set, but only an allreduce and a broadcast take pieces; "
                     "use in, out and "
                     "count"));
    CHECK(t, refuses(OF(HVD_BROADCAST, .pieces = three, .piece_count = 3),
                     "broadcast: pieces[1]: the buffer \"in\" is set, and a broadcast does not "
                     "read it; leave \"in\" NULL"));
    CHECK(t, takes(OF(HVD_BROADCAST, .pieces = &(hvd_piece){ NULL, numbers, 8 }, .piece_count = 1,
                      .tag = 7)));
    CHECK(t, into.tag == 7);
    CHECK(t, refuses(OF(HVD_BROADCAST, .pieces = &(hvd_piece){ NULL, NULL, 8 }, .piece_count = 1),
                     "broadcast: pieces[0]: the buffer \"out\" is NULL, and its count is not 0; "
                     "give memory for this buffer"));
    CHECK(t, refuses(REDUCE(.pieces = three, .piece_count = 3, .count = 1),
                     "allreduce: pieces and also in, out or count are set; set only pieces, or "
                     "only in, out and count"));
    CHECK(t, refuses(REDUCE(.piece_count = 3), "allreduce: pieces is NULL, and piece_count is 3; "
                                               "pass as many pieces as piece_count says"));
    three[2].count = 1;
    CHECK(t, refuses(REDUCE(.pieces = three, .piece_count = 3),
                     "allreduce: pieces[2]: the buffer \"in\" is NULL, and its count is not 0; "
                     "give memory for this buffer"));
    three[2].count = SIZE_MAX / 4;
    CHECK(t, refuses(REDUCE(.pieces = three, .piece_count = 3),
                     "allreduce: pieces[2]: 4611686018427387903 numbers of float32 are more than "
                     "memory can hold; correct the count of this piece"));
    three[2].count = 0;
    three[1].out = numbers + 9;
    CHECK(t, refuses(REDUCE(.pieces = three, .piece_count = 3),
                     "allreduce: pieces[1]: the buffers \"in\" and \"out\" overlap; pass the "
                     "same buffer twice, or "
                     "two separate buffers"));
    three[0] = three[1] = (hvd_piece){ numbers, numbers, SIZE_MAX / 8 };
    CHECK(t, refuses(REDUCE(.pieces = three, .piece_count = 2),
                     "allreduce: the counts of 2 pieces together are more than memory can hold; "
                     "correct the counts"));
}
