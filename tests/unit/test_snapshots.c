/*
 * test_snapshots.c: the snapshots that an agent keeps for its workers: what a successor finds,
 * which commits stay, and what the driver hears. A manifest is the layout of a state.
 */
#include "agent/commits/snapshots.h"

#include "base/limits.h"
#include "tests/lib/fixture.h"

#include <sys/resource.h>
#include <unistd.h>

#define CHUNK ((uint64_t)STATE_CHUNK_BYTES)

static struct snapshots *snapshots;
static struct snapshot *worker; /* as the worker of the last grant maps it */
static struct arena arena;

static void begin_case(struct test *t)
{
    worker = NULL;
    snapshots = NULL;
    arena_init(&arena, 64 * 1024);
    CHECK_OK(t, snapshots_create(&snapshots, NULL));
}

/* A worker asks for a snapshot of one chunk with this manifest. */
static int ask(uint32_t slot, uint64_t incarnation, uint64_t manifest, struct hvd_err *err)
{
    const struct snapshot_shape shape = { manifest, CHUNK, CHUNK };
    int fd = -1;
    int rc = snapshots_grant(snapshots, slot, incarnation, &shape, &fd, err);

    if (rc)
        return rc;
    snapshot_free(worker);
    worker = NULL;
    return snapshot_open(dup(fd), &shape, &worker, err);
}

static void commit(uint64_t number)
{
    snapshot_begin(worker);
    snapshot_end(worker, number);
}

static bool finds(uint32_t slot, uint64_t manifest, uint64_t number)
{
    struct shared_snapshot *shared = snapshots_find(snapshots, slot, manifest, number);
    bool found = shared && snapshot_find(shared_snapshot_of(shared), number);

    shared_snapshot_put_down(shared);
    return found;
}

static struct shared_snapshot *found, *granted;

static void end_case(struct test *t)
{
    (void)t;
    shared_snapshot_put_down(found);
    shared_snapshot_put_down(granted);
    found = granted = NULL;
    snapshot_free(worker);
    snapshots_free(snapshots);
    arena_release(&arena);
}
FIXTURE(begin_case, end_case)

TEST(a_successor_finds_what_was_committed)
{
    CHECK_OK(t, ask(3, 7, 9, NULL));
    CHECK_INT(t, snapshots_newest(snapshots, 3), ==, 0);
    commit(70);
    CHECK_INT(t, snapshots_newest(snapshots, 3), ==, 70);
    CHECK_OK(t, ask(3, 7, 9, NULL)); /* asked again */
    CHECK_INT(t, snapshot_newest(worker), ==, 70);
    CHECK_OK(t, ask(3, 8, 9, NULL));
    CHECK_INT(t, snapshot_newest(worker), ==, 70);
    CHECK(t, finds(3, 9, 70));
    CHECK(t, !finds(3, 9, 71));
    CHECK(t, !finds(3, 8, 70));
    CHECK(t, !finds(2, 9, 70));
    CHECK(t, !finds(1000, 9, 70));
    CHECK(t, !finds(3, 9, 0));
}

TEST(a_worker_has_one_manifest)
{
    struct hvd_err err;

    CHECK_OK(t, ask(0, 8, 9, NULL));
    CHECK_CODE(t, ask(0, 8, 10, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "this worker already has a snapshot");
    CHECK_CODE(t, ask(0, 7, 9, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "a later worker has taken this worker's slot");
}

TEST(an_older_commit_stays_until_there_is_a_newer_one)
{
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    CHECK_OK(t, ask(0, 8, 10, NULL));
    CHECK_INT(t, snapshot_newest(worker), ==, 0);
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 70);
    CHECK(t, finds(0, 9, 70));
    CHECK_OK(t, ask(0, 9, 11, NULL)); /* a third manifest: the snapshot of manifest 10 was empty */
    CHECK(t, finds(0, 9, 70));
    commit(90);
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 90);
    snapshots_tidy(snapshots, 0);
    CHECK(t, !finds(0, 9, 70));
    CHECK(t, finds(0, 11, 90));
}

TEST(a_manifest_that_comes_back_finds_its_own)
{
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    CHECK_OK(t, ask(0, 8, 10, NULL));
    CHECK_OK(t, ask(0, 9, 9, NULL));
    CHECK_INT(t, snapshot_newest(worker), ==, 70);
}

TEST(kept_commits_are_told_by_slot)
{
    struct msg_kept_list kept = { NULL, 1 };

    CHECK_OK(t, snapshots_kept(snapshots, &arena, &kept));
    CHECK_INT(t, kept.count, ==, 0);
    CHECK_OK(t, ask(5, 7, 9, NULL));
    commit(70);
    CHECK_OK(t, ask(2, 8, 9, NULL));
    CHECK_OK(t, ask(1, 9, 9, NULL));
    commit(71);
    CHECK_OK(t, snapshots_kept(snapshots, &arena, &kept));
    CHECK_INT(t, kept.count, ==, 2);
    CHECK_INT(t, kept.items[0].slot, ==, 1);
    CHECK_INT(t, kept.items[0].commit, ==, 71);
    CHECK_INT(t, kept.items[1].slot, ==, 5);
    CHECK_INT(t, kept.items[1].commit, ==, 70);
}

TEST(the_snapshot_of_a_left_worker_is_kept_for_a_while)
{
    const int64_t now_us = 1000;

    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    snapshots_left(snapshots, 0, now_us);
    snapshots_left(snapshots, 9, now_us); /* a worker that never asked */
    snapshots_tidy(snapshots, now_us + SNAPSHOTS_LEFT_US - 1);
    CHECK(t, finds(0, 9, 70));
    CHECK_OK(t, ask(0, 8, 9, NULL)); /* a worker follows after all */
    snapshots_tidy(snapshots, now_us + SNAPSHOTS_LEFT_US);
    CHECK(t, finds(0, 9, 70));
    snapshots_left(snapshots, 0, now_us);
    snapshots_tidy(snapshots, now_us + SNAPSHOTS_LEFT_US);
    CHECK(t, !finds(0, 9, 70));
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 0);
}

TEST(a_found_snapshot_stays_until_it_is_put_down)
{
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    found = snapshots_find(snapshots, 0, 9, 70);
    granted = snapshots_granted(snapshots, 0, 7);
    CHECK(t, found && found == granted);
    CHECK(t, !snapshots_granted(snapshots, 0, 8));
    CHECK(t, !snapshots_granted(snapshots, 1, 7));
    snapshots_left(snapshots, 0, 0);
    snapshots_tidy(snapshots, SNAPSHOTS_LEFT_US);
    CHECK_INT(t, snapshot_newest(shared_snapshot_of(found)), ==, 70);
}

TEST(an_impossible_shape_is_refused)
{
    const struct {
        struct snapshot_shape shape;
        int code;
    } cases[] = {
        {{ 0, CHUNK, CHUNK },                      HVD_E_INVAL},
        { { 1, CHUNK, CHUNK + 1 },                 HVD_E_INVAL},
        { { 1, 5, CHUNK },                         HVD_E_INVAL},
        { { 1, 2 * CHUNK, CHUNK },                 HVD_E_INVAL},
        { { 1, CHUNK, LIMIT_STATE_BYTES + CHUNK }, HVD_E_LIMIT},
    };
    int fd = -1;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK_CODE(t, snapshots_grant(snapshots, 0, 7, &cases[i].shape, &fd, NULL), cases[i].code);
    CHECK_INT(t, fd, ==, -1);
    CHECK_OK(t, ask(0, 7, 9, NULL)); /* a possible request is granted then */
}

TEST_FLAGS(a_lack_of_memory_is_reported, TEST_NO_TORTURE)
{
    const struct rlimit small = { CHUNK, CHUNK };
    struct hvd_err err = { 0 };

    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    CHECK_INT(t, setrlimit(RLIMIT_FSIZE, &small), ==, 0);
    CHECK_CODE(t, ask(0, 8, 10, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "ulimit -f");
    CHECK(t, finds(0, 9, 70)); /* the refusal has cost no commit */
}

TEST(no_bytes_are_a_snapshot_too)
{
    const struct snapshot_shape shape = { 9, 0, 0 };
    int fd = -1;

    CHECK_OK(t, snapshots_grant(snapshots, 0, 7, &shape, &fd, NULL));
    CHECK_OK(t, snapshot_open(dup(fd), &shape, &worker, NULL));
    commit(70);
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 70);
    CHECK(t, finds(0, 9, 70));
}
