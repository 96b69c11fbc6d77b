/*
 * Members of one host go in step through shared memory (collectives/shm/board.c). The members are
 * threads, each with a mapping of its own as a process has, or processes that are killed or stopped
 * in the middle. A turn is the number of a step; turns count from 0.
 *
 * A member that waits sleeps for a very long time here: when no other member wakes it, the test
 * does not end.
 */
#include "base/rng.h"
#include "base/time.h"
#include "collectives/shm/segment_internal.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fixture.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS_MAX 9
#define LONG_US     (60 * TIME_S) /* nothing here takes that long */
#define FOR_EVER_US (24 * TIME_HOUR)
#define TRIALS      300
#define ROUNDS      200
#define HASTY       10000

static const uint32_t places[MEMBERS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

/* ---- members that are threads ---- */

struct member {
    struct segment *segment;
    struct board *board; /* the first */
    pthread_t thread;
    bool runs;
    struct rng rng;
    uint64_t wrong; /* number of words that were wrong */
    int rc;
};

struct team {
    uint32_t count;
    struct member members[MEMBERS_MAX];
};

static void team_join(struct team *team)
{
    for (uint32_t i = 0; i < team->count; i++) {
        if (team->members[i].runs)
            (void)pthread_join(team->members[i].thread, NULL);
        team->members[i].runs = false;
    }
}

/* Ends the segment first, so that no thread that still runs waits for ever. */
static void team_release(struct team *team)
{
    if (team->members[0].segment)
        segment_fail(team->members[0].segment, HVD_E_REVOKED, UINT32_MAX, "the test is over");
    team_join(team);
    for (uint32_t i = 0; i < team->count; i++)
        segment_free(team->members[i].segment);
    memset(team, 0, sizeof(*team));
}

static int team_init(struct team *team, uint32_t count, const struct segment_board *boards,
                     size_t board_count)
{
    struct segment_spec spec = { 1, 2, count, 0, boards, board_count };
    uint8_t locator[SEGMENT_LOCATOR_BYTES];
    int rc;

    memset(team, 0, sizeof(*team));
    team->count = count;
    rc = segment_create(&spec, &team->members[0].segment, NULL);
    if (rc)
        return rc;
    segment_locate(team->members[0].segment, locator);
    for (spec.place = 0; spec.place < count; spec.place++) {
        struct member *member = &team->members[spec.place];

        if (spec.place > 0)
            rc = segment_open(&spec, locator, &member->segment, NULL);
        if (rc)
            return rc;
        for (size_t i = 0; i < board_count; i++)
            member->segment->boards[i].doze_us = FOR_EVER_US;
        member->board = segment_board(member->segment, 0);
        rng_seed(&member->rng, spec.place + 1);
    }
    return 0;
}

static bool team_run(struct team *team, uint32_t first, thread_fn *run)
{
    for (uint32_t i = first; i < team->count; i++) {
        if (thread_start(&team->members[i].thread, 0, run, &team->members[i]))
            return false;
        team->members[i].runs = true;
    }
    return true;
}

#define CHILDREN 3

/* Place 0 is the test, places 1 and up are child processes, which go in step with the test. */
struct family {
    struct segment *segment;
    struct board *board;
    pid_t pids[CHILDREN];
};

static void family_end(struct family *family)
{
    for (int i = 0; i < CHILDREN; i++) {
        if (family->pids[i] > 0) {
            (void)kill(family->pids[i], SIGKILL);
            (void)waitpid(family->pids[i], NULL, 0);
        }
    }
    segment_free(family->segment);
}

static struct team own;
static struct family kin;

static void begin(struct test *t)
{
    (void)t;
    memset(&own, 0, sizeof(own));
    memset(&kin, 0, sizeof(kin));
}

static void end(struct test *t)
{
    (void)t;
    team_release(&own);
    family_end(&kin);
}
FIXTURE(begin, end)

/* Loses time now and then, so that the other members get ahead or fall asleep. */
static void dawdle(struct rng *rng, uint32_t up_to_us)
{
    int64_t until_us = clock_now_us() + (int64_t)rng_below(rng, up_to_us);

    if (rng_below(rng, 4) == 0) {
        while (clock_now_us() < until_us)
            (void)sched_yield();
    }
}

static uint64_t word_of(uint32_t local, uint64_t turn)
{
    return turn * 1000 + local;
}

/* Writes a word, which is made of this member's place and of the turn, to each memory that the
 * other members read after the step: the opening, both ends of the stage, and the result. */
static void write_turn(struct board *board, uint64_t turn)
{
    uint32_t local = board_local(board);
    uint64_t word = word_of(local, turn);

    memcpy(board_opening(board, local, turn) + BOARD_OPENING_BYTES - sizeof(word), &word,
           sizeof(word));
    memcpy(board_stage(board, local, turn), &word, sizeof(word));
    memcpy(board_stage(board, local, turn) + BOARD_STAGE_BYTES - sizeof(word), &word, sizeof(word));
    memcpy(board_result(board, turn) + local * sizeof(word), &word, sizeof(word));
}

/* Returns how many words of all members are not those of write_turn. */
static uint64_t wrong_in(struct board *board, uint64_t turn)
{
    uint64_t wrong = 0, seen[4];

    for (uint32_t i = 0; i < board_count(board); i++) {
        uint64_t word = word_of(i, turn);

        memcpy(&seen[0], board_opening(board, i, turn) + BOARD_OPENING_BYTES - sizeof(word),
               sizeof(word));
        memcpy(&seen[1], board_stage(board, i, turn), sizeof(word));
        memcpy(&seen[2], board_stage(board, i, turn) + BOARD_STAGE_BYTES - sizeof(word),
               sizeof(word));
        memcpy(&seen[3], board_result(board, turn) + i * sizeof(word), sizeof(word));
        for (size_t k = 0; k < ARRAY_SIZE(seen); k++)
            wrong += seen[k] != word;
    }
    return wrong;
}

/* A slow member reads the words of a turn while faster members write those of the next turn. */
static void *go(void *arg)
{
    struct member *member = arg;

    for (uint64_t turn = 0; turn < ROUNDS && !member->rc; turn++) {
        write_turn(member->board, turn);
        dawdle(&member->rng, 300);
        member->rc = board_step(member->board);
        dawdle(&member->rng, 100);
        member->wrong += wrong_in(member->board, turn);
    }
    return NULL;
}

TEST_FLAGS(members_see_all_writes, TEST_NO_TORTURE)
{
    for (uint32_t count = 1; count <= MEMBERS_MAX; count++) {
        const struct segment_board board = { places, count };

        CHECK_OK(t, team_init(&own, count, &board, 1));
        CHECK(t, team_run(&own, 0, go));
        team_join(&own);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(t, own.members[i].rc);
            CHECK_INT(t, own.members[i].wrong, ==, 0);
        }
        team_release(&own);
    }
}

/* Several groups share a segment: group i goes one step in every i + 1 turns. */
static void *go_apart(void *arg)
{
    struct member *member = arg;

    for (uint64_t turn = 0; turn < ROUNDS && !member->rc; turn++) {
        for (size_t i = 0; i < member->segment->board_count && !member->rc; i++) {
            struct board *board = segment_board(member->segment, i);

            if (!board || turn % (i + 1) != 0)
                continue;
            write_turn(board, turn / (i + 1));
            dawdle(&member->rng, 100);
            member->rc = board_step(board);
            member->wrong += wrong_in(board, turn / (i + 1));
        }
    }
    return NULL;
}

TEST_FLAGS(groups_go_apart, TEST_NO_TORTURE)
{
    static const uint32_t even[] = { 0, 2, 4 }, late[] = { 3, 4 }, pair[] = { 1, 3 };
    const struct segment_board boards[] = {
        {places, 5},
        { even,  3},
        { late,  2},
        { pair,  2}
    };

    CHECK_OK(t, team_init(&own, 5, boards, ARRAY_SIZE(boards)));
    CHECK_INT(t, board_local(segment_board(own.members[4].segment, 1)), ==, 2);
    CHECK_INT(t, board_local(segment_board(own.members[4].segment, 2)), ==, 1);
    CHECK_INT(t, board_count(segment_board(own.members[3].segment, 3)), ==, 2);
    CHECK(t, !segment_board(own.members[0].segment, 2));
    CHECK(t, team_run(&own, 0, go_apart));
    team_join(&own);
    for (uint32_t i = 0; i < own.count; i++) {
        CHECK_OK(t, own.members[i].rc);
        CHECK_INT(t, own.members[i].wrong, ==, 0);
    }
}

TEST(tells_who_is_behind)
{
    const struct segment_board board = { places, 3 };
    uint32_t locals[3] = { 9, 9, 9 };
    uint64_t progress = 9;

    CHECK_OK(t, team_init(&own, 3, &board, 1));
    CHECK_INT(t, board_behind(own.members[0].board, locals, 3, &progress), ==, 0);
    CHECK_INT(t, progress, ==, 0);
    board_arrive(own.members[1].board);
    CHECK_INT(t, board_behind(own.members[1].board, locals, 3, &progress), ==, 2);
    CHECK(t, locals[0] == 0 && locals[1] == 2 && progress == 0);
    CHECK_INT(t, board_behind(own.members[0].board, locals, 3, &progress), ==, 0);
    locals[0] = locals[1] = 9;
    CHECK_INT(t, board_behind(own.members[1].board, locals, 1, &progress), ==, 1);
    CHECK(t, locals[0] == 0 && locals[1] == 9 && progress == 0);
    board_arrive(own.members[0].board);
    board_arrive(own.members[2].board);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OK(t, board_await(own.members[i].board));
    CHECK_INT(t, board_behind(own.members[1].board, locals, 3, &progress), ==, 0);
    CHECK_INT(t, progress, ==, 1);
}

/* ---- waking ---- */

static void *arrive_and_wait(void *arg)
{
    struct member *member = arg;

    member->rc = board_step(member->board);
    return NULL;
}

static bool sleeps(const struct member *member)
{
    return atomic_load(&member->board->members[member->board->local].waits_for) != 0;
}

static bool fell_asleep(const struct member *member)
{
    int64_t until_us = clock_now_us() + LONG_US;

    while (!sleeps(member)) {
        if (clock_now_us() > until_us)
            return false;
        (void)sched_yield();
    }
    return true;
}

TEST_FLAGS(failure_wakes_sleepers, TEST_NO_TORTURE)
{
    const struct segment_board board = { places, 4 };

    for (uint32_t by = 0; by < 4; by++) { /* one that waits itself, too */
        CHECK_OK(t, team_init(&own, 4, &board, 1));
        CHECK(t, team_run(&own, 1, arrive_and_wait));
        for (uint32_t i = 1; i < 4; i++)
            CHECK(t, fell_asleep(&own.members[i]));
        segment_fail(own.members[by].segment, HVD_E_LOST, by, "gone");
        team_join(&own);
        for (uint32_t i = 1; i < 4; i++)
            CHECK_CODE(t, own.members[i].rc, HVD_E_REVOKED);
        CHECK_OK(t, board_step(own.members[0].board)); /* all have come to that one */
        CHECK_CODE(t, board_step(own.members[0].board), HVD_E_REVOKED);
        team_release(&own);
    }
}

/* The member falls asleep at once. */
static void make_sleepy(struct member *member)
{
    member->board->crowded = true;
    member->board->give_us = -1;
}

/* At any moment of spinning, giving way, and falling asleep. */
TEST_FLAGS(failure_ends_any_wait, TEST_NO_TORTURE)
{
    const struct segment_board board = { places, 2 };

    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t until_us;

        CHECK_OK(t, team_init(&own, 2, &board, 1));
        if (trial % 2)
            make_sleepy(&own.members[1]);
        CHECK(t, team_run(&own, 1, arrive_and_wait));
        while (!atomic_load(&own.members[0].board->members[1].steps)) {
        }
        until_us = clock_now_us() + (trial % 2 ? trial % 3 : trial / 2);
        while (clock_now_us() < until_us) {
        }
        segment_fail(own.members[trial / 2 % 2].segment, HVD_E_LOST, 0, "gone");
        team_join(&own);
        CHECK_CODE(t, own.members[1].rc, HVD_E_REVOKED);
        team_release(&own);
    }
}

static void *go_hastily(void *arg)
{
    struct member *member = arg;

    make_sleepy(member);
    for (int i = 0; i < HASTY && !member->rc; i++)
        member->rc = board_step(member->board);
    return NULL;
}

static void *go_slowly(void *arg)
{
    struct member *member = arg;

    for (int i = 0; i < TRIALS && !member->rc; i++) {
        dawdle(&member->rng, 400); /* longer than others stay awake */
        member->rc = board_step(member->board);
    }
    return NULL;
}

TEST_FLAGS(steps_wake_sleepers, TEST_NO_TORTURE)
{
    for (uint32_t count = 2; count <= 5; count++) {
        const struct segment_board board = { places, count };

        CHECK_OK(t, team_init(&own, count, &board, 1));
        CHECK(t, team_run(&own, 0, count % 2 ? go_slowly : go_hastily));
        team_join(&own);
        for (uint32_t i = 0; i < count; i++)
            CHECK_OK(t, own.members[i].rc);
        team_release(&own);
    }
}

/* The step came after the last look, and no member has rung, as this one did not sleep. */
TEST(sleeps_not_at_all)
{
    const struct segment_board board = { places, 2 };

    CHECK_OK(t, team_init(&own, 2, &board, 1));
    board_arrive(own.members[0].board);
    board_arrive(own.members[1].board);
    board_doze(own.members[0].board, 1);
    CHECK(t, !sleeps(&own.members[0]));
    board_arrive(own.members[0].board);
    segment_fail(own.members[1].segment, HVD_E_LOST, 1, "gone");
    board_doze(own.members[0].board, 1);
    CHECK(t, !sleeps(&own.members[0]));
}

/* Killed after its step, or after its claim, and before the bell. */
TEST_FLAGS(a_sleeper_wakes_without_a_wake_up_call, TEST_NO_TORTURE)
{
    const struct segment_board board = { places, 2 };

    for (int which = 0; which < 2; which++) {
        struct board *ours;

        CHECK_OK(t, team_init(&own, 2, &board, 1));
        ours = own.members[0].board;
        own.members[1].board->doze_us = BOARD_DOZE_US;
        CHECK(t, team_run(&own, 1, arrive_and_wait));
        CHECK(t, fell_asleep(&own.members[1]));
        if (which == 0)
            atomic_store(&ours->members[0].steps, 1);
        else
            atomic_store(&ours->segment->head->failure.claim, UINT64_MAX);
        team_join(&own);
        CHECK_INT(t, own.members[1].rc, ==, which == 0 ? 0 : HVD_E_REVOKED);
        team_release(&own);
    }
}

/* ---- members that are processes ---- */

/* How a child ended; 1: not by itself. */
static int ending_of(struct family *family, int which)
{
    int status, rc = 1;

    if (waitpid(family->pids[which], &status, 0) == family->pids[which] && WIFEXITED(status))
        rc = -WEXITSTATUS(status);
    family->pids[which] = 0;
    return rc;
}

static int family_init(struct family *family)
{
    const struct segment_board board = { places, CHILDREN + 1 };
    struct segment_spec spec = { 1, 2, CHILDREN + 1, 0, &board, 1 };
    uint8_t locator[SEGMENT_LOCATOR_BYTES];
    int rc;

    memset(family, 0, sizeof(*family));
    rc = segment_create(&spec, &family->segment, NULL);
    if (rc)
        return rc;
    family->board = segment_board(family->segment, 0);
    segment_locate(family->segment, locator);
    for (spec.place = 1; spec.place <= CHILDREN; spec.place++) {
        struct segment *segment;
        pid_t pid = fork();

        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            rc = segment_open(&spec, locator, &segment, NULL);
            while (!rc)
                rc = board_step(segment_board(segment, 0));
            _exit(-rc);
        }
        family->pids[spec.place - 1] = pid;
        if (pid < 0)
            return HVD_E_LIMIT;
    }
    return 0;
}

/* Until the local alone keeps us from going on. */
static bool is_awaited(const struct board *board, uint32_t local)
{
    int64_t until_us = clock_now_us() + LONG_US;
    uint32_t locals[CHILDREN + 1];
    uint64_t progress;

    while (board_behind(board, locals, CHILDREN + 1, &progress) != 1 || locals[0] != local) {
        if (clock_now_us() > until_us)
            return false;
        (void)sched_yield();
    }
    return true;
}

/* Our step, which it will not make, as the signal has come before. */
static int step_without(struct family *family, int which, int signal)
{
    const struct board *board = family->board;
    siginfo_t info;
    int rc = 0;

    for (int i = 0; i < 50 && !rc; i++)
        rc = board_step(family->board);
    if (!rc && (kill(family->pids[which], signal) ||
                waitid(P_PID, (id_t)family->pids[which], &info, WEXITED | WSTOPPED | WNOWAIT)))
        rc = HVD_E_LOST;
    if (rc)
        return rc;
    board_arrive(family->board);
    if (atomic_load(&board->members[which + 1].steps) < board->steps)
        return 0;
    rc = board_await(family->board); /* it had made that one ahead of us */
    board_arrive(family->board);
    return rc;
}

TEST_FLAGS(a_killed_member_is_reported, TEST_NO_TORTURE)
{
    struct hvd_err why;
    uint32_t rank;

    for (int trial = 0; trial < 10; trial++) {
        int which = trial % CHILDREN;

        CHECK_OK(t, family_init(&kin));
        CHECK_OK(t, step_without(&kin, which, SIGKILL));
        CHECK_INT(t, ending_of(&kin, which), ==, 1);
        CHECK(t, is_awaited(kin.board, (uint32_t)which + 1));
        segment_fail(kin.segment, HVD_E_LOST, (uint32_t)which + 1, "killed");
        CHECK_CODE(t, board_await(kin.board), HVD_E_REVOKED);
        for (int i = 0; i < CHILDREN; i++) {
            if (i != which)
                CHECK_CODE(t, ending_of(&kin, i), HVD_E_REVOKED);
        }
        CHECK_CODE(t, segment_failure(kin.segment, &rank, &why), HVD_E_LOST);
        family_end(&kin);
        memset(&kin, 0, sizeof(kin));
    }
}

TEST_FLAGS(a_stopped_member_is_revoked, TEST_NO_TORTURE)
{
    CHECK_OK(t, family_init(&kin));
    CHECK_OK(t, step_without(&kin, 1, SIGSTOP));
    CHECK(t, is_awaited(kin.board, 2));
    segment_fail(kin.segment, HVD_E_LOST, 2, "silent");
    CHECK_CODE(t, board_await(kin.board), HVD_E_REVOKED);
    CHECK_CODE(t, ending_of(&kin, 0), HVD_E_REVOKED);
    CHECK_CODE(t, ending_of(&kin, 2), HVD_E_REVOKED);
    CHECK_INT(t, kill(kin.pids[1], SIGCONT), ==, 0);
    CHECK_CODE(t, ending_of(&kin, 1), HVD_E_REVOKED);
}

/* It goes on as if nothing had been. */
TEST_FLAGS(a_paused_member_goes_on, TEST_NO_TORTURE)
{
    CHECK_OK(t, family_init(&kin));
    CHECK_OK(t, step_without(&kin, 0, SIGSTOP));
    CHECK(t, is_awaited(kin.board, 1));
    CHECK_INT(t, kill(kin.pids[0], SIGCONT), ==, 0);
    CHECK_OK(t, board_await(kin.board));
    for (int i = 0; i < 50; i++)
        CHECK_OK(t, board_step(kin.board));
    segment_fail(kin.segment, HVD_E_REVOKED, UINT32_MAX, "enough");
    for (int i = 0; i < CHILDREN; i++)
        CHECK_CODE(t, ending_of(&kin, i), HVD_E_REVOKED);
}
