/*
 * Calls on memory of a device, through the host and by NCCL: their results are compared with the
 * results of the same calls on memory of the host. A task is such a call; work is one member's
 * part.
 */
#include "base/mem.h"
#include "collectives/device.h"
#include "collectives/reduce/facts.h"
#include "collectives/reduce/reduce.h"
#include "tests/lib/gpu_team.h"

#include <string.h>

/* ---- one call, on both kinds of memory ---- */

struct task {
    enum coll_kind kind;
    hvd_dtype type;
    hvd_op op;
    size_t count;
    bool ragged;   /* the counts of members differ, and some are 0 */
    bool in_place; /* where the call allows this */
    size_t pieces; /* ALLREDUCE: the number of pieces */
    double prescale;
    bool by_host;
};

#define PIECES_MAX 5

struct work {
    struct team *team;
    uint32_t rank;
    const struct task *task;
    size_t counts[COLL_TEAM_MAX], out_counts[COLL_TEAM_MAX];
    struct coll_piece pieces[PIECES_MAX];
    size_t in_bytes, out_bytes;
};

static size_t ragged_count(const struct task *task, uint32_t i)
{
    return task->count * (i % 3) + i / 3;
}

static size_t sum_counts(const size_t *counts, uint32_t size)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < size; i++)
        sum += counts[i];
    return sum;
}

/* Computes this member's counts and the sizes of its buffers for the task. */
static void plan_work(struct work *work)
{
    const struct task *task = work->task;
    uint32_t size = work->team->size;
    size_t bytes = reduce_type_bytes(task->type);
    bool all_to_all = task->kind == COLL_ALLTOALL;

    for (uint32_t i = 0; i < size; i++) {
        work->counts[i] = work->out_counts[i] = task->count;
        if (!task->ragged)
            continue;
        work->counts[i] = ragged_count(task, all_to_all ? work->rank + 2 * i : i);
        work->out_counts[i] = ragged_count(task, all_to_all ? i + 2 * work->rank : i);
    }
    work->in_bytes = work->out_bytes = task->count * bytes;
    if (task->kind == COLL_ALLGATHER)
        work->in_bytes = work->counts[work->rank] * bytes;
    if (task->kind == COLL_REDUCESCATTER)
        work->out_bytes = work->counts[work->rank] * bytes;
    if (task->kind == COLL_REDUCESCATTER || all_to_all)
        work->in_bytes = sum_counts(work->counts, size) * bytes;
    if (task->kind == COLL_ALLGATHER || all_to_all)
        work->out_bytes = sum_counts(work->out_counts, size) * bytes;
}

/* Small whole numbers, whose sums are the same in any order and type. */
static void put_numbers(hvd_dtype type, uint32_t rank, void *at, size_t bytes)
{
    size_t each = reduce_type_bytes(type);

    for (size_t i = 0; i < bytes / each; i++) {
        unsigned number = (unsigned)((i * 7 + rank * 3) % 11 + 1);
        float real = (float)number;
        double wide = (double)number;
        uint32_t word;
        uint8_t *to = (uint8_t *)at + i * each;

        memcpy(&word, &real, sizeof(word));
        switch (type) {
        case HVD_FLOAT32: memcpy(to, &real, sizeof(real)); break;
        case HVD_FLOAT64: memcpy(to, &wide, sizeof(wide)); break;
        case HVD_BFLOAT16: memcpy(to, &(uint16_t){ (uint16_t)(word >> 16) }, 2); break;
        case HVD_INT64: memcpy(to, &(int64_t){ number }, 8); break;
        case HVD_INT32: memcpy(to, &(int32_t){ (int32_t)number }, 4); break;
        case HVD_INT16: memcpy(to, &(int16_t){ (int16_t)number }, 2); break;
        case HVD_BOOL: *to = number % 3 == 0; break;
        default: *to = (uint8_t)number; break;
        }
    }
}

static const void *own_place(const struct work *work, const uint8_t *out)
{
    if (work->task->kind != COLL_ALLGATHER)
        return out;
    return out + sum_counts(work->counts, work->rank) * reduce_type_bytes(work->task->type);
}

/* Cuts the buffers into pieces of different sizes; one piece is empty. */
static void cut(struct work *work, const uint8_t *in, uint8_t *out)
{
    size_t bytes = reduce_type_bytes(work->task->type), from = 0;

    for (size_t i = 0; i < work->task->pieces; i++) {
        size_t left = work->task->count - from;
        size_t count = i == 1 ? 0 : i + 1 == work->task->pieces ? left : left / 3;

        work->pieces[i].in = in + from * bytes;
        work->pieces[i].out = out + from * bytes;
        work->pieces[i].count = count;
        from += count;
    }
}

static struct coll_call call_of(struct work *work, const void *in, void *out)
{
    const struct task *task = work->task;
    struct coll_call call = { .kind = task->kind,
                              .type = task->type,
                              .op = task->op,
                              .prescale = task->prescale,
                              .root = work->team->size / 2,
                              .in = in,
                              .out = out,
                              .count = task->count };

    if (task->in_place)
        call.in = own_place(work, out);
    if (task->kind == COLL_BROADCAST)
        call.in = NULL;
    if (task->ragged) {
        call.counts = work->counts;
        call.count = work->counts[work->rank];
        if (task->kind == COLL_ALLTOALL)
            call.out_counts = work->out_counts;
    }
    if (task->pieces) {
        cut(work, call.in, out);
        call.pieces = work->pieces;
        call.piece_count = task->pieces;
    }
    return call;
}

struct pair {
    struct gpu_twin in, out;
    uint8_t *plain_in, *plain_out;
};

/* Makes the member's buffers with equal numbers, on the device and in the host. 0, or a code. */
static int pair_make(const struct work *work, struct pair *pair)
{
    bool at_out = work->task->in_place || work->task->kind == COLL_BROADCAST;
    int rc = gpu_twin_make(work->rank, work->in_bytes, &pair->in);

    if (!rc)
        rc = gpu_twin_make(work->rank, work->out_bytes, &pair->out);
    pair->plain_in = mem_zalloc(work->in_bytes + 1);
    pair->plain_out = mem_zalloc(work->out_bytes + 1);
    if (rc || !pair->plain_in || !pair->plain_out)
        return rc ? rc : HVD_E_NOMEM;
    put_numbers(work->task->type, work->rank, pair->plain_in, work->in_bytes);
    if (at_out)
        put_numbers(work->task->type, work->rank, pair->plain_out, work->out_bytes);
    memcpy(pair->in.host, pair->plain_in, work->in_bytes);
    memcpy(pair->out.host, pair->plain_out, work->out_bytes);
    return 0;
}

/* Reports a wrong result, and cancels the call of the other members. */
static int wrong(struct team *team, uint32_t rank, const struct task *task)
{
    coll_cancel(team->colls[rank]);
    return err_set(&team->err[rank], 1, "%s of %zu of type %d, op %d: differs",
                   coll_kind_name(task->kind), task->count, (int)task->type, (int)task->op);
}

static int do_task(struct team *team, uint32_t rank, const struct task *task)
{
    struct work work = { .team = team, .rank = rank, .task = task };
    struct pair pair = { .plain_in = NULL };
    struct coll_call call;
    int rc;

    plan_work(&work);
    rc = pair_make(&work, &pair);
    if (!rc) {
        call = call_of(&work, pair.plain_in, pair.plain_out);
        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    }
    if (!rc) {
        call = call_of(&work, pair.in.device, pair.out.device);
        call.device = gpu_team_device(rank);
        call.by_host = task->by_host;
        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    }
    if (!rc && (memcmp(pair.plain_out, pair.out.host, work.out_bytes) != 0 ||
                memcmp(pair.plain_in, pair.in.host, work.in_bytes) != 0))
        rc = wrong(team, rank, task);
    gpu_twin_free(rank, &pair.in);
    gpu_twin_free(rank, &pair.out);
    mem_free(pair.plain_in);
    mem_free(pair.plain_out);
    return rc;
}

/* ---- all tasks ---- */

/* no slice, less than one slice, and some slices with a rest (a slice is what is copied at once) */
static const size_t counts[] = { 0, 1, 1000, 3 * STAGING_BYTES / 4 + 5 };

static int do_forms(struct team *team, uint32_t rank, struct task task)
{
    int rc = do_task(team, rank, &task);

    task.ragged = task.kind != COLL_ALLREDUCE && task.kind != COLL_BROADCAST;
    if (!rc && task.ragged)
        rc = do_task(team, rank, &task);
    task.ragged = false;
    task.in_place = task.kind == COLL_ALLREDUCE || task.kind == COLL_ALLGATHER;
    if (!rc && task.in_place)
        rc = do_task(team, rank, &task);
    if (rc || task.kind != COLL_ALLREDUCE)
        return rc;
    task.pieces = PIECES_MAX;
    rc = do_task(team, rank, &task);
    task.in_place = false;
    return rc ? rc : do_task(team, rank, &task);
}

static void act_every_kind(struct team *team, uint32_t rank)
{
    for (int kind = COLL_ALLREDUCE; kind <= COLL_ALLTOALL; kind++) {
        for (size_t i = 0; i < ARRAY_SIZE(counts) && !team->rc[rank]; i++) {
            const struct task task = { .kind = (enum coll_kind)kind,
                                       .type = HVD_INT32,
                                       .op = HVD_SUM,
                                       .count = i < 3 ? counts[i] : counts[i] / team->size };

            team->rc[rank] = do_forms(team, rank, task);
        }
    }
}

static void act_every_type(struct team *team, uint32_t rank)
{
    static const hvd_dtype types[] = { HVD_UINT8,   HVD_INT32,   HVD_INT64, HVD_BFLOAT16,
                                       HVD_FLOAT32, HVD_FLOAT64, HVD_INT16, HVD_BOOL };

    for (size_t i = 0; i < ARRAY_SIZE(types) && !team->rc[rank]; i++) {
        for (int op = HVD_SUM; op < HVD_OP_COUNT && !team->rc[rank]; op++) {
            struct task task = {
                .kind = COLL_ALLREDUCE, .type = types[i], .op = (hvd_op)op, .count = 100
            };

            if (!reduce_knows(types[i], (hvd_op)op))
                continue;
            team->rc[rank] = do_task(team, rank, &task);
            task.kind = COLL_REDUCESCATTER;
            task.prescale = reduce_type_is_real(types[i]) ? 0.5 : 0;
            if (!team->rc[rank])
                team->rc[rank] = do_task(team, rank, &task);
        }
    }
}

static void connect_and(struct team *team, uint32_t rank,
                        void (*act)(struct team *team, uint32_t rank))
{
    team_act_connect(team, rank);
    if (!team->rc[rank])
        act(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = coll_settle(team->colls[rank], &team->err[rank]);
}

static void act_kinds(struct team *team, uint32_t rank)
{
    connect_and(team, rank, act_every_kind);
}

static void act_types(struct team *team, uint32_t rank)
{
    connect_and(team, rank, act_every_type);
}

TEST_FLAGS(results_through_the_host_are_the_same, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "a", "aab", "abc" };
    const struct coll_options options = { .gpu = COLL_GPU_CPU };
    struct team team = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&team, layouts[i], &options, false));
        team_run(&team, act_kinds);
        CHECK_TEAM(t, &team);
        team_close(&team);
    }
    CHECK_OK(t, gpu_team_open(&team, "aab", &options, false));
    team_run(&team, act_types);
    CHECK_TEAM(t, &team);
    team_close(&team);
    CHECK_NOTHING_LEFT(t);
out:
    team_close(&team);
}

/* ---- by NCCL ---- */

/* With two members no sum has to be rounded; NCCL rounds in its own way. */
static void act_kinds_by_nccl(struct team *team, uint32_t rank)
{
    gpu_team_act_connect(team, rank);
    if (team->rc[rank])
        return;
    act_every_kind(team, rank);
    if (!team->rc[rank] && team->size == 2)
        act_every_type(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = coll_settle(team->colls[rank], &team->err[rank]);
}

TEST_FLAGS(results_by_nccl_are_the_same, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa", "aab" };
    struct team team = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&team, layouts[i], NULL, true));
        team_run(&team, act_kinds_by_nccl);
        CHECK_TEAM(t, &team);
        for (uint32_t k = 0; k < team.size; k++)
            CHECK(t, device_progress(&team.colls[k]->groups[0]) > 0);
        team_close(&team);
    }
    CHECK_NOTHING_LEFT(t);
out:
    team_close(&team);
}

/* ---- by the host, although NCCL is ready ---- */

/* team->way: rank 1 does not ask for the host. */
static void act_by_host(struct team *team, uint32_t rank)
{
    struct task task = {
        .type = HVD_INT32, .op = HVD_SUM, .count = 1000, .by_host = !team->way || rank != 1
    };

    gpu_team_act_connect(team, rank);
    for (int kind = COLL_ALLREDUCE; kind <= COLL_ALLTOALL && !team->rc[rank]; kind++) {
        task.kind = (enum coll_kind)kind;
        team->rc[rank] = do_task(team, rank, &task);
    }
    if (!team->rc[rank] && device_progress(&team->colls[rank]->groups[0]))
        team->rc[rank] = err_set(&team->err[rank], 1, "NCCL has carried a call");
    task.by_host = false;
    task.kind = COLL_ALLREDUCE;
    if (!team->rc[rank]) /* the next call is carried by NCCL again */
        team->rc[rank] = do_task(team, rank, &task);
    if (!team->rc[rank] && !device_progress(&team->colls[rank]->groups[0]))
        team->rc[rank] = err_set(&team->err[rank], 1, "NCCL has carried no call");
    if (!team->rc[rank])
        team->rc[rank] = coll_settle(team->colls[rank], &team->err[rank]);
}

TEST_FLAGS(a_call_may_ask_for_the_host, TEST_NO_TORTURE)
{
    static const enum coll_gpu gpus[] = { COLL_GPU_AUTO, COLL_GPU_NCCL };
    struct team team = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
        const struct coll_options options = { .gpu = gpus[i] };

        CHECK_OK(t, gpu_team_open(&team, "aab", &options, true));
        team_run(&team, act_by_host);
        CHECK_TEAM(t, &team);
        team_close(&team);
    }
    CHECK_NOTHING_LEFT(t);
out:
    team_close(&team);
}

TEST_FLAGS(all_members_must_ask_for_the_host, TEST_NO_TORTURE)
{
    struct team team = { .size = 0 };

    CHECK_OK(t, gpu_team_open(&team, "aab", NULL, true));
    team.way = 1;
    team_run(&team, act_by_host);
    for (uint32_t i = 0; i < team.size; i++) {
        CHECK_CODE(t, team.rc[i], HVD_E_MISMATCH);
        CHECK_HAS(t, team.err[i].text, "in the memory of a GPU, through the host");
    }
    team_close(&team);
    CHECK_NOTHING_LEFT(t);
out:
    team_close(&team);
}
