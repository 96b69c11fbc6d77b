#include "agent/io/snapshots.h"

#include "base/limits.h"
#include "tests/lib/test.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CHUNK ((uint64_t)STATE_CHUNK_BYTES)

static struct snapshots *snapshots;
static struct snapshot *worker; /* as the one that was granted last maps it */
static struct arena arena;

static int begin(void)
{
    worker = NULL;
    snapshots = NULL;
    arena_init(&arena, 64 * 1024);
    return snapshots_create(&snapshots, NULL);
}

static void end(void)
{
    snapshot_free(worker);
    snapshots_free(snapshots);
    arena_release(&arena);
}

/* The incarnation asks for one chunk of this manifest. */
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

static void a_successor_finds_what_was_committed(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, ask(3, 7, 9, NULL));
    CHECK_INT(t, snapshots_newest(snapshots, 3), ==, 0);
    commit(70);
    CHECK_INT(t, snapshots_newest(snapshots, 3), ==, 70);
    CHECK_OK(t, ask(3, 7, 9, NULL)); /* the same again */
    CHECK_INT(t, snapshot_newest(worker), ==, 70);
    CHECK_OK(t, ask(3, 8, 9, NULL));
    CHECK_INT(t, snapshot_newest(worker), ==, 70);
    CHECK(t, finds(3, 9, 70));
    CHECK(t, !finds(3, 9, 71));
    CHECK(t, !finds(3, 8, 70));
    CHECK(t, !finds(2, 9, 70));
    CHECK(t, !finds(1000, 9, 70));
    CHECK(t, !finds(3, 9, 0));
out:
    end();
}

static void a_worker_has_one_manifest(struct test *t)
{
    struct hvd_err err;

    CHECK_OK(t, begin());
    CHECK_OK(t, ask(0, 8, 9, NULL));
    CHECK_CODE(t, ask(0, 8, 10, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "it was granted a snapshot of another manifest");
    CHECK_CODE(t, ask(0, 7, 9, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "a later worker runs in its slot");
out:
    end();
}

static void an_older_commit_stays_until_there_is_a_newer_one(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    CHECK_OK(t, ask(0, 8, 10, NULL));
    CHECK_INT(t, snapshot_newest(worker), ==, 0);
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 70);
    CHECK(t, finds(0, 9, 70));
    CHECK_OK(t, ask(0, 9, 11, NULL)); /* a third one: that of 10 held nothing */
    CHECK(t, finds(0, 9, 70));
    commit(90);
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 90);
    snapshots_tidy(snapshots, 0);
    CHECK(t, !finds(0, 9, 70));
    CHECK(t, finds(0, 11, 90));
out:
    end();
}

static void a_manifest_that_comes_back_finds_its_own(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    CHECK_OK(t, ask(0, 8, 10, NULL));
    CHECK_OK(t, ask(0, 9, 9, NULL));
    CHECK_INT(t, snapshot_newest(worker), ==, 70);
out:
    end();
}

static void what_is_kept_is_told_by_slot(struct test *t)
{
    struct msg_kept_list kept = { NULL, 1 };

    CHECK_OK(t, begin());
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
out:
    end();
}

static void who_left_is_kept_for_a_while(struct test *t)
{
    const int64_t now_us = 1000;

    CHECK_OK(t, begin());
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    snapshots_left(snapshots, 0, now_us);
    snapshots_left(snapshots, 9, now_us); /* that never asked */
    snapshots_tidy(snapshots, now_us + SNAPSHOTS_LEFT_US - 1);
    CHECK(t, finds(0, 9, 70));
    CHECK_OK(t, ask(0, 8, 9, NULL)); /* somebody follows after all */
    snapshots_tidy(snapshots, now_us + SNAPSHOTS_LEFT_US);
    CHECK(t, finds(0, 9, 70));
    snapshots_left(snapshots, 0, now_us);
    snapshots_tidy(snapshots, now_us + SNAPSHOTS_LEFT_US);
    CHECK(t, !finds(0, 9, 70));
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 0);
out:
    end();
}

static void what_was_found_stays_until_it_is_put_down(struct test *t)
{
    struct shared_snapshot *found = NULL;
    struct shared_snapshot *granted = NULL;

    CHECK_OK(t, begin());
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
out:
    shared_snapshot_put_down(found);
    shared_snapshot_put_down(granted);
    end();
}

static void a_shape_that_cannot_be_is_refused(struct test *t)
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

    CHECK_OK(t, begin());
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK_CODE(t, snapshots_grant(snapshots, 0, 7, &cases[i].shape, &fd, NULL), cases[i].code);
    CHECK_INT(t, fd, ==, -1);
    CHECK_OK(t, ask(0, 7, 9, NULL)); /* and one that can be is granted then */
out:
    end();
}

static void without_memory_the_reason_is_said(struct test *t)
{
    const struct rlimit small = { CHUNK, CHUNK };
    struct hvd_err err = { 0 };

    CHECK_OK(t, begin());
    CHECK_OK(t, ask(0, 7, 9, NULL));
    commit(70);
    CHECK_INT(t, setrlimit(RLIMIT_FSIZE, &small), ==, 0);
    CHECK_CODE(t, ask(0, 8, 10, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "ulimit -f");
    CHECK(t, finds(0, 9, 70)); /* nothing was lost for it */
out:
    end();
}

static void no_bytes_are_a_snapshot_too(struct test *t)
{
    const struct snapshot_shape shape = { 9, 0, 0 };
    int fd = -1;

    CHECK_OK(t, begin());
    CHECK_OK(t, snapshots_grant(snapshots, 0, 7, &shape, &fd, NULL));
    CHECK_OK(t, snapshot_open(dup(fd), &shape, &worker, NULL));
    commit(70);
    CHECK_INT(t, snapshots_newest(snapshots, 0), ==, 70);
    CHECK(t, finds(0, 9, 70));
out:
    end();
}

TESTS(CASE(a_successor_finds_what_was_committed), CASE(a_worker_has_one_manifest),
      CASE(an_older_commit_stays_until_there_is_a_newer_one),
      CASE(a_manifest_that_comes_back_finds_its_own), CASE(what_is_kept_is_told_by_slot),
      CASE(who_left_is_kept_for_a_while), CASE(what_was_found_stays_until_it_is_put_down),
      CASE(a_shape_that_cannot_be_is_refused),
      CASE_FLAGS(without_memory_the_reason_is_said, TEST_NO_TORTURE),
      CASE(no_bytes_are_a_snapshot_too))
