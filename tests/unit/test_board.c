/*
 * Going in step: by threads with segments of their own, which see what processes would; and by
 * processes that are killed or stopped in the middle.
 *
 * Sleeps that nobody ends are made long here, so that a bell which is not rung shows.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "base/time.h"
#include "collectives/shm/inside.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/test.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define MEMBERS_MAX          9
#define LONG_US              (60 * TIME_S) /* nothing here takes that long */
#define FOR_EVER_US          (24 * TIME_HOUR)
#define TRIALS               300
#define ROUNDS               200
#define HASTY                10000

static const uint32_t places[MEMBERS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

/* ---- members that are threads ---- */

struct member {
    struct segment *segment;
    struct board *board; /* the first */
    pthread_t thread;
    bool runs;
    struct rng rng;
    uint64_t wrong; /* what was not as it should have been */
    int rc;
};

struct crew {
    uint32_t count;
    struct member members[MEMBERS_MAX];
};

static void crew_join(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->count; i++) {
        if (crew->members[i].runs)
            (void)pthread_join(crew->members[i].thread, NULL);
        crew->members[i].runs = false;
    }
}

/* None of those that still run waits for ever. */
static void crew_release(struct crew *crew)
{
    if (crew->members[0].segment)
        segment_fail(crew->members[0].segment, HVD_E_REVOKED, UINT32_MAX, "the test is over");
    crew_join(crew);
    for (uint32_t i = 0; i < crew->count; i++)
        segment_free(crew->members[i].segment);
    memset(crew, 0, sizeof(*crew));
}

static int crew_init(struct crew *crew, uint32_t count, const struct segment_board *boards,
                     size_t board_count)
{
    struct segment_spec spec = { 1, 2, count, 0, boards, board_count };
    uint8_t locator[SEGMENT_LOCATOR_BYTES];
    int rc;

    memset(crew, 0, sizeof(*crew));
    crew->count = count;
    rc = segment_create(&spec, &crew->members[0].segment, NULL);
    if (rc)
        return rc;
    segment_locate(crew->members[0].segment, locator);
    for (spec.place = 0; spec.place < count; spec.place++) {
        struct member *member = &crew->members[spec.place];

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

static bool crew_run(struct crew *crew, uint32_t first, thread_fn *run)
{
    for (uint32_t i = first; i < crew->count; i++) {
        if (thread_start(&crew->members[i].thread, 0, run, &crew->members[i]))
            return false;
        crew->members[i].runs = true;
    }
    return true;
}

/* Some of the time others get ahead, or fall asleep. */
static void dawdle(struct rng *rng, uint32_t up_to_us)
{
    int64_t until_us = clock_now_us() + (int64_t)rng_below(rng, up_to_us);

    if (rng_below(rng, 4) == 0) {
        while (clock_now_us() < until_us)
            (void)sched_yield();
    }
}

static uint64_t word_of(uint32_t seat, uint64_t turn)
{
    return turn * 1000 + seat;
}

/* Writes for a turn what others will look for. */
static void write_turn(struct board *board, uint64_t turn)
{
    uint32_t seat = board_seat(board);
    uint64_t word = word_of(seat, turn);

    memcpy(board_said(board, seat, turn) + BOARD_SAID_BYTES - sizeof(word), &word, sizeof(word));
    memcpy(board_stage(board, seat, turn), &word, sizeof(word));
    memcpy(board_stage(board, seat, turn) + BOARD_STAGE_BYTES - sizeof(word), &word, sizeof(word));
    memcpy(board_result(board, turn) + seat * sizeof(word), &word, sizeof(word));
}

static uint64_t wrong_in(struct board *board, uint64_t turn)
{
    uint64_t wrong = 0, seen[4];

    for (uint32_t i = 0; i < board_count(board); i++) {
        uint64_t word = word_of(i, turn);

        memcpy(&seen[0], board_said(board, i, turn) + BOARD_SAID_BYTES - sizeof(word),
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

/* A turn is read while the next one is written, by those who are faster. */
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

static void all_see_all(struct test *t)
{
    struct crew crew = { 0 };

    for (uint32_t count = 1; count <= MEMBERS_MAX; count++) {
        const struct segment_board board = { places, count };

        CHECK_OK(t, crew_init(&crew, count, &board, 1));
        CHECK(t, crew_run(&crew, 0, go));
        crew_join(&crew);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(t, crew.members[i].rc);
            CHECK_INT(t, crew.members[i].wrong, ==, 0);
        }
        crew_release(&crew);
    }
out:
    crew_release(&crew);
}

/* Each group at its own pace, in one segment. */
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

static void groups_go_apart(struct test *t)
{
    static const uint32_t even[] = { 0, 2, 4 }, late[] = { 3, 4 }, pair[] = { 1, 3 };
    const struct segment_board boards[] = {
        {places, 5},
        { even,  3},
        { late,  2},
        { pair,  2}
    };
    struct crew crew = { 0 };

    CHECK_OK(t, crew_init(&crew, 5, boards, ARRAY_SIZE(boards)));
    CHECK_INT(t, board_seat(segment_board(crew.members[4].segment, 1)), ==, 2);
    CHECK_INT(t, board_seat(segment_board(crew.members[4].segment, 2)), ==, 1);
    CHECK_INT(t, board_count(segment_board(crew.members[3].segment, 3)), ==, 2);
    CHECK(t, !segment_board(crew.members[0].segment, 2));
    CHECK(t, crew_run(&crew, 0, go_apart));
    crew_join(&crew);
    for (uint32_t i = 0; i < crew.count; i++) {
        CHECK_OK(t, crew.members[i].rc);
        CHECK_INT(t, crew.members[i].wrong, ==, 0);
    }
out:
    crew_release(&crew);
}

static void tells_who_is_behind(struct test *t)
{
    const struct segment_board board = { places, 3 };
    struct crew crew = { 0 };
    uint32_t seats[3] = { 9, 9, 9 };
    uint64_t progress = 9;

    CHECK_OK(t, crew_init(&crew, 3, &board, 1));
    CHECK_INT(t, board_behind(crew.members[0].board, seats, 3, &progress), ==, 0);
    CHECK_INT(t, progress, ==, 0);
    board_arrive(crew.members[1].board);
    CHECK_INT(t, board_behind(crew.members[1].board, seats, 3, &progress), ==, 2);
    CHECK(t, seats[0] == 0 && seats[1] == 2 && progress == 0);
    CHECK_INT(t, board_behind(crew.members[0].board, seats, 3, &progress), ==, 0);
    seats[0] = seats[1] = 9;
    CHECK_INT(t, board_behind(crew.members[1].board, seats, 1, &progress), ==, 2);
    CHECK(t, seats[0] == 0 && seats[1] == 9);
    board_arrive(crew.members[0].board);
    board_arrive(crew.members[2].board);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OK(t, board_await(crew.members[i].board));
    CHECK_INT(t, board_behind(crew.members[1].board, seats, 3, &progress), ==, 0);
    CHECK_INT(t, progress, ==, 1);
out:
    crew_release(&crew);
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
    return atomic_load(&member->board->seats[member->board->seat].waits_for) != 0;
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

static void failure_wakes_sleepers(struct test *t)
{
    const struct segment_board board = { places, 4 };
    struct crew crew = { 0 };

    for (uint32_t by = 0; by < 4; by++) { /* one that waits itself, too */
        CHECK_OK(t, crew_init(&crew, 4, &board, 1));
        CHECK(t, crew_run(&crew, 1, arrive_and_wait));
        for (uint32_t i = 1; i < 4; i++)
            CHECK(t, fell_asleep(&crew.members[i]));
        segment_fail(crew.members[by].segment, HVD_E_LOST, by, "gone");
        crew_join(&crew);
        for (uint32_t i = 1; i < 4; i++)
            CHECK_CODE(t, crew.members[i].rc, HVD_E_REVOKED);
        CHECK_OK(t, board_step(crew.members[0].board)); /* all have come to that one */
        CHECK_CODE(t, board_step(crew.members[0].board), HVD_E_REVOKED);
        crew_release(&crew);
    }
out:
    crew_release(&crew);
}

/* Whom nothing keeps from falling asleep at once. */
static void make_sleepy(struct member *member)
{
    member->board->crowded = true;
    member->board->give_us = -1;
}

/* At any moment of spinning, giving way, and falling asleep. */
static void failure_ends_any_wait(struct test *t)
{
    const struct segment_board board = { places, 2 };
    struct crew crew = { 0 };

    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t until_us;

        CHECK_OK(t, crew_init(&crew, 2, &board, 1));
        if (trial % 2)
            make_sleepy(&crew.members[1]);
        CHECK(t, crew_run(&crew, 1, arrive_and_wait));
        while (!atomic_load(&crew.members[0].board->seats[1].steps)) {
        }
        until_us = clock_now_us() + (trial % 2 ? trial % 3 : trial / 2);
        while (clock_now_us() < until_us) {
        }
        segment_fail(crew.members[trial / 2 % 2].segment, HVD_E_LOST, 0, "gone");
        crew_join(&crew);
        CHECK_CODE(t, crew.members[1].rc, HVD_E_REVOKED);
        crew_release(&crew);
    }
out:
    crew_release(&crew);
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

static void steps_wake_sleepers(struct test *t)
{
    struct crew crew = { 0 };

    for (uint32_t count = 2; count <= 5; count++) {
        const struct segment_board board = { places, count };

        CHECK_OK(t, crew_init(&crew, count, &board, 1));
        CHECK(t, crew_run(&crew, 0, count % 2 ? go_slowly : go_hastily));
        crew_join(&crew);
        for (uint32_t i = 0; i < count; i++)
            CHECK_OK(t, crew.members[i].rc);
        crew_release(&crew);
    }
out:
    crew_release(&crew);
}

/* What one waits for has happened after the last look, and nobody has rung, as it did not sleep. */
static void sleeps_not_at_all(struct test *t)
{
    const struct segment_board board = { places, 2 };
    struct crew crew = { 0 };

    CHECK_OK(t, crew_init(&crew, 2, &board, 1));
    board_arrive(crew.members[0].board);
    board_arrive(crew.members[1].board);
    board_doze(crew.members[0].board, 1);
    CHECK(t, !sleeps(&crew.members[0]));
    board_arrive(crew.members[0].board);
    segment_fail(crew.members[1].segment, HVD_E_LOST, 1, "gone");
    board_doze(crew.members[0].board, 1);
    CHECK(t, !sleeps(&crew.members[0]));
out:
    crew_release(&crew);
}

/* Killed after its step, or after its claim, and before the bell. */
static void nobody_rings(struct test *t)
{
    const struct segment_board board = { places, 2 };
    struct crew crew = { 0 };

    for (int which = 0; which < 2; which++) {
        struct board *ours;

        CHECK_OK(t, crew_init(&crew, 2, &board, 1));
        ours = crew.members[0].board;
        crew.members[1].board->doze_us = BOARD_DOZE_US;
        CHECK(t, crew_run(&crew, 1, arrive_and_wait));
        CHECK(t, fell_asleep(&crew.members[1]));
        if (which == 0)
            atomic_store(&ours->seats[0].steps, 1);
        else
            atomic_store(&ours->segment->head->failure.claim, UINT64_MAX);
        crew_join(&crew);
        CHECK_INT(t, crew.members[1].rc, ==, which == 0 ? 0 : HVD_E_REVOKED);
        crew_release(&crew);
    }
out:
    crew_release(&crew);
}

/* ---- members that are processes ---- */

#define CHILDREN 3

/* Places 1 and up are children, which go in step with us until that ends. */
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

/* Until the seat alone keeps us from going on. */
static bool is_awaited(const struct board *board, uint32_t seat)
{
    int64_t until_us = clock_now_us() + LONG_US;
    uint32_t seats[CHILDREN + 1];
    uint64_t progress;

    while (board_behind(board, seats, CHILDREN + 1, &progress) != 1 || seats[0] != seat) {
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
    if (atomic_load(&board->seats[which + 1].steps) < board->steps)
        return 0;
    rc = board_await(family->board); /* it had made that one ahead of us */
    board_arrive(family->board);
    return rc;
}

static void one_is_killed(struct test *t)
{
    struct family family;
    struct hvd_err why;
    uint32_t rank;

    for (int trial = 0; trial < 10; trial++) {
        int which = trial % CHILDREN;

        CHECK_OK(t, family_init(&family));
        CHECK_OK(t, step_without(&family, which, SIGKILL));
        CHECK_INT(t, ending_of(&family, which), ==, 1);
        CHECK(t, is_awaited(family.board, (uint32_t)which + 1));
        segment_fail(family.segment, HVD_E_LOST, (uint32_t)which + 1, "killed");
        CHECK_CODE(t, board_await(family.board), HVD_E_REVOKED);
        for (int i = 0; i < CHILDREN; i++) {
            if (i != which)
                CHECK_CODE(t, ending_of(&family, i), HVD_E_REVOKED);
        }
        CHECK_CODE(t, segment_failure(family.segment, &rank, &why), HVD_E_LOST);
        family_end(&family);
        memset(&family, 0, sizeof(family));
    }
out:
    family_end(&family);
}

static void one_is_stopped(struct test *t)
{
    struct family family;

    CHECK_OK(t, family_init(&family));
    CHECK_OK(t, step_without(&family, 1, SIGSTOP));
    CHECK(t, is_awaited(family.board, 2));
    segment_fail(family.segment, HVD_E_LOST, 2, "silent");
    CHECK_CODE(t, board_await(family.board), HVD_E_REVOKED);
    CHECK_CODE(t, ending_of(&family, 0), HVD_E_REVOKED);
    CHECK_CODE(t, ending_of(&family, 2), HVD_E_REVOKED);
    CHECK_INT(t, kill(family.pids[1], SIGCONT), ==, 0);
    CHECK_CODE(t, ending_of(&family, 1), HVD_E_REVOKED);
out:
    family_end(&family);
}

/* It goes on as if nothing had been. */
static void one_pauses(struct test *t)
{
    struct family family;

    CHECK_OK(t, family_init(&family));
    CHECK_OK(t, step_without(&family, 0, SIGSTOP));
    CHECK(t, is_awaited(family.board, 1));
    CHECK_INT(t, kill(family.pids[0], SIGCONT), ==, 0);
    CHECK_OK(t, board_await(family.board));
    for (int i = 0; i < 50; i++)
        CHECK_OK(t, board_step(family.board));
    segment_fail(family.segment, HVD_E_REVOKED, UINT32_MAX, "enough");
    for (int i = 0; i < CHILDREN; i++)
        CHECK_CODE(t, ending_of(&family, i), HVD_E_REVOKED);
out:
    family_end(&family);
}

TESTS(NO_TORTURE(all_see_all), NO_TORTURE(groups_go_apart), CASE(tells_who_is_behind),
      NO_TORTURE(failure_wakes_sleepers), NO_TORTURE(failure_ends_any_wait),
      NO_TORTURE(steps_wake_sleepers), CASE(sleeps_not_at_all), NO_TORTURE(nobody_rings),
      NO_TORTURE(one_is_killed), NO_TORTURE(one_is_stopped), NO_TORTURE(one_pauses))
