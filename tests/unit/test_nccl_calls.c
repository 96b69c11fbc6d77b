/*
 * The results of collectives on device memory, compared with plain arithmetic. Numbers are small
 * and whole, so that sums and products are exact in every type. A trial is one call with its type,
 * operation, size and form.
 */
#include "base/mem.h"
#include "collectives/reduce/facts.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce.h"
#include "tests/lib/comm_team.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 3 /* numbers behind each buffer that must stay as they are */

struct trial {
    enum coll_kind kind;
    hvd_dtype type;
    hvd_op op;
    size_t count; /* numbers of each member, about */
    bool uneven;  /* counts differ between members */
    bool in_place, streamed;
    unsigned pieces; /* 0: the buffer is whole */
    uint32_t root;
    double prescale, postscale;
};

/* ---- numbers ---- */

static double give(const struct trial *trial, uint32_t rank, size_t i)
{
    double number = (double)((rank * 7 + i * 3) % 5);

    if (trial->type == HVD_BOOL)
        return number > 2;
    return reduce_type(trial->type)->has_sign ? number - 2 : number;
}

/* Writes the number as element i of a buffer of this type; load reads an element. */
static void store(hvd_dtype type, void *base, size_t i, double number)
{
    uint8_t *at = (uint8_t *)base + i * reduce_type_bytes(type);
    int64_t wide = (int64_t)number;
    float single = (float)number;
    uint16_t half = type == HVD_FLOAT16 ? half_from_float(single) : bfloat_from_float(single);

    switch (type) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_INT16:
    case HVD_UINT16:
    case HVD_INT32:
    case HVD_UINT32:
    case HVD_INT64:
    case HVD_UINT64:
    case HVD_BOOL: memcpy(at, &wide, reduce_type_bytes(type)); break; /* the lowest bytes */
    case HVD_FLOAT16:
    case HVD_BFLOAT16: memcpy(at, &half, sizeof(half)); break;
    case HVD_FLOAT32: memcpy(at, &single, sizeof(single)); break;
    case HVD_FLOAT64: memcpy(at, &number, sizeof(number)); break;
    }
}

static double load(hvd_dtype type, const void *base, size_t i)
{
    const uint8_t *at = (const uint8_t *)base + i * reduce_type_bytes(type);
    int32_t middle;
    int64_t wide;
    float single;
    double number = 0;
    uint16_t half;

    switch (type) {
    case HVD_UINT8: return *at;
    case HVD_INT8: return (int8_t)*at;
    case HVD_BOOL: return *at;
    case HVD_INT16: memcpy(&half, at, sizeof(half)); return (int16_t)half;
    case HVD_UINT16: memcpy(&half, at, sizeof(half)); return half;
    case HVD_INT32: memcpy(&middle, at, sizeof(middle)); return middle;
    case HVD_UINT32: memcpy(&middle, at, sizeof(middle)); return (uint32_t)middle;
    case HVD_INT64:
    case HVD_UINT64: memcpy(&wide, at, sizeof(wide)); return (double)wide;
    case HVD_FLOAT16: memcpy(&half, at, sizeof(half)); return (double)half_to_float(half);
    case HVD_BFLOAT16: memcpy(&half, at, sizeof(half)); return (double)bfloat_to_float(half);
    case HVD_FLOAT32: memcpy(&single, at, sizeof(single)); return (double)single;
    case HVD_FLOAT64: memcpy(&number, at, sizeof(number)); return number;
    }
    return number;
}

static double scale_of(double scale)
{
    return scale != 0 ? scale : 1;
}

/* Returns element i of the right result of a reduction, with the trial's factors. */
static double reduced(const struct trial *trial, uint32_t size, size_t i)
{
    double pre = scale_of(trial->prescale);
    double sum = give(trial, 0, i) * pre;

    for (uint32_t rank = 1; rank < size; rank++) {
        double other = give(trial, rank, i) * pre;

        switch (trial->op) {
        case HVD_SUM:
        case HVD_AVERAGE: sum += other; break;
        case HVD_MIN: sum = other < sum ? other : sum; break;
        case HVD_MAX: sum = other > sum ? other : sum; break;
        case HVD_PRODUCT: sum *= other; break;
        case HVD_AND:
        case HVD_OR:
        case HVD_XOR: return NAN; /* not by NCCL */
        }
    }
    if (trial->op == HVD_AVERAGE)
        sum /= size;
    if (!reduce_type_is_real(trial->type))
        return trunc(sum);
    return sum * scale_of(trial->postscale);
}

/* true: the two differ by no more than the rounding of a factor and of a quotient in this type. */
static bool is_near(const struct trial *trial, double have, double want)
{
    static const double steps[HVD_BOOL + 1] = { [HVD_FLOAT16] = 0x1p-9,
                                                [HVD_BFLOAT16] = 0x1p-6,
                                                [HVD_FLOAT32] = 0x1p-21,
                                                [HVD_FLOAT64] = 0x1p-50 };
    bool exact = !reduce_type_is_real(trial->type) ||
                 (trial->op != HVD_AVERAGE && trial->prescale == 0 && trial->postscale == 0);

    return exact ? have == want
                 : fabs(have - want) <= steps[trial->type] * (fabs(want) > 1 ? fabs(want) : 1);
}

/* ---- how many numbers each member gives and gets ---- */

static size_t part_of(const struct trial *trial, uint32_t rank)
{
    return trial->uneven ? trial->count * rank / 2 + rank : trial->count;
}

static size_t part_at(const struct trial *trial, uint32_t rank)
{
    size_t at = 0;

    for (uint32_t i = 0; i < rank; i++)
        at += part_of(trial, i);
    return at;
}

/* Returns how many numbers member `from` sends to member `to` in an alltoall. */
static size_t pair_of(const struct trial *trial, uint32_t from, uint32_t to)
{
    return trial->uneven ? trial->count * ((from + 2 * to) % 3) : trial->count;
}

static size_t in_count(const struct trial *trial, uint32_t rank, uint32_t size)
{
    size_t count = 0;

    switch (trial->kind) {
    case COLL_ALLGATHER: return part_of(trial, rank);
    case COLL_REDUCESCATTER: return part_at(trial, size);
    case COLL_ALLTOALL:
        for (uint32_t i = 0; i < size; i++)
            count += pair_of(trial, rank, i);
        return count;
    default: return trial->count;
    }
}

static size_t out_count(const struct trial *trial, uint32_t rank, uint32_t size)
{
    size_t count = 0;

    switch (trial->kind) {
    case COLL_ALLGATHER: return part_at(trial, size);
    case COLL_REDUCESCATTER: return part_of(trial, rank);
    case COLL_ALLTOALL:
        for (uint32_t i = 0; i < size; i++)
            count += pair_of(trial, i, rank);
        return count;
    default: return trial->count;
    }
}

/* Returns the number that member `rank` must have at place i of out. */
static double wanted(const struct trial *trial, uint32_t rank, uint32_t size, size_t i)
{
    uint32_t from = 0;

    switch (trial->kind) {
    case COLL_BROADCAST: return give(trial, trial->root, i);
    case COLL_ALLGATHER:
        while (i >= part_of(trial, from))
            i -= part_of(trial, from++);
        return give(trial, from, i);
    case COLL_REDUCESCATTER: return reduced(trial, size, part_at(trial, rank) + i);
    case COLL_ALLTOALL:
        while (i >= pair_of(trial, from, rank))
            i -= pair_of(trial, from++, rank);
        for (uint32_t to = 0; to < rank; to++)
            i += pair_of(trial, from, to);
        return give(trial, from, i);
    default: return reduced(trial, size, i);
    }
}

/* ---- a member ---- */

struct member {
    const struct trial *trial;
    uint32_t rank, size;
    size_t bytes; /* of one number */
    size_t in_count, out_count;
    uint8_t *host_in, *host_out;
    uint8_t *in, *out; /* buffers on the device */
    struct CUstream_st *stream;
    size_t counts[COMM_TEAM_MAX], out_counts[COMM_TEAM_MAX];
    struct coll_piece pieces[4];
};

static size_t room(const struct member *member, size_t count)
{
    return (count + GUARD) * member->bytes;
}

/* Makes the member's buffers in the host and on the device. The guard behind each and the output
 * have the number 77. */
static int prepare(struct member *member)
{
    const struct trial *trial = member->trial;
    void *in = NULL;
    void *out = NULL;
    int rc;

    member->in_count = in_count(trial, member->rank, member->size);
    member->out_count = out_count(trial, member->rank, member->size);
    member->host_in = mem_zalloc(room(member, member->in_count));
    member->host_out = mem_zalloc(room(member, member->out_count));
    if (!member->host_in || !member->host_out)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < member->in_count + GUARD; i++)
        store(trial->type, member->host_in, i, give(trial, member->rank, i));
    for (size_t i = 0; i < member->out_count + GUARD; i++)
        store(trial->type, member->host_out, i, 77);
    rc = fake_gpu_alloc(member->rank, room(member, member->in_count), &in);
    if (!rc)
        rc = fake_gpu_alloc(member->rank, room(member, member->out_count), &out);
    member->in = in;
    member->out = out;
    return rc;
}

/* Cuts the call's buffers into the trial's pieces; the second piece is empty. */
static void cut(struct member *member, struct coll_call *call)
{
    const struct trial *trial = member->trial;
    const uint8_t *in = call->in;
    uint8_t *out = call->out;

    for (unsigned i = 0; i < trial->pieces; i++) {
        size_t count = i == 1 ? 0 : trial->count / trial->pieces;

        if (i + 1 == trial->pieces)
            count = trial->count - (size_t)(in - (const uint8_t *)call->in) / member->bytes;
        member->pieces[i] = (struct coll_piece){ .in = in, .out = out, .count = count };
        in += count * member->bytes;
        out += count * member->bytes;
    }
    call->in = call->out = NULL;
    call->count = 0;
    call->pieces = member->pieces;
    call->piece_count = trial->pieces;
}

/* Returns the member's call for the trial. */
static struct coll_call call_of(struct member *member)
{
    const struct trial *trial = member->trial;
    struct coll_call call = { .kind = trial->kind,
                              .type = trial->type,
                              .op = trial->op,
                              .prescale = trial->prescale,
                              .postscale = trial->postscale,
                              .root = trial->root,
                              .in = member->in,
                              .out = member->out,
                              .count = trial->count };

    for (uint32_t i = 0; i < member->size; i++) {
        bool pairs = trial->kind == COLL_ALLTOALL;

        member->counts[i] = pairs ? pair_of(trial, member->rank, i) : part_of(trial, i);
        member->out_counts[i] = pair_of(trial, i, member->rank);
    }
    if (trial->kind == COLL_ALLGATHER || trial->kind == COLL_REDUCESCATTER)
        call.count = part_of(trial, member->rank);
    if (trial->uneven) {
        call.counts = member->counts;
        call.out_counts = trial->kind == COLL_ALLTOALL ? member->out_counts : NULL;
    }
    if (trial->in_place)
        call.in = trial->kind == COLL_ALLGATHER
                      ? member->out + part_at(trial, member->rank) * member->bytes
                      : member->out;
    if (trial->kind == COLL_BROADCAST)
        call.in = NULL;
    if (trial->pieces)
        cut(member, &call);
    return call;
}

/* Copies the input into the stream, so that the call has to wait for the copy. */
static int bring(struct comm_team *team, struct member *member)
{
    const struct trial *trial = member->trial;
    bool first_out = trial->in_place || trial->kind == COLL_BROADCAST;
    uint8_t *at = trial->in_place && trial->kind == COLL_ALLGATHER
                      ? member->out + part_at(trial, member->rank) * member->bytes
                  : first_out ? member->out
                              : member->in;
    int code = team->cuda->to_device((cuda_address)(uintptr_t)member->out, member->host_out,
                                     room(member, member->out_count), member->stream);

    if (!code && member->in_count)
        code = team->cuda->to_device((cuda_address)(uintptr_t)at, member->host_in,
                                     member->in_count * member->bytes, member->stream);
    return cuda_judge(team->cuda, code, "bringing", &team->err[member->rank]);
}

static int fetch(struct comm_team *team, struct member *member)
{
    int code = 0;

    if (!member->trial->streamed) /* the result is there for every stream */
        return comm_team_get(team, member->rank, member->host_out, member->out,
                             room(member, member->out_count));
    code = team->cuda->to_host(member->host_out, (cuda_address)(uintptr_t)member->out,
                               room(member, member->out_count), member->stream);
    if (!code)
        code = team->cuda->stream_sync(member->stream);
    return cuda_judge(team->cuda, code, "fetching", &team->err[member->rank]);
}

/* Compares each number of the output, and the guard behind it, with the right one. HVD_E_CORRUPT:
 * they differ. */
static int judge(struct comm_team *team, const struct member *member)
{
    const struct trial *trial = member->trial;

    for (size_t i = 0; i < member->out_count + GUARD; i++) {
        bool inside = i < member->out_count;
        double want = inside ? wanted(trial, member->rank, member->size, i) : 77;
        double have = load(trial->type, member->host_out, i);

        if (inside ? !is_near(trial, have, want) : have != want)
            return err_set(&team->err[member->rank], HVD_E_CORRUPT,
                           "%s %s %s, count %zu%s%s%s, pieces %u, rank %u of %u: number %zu of %zu "
                           "is %g, not %g",
                           coll_kind_name(trial->kind), reduce_type_name(trial->type),
                           reduce_op_name(trial->op), trial->count, trial->uneven ? ", uneven" : "",
                           trial->in_place ? ", in place" : "", trial->streamed ? ", streamed" : "",
                           trial->pieces, member->rank, member->size, i, member->out_count, have,
                           want);
    }
    return 0;
}

/* The member's trial from the buffers to the check of its result. 0, or a code with a text in the
 * team. */
static int take_part(struct comm_team *team, struct member *member)
{
    struct coll_call call;
    int rc = prepare(member);

    if (rc)
        return err_set(&team->err[member->rank], rc, "no memory");
    call = call_of(member);
    rc = cuda_judge(team->cuda,
                    team->cuda->stream_create(&member->stream, CUDA_STREAM_NON_BLOCKING, 0),
                    "a stream", &team->err[member->rank]);
    if (!rc)
        rc = bring(team, member);
    if (!rc)
        rc = comm_run(team->comms[member->rank], &call, member->stream, member->trial->streamed,
                      &team->err[member->rank]);
    if (!rc)
        rc = fetch(team, member);
    return rc ? rc : judge(team, member);
}

/* The act of each member: takes part, and after a failure revokes and settles before its buffers
 * are freed. */
static void act(struct comm_team *team, uint32_t rank)
{
    const struct trial *trial = team->arg;
    struct member member = {
        .trial = trial, .rank = rank, .size = team->size, .bytes = reduce_type_bytes(trial->type)
    };

    team->rc[rank] = gpu_enter(team->devices[rank], &team->err[rank]);
    if (team->rc[rank])
        return;
    team->rc[rank] = take_part(team, &member);
    if (team->rc[rank]) { /* a kernel may still use its memory */
        comm_team_revoke(team);
        if (comm_settle(team->comms[rank], NULL))
            abort();
    }
    if (member.stream && team->cuda->stream_destroy(member.stream))
        team->rc[rank] = HVD_E_IO;
    fake_gpu_free(rank, member.in);
    fake_gpu_free(rank, member.out);
    mem_free(member.host_in);
    mem_free(member.host_out);
    gpu_leave(team->devices[rank]);
}

/* ---- all trials ---- */

static const size_t lengths[] = { 1, 4000, 5, 1000 };

/* Runs the trial on all members. false: a member failed; the test fails with the first cause, and
 * only without one with a revoke. */
static bool holds(struct test *t, struct comm_team *team, const struct trial *trial)
{
    team->arg = trial;
    comm_team_run(team, act);
    for (uint32_t i = 0; i < team->size; i++)
        if (team->rc[i] && team->rc[i] != HVD_E_REVOKED) {
            test_fail(t, __FILE__, __LINE__, "%s", team->err[i].text);
            return false;
        }
    for (uint32_t i = 0; i < team->size; i++)
        if (team->rc[i]) {
            test_fail(t, __FILE__, __LINE__, "%s", team->err[i].text);
            return false;
        }
    return true;
}

/* Runs the trial in each of four forms (streamed or not, in place or not). The length of each form
 * changes with the type and the operation. */
static bool in_forms(struct test *t, struct comm_team *team, struct trial trial)
{
    const struct coll_call call = { .kind = trial.kind, .type = trial.type, .op = trial.op };

    if (!comm_knows(&call, team->size))
        return true;
    for (unsigned form = 0; form < 4; form++) {
        unsigned turn = form + (unsigned)trial.type + (unsigned)trial.op;

        trial.streamed = form & 1;
        trial.in_place = form & 2 && trial.kind != COLL_REDUCESCATTER &&
                         trial.kind != COLL_ALLTOALL && trial.kind != COLL_BROADCAST;
        trial.count = lengths[turn % ARRAY_SIZE(lengths)];
        trial.root = turn % team->size;
        if (!holds(t, team, &trial))
            return false;
    }
    return true;
}

static bool in_types(struct test *t, struct comm_team *team, struct trial trial)
{
    for (int type = HVD_UINT8; type < HVD_DTYPE_COUNT; type++) {
        trial.type = (hvd_dtype)type;
        if (!in_forms(t, team, trial))
            return false;
    }
    return true;
}

static bool in_ops(struct test *t, struct comm_team *team, struct trial trial)
{
    for (int op = HVD_SUM; op < HVD_OP_COUNT; op++) {
        trial.op = (hvd_op)op;
        if (!in_types(t, team, trial))
            return false;
    }
    return true;
}

typedef bool sweep_fn(struct test *t, struct comm_team *team, struct trial trial);

static void sweep(struct test *t, sweep_fn *one, struct trial trial)
{
    struct comm_team team = { .size = 0 };

    for (uint32_t size = 2; size <= COMM_TEAM_MAX; size++) {
        CHECK_OK(t, comm_team_open(&team, size, 0));
        CHECK_OK(t, comm_team_make(&team));
        if (!one(t, &team, trial))
            goto out;
        comm_team_close(&team);
    }
out:
    comm_team_close(&team);
}

TEST_FLAGS(allreduces, TEST_NO_TORTURE)
{
    sweep(t, in_ops, (struct trial){ .kind = COLL_ALLREDUCE });
}

TEST_FLAGS(allreduces_pieces, TEST_NO_TORTURE)
{
    sweep(t, in_types, (struct trial){ .kind = COLL_ALLREDUCE, .pieces = 4 });
    sweep(t, in_types, (struct trial){ .kind = COLL_ALLREDUCE, .op = HVD_AVERAGE, .pieces = 1 });
}

TEST_FLAGS(scales, TEST_NO_TORTURE)
{
    struct trial trial = { .kind = COLL_ALLREDUCE, .prescale = 0.25, .postscale = -3 };

    for (int op = HVD_SUM; op <= HVD_AVERAGE; op++)
        for (int type = HVD_FLOAT16; type <= HVD_FLOAT64; type++) {
            struct comm_team team = { .size = 0 };
            bool well;

            trial.op = (hvd_op)op;
            trial.type = (hvd_dtype)type;
            well =
                !comm_team_open(&team, 3, 0) && !comm_team_make(&team) && in_forms(t, &team, trial);
            trial.kind = COLL_REDUCESCATTER;
            trial.uneven = !trial.uneven;
            well = well && in_forms(t, &team, trial);
            trial.kind = COLL_ALLREDUCE;
            comm_team_close(&team);
            CHECK(t, well);
        }
out:
    return;
}

TEST_FLAGS(broadcasts, TEST_NO_TORTURE)
{
    sweep(t, in_types, (struct trial){ .kind = COLL_BROADCAST });
}

TEST_FLAGS(allgathers, TEST_NO_TORTURE)
{
    sweep(t, in_types, (struct trial){ .kind = COLL_ALLGATHER });
    sweep(t, in_types, (struct trial){ .kind = COLL_ALLGATHER, .uneven = true });
}

TEST_FLAGS(reducescatters, TEST_NO_TORTURE)
{
    sweep(t, in_ops, (struct trial){ .kind = COLL_REDUCESCATTER });
    sweep(t, in_ops, (struct trial){ .kind = COLL_REDUCESCATTER, .uneven = true });
}

TEST_FLAGS(alltoalls, TEST_NO_TORTURE)
{
    sweep(t, in_types, (struct trial){ .kind = COLL_ALLTOALL });
    sweep(t, in_types, (struct trial){ .kind = COLL_ALLTOALL, .uneven = true });
}

/* One test runs under torture: each allocation of each member fails once. */
TEST(survives_want_of_memory)
{
    const struct trial trial = {
        .kind = COLL_ALLTOALL, .type = HVD_FLOAT32, .count = 10, .uneven = true, .streamed = true
    };
    struct comm_team team = { .size = 0 };

    CHECK_OK(t, comm_team_open(&team, 3, 0));
    CHECK_OK(t, comm_team_make(&team));
    CHECK(t, holds(t, &team, &trial));
out:
    comm_team_close(&team);
}

/* ---- calls that are left to the host ---- */

static bool knows(hvd_dtype type, hvd_op op, double prescale, double postscale)
{
    const struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = type, .op = op, .prescale = prescale, .postscale = postscale
    };

    return comm_knows(&call, 4);
}

/* comm_knows says which calls NCCL can make exactly enough; the others go through the host. */
TEST(knows_its_limits)
{
    CHECK(t, knows(HVD_INT32, HVD_SUM, 0, 0));
    CHECK(t, knows(HVD_INT64, HVD_SUM, 0, 0));
    CHECK(t, !knows(HVD_INT64, HVD_AVERAGE, 0, 0));
    CHECK(t, !knows(HVD_INT32, HVD_AVERAGE, 0, 0));
    CHECK(t, !knows(HVD_UINT8, HVD_AVERAGE, 0, 0));
    CHECK(t, knows(HVD_FLOAT16, HVD_AVERAGE, 0, 0));
    CHECK(t, knows(HVD_FLOAT16, HVD_AVERAGE, 0x1p-12, 0));
    CHECK(t, !knows(HVD_FLOAT16, HVD_AVERAGE, 0x1p-13, 0));
    CHECK(t, knows(HVD_FLOAT16, HVD_SUM, 0x1p-20, 0x1p20));
    CHECK(t, !knows(HVD_FLOAT16, HVD_SUM, 0, 70000));
    CHECK(t, knows(HVD_BFLOAT16, HVD_SUM, 0, 70000));
    CHECK(t, knows(HVD_FLOAT32, HVD_SUM, -1e-30, 0));
    CHECK(t, !knows(HVD_FLOAT32, HVD_SUM, 1e-30, 1e-30));
    CHECK(t, knows(HVD_FLOAT64, HVD_SUM, 1e-30, 1e-30));
    CHECK(t, knows(HVD_UINT32, HVD_SUM, 0, 0) && knows(HVD_UINT64, HVD_MAX, 0, 0));
    CHECK(t, !knows(HVD_UINT64, HVD_AND, 0, 0) && !knows(HVD_INT32, HVD_XOR, 0, 0));
    CHECK(t, !knows(HVD_INT16, HVD_SUM, 0, 0) && !knows(HVD_BOOL, HVD_MIN, 0, 0));
    CHECK(t, !knows(HVD_FLOAT32, HVD_MAX, 2, 0));
    CHECK(t, knows(HVD_FLOAT32, HVD_MAX, 1, 1));
    CHECK(t, !comm_knows(&(const struct coll_call){ .kind = COLL_BARRIER }, 4));
    CHECK(t, !comm_knows(&(const struct coll_call){ .kind = COLL_JOIN }, 4));
    CHECK(t, comm_knows(&(const struct coll_call){ .kind = COLL_ALLTOALL, .op = HVD_AVERAGE }, 4));
out:
    return;
}
