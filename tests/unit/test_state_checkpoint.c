/*
 * test_state_checkpoint.c: agent/commits/state_checkpoint.c: a FETCH that is answered from the
 * files of a checkpoint. The commit is the one that the worker would have made of the same values.
 */
#include "agent/commits/state_checkpoint.h"

#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/commit.h"
#include "proto/entry_type.h"
#include "state/checkpoint/read.h"
#include "state/snapshot/copy.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"
#include "tests/lib/state_hosts.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMIT (COMMIT_FIRST_OF(3) | 4)
#define SAMPLER_ROOM                                                             \
    (2 * STATE_CHUNK_BYTES) /* so that a chunk of the commit has no bytes at all \
                             */
#define MINE_BYTES 12
#define PATIENCE_S 100

/* The worker's memory, and its snapshots: the one of the slot, and one to compare with. */
static struct {
    struct state_hosts hosts;
    struct manifest manifest;
    struct snapshot *snapshot, *other;
    float weights[CHECKPOINTS_WEIGHTS];
    int64_t step;
    char notes[CHECKPOINTS_NOTES];
    char sampler[64];
    size_t sampler_bytes;
    uint8_t mine[MINE_BYTES];
    struct checkpoint_store *storage;
    char folder[512];
    uint64_t notes_bytes;
    size_t threads; /* of the process, without that of the host */
} scene;

static int64_t save_sampler(void *arg, void *into, size_t room)
{
    (void)arg;
    ASSERT(scene.sampler_bytes <= room);
    memcpy(into, scene.sampler, scene.sampler_bytes);
    return (int64_t)scene.sampler_bytes;
}

static int load_sampler(void *arg, const void *from, size_t bytes)
{
    (void)arg;
    scene.sampler_bytes = bytes < sizeof(scene.sampler) ? bytes : sizeof(scene.sampler);
    memcpy(scene.sampler, from, scene.sampler_bytes);
    return 0;
}

static const struct copy_part parts[] = {
    {.at = scene.mine     },
    { .save = save_sampler, .load = load_sampler },
    { .at = scene.weights                   },
    { .at = &scene.step },
    { .at = scene.notes                   },
};

static size_t threads_now(void)
{
    DIR *dir = opendir("/proc/self/task");
    size_t count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static void begin(struct test *t)
{
    const char *dir = test_dir(t);

    memset(&scene, 0, sizeof(scene));
    manifest_init(&scene.manifest);
    scene.notes_bytes = CHECKPOINTS_NOTES;
    CHECK_OK(t, state_hosts_init(&scene.hosts, 1));
    scene.threads = threads_now() - 1; /* a sanitizer has its own thread by now */
    snprintf(scene.folder, sizeof(scene.folder), CHECKPOINT_ADDRESS_KIND "%s/commit-3.4", dir);
    CHECK_OK(t, checkpoint_store_open(dir, &scene.storage, NULL));
    CHECK_OK(t, checkpoints_write(scene.storage, COMMIT, NULL));
}

/* Waits until the threads of all readings have ended: they are detached. */
static void await_threads(void)
{
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;

    while (threads_now() > scene.threads && clock_now_us() < until_us)
        sched_yield();
}

static void end(struct test *t)
{
    (void)t;
    snapshot_free(scene.snapshot);
    snapshot_free(scene.other);
    state_hosts_release(&scene.hosts);
    await_threads();
    manifest_release(&scene.manifest);
    checkpoint_store_close(scene.storage);
}
FIXTURE(begin, end)

/* The worker registers its entries, in another order than the checkpoint has, and gets its
 * snapshot. */
static void start_worker(struct test *t)
{
    struct snapshot_shape shape;
    int fd;

    CHECK_OK(t, manifest_add_typed(&scene.manifest, "mine", MINE_BYTES, ENTRY_PER_RANK, false,
                                   1 + HVD_INT32, NULL));
    CHECK_OK(t,
             manifest_add(&scene.manifest, "sampler", SAMPLER_ROOM, ENTRY_REPLICATED, true, NULL));
    CHECK_OK(t, manifest_add_typed(&scene.manifest, "weights", sizeof(scene.weights),
                                   ENTRY_REPLICATED, false, 1 + HVD_FLOAT32, NULL));
    CHECK_OK(t, manifest_add(&scene.manifest, "step", 8, ENTRY_REPLICATED, false, NULL));
    CHECK_OK(t, manifest_add(&scene.manifest, "notes", scene.notes_bytes, ENTRY_REPLICATED, false,
                             NULL));
    manifest_seal(&scene.manifest);
    shape = (struct snapshot_shape){ scene.manifest.digest, scene.manifest.replicated_bytes,
                                     scene.manifest.bytes };
    CHECK_OK(t, snapshots_grant(scene.hosts.hosts[0].snapshots, 0, 1, &shape, &fd, NULL));
    CHECK_OK(t, snapshot_open(dup(fd), &shape, &scene.snapshot, NULL));
    CHECK_OK(t, snapshot_create(&shape, &scene.other, NULL));
}

static void ask(struct test *t, uint64_t number, uint32_t rank, uint32_t size)
{
    const char *addresses[] = { scene.folder };
    const struct msg_source source = {
        .host = "", .addresses = {addresses, 1}
    };
    struct msg msg = { .type = MSG_FETCH, .incarnation = 1 };
    struct arena arena;
    int rc;

    arena_init(&arena, 1u << 20);
    msg.u.fetch = (struct msg_fetch){
        .number = number, .commit = COMMIT, .sources = {&source, 1},
                .rank = rank, .size = size
    };
    rc = manifest_entries(&scene.manifest, &arena, &msg.u.fetch.entries);
    if (!rc)
        rc = state_thread_fetch(scene.hosts.hosts[0].thread, 1, 0, &msg);
    arena_release(&arena);
    CHECK_OK(t, rc);
}

static const struct state_answer *answer(struct test *t, size_t count)
{
    CHECK(t, state_wait(&scene.hosts, count));
    return &scene.hosts.answers.items[count - 1];
}

/* Takes the fetched commit as a worker does, and restores the live state from it. */
static void restore(struct test *t, unsigned which)
{
    const struct copy copy = {
        .manifest = &scene.manifest, .parts = parts, .which = which, .threads = 1
    };
    const struct copy mine = {
        .manifest = &scene.manifest, .parts = parts, .which = COPY_PER_RANK, .threads = 1
    };

    if (which == COPY_ALL)
        (void)snapshot_begin(scene.snapshot);
    else
        CHECK_OK(t, copy_commit(scene.snapshot, &mine, NULL));
    snapshot_end(scene.snapshot, COMMIT);
    CHECK_OK(t, copy_restore(scene.snapshot, COMMIT, &copy, NULL));
}

/* The live state has the values of the checkpoint. */
static void check_values(struct test *t, uint32_t rank, bool per_rank)
{
    static float weights[CHECKPOINTS_WEIGHTS];
    struct checkpoint_manifest manifest;
    struct checkpoint_reader *reader = NULL;
    char notes[CHECKPOINTS_NOTES], sampler[64];
    uint8_t mine[MINE_BYTES] = { 0 };
    uint64_t bytes = 0, used = 0;
    int64_t step = 0;
    int rc;

    CHECK_OK(t, checkpoint_load(scene.storage, "commit-3.4", &manifest, NULL));
    rc = checkpoint_reader_open(scene.storage, &manifest, &reader, NULL);
    if (!rc)
        rc = checkpoint_entry_read(reader, "weights", 0, weights, sizeof(weights), &bytes, NULL);
    if (!rc)
        rc = checkpoint_entry_read(reader, "step", 0, &step, 8, &bytes, NULL);
    if (!rc)
        rc = checkpoint_entry_read(reader, "notes", 0, notes, sizeof(notes), &bytes, NULL);
    if (!rc && per_rank)
        rc = checkpoint_entry_read(reader, "mine", rank, mine, MINE_BYTES, &bytes, NULL);
    if (!rc)
        rc = checkpoint_entry_read(reader, "sampler", 0, sampler, sizeof(sampler), &used, NULL);
    checkpoint_reader_close(reader);
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, rc);
    for (size_t i = 0; i < CHECKPOINTS_WEIGHTS; i++)
        CHECK(t, scene.weights[i] == weights[i]);
    CHECK_INT(t, scene.step, ==, step);
    CHECK(t, !memcmp(scene.notes, notes, sizeof(notes)) && !memcmp(scene.mine, mine, MINE_BYTES));
    CHECK_INT(t, scene.sampler_bytes, ==, used);
    CHECK(t, !memcmp(scene.sampler, sampler, used));
}

/* All checksums are those of a commit that the worker makes of the same state. */
static void check_sums(struct test *t)
{
    const struct copy copy = {
        .manifest = &scene.manifest, .parts = parts, .which = COPY_ALL, .threads = 1
    };

    CHECK_OK(t, copy_commit(scene.other, &copy, NULL));
    snapshot_end(scene.other, COMMIT);
    for (uint64_t i = 0; i < scene.manifest.bytes / STATE_CHUNK_BYTES; i++)
        CHECK(t, snapshot_chunk_sum(scene.snapshot, COMMIT, i) ==
                     snapshot_chunk_sum(scene.other, COMMIT, i));
}

TEST_FLAGS(a_checkpoint_becomes_the_commit_of_the_worker, TEST_NO_TORTURE)
{
    start_worker(t);
    for (uint32_t rank = 0; rank < CHECKPOINTS_RANKS; rank++) {
        ask(t, rank + 1, rank, CHECKPOINTS_RANKS);
        CHECK_CODE(t, answer(t, rank + 1)->fetched.code, 0);
        CHECK(t, answer(t, rank + 1)->fetched.per_rank);
        CHECK_TEXT(t, answer(t, rank + 1)->text, "");
        restore(t, COPY_ALL);
        check_values(t, rank, true);
        check_sums(t);
        snapshot_drop(scene.snapshot, COMMIT);
        snapshot_drop(scene.other, COMMIT);
    }
}

TEST_FLAGS(another_number_of_ranks_begins_its_own_entries, TEST_NO_TORTURE)
{
    start_worker(t);
    ask(t, 1, 2, 5);
    CHECK_CODE(t, answer(t, 1)->fetched.code, 0);
    CHECK(t, !answer(t, 1)->fetched.per_rank);
    CHECK_HAS(t, answer(t, 1)->text, "made by 2 ranks, and the round has 5");
    restore(t, COPY_REPLICATED);
    check_values(t, 2, false);
    check_sums(t);
}

TEST_FLAGS(an_entry_of_another_size_is_named, TEST_NO_TORTURE)
{
    scene.notes_bytes = 1000;
    start_worker(t);
    ask(t, 1, 0, 2);
    CHECK_CODE(t, answer(t, 1)->fetched.code, HVD_E_MISMATCH);
    CHECK_HAS(t, answer(t, 1)->text, "\"notes\" has 1000 bytes, and 999 bytes");
}

TEST_FLAGS(a_checkpoint_that_cannot_be_read_is_named, TEST_NO_TORTURE)
{
    char path[600];

    start_worker(t);
    scene.folder[strlen(scene.folder) - 1] = '9';
    ask(t, 1, 0, 2);
    CHECK_CODE(t, answer(t, 1)->fetched.code, HVD_E_NOTFOUND);
    CHECK_HAS(t, answer(t, 1)->text, "commit-3.9");
    scene.folder[strlen(scene.folder) - 1] = '4';
    snprintf(path, sizeof(path), "%s/replicated-0001-of-0002.t1a1.safetensors",
             scene.folder + strlen(CHECKPOINT_ADDRESS_KIND));
    CHECK(t, files_exist(path));
    files_patch(path, 500000, "xyz", 3);
    ask(t, 2, 0, 2);
    CHECK_CODE(t, answer(t, 2)->fetched.code, HVD_E_CORRUPT);
    CHECK_HAS(t, answer(t, 2)->text, "checksum");
}

/* The worker is gone: its successor's buffer is not written, and no answer follows. */
TEST_FLAGS(a_reading_that_is_forgotten_writes_nothing, TEST_NO_TORTURE)
{
    start_worker(t);
    ask(t, 1, 0, 2);
    state_thread_forget(scene.hosts.hosts[0].thread, 1);
    for (uint64_t i = 2; i < 30; i++) {
        ask(t, i, 0, 2); /* each ends the one before */
        if (i % 3 == 0)
            state_thread_forget(scene.hosts.hosts[0].thread, 1);
    }
    for (size_t i = 1; i < 100; i++)
        if (answer(t, i)->fetched.number == 29)
            break;
    CHECK_CODE(t, scene.hosts.answers.items[scene.hosts.answers.count - 1].fetched.code, 0);
    restore(t, COPY_ALL);
    check_values(t, 0, true);
    check_sums(t);
}
