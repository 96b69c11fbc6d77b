/* The stand-in of NCCL: the results of its operations. A play is the function that each member's
 * thread runs. */
#include "tests/lib/fake_gpu.h"
#include "tests/lib/nccl_team.h"

#include <math.h>
#include <string.h>

#define FEW  300
#define MANY 50000 /* more numbers than members exchange at once */

/* ---- elements of every type, as numbers ---- */

static const int types[] = { NCCL_INT8,    NCCL_UINT8,   NCCL_INT32,   NCCL_INT64,
                             NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16 };

static size_t size_of(int type)
{
    switch (type) {
    case NCCL_INT8:
    case NCCL_UINT8: return 1;
    case NCCL_FLOAT16:
    case NCCL_BFLOAT16: return 2;
    case NCCL_INT32:
    case NCCL_FLOAT32: return 4;
    default: return 8;
    }
}

#define PUT(kind)                           \
    do {                                    \
        kind element = (kind)number;        \
        memcpy(at, &element, sizeof(kind)); \
    } while (0)

/* Writes element i of a buffer. The number must be one that the type has: small, and a whole or a
 * half. */
static void put(char *base, size_t i, int type, double number)
{
    char *at = base + i * size_of(type);
    int power;
    double part = frexp(fabs(number), &power); /* from 1/2 to 1 */
    unsigned sign = number < 0;

    switch (type) {
    case NCCL_INT8: PUT(int8_t); break;
    case NCCL_UINT8: PUT(uint8_t); break;
    case NCCL_INT32: PUT(int32_t); break;
    case NCCL_INT64: PUT(int64_t); break;
    case NCCL_FLOAT32: PUT(float); break;
    case NCCL_FLOAT64: PUT(double); break;
    case NCCL_FLOAT16:
        number = (sign << 15) | (unsigned)((power + 14) * 1024 + (int)((part * 2 - 1) * 1024));
        PUT(uint16_t);
        break;
    default:
        number = (sign << 15) | (unsigned)((power + 126) * 128 + (int)((part * 2 - 1) * 128));
        PUT(uint16_t);
    }
}

#define GET(kind)                           \
    do {                                    \
        kind element;                       \
        memcpy(&element, at, sizeof(kind)); \
        number = (double)element;           \
    } while (0)

static double get(const char *base, size_t i, int type)
{
    const char *at = base + i * size_of(type);
    double number;
    unsigned bits;

    switch (type) {
    case NCCL_INT8: GET(int8_t); break;
    case NCCL_UINT8: GET(uint8_t); break;
    case NCCL_INT32: GET(int32_t); break;
    case NCCL_INT64: GET(int64_t); break;
    case NCCL_FLOAT32: GET(float); break;
    case NCCL_FLOAT64: GET(double); break;
    case NCCL_FLOAT16:
        GET(uint16_t);
        bits = (unsigned)number;
        number = ldexp(1024 + bits % 1024, (int)(bits / 1024 % 32) - 25) * (bits >> 15 ? -1 : 1);
        break;
    default:
        GET(uint16_t);
        bits = (unsigned)number;
        number = ldexp(128 + bits % 128, (int)(bits / 128 % 256) - 134) * (bits >> 15 ? -1 : 1);
    }
    return number;
}

static double given(int rank, size_t i)
{
    return (double)(1 + (size_t)rank + i % 3);
}

/* Returns element i of the right result of an allreduce. */
static double reference(int size, size_t i, int op)
{
    double result = given(0, i);

    for (int rank = 1; rank < size; rank++) {
        double next = given(rank, i);

        if (op == NCCL_PRODUCT)
            result *= next;
        else if (op == NCCL_MAX)
            result = fmax(result, next);
        else if (op == NCCL_MIN)
            result = fmin(result, next);
        else
            result += next;
    }
    return op == NCCL_AVERAGE ? result / size : result;
}

static void fill(const struct team_member *member, size_t from, size_t count, int type)
{
    for (size_t i = 0; i < count; i++)
        put(member->in_seen, from + i, type, given(member->rank, i));
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void reduce_every_type(struct team_member *member)
{
    for (size_t which = 0; which < ARRAY_SIZE(types); which++)
        for (int op = NCCL_SUM; op <= NCCL_AVERAGE; op++) {
            int type = types[which];

            fill(member, 0, FEW, type);
            TEAM_CHECK(member, team_ended(member, member->nccl->allreduce(
                                                      member->in, member->out, FEW, type, op,
                                                      member->comm, member->stream)) == 0);
            for (size_t i = 0; i < FEW; i++)
                TEAM_CHECK(member,
                           get(member->out_seen, i, type) == reference(member->size, i, op));
        }
}

TEAM_CASE(every_type_is_reduced, 3, reduce_every_type)

static void reduce_scaled(struct team_member *member)
{
    for (size_t which = 0; which < ARRAY_SIZE(types); which++) {
        int type = types[which];
        char scale[8];
        int op = -1;

        put(scale, 0, type, 2.0);
        fill(member, 0, FEW, type);
        TEAM_CHECK(member, member->nccl->make_scaled_sum(&op, scale, type, NCCL_SCALAR_ON_HOST,
                                                         member->comm) == 0);
        memset(scale, 0, sizeof(scale)); /* NCCL has read the factor */
        TEAM_CHECK(member,
                   team_ended(member, member->nccl->allreduce(member->in, member->in, FEW, type, op,
                                                              member->comm, member->stream)) == 0);
        TEAM_CHECK(member, member->nccl->free_op(op, member->comm) == 0);
        for (size_t i = 0; i < FEW; i++)
            TEAM_CHECK(member,
                       get(member->in_seen, i, type) == 2.0 * reference(member->size, i, NCCL_SUM));
    }
}

TEAM_CASE(sums_are_scaled, 2, reduce_scaled)

static void round_halves(struct team_member *member)
{
    /* A sum between two values of the type is rounded to the even one: 2048 + 1 in fp16, 256 + 1 in
     * bf16. */
    put(member->in_seen, 0, NCCL_FLOAT16, member->rank ? 1 : 2048);
    put(member->in_seen, 1, NCCL_FLOAT16, member->rank ? 3 : 2048);
    put(member->in_seen, 2, NCCL_BFLOAT16, member->rank ? 1 : 256);
    put(member->in_seen, 3, NCCL_BFLOAT16, member->rank ? 3 : 256);
    put(member->in_seen, 4, NCCL_FLOAT16, member->rank ? 40000 : 30000);
    TEAM_CHECK(member, team_ended(member, member->nccl->allreduce(
                                              member->in, member->out, 2, NCCL_FLOAT16, NCCL_SUM,
                                              member->comm, member->stream)) == 0);
    TEAM_CHECK(member, get(member->out_seen, 0, NCCL_FLOAT16) == 2048);
    TEAM_CHECK(member, get(member->out_seen, 1, NCCL_FLOAT16) == 2052);
    TEAM_CHECK(member, team_ended(member, member->nccl->allreduce(
                                              member->in + 4, member->out, 2, NCCL_BFLOAT16,
                                              NCCL_SUM, member->comm, member->stream)) == 0);
    TEAM_CHECK(member, get(member->out_seen, 0, NCCL_BFLOAT16) == 256);
    TEAM_CHECK(member, get(member->out_seen, 1, NCCL_BFLOAT16) == 260);
    TEAM_CHECK(member, team_ended(member, member->nccl->allreduce(
                                              member->in + 8, member->out, 1, NCCL_FLOAT16,
                                              NCCL_SUM, member->comm, member->stream)) == 0);
    TEAM_CHECK(member, member->out_seen[1] == 0x7c); /* infinite */
}

TEAM_CASE(sixteen_bits_are_rounded, 2, round_halves)

/* ---- the other operations: in several pieces, in place and not in place ---- */

static void play_broadcast(struct team_member *member)
{
    int root = member->size - 1;
    bool here = member->rank == root;

    fill(member, 0, MANY, NCCL_FLOAT32);
    TEAM_CHECK(member,
               team_ended(member, member->nccl->broadcast(here ? member->in : NULL, member->out,
                                                          MANY, NCCL_FLOAT32, root, member->comm,
                                                          member->stream)) == 0);
    for (size_t i = 0; i < MANY; i++)
        TEAM_CHECK(member, get(member->out_seen, i, NCCL_FLOAT32) == given(root, i));
    TEAM_CHECK(member, team_ended(member, member->nccl->broadcast(member->in, member->in, MANY,
                                                                  NCCL_FLOAT32, 0, member->comm,
                                                                  member->stream)) == 0);
    for (size_t i = 0; i < MANY; i++)
        TEAM_CHECK(member, get(member->in_seen, i, NCCL_FLOAT32) == given(0, i));
}

TEAM_CASE(broadcasts, 3, play_broadcast)

static void play_reduce(struct team_member *member)
{
    fill(member, 0, MANY, NCCL_INT64);
    TEAM_CHECK(member,
               team_ended(member, member->nccl->reduce(
                                      member->in, member->rank == 1 ? member->out : NULL, MANY,
                                      NCCL_INT64, NCCL_SUM, 1, member->comm, member->stream)) == 0);
    for (size_t i = 0; i < MANY && member->rank == 1; i++)
        TEAM_CHECK(member,
                   get(member->out_seen, i, NCCL_INT64) == reference(member->size, i, NCCL_SUM));
}

TEAM_CASE(reduces, 3, play_reduce)

static void play_gather(struct team_member *member)
{
    size_t mine = (size_t)member->rank * MANY;

    fill(member, 0, MANY, NCCL_FLOAT16);
    TEAM_CHECK(member, team_ended(member, member->nccl->allgather(member->in, member->out, MANY,
                                                                  NCCL_FLOAT16, member->comm,
                                                                  member->stream)) == 0);
    fill(member, mine, MANY, NCCL_FLOAT16);
    TEAM_CHECK(member, team_ended(member, member->nccl->allgather(member->in + 2 * mine, member->in,
                                                                  MANY, NCCL_FLOAT16, member->comm,
                                                                  member->stream)) == 0);
    for (size_t i = 0; i < MANY * (size_t)member->size; i++) {
        TEAM_CHECK(member,
                   get(member->out_seen, i, NCCL_FLOAT16) == given((int)(i / MANY), i % MANY));
        TEAM_CHECK(member,
                   get(member->in_seen, i, NCCL_FLOAT16) == given((int)(i / MANY), i % MANY));
    }
}

TEAM_CASE(gathers, 3, play_gather)

static void play_scatter(struct team_member *member)
{
    size_t mine = (size_t)member->rank * MANY;
    size_t all = MANY * (size_t)member->size;

    fill(member, 0, all, NCCL_FLOAT32);
    TEAM_CHECK(member, team_ended(member, member->nccl->reducescatter(
                                              member->in, member->out, MANY, NCCL_FLOAT32, NCCL_MAX,
                                              member->comm, member->stream)) == 0);
    TEAM_CHECK(member, team_ended(member, member->nccl->reducescatter(
                                              member->in, member->in + 4 * mine, MANY, NCCL_FLOAT32,
                                              NCCL_MAX, member->comm, member->stream)) == 0);
    for (size_t i = 0; i < MANY; i++) {
        double wanted = reference(member->size, mine + i, NCCL_MAX);

        TEAM_CHECK(member, get(member->out_seen, i, NCCL_FLOAT32) == wanted);
        TEAM_CHECK(member, get(member->in_seen, mine + i, NCCL_FLOAT32) == wanted);
    }
}

TEAM_CASE(scatters, 3, play_scatter)

/* ---- groups ---------------------------------------------------------------------------------- */

/* Each member sends an amount of its own to each member, also to itself. */
static void play_pairs(struct team_member *member)
{
    const struct nccl *nccl = member->nccl;
    size_t room = TEAM_BYTES / TEAM_MAX;

    for (size_t i = 0; i < TEAM_BYTES; i++)
        member->in_seen[i] = (char)(i * 3 + (size_t)member->rank * 11);
    TEAM_CHECK(member, nccl->group_start() == 0);
    for (int peer = 0; peer < member->size; peer++) {
        size_t out = 40000U * (size_t)peer; /* nothing to the first member */
        size_t in = 40000U * (size_t)member->rank;
        size_t place = (size_t)peer * room;

        TEAM_CHECK(member, nccl->send(member->in + place, out, NCCL_UINT8, peer, member->comm,
                                      member->stream) == 0);
        TEAM_CHECK(member, nccl->recv(member->out + place, in, NCCL_UINT8, peer, member->comm,
                                      member->stream) == 0);
    }
    TEAM_CHECK(member, team_ended(member, nccl->group_end()) == 0);
    for (int peer = 0; peer < member->size; peer++)
        for (size_t i = 0; i < 40000U * (size_t)member->rank; i++)
            TEAM_CHECK(member,
                       member->out_seen[(size_t)peer * room + i] ==
                           (char)((room * (size_t)member->rank + i) * 3 + (size_t)peer * 11));
}

TEAM_CASE(pairs_exchange, 4, play_pairs)

static void play_group(struct team_member *member)
{
    const struct nccl *nccl = member->nccl;

    fill(member, 0, MANY, NCCL_FLOAT32);
    TEAM_CHECK(member, nccl->group_start() == 0);
    TEAM_CHECK(member, nccl->group_start() == 0);
    for (size_t i = 0; i < 5; i++)
        TEAM_CHECK(member,
                   nccl->allreduce(member->in + 4000 * i, member->out + 4000 * i, 1000,
                                   NCCL_FLOAT32, NCCL_SUM, member->comm, member->stream) == 0);
    TEAM_CHECK(member, nccl->group_end() == 0);
    TEAM_CHECK(member, nccl->broadcast(member->in + 20000, member->in + 20000, 1000, NCCL_FLOAT32,
                                       1, member->comm, member->stream) == 0);
    TEAM_CHECK(member, (uint8_t)member->out_seen[0] == 0xdb); /* no operation has begun */
    TEAM_CHECK(member, team_ended(member, nccl->group_end()) == 0);
    for (size_t i = 0; i < 5000; i++)
        TEAM_CHECK(member,
                   get(member->out_seen, i, NCCL_FLOAT32) == reference(member->size, i, NCCL_SUM));
    TEAM_CHECK(member, get(member->in_seen, 5001, NCCL_FLOAT32) == given(1, 5001));
}

TEAM_CASE(groups_go_at_once, 2, play_group)

static void play_nothing(struct team_member *member)
{
    TEAM_CHECK(member, member->nccl->allreduce(member->in, member->out, 0, NCCL_FLOAT32, NCCL_SUM,
                                               member->comm, member->stream) == 0);
    TEAM_CHECK(member, member->nccl->group_start() == 0);
    TEAM_CHECK(member, member->nccl->group_end() == 0);
}

TEAM_CASE(nothing_is_nothing, 2, play_nothing)

static void play_alone(struct team_member *member)
{
    fill(member, 0, MANY, NCCL_FLOAT32);
    TEAM_CHECK(member, team_ended(member, member->nccl->allreduce(
                                              member->in, member->out, MANY, NCCL_FLOAT32,
                                              NCCL_AVERAGE, member->comm, member->stream)) == 0);
    TEAM_CHECK(member, memcmp(member->in_seen, member->out_seen, MANY * sizeof(float)) == 0);
}

TEAM_CASE(a_single_member_is_enough, 1, play_alone)

/* Each member makes a second communicator, aborts the first and works with the second. */
static void play_twice(struct team_member *member)
{
    struct ncclComm *first = member->comm;
    struct nccl_id *second_id = member->arg;

    if (member->rank == 0)
        TEAM_CHECK(member, member->nccl->unique_id(second_id) == 0);
    team_meet(member);
    member->id = *second_id;
    TEAM_CHECK(member, team_init(member) == NCCL_IN_PROGRESS);
    TEAM_CHECK(member, team_settled(member) == NCCL_OK);
    TEAM_CHECK(member, fake_gpu_live("communicators") >= 2);
    TEAM_CHECK(member, member->nccl->comm_abort(first) == 0);
    play_alone(member);
}

TEST_FLAGS(communicators_follow_each_other, TEST_NO_TORTURE)
{
    struct nccl_id id;

    team_run(t, 1, play_twice, &id);
}
