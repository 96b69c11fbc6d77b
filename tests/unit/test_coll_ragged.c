/*
 * Ragged operations, in which each member knows only its own counts: what arrives, where it
 * arrives, and what happens when a member does not come, has joined, or announces a wrong count. A
 * way is a variant of the test; a shelf is memory of the program.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/dispatch.h"
#include "collectives/shm/pool.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fixture.h"

#include <string.h>

static const char *const layouts[] = {
    "a", "aaaa", "aabb", "abbb", "abcd", "gloo aaaa", "tcp aaaa"
};
#define MOST 60000 /* numbers from one member to another: more than a stage holds */

static struct team own;

static void begin(struct test *t)
{
    (void)t;
    own = (struct team){ .size = 0 };
}

static void end(struct test *t)
{
    (void)t;
    team_close(&own);
}
FIXTURE(begin, end)

/* ---- the result and its memory ---- */

/* Returns how many numbers one member gives another; some give nothing. */
static size_t between(int way, uint32_t from, uint32_t to)
{
    switch (way) {
    case 0: return 0;
    case 1: return from;
    case 2: return from == 1 ? MOST : 0;
    case 3: return (from * 7 + to * 3) % 5;
    default: return from == to ? 1 : 1000 * (to + 1);
    }
}

static int64_t number(uint32_t from, uint32_t to, size_t i)
{
    return (int64_t)from * 100000000 + (int64_t)to * 1000000 + (int64_t)i;
}

/* Memory of the program, with a count of the requests for it. */
struct shelf {
    void *memory;
    size_t bytes;
    unsigned asked;
};

static void *shelf_memory(void *arg, size_t bytes)
{
    struct shelf *shelf = arg;

    shelf->asked++;
    shelf->bytes = bytes;
    shelf->memory = mem_alloc(bytes);
    return shelf->memory;
}

static bool is_right(const struct team *team, uint32_t rank, bool each,
                     const struct coll_received *received)
{
    const int64_t *data = received->data;
    size_t at = 0;

    for (uint32_t from = 0; from < team->size; from++) {
        size_t right = between(team->way, from, each ? rank : 0);

        if (received->counts[from] != right)
            return false;
        for (size_t i = 0; i < right; i++) {
            if (data[at++] != number(from, each ? rank : 0, i))
                return false;
        }
    }
    return !data == !at;
}

/* Runs one operation; its result is in memory of the library, or on a shelf. */
static int run_ragged(struct team *team, uint32_t rank, bool each, bool shelved)
{
    size_t to[COLL_TEAM_MAX] = { 0 }, counts[COLL_TEAM_MAX], sum = 0, at = 0;
    struct shelf shelf = { .asked = 0 };
    struct coll_received received = { .memory = shelved ? shelf_memory : NULL,
                                      .arg = &shelf,
                                      .counts = counts };
    struct coll_call call = { .kind = each ? COLL_ALLTOALL_RAGGED : COLL_ALLGATHER_RAGGED,
                              .type = HVD_INT64,
                              .received = &received };
    int64_t *in;
    int rc;

    memset(counts, 0xff, sizeof(counts));
    for (uint32_t i = 0; i < team->size; i++)
        sum += to[i] = between(team->way, rank, i);
    if (!each)
        sum = to[0];
    in = mem_zalloc_array(sum + 1, sizeof(*in));
    if (!in)
        return HVD_E_NOMEM;
    for (uint32_t i = 0; i < (each ? team->size : 1); i++) {
        for (size_t k = 0; k < to[i]; k++)
            in[at++] = number(rank, i, k);
    }
    call.in = sum ? in : NULL;
    call.counts = each ? to : NULL;
    call.count = each ? 0 : sum;
    rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    if (!rc &&
        (!is_right(team, rank, each, &received) || shelf.asked != (shelved && received.data) ||
         shelf.memory != (shelved ? received.data : NULL)))
        rc = 1;
    if (shelved)
        mem_free(shelf.memory);
    else if (rc >= 0)
        pool_free(received.data);
    mem_free(in);
    return rc;
}

static void act_ragged(struct team *team, uint32_t rank)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };

    team_act_connect(team, rank);
    for (int i = 0; i < 4 && !team->rc[rank]; i++)
        team->rc[rank] = run_ragged(team, rank, i % 2, i / 2);
    if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &barrier, &team->err[rank]);
}

TEST_FLAGS(each_gets_what_the_others_give, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        for (int way = 0; way < 5; way++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, (uint64_t)way + 2));
            own.way = way;
            team_run(&own, act_ragged);
            for (uint32_t i = 0; i < own.size; i++) {
                CHECK_TEXT(t, own.err[i].text, "");
                CHECK_OK(t, own.rc[i]);
            }
        }
        team_close(&own);
    }
}

/* Also under torture: memory that is allocated on the way is freed on the way. */
TEST(a_member_alone_gets_its_own)
{
    CHECK_OK(t, team_open(&own, "a", NULL));
    own.way = 4;
    for (int i = 0; i < 4; i++) {
        int rc = run_ragged(&own, 0, i % 2, i / 2);

        CHECK_OK(t, rc);
    }
}

/* The groups' members are on several hosts, and each group has its own size. */
static void act_in_group(struct team *team, uint32_t rank)
{
    size_t counts[2] = { 9, 9 };
    struct coll_received received = { .counts = counts };
    const uint8_t in[] = { (uint8_t)rank, 10, 20 };
    const struct coll_call call = { .kind = COLL_ALLGATHER_RAGGED,
                                    .group = 1,
                                    .type = HVD_UINT8,
                                    .in = in,
                                    .count = rank,
                                    .received = &received };
    const uint8_t right[] = { 1, 3, 10, 20 };

    team_act_connect(team, rank);
    if (team->rc[rank] || rank % 2 == 0)
        return;
    team->rc[rank] = coll_run(team->colls[rank], &call, &team->err[rank]);
    if (team->rc[rank])
        return;
    if (counts[0] != 1 || counts[1] != 3 || memcmp(received.data, right, sizeof(right)) != 0)
        team->rc[rank] = 1;
    pool_free(received.data);
}

TEST_FLAGS(groups_have_sizes_of_their_own, TEST_NO_TORTURE)
{
    static const uint32_t odd_ranks[] = { 1, 3 };
    static const struct coll_ranks odd = { odd_ranks, 2 };

    for (size_t layout = 1; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        team_part(&own);
        own.groups = &odd;
        own.group_count = 1;
        CHECK_OK(t, team_make(&own, 2));
        team_run(&own, act_in_group);
        for (uint32_t i = 0; i < own.size; i++)
            CHECK_OK(t, own.rc[i]);
        team_close(&own);
        own.group_count = 0;
    }
}

/* ---- failures ---- */

/* The ends of a call, by team->way. */
enum { CANCELS, JOINED, OTHER_KIND, OTHER_TYPE, FIXED_COUNTS, TOO_MUCH, NO_MEMORY, LIES, WAYS };

static void *no_memory(void *arg, size_t bytes)
{
    (void)arg;
    (void)bytes;
    return NULL;
}

/* A member whose libhvd has another limit: it opens as all members do, and announces an impossible
 * size. */
static int lie(struct coll *coll, const struct coll_call *call)
{
    uint64_t table[COLL_TEAM_MAX] = { 0 };
    struct coll_group *group = &coll->groups[0];
    const struct coll_call gather = { .kind = COLL_ALLGATHER,
                                      .type = HVD_INT64,
                                      .in = &table[group->group.place],
                                      .out = table,
                                      .count = 1 };
    struct operation operation = operation_make(coll, group, call);
    int rc;

    table[group->group.place] = UINT64_C(1) << 62;
    operation.call = &gather;
    rc = lane_close(&group->lane, allgather_run(&operation));
    return rc ? rc : operation_inside(coll, group, &(struct coll_call){ .kind = COLL_BARRIER });
}

/* Rank 1 differs; the other members do what is right. */
static void act_wrong(struct team *team, uint32_t rank)
{
    const int32_t in[4] = { 1, 2, 3, 4 };
    int32_t out[16];
    size_t counts[COLL_TEAM_MAX];
    struct shelf shelf = { .asked = 0 };
    struct coll_received received = { .memory = shelf_memory, .arg = &shelf, .counts = counts };
    struct coll_call call = { .kind = COLL_ALLGATHER_RAGGED,
                              .type = HVD_INT32,
                              .in = in,
                              .count = 4,
                              .received = &received };
    struct coll *coll = team->colls[rank];
    struct hvd_err *err = &team->err[rank];
    void *untouched = &received;
    int way = rank == 1 ? team->way : WAYS, *rc = &team->rc[rank];

    received.data = untouched;
    team_act_connect(team, rank);
    if (*rc)
        return;
    if (way == OTHER_KIND)
        call.kind = COLL_BARRIER;
    else if (way == OTHER_TYPE)
        call.type = HVD_FLOAT32;
    else if (way == FIXED_COUNTS)
        call = (struct coll_call){
            .kind = COLL_ALLGATHER, .type = HVD_INT32, .in = in, .out = out, .count = 4
        };
    else if (way == TOO_MUCH)
        call.count = LIMIT_RAGGED_BYTES / sizeof(*in) + 1;
    else if (way == NO_MEMORY)
        received.memory = no_memory;
    else if (way == JOINED)
        call = (struct coll_call){ .kind = COLL_JOIN };
    if (way == CANCELS)
        coll_cancel(coll);
    *rc = way == LIES ? lie(coll, &call) : coll_run(coll, &call, err);
    if (!*rc)
        *rc = coll_run(coll, &(struct coll_call){ .kind = COLL_BARRIER }, err);
    if (*rc && received.data != untouched && *rc != HVD_E_REVOKED)
        *rc = 1; /* a failed call has written its result */
    mem_free(shelf.memory);
}

static int right_code(int way, uint32_t rank)
{
    switch (way) {
    case TOO_MUCH: return rank == 1 ? HVD_E_LIMIT : HVD_E_REVOKED;
    case NO_MEMORY: return rank == 1 ? HVD_E_NOMEM : HVD_E_REVOKED;
    /* all see the mismatch at the same time, and the first member tells the others */
    case LIES: return 0;
    case CANCELS: return HVD_E_REVOKED;
    default: return HVD_E_MISMATCH;
    }
}

TEST_FLAGS(a_member_with_another_call_ends_the_round, TEST_NO_TORTURE)
{
    static const char *const texts[WAYS] = {
        [OTHER_KIND] = "barrier",
        [OTHER_TYPE] = "ragged allgather of float32",
        [FIXED_COUNTS] = "is allgather of int32",
        [JOINED] = "join",
        [TOO_MUCH] = "rank 1: ragged allgather: this rank gives more than 1099511627776 bytes",
        [NO_MEMORY] = "rank 1: ragged allgather: the program has no memory for the 64 bytes",
        [LIES] = "rank 1 announces 4611686018427387904 numbers of int32",
    };

    for (size_t layout = 1; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        for (int way = 0; way < WAYS; way++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, (uint64_t)way + 2));
            own.way = way;
            team_run(&own, act_wrong);
            for (uint32_t i = 0; i < own.size; i++) {
                int right = right_code(way, i);

                if (own.rc[i] == HVD_E_LOST) /* still connecting */
                    continue;
                if (right ? own.rc[i] != right
                          : own.rc[i] != HVD_E_PROTO && own.rc[i] != HVD_E_REVOKED)
                    test_fail(t, __FILE__, __LINE__, "%s, way %d, rank %u: %s: %s", layouts[layout],
                              way, i, err_name(own.rc[i]), own.err[i].text);
                if (texts[way] && !(way == LIES && i == 1))
                    CHECK_HAS(t, own.err[i].text, texts[way]);
            }
        }
        team_close(&own);
    }
}

/* ---- wrong calls ---- */

TEST(senseless_calls_are_refused)
{
    const size_t one[] = { 1 }, huge[] = { SIZE_MAX };
    const int32_t in[] = { 7 };
    size_t counts[1];
    struct coll_received received = { .counts = counts }, nowhere = { .counts = NULL };
    const struct {
        struct coll_call call;
        const char *why;
    } cases[] = {
        {{ .kind = COLL_ALLGATHER_RAGGED, .in = in, .count = 1 },
         "ragged allgather: received or received.counts is NULL"                                                       },
        { { .kind = COLL_ALLGATHER_RAGGED, .in = in, .count = 1, .received = &nowhere },
         "ragged allgather: received or received.counts is NULL"                                                       },
        { { .kind = COLL_ALLGATHER_RAGGED, .in = in, .counts = one, .received = &received },
         "ragged allgather: counts is not NULL"                                                                        },
        { { .kind = COLL_ALLTOALL_RAGGED, .in = in, .received = &received },
         "ragged alltoall: counts is NULL; give a count for each member"                                               },
        { { .kind = COLL_ALLTOALL_RAGGED, .in = in, .counts = huge, .received = &received },
         "ragged alltoall: this rank gives more than 1099511627776 bytes (LIMIT_RAGGED_BYTES)"                         },
        { { .kind = COLL_ALLTOALL_RAGGED, .counts = one, .received = &received },
         "ragged alltoall: the buffer \"in\" or \"out\" is NULL"                                                       },
        { { .kind = COLL_ALLGATHER_RAGGED, .type = (hvd_dtype)77, .received = &received },
         "ragged allgather: there is no type 77"                                                                       },
        { { .kind = COLL_ALLGATHER_RAGGED,
            .type = HVD_FLOAT32,
            .prescale = 2,
            .received = &received },
         "ragged allgather: this collective computes nothing that could be scaled"                                     },
        { { .kind = COLL_END },                                                              "kind 8 is no collective" },
        { { .kind = (enum coll_kind)13 },                                                    "kind 13 is no collective"},
    };

    CHECK_OK(t, team_open(&own, "a", NULL));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        team_part(&own);
        CHECK_OK(t, team_make(&own, i + 2));
        CHECK_OK(t, coll_connect(own.colls[0], 0, &own.err[0]));
        CHECK_CODE(t, coll_run(own.colls[0], &cases[i].call, &own.err[0]),
                   cases[i].call.counts == huge ? HVD_E_LIMIT : HVD_E_INVAL);
        CHECK_HAS(t, own.err[0].text, cases[i].why);
    }
}
