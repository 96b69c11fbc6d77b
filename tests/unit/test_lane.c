/*
 * Each operation of a lane (the connections of one operation between its members), compared with
 * plain loops. The numbers are so small that every order of summing gives the same sum, except in
 * the tests of the order itself. An act is the function that each member's thread runs; a task is
 * what an act reduces.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "collectives/reduce/facts.h"
#include "collectives/reduce/half.h"
#include "tests/lib/fixture.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/lane_team.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MANY 100000 /* numbers */

struct task {
    hvd_dtype type;
    hvd_op op;
    enum lane_algorithm way;
    /* pieces: this many allreduces of count elements, one after the other, in one operation */
    size_t count, pieces;
    bool wild;  /* numbers whose sum depends on the order */
    bool first; /* the data of the first step travel with the messages that open the lane */
};

/* ---- numbers ---- */

static void put(hvd_dtype type, void *base, size_t at, double number)
{
    int64_t whole = (int64_t)number;

    switch (type) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_INT16:
    case HVD_UINT16:
    case HVD_INT32:
    case HVD_UINT32:
    case HVD_INT64:
    case HVD_UINT64:
    case HVD_BOOL: /* the lowest bytes; all machines are little-endian */
        memcpy((uint8_t *)base + at * reduce_type_bytes(type), &whole, reduce_type_bytes(type));
        break;
    case HVD_FLOAT16: ((uint16_t *)base)[at] = half_from_float((float)number); break;
    case HVD_BFLOAT16: ((uint16_t *)base)[at] = bfloat_from_float((float)number); break;
    case HVD_FLOAT32: ((float *)base)[at] = (float)number; break;
    case HVD_FLOAT64: ((double *)base)[at] = number; break;
    }
}

/* Returns the number as a variable of this type holds it. */
static double rounded(hvd_dtype type, double number)
{
    switch (type) {
    case HVD_FLOAT16: return (double)half_to_float(half_from_float((float)number));
    case HVD_BFLOAT16: return (double)bfloat_to_float(bfloat_from_float((float)number));
    case HVD_FLOAT32: return (double)(float)number;
    default: return number;
    }
}

/* Returns element `at` of the input of a member: a number from 1 to 4. For a product it is 1 or 2,
 * and 1 from the seventh member on, so that the product is exact in each type. Wild inputs are
 * rounded in each sum. */
static double input(const struct task *task, uint32_t index, size_t at)
{
    size_t spread = task->op == HVD_PRODUCT ? 2 : 4;

    if (task->wild)
        return (double)((index * 2654435761u + at * 40503u) % 1000003u) / 7.0 - 50000.0;
    if (task->op == HVD_PRODUCT && index > 5)
        return 1;
    if (task->type == HVD_BOOL)
        return (double)((index * 7 + at * 3) % 5 > 2);
    return (double)(1 + (index * 7 + at * 3) % spread);
}

/* Combines two numbers in the type in which the reduction computes: float64 for float64, float for
 * each other floating type. */
static double combined(const struct task *task, double left, double right)
{
    bool wide = task->type == HVD_FLOAT64 || !reduce_type_is_real(task->type);

    switch (task->op) {
    case HVD_SUM:
    case HVD_AVERAGE: return wide ? left + right : (double)((float)left + (float)right);
    case HVD_MIN: return right < left ? right : left;
    case HVD_MAX: return right > left ? right : left;
    case HVD_PRODUCT: return wide ? left * right : (double)((float)left * (float)right);
    case HVD_AND: return (double)((uint64_t)left & (uint64_t)right);
    case HVD_OR: return (double)((uint64_t)left | (uint64_t)right);
    case HVD_XOR: return (double)((uint64_t)left ^ (uint64_t)right);
    }
    return 0;
}

/* Returns element `at` of the right result: the inputs of all `size` members, combined one after
 * the other in the order in which the lane lists its members. */
static double expected(const struct task *task, uint32_t size, size_t at)
{
    double result = rounded(task->type, input(task, 0, at));

    for (uint32_t i = 1; i < size; i++)
        result = combined(task, result, rounded(task->type, input(task, i, at)));
    if (task->op != HVD_AVERAGE)
        return result;
    if (!reduce_type_is_real(task->type))
        return floor(result / size);
    return task->type == HVD_FLOAT64 ? result / size : (double)((float)result / (float)size);
}

/* Adds a result to the member's checksum; the checksums of all members must be equal. */
static void add_to_sum(struct team_member *member, const void *bytes, size_t length)
{
    uint64_t word;

    for (size_t i = 0; i < length; i += sizeof(word)) {
        size_t left = length - i;

        word = 0;
        memcpy(&word, (const uint8_t *)bytes + i, left < sizeof(word) ? left : sizeof(word));
        member->sum = (member->sum ^ word) * UINT64_C(0x100000001b3);
        member->sum ^= member->sum >> 32;
    }
}

/* ---- allreduce ---- */

static bool can_be_compared(const struct task *task)
{
    return !task->wild || task->way == LANE_GATHER || task->way == LANE_ORDER;
}

/* Compares a result with plain loops: each number of a short result, and every 13th of a long one.
 * The checksums of the members show whether the rest is the same on all members. */
static void check_numbers(struct team_member *member, const struct task *task, const void *out,
                          size_t at, size_t count)
{
    uint32_t size = member->team->size;
    size_t bytes = reduce_type_bytes(task->type), step = count < MANY ? 1 : 13;
    uint8_t right[8];

    for (size_t i = 0; i < count && can_be_compared(task) && !member->wrong[0]; i += step) {
        put(task->type, right, 0, expected(task, size, at + i));
        if (memcmp(right, (const uint8_t *)out + i * bytes, bytes) != 0)
            (void)snprintf(member->wrong, sizeof(member->wrong),
                           "member %u of %u: %s (%s) of %zu, way %d, is wrong at %zu",
                           member->index, size, reduce_type_name(task->type),
                           reduce_op_name(task->op), count, task->way, at + i);
    }
}

static int reduce_pieces(struct team_member *member, const struct task *task,
                         const struct reduction *how, uint8_t *work, uint8_t *out)
{
    size_t pieces = task->pieces ? task->pieces : 1, done = 0;
    int rc = 0;

    for (size_t i = 0; i < pieces && !rc; i++) {
        size_t count = (task->count - done) / (pieces - i);

        rc = lane_allreduce(&member->lane, work + done * reduce_work_bytes(how),
                            out + done * reduce_type_bytes(task->type), count, how, task->way);
        done += count;
    }
    return rc;
}

/* Reduces the task's numbers on this member, in place on each second member where the types allow
 * it. Checks the result; a failure is in member->rc. */
static void allreduce(struct team_member *member, const struct task *task)
{
    const struct reduction how = { task->type, task->op, member->team->size, 1, 1 };
    const struct fingerprint ours =
        team_fingerprint(member, COLL_ALLREDUCE, task->type, task->op, task->count);
    size_t bytes = task->count * reduce_type_bytes(task->type);
    uint8_t *in = mem_alloc(bytes), *work = mem_alloc(task->count * reduce_work_bytes(&how));
    bool in_place = member->index % 2 && reduce_work_type(&how) == task->type;
    uint8_t *out = in_place ? work : mem_alloc(bytes);
    size_t first = task->count * reduce_work_bytes(&how);
    bool goes = task->first && first <= LANE_FIRST_MAX;

    ASSERT(in && work && out);
    for (size_t i = 0; i < task->count; i++)
        put(task->type, in, i, input(task, member->index, i));
    reduce_widen(work, in, task->count, &how);
    member->rc = team_begin(member, &ours, goes ? work : NULL, goes ? first : 0);
    if (!member->rc)
        member->rc = reduce_pieces(member, task, &how, work, out);
    member->rc = lane_close(&member->lane, member->rc);
    if (!member->rc) {
        check_numbers(member, task, out, 0, task->count);
        add_to_sum(member, out, bytes);
    }
    if (!in_place)
        mem_free(out);
    mem_free(work);
    mem_free(in);
}

static const size_t counts[] = { 1, 2, 3, 5, 0, 7, 63, 511, 1025, 3001 };

/* Reduces each type with each operation by each algorithm; the counts change from one allreduce to
 * the next. */
static void act_each_allreduce(struct team_member *member)
{
    struct task task = { .first = true };
    size_t turn = 0;

    for (task.type = HVD_UINT8; task.type < HVD_DTYPE_COUNT; task.type++) {
        for (task.op = HVD_SUM; task.op < HVD_OP_COUNT; task.op++) {
            if (!reduce_knows(task.type, task.op))
                continue;
            for (task.way = LANE_GATHER; task.way <= LANE_ORDER && !member->rc; task.way++) {
                task.count = counts[turn++ % ARRAY_SIZE(counts)];
                task.first = turn % 3 && task.way == LANE_GATHER;
                allreduce(member, &task);
            }
        }
    }
}

static struct team team;

static void end_case(struct test *t)
{
    (void)t;
    team_close(&team);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(allreduce_of_each_type_op_and_way, TEST_NO_TORTURE)
{
    for (uint32_t size = 1; size <= 9; size++) {
        team_open(&team, size);
        team_run(&team, act_each_allreduce, NULL);
        CHECK_TEXT(t, team_wrong(&team), NULL);
        team_close(&team);
    }
}

static void act_allreduce(struct team_member *member)
{
    allreduce(member, member->team->arg);
}

/* Only the algorithm LANE_ORDER may connect members whose distance is no power of two. */
TEST_FLAGS(allreduce_of_each_size_and_count, TEST_NO_TORTURE)
{
    struct task task = { .type = HVD_FLOAT32 };

    for (uint32_t size = 1; size <= TEAM_MAX; size += size < 9 ? 1 : 4) {
        team_open(&team, size);
        for (task.way = LANE_GATHER; task.way <= LANE_ORDER; task.way++) {
            for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
                task.count = counts[i];
                team_run(&team, act_allreduce, &task);
                CHECK_TEXT(t, team_wrong(&team), NULL);
            }
            CHECK(t, task.way == LANE_ORDER || !fake_net_strayed(team.net));
        }
        team_close(&team);
    }
}

/* Each member's part has more segments than a window holds, and a part may end within a segment. */
TEST_FLAGS(allreduce_of_much, TEST_NO_TORTURE)
{
    struct task task = { .type = HVD_FLOAT32, .count = 2 * (SEGMENT_BYTES / 4) * 6 + 12345 };

    team_open(&team, 2);
    for (task.way = LANE_GATHER; task.way <= LANE_ORDER; task.way++) {
        team_run(&team, act_allreduce, &task);
        CHECK_TEXT(t, team_wrong(&team), NULL);
    }
}

static void act_wild(struct team_member *member)
{
    static const hvd_dtype types[] = { HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64 };
    struct task task = { .wild = true };

    for (size_t i = 0; i < ARRAY_SIZE(types) * 40 && !member->rc; i++) {
        task.type = types[i % 4];
        task.op = i / 4 % 2 ? HVD_AVERAGE : HVD_SUM;
        task.way = (enum lane_algorithm)(i / 8 % 5);
        task.count = counts[i / 40 + 5];
        task.pieces = i % 3;
        allreduce(member, &task);
    }
}

/* Sums whose order matters: all members have the same bits. Algorithms that sum in the order of the
 * lane's list of members have the bits of a plain loop. */
TEST_FLAGS(the_order_is_the_same_on_all, TEST_NO_TORTURE)
{
    for (uint32_t size = 2; size <= 9; size++) {
        team_open(&team, size);
        team_run(&team, act_wild, NULL);
        CHECK_TEXT(t, team_wrong(&team), NULL);
        team_close(&team);
    }
}

static void act_pieces(struct team_member *member)
{
    struct task task = { .type = HVD_FLOAT32, .count = 20000, .pieces = 9 };

    for (task.way = LANE_GATHER; task.way <= LANE_ORDER && !member->rc; task.way++)
        allreduce(member, &task);
}

/* One operation reduces many pieces, as the pipeline of a large allreduce does. */
TEST_FLAGS(one_operation_has_many_pieces, TEST_NO_TORTURE)
{
    for (uint32_t size = 1; size <= 6; size++) {
        team_open(&team, size);
        team_run(&team, act_pieces, NULL);
        CHECK_TEXT(t, team_wrong(&team), NULL);
        team_close(&team);
    }
}

/* The lane has some of the ranks, in an order that is not the order of ranks. */
TEST_FLAGS(the_order_of_members_is_not_that_of_ranks, TEST_NO_TORTURE)
{
    static const uint32_t ranks[] = { 4, 1, 6, 3, 0 };

    team_open_among(&team, ARRAY_SIZE(ranks), ranks, 7);
    team_run(&team, act_each_allreduce, NULL);
    CHECK_TEXT(t, team_wrong(&team), NULL);
}

static void act_small_sum(struct team_member *member)
{
    const struct task task = {
        .type = HVD_FLOAT32, .count = LANE_FIRST_MAX / 4, .way = LANE_GATHER, .first = true
    };

    allreduce(member, &task);
}

static void act_barrier(struct team_member *member)
{
    const struct fingerprint ours = team_fingerprint(member, COLL_BARRIER, 0, 0, 0);

    member->rc = team_begin(member, &ours, "", 0);
    if (!member->rc)
        member->rc = lane_barrier(&member->lane);
    member->rc = lane_close(&member->lane, member->rc);
}

TEST_FLAGS(small_data_between_two_members_is_one_message, TEST_NO_TORTURE)
{
    team_open(&team, 2);
    team_run(&team, act_small_sum, NULL);
    CHECK_TEXT(t, team_wrong(&team), NULL);
    CHECK_INT(t, fake_net_messages(team.net), ==, 2);
    team_run(&team, act_barrier, NULL);
    CHECK_TEXT(t, team_wrong(&team), NULL);
    CHECK_INT(t, fake_net_messages(team.net), ==, 4);
}

/* ---- the operations other than allreduce ---- */

/* Returns the length of member i's block: 0 for some members, and large for one member. */
static size_t uneven(uint32_t size, uint32_t i)
{
    return i == size - 1 ? 5001 : i % 3 == 1 ? 0 : (size_t)i * 100 + 1;
}

/* Reduces uneven blocks, of which each member gets its own; with a count of 0 all blocks are
 * empty. */
static void act_reducescatter(struct team_member *member)
{
    const struct task *task = member->team->arg;
    const struct reduction how = { task->type, task->op, member->team->size, 1, 1 };
    const struct fingerprint ours =
        team_fingerprint(member, COLL_REDUCESCATTER, task->type, task->op, 5);
    size_t each[TEAM_MAX], all = 0, before = 0;
    uint8_t *in, *work, *out;

    for (uint32_t i = 0; i < member->team->size; i++) {
        each[i] = task->count ? uneven(member->team->size, i) : 0;
        before += i < member->index ? each[i] : 0;
        all += each[i];
    }
    in = mem_alloc(all * 8);
    work = mem_alloc(all * 8);
    out = mem_alloc(each[member->index] * reduce_type_bytes(task->type));
    ASSERT(in && work && out);
    for (size_t i = 0; i < all; i++)
        put(task->type, in, i, input(task, member->index, i));
    reduce_widen(work, in, all, &how);
    member->rc = team_begin(member, &ours, NULL, 0);
    if (!member->rc)
        member->rc = lane_reducescatter(&member->lane, work, out, each, &how, task->way);
    member->rc = lane_close(&member->lane, member->rc);
    if (!member->rc)
        check_numbers(member, task, out, before, each[member->index]);
    mem_free(out);
    mem_free(work);
    mem_free(in);
}

TEST_FLAGS(reducescatter_of_uneven_parts, TEST_NO_TORTURE)
{
    static const enum lane_algorithm two[] = { LANE_RING, LANE_ORDER };
    struct task task = { .count = 1 };

    for (uint32_t size = 1; size <= 9; size++) {
        team_open(&team, size);
        for (size_t i = 0; i < 2 * HVD_DTYPE_COUNT; i++) {
            task.type = (hvd_dtype)(i / 2);
            task.op = (hvd_op)((i + size) % HVD_OP_COUNT);
            task.way = two[i % 2];
            task.count = i != 5;
            task.wild = task.way == LANE_ORDER && reduce_type_is_real(task.type);
            if (task.wild || !reduce_knows(task.type, task.op))
                task.op = task.type == HVD_BOOL ? HVD_XOR : HVD_SUM;
            team_run(&team, act_reducescatter, &task);
            CHECK_TEXT(t, team_wrong(&team), NULL);
        }
        team_close(&team);
    }
}

static uint8_t byte_of(uint32_t from, uint32_t to, size_t at)
{
    return (uint8_t)(from * 31 + to * 17 + at * 7 + at / 256);
}

static void fill(uint8_t *block, size_t length, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < length; i++)
        block[i] = byte_of(from, to, i);
}

static void check_block(struct team_member *member, const uint8_t *block, size_t length,
                        uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < length && !member->wrong[0]; i++) {
        if (block[i] != byte_of(from, to, i))
            (void)snprintf(member->wrong, sizeof(member->wrong),
                           "member %u of %u: what comes from %u is wrong at %zu of %zu",
                           member->index, member->team->size, from, i, length);
    }
}

struct transfer {
    size_t length;
    uint32_t root;
};

/* The root broadcasts its bytes; each member checks them. */
static void act_broadcast(struct team_member *member)
{
    const struct transfer *transfer = member->team->arg;
    const struct fingerprint ours =
        team_fingerprint(member, COLL_BROADCAST, 0, 0, transfer->length);
    uint8_t *bytes = mem_zalloc(transfer->length);

    ASSERT(bytes);
    if (member->index == transfer->root)
        fill(bytes, transfer->length, transfer->root, 0);
    member->rc = team_begin(member, &ours, NULL, 0);
    if (!member->rc)
        member->rc = lane_broadcast(&member->lane, bytes, transfer->length, transfer->root);
    member->rc = lane_close(&member->lane, member->rc);
    if (!member->rc)
        check_block(member, bytes, transfer->length, transfer->root, 0);
    mem_free(bytes);
}

TEST_FLAGS(broadcast_from_each, TEST_NO_TORTURE)
{
    static const size_t each[] = { 0, 1, 1000, 70000 };
    struct transfer transfer;

    for (uint32_t size = 1; size <= TEAM_MAX; size += size < 9 ? 1 : 4) {
        team_open(&team, size);
        for (transfer.root = 0; transfer.root < size; transfer.root++) {
            bool much = transfer.root == 1 && size <= 5;

            transfer.length = much ? 9 * SEGMENT_BYTES + 1 : each[transfer.root % 4];
            team_run(&team, act_broadcast, &transfer);
            CHECK_TEXT(t, team_wrong(&team), NULL);
        }
        CHECK(t, !fake_net_strayed(team.net));
        team_close(&team);
    }
}

/* Gathers one block from each member, of equal or (with transfer->root) uneven lengths, and checks
 * each block. */
static void act_allgather(struct team_member *member)
{
    const struct transfer *transfer = member->team->arg;
    const struct fingerprint ours =
        team_fingerprint(member, COLL_ALLGATHER, 0, 0, transfer->length);
    uint32_t size = member->team->size;
    size_t lengths[TEAM_MAX];
    uint8_t *blocks[TEAM_MAX];

    for (uint32_t i = 0; i < size; i++) {
        lengths[i] = transfer->root ? uneven(size, i) * transfer->length : transfer->length;
        blocks[i] = mem_zalloc(lengths[i]);
        ASSERT(blocks[i]);
    }
    fill(blocks[member->index], lengths[member->index], member->index, 0);
    member->rc = team_begin(member, &ours, NULL, 0);
    if (!member->rc)
        member->rc = lane_allgather(&member->lane, blocks, lengths);
    member->rc = lane_close(&member->lane, member->rc);
    for (uint32_t i = 0; i < size; i++) {
        if (!member->rc)
            check_block(member, blocks[i], lengths[i], i, 0);
        mem_free(blocks[i]);
    }
}

TEST_FLAGS(allgather_of_equal_and_uneven_blocks, TEST_NO_TORTURE)
{
    static const struct transfer each[] = {
        {0,      0},
        { 1,     0},
        { 777,   0},
        { 70001, 0},
        { 1,     1},
        { 100,   1},
        { 800,   1}
    };

    for (uint32_t size = 1; size <= 9; size++) {
        team_open(&team, size);
        for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
            team_run(&team, act_allgather, &each[i]);
            CHECK_TEXT(t, team_wrong(&team), NULL);
        }
        CHECK(t, !fake_net_strayed(team.net));
        team_close(&team);
    }
}

/* Each member sends to each other member a block of 0, 1 or 2 lengths, and checks the blocks that
 * it got. */
static void act_alltoall(struct team_member *member)
{
    const struct transfer *transfer = member->team->arg;
    const struct fingerprint ours = team_fingerprint(member, COLL_ALLTOALL, 0, 0, 0);
    uint32_t size = member->team->size, index = member->index;
    size_t out_lengths[TEAM_MAX], in_lengths[TEAM_MAX];
    uint8_t *out[TEAM_MAX], *in[TEAM_MAX];

    for (uint32_t i = 0; i < size; i++) {
        out_lengths[i] = transfer->length * ((index + 2 * i) % 3);
        in_lengths[i] = transfer->length * ((i + 2 * index) % 3);
        out[i] = mem_zalloc(out_lengths[i]);
        in[i] = mem_zalloc(in_lengths[i]);
        ASSERT(out[i] && in[i]);
        fill(out[i], out_lengths[i], index, i);
    }
    member->rc = team_begin(member, &ours, NULL, 0);
    if (!member->rc)
        member->rc =
            lane_alltoall(&member->lane, (const uint8_t *const *)out, out_lengths, in, in_lengths);
    member->rc = lane_close(&member->lane, member->rc);
    for (uint32_t i = 0; i < size; i++) {
        if (!member->rc && i != index)
            check_block(member, in[i], in_lengths[i], i, index);
        mem_free(out[i]);
        mem_free(in[i]);
    }
}

TEST_FLAGS(alltoall_of_uneven_blocks, TEST_NO_TORTURE)
{
    static const struct transfer each[] = {
        {0,       0},
        { 1,      0},
        { 333,    0},
        { 700001, 0}
    };

    for (uint32_t size = 1; size <= 9; size++) {
        team_open(&team, size);
        for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
            team_run(&team, act_alltoall, &each[i]);
            CHECK_TEXT(t, team_wrong(&team), NULL);
        }
        team_close(&team);
    }
}

static atomic_uint arrived;

static void act_barriers(struct team_member *member)
{
    for (unsigned i = 1; i <= 30 && !member->rc; i++) {
        struct fingerprint ours = team_fingerprint(member, COLL_BARRIER, 0, 0, 0);

        atomic_fetch_add(&arrived, 1);
        member->rc = team_begin(member, &ours, i % 3 ? "" : NULL, 0);
        if (!member->rc)
            member->rc = lane_barrier(&member->lane);
        if (atomic_load(&arrived) < i * member->team->size)
            (void)snprintf(member->wrong, sizeof(member->wrong), "it has not waited for all");
        member->rc = lane_close(&member->lane, member->rc);
    }
}

TEST_FLAGS(no_member_leaves_a_barrier_early, TEST_NO_TORTURE)
{
    for (uint32_t size = 1; size <= TEAM_MAX; size += size < 9 ? 1 : 4) {
        atomic_store(&arrived, 0);
        team_open(&team, size);
        team_run(&team, act_barriers, NULL);
        CHECK_TEXT(t, team_wrong(&team), NULL);
        team_close(&team);
    }
}

TEST_FLAGS(a_member_alone_needs_no_link, TEST_NO_TORTURE)
{
    static const struct transfer transfer = { 100, 0 };
    const struct task task = { .type = HVD_FLOAT16, .op = HVD_AVERAGE, .count = 100 };

    team_open(&team, 1);
    team.members[0].lane.traffic = NULL;
    team.arg = &task;
    act_each_allreduce(&team.members[0]);
    act_reducescatter(&team.members[0]);
    CHECK_TEXT(t, team_wrong(&team), NULL);
    team.arg = &transfer;
    act_broadcast(&team.members[0]);
    act_allgather(&team.members[0]);
    act_alltoall(&team.members[0]);
    act_barrier(&team.members[0]);
    CHECK_TEXT(t, team_wrong(&team), NULL);
}

TEST(partners_are_at_powers_of_two)
{
    uint32_t partners[LANE_PARTNERS_MAX];

    CHECK_INT(t, lane_partners(0, 1, partners), ==, 0);
    CHECK_INT(t, lane_partners(1, 2, partners), ==, 1);
    CHECK_INT(t, partners[0], ==, 0);
    CHECK_INT(t, lane_partners(2, 3, partners), ==, 2);
    CHECK_INT(t, lane_partners(0, 16, partners), ==, 7); /* the distances 1 2 4 8 12 14 15 */
    CHECK_INT(t, lane_partners(131071, 131072, partners), ==, 33);
    CHECK(t, lane_partners(7, UINT32_MAX, partners) <= LANE_PARTNERS_MAX);
}

/* ---- over real connections ---- */

/* Runs all acts of this file one after the other on one set of connections. */
static void act_everything(struct team_member *member)
{
    static const struct transfer transfer = { 3000, 1 };
    static const struct task scatter = { .type = HVD_FLOAT32, .way = LANE_ORDER, .count = 1 };
    struct team *all = member->team;
    struct task task = { .type = HVD_FLOAT32, .count = 700001 };
    const void *args[] = { &scatter, &transfer, &transfer, &transfer, &transfer };
    void (*const acts[])(struct team_member *) = { act_reducescatter, act_broadcast, act_allgather,
                                                   act_alltoall, act_barriers };
    struct team own[ARRAY_SIZE(acts)];

    act_each_allreduce(member);
    for (task.way = LANE_GATHER; task.way <= LANE_ORDER && !member->rc; task.way++)
        allreduce(member, &task);
    for (size_t i = 0; i < ARRAY_SIZE(acts) && !member->rc; i++) {
        own[i] = (struct team){ .size = all->size, .arg = args[i] };
        memcpy(own[i].ranks, all->ranks, sizeof(all->ranks));
        member->team = &own[i];
        acts[i](member);
        member->team = all;
    }
}

TEST_FLAGS(everything_over_real_links, TEST_NO_TORTURE)
{
    for (uint32_t i = 0; i < 6; i++) {
        atomic_store(&arrived, 0);
        team_open_links(&team, 2 + i / 2, i % 2 || !gloo_here() ? LINK_TCP : LINK_GLOO);
        team_run(&team, act_everything, NULL);
        CHECK_TEXT(t, team_wrong(&team), NULL);
        team_close(&team);
    }
}
