/*
 * test_checkpoint_thread.c: agent/checkpoint: commits of real snapshots are held, written to a
 * directory, and read back; and what happens when a worker, the driver or the disk fails.
 */
#include "agent/checkpoint/checkpoint_thread.h"

#include "agent/checkpoint/checkpoint_internal.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "os/clock.h"
#include "proto/commit.h"
#include "proto/entry_type.h"
#include "state/checkpoint/read.h"
#include "state/snapshot/copy.h"
#include "state/snapshot/snapshot_hold.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <dirent.h>
#include <event2/event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLOTS      2
#define WEIGHTS    (3 * STATE_CHUNK_BYTES / 4 + 17) /* numbers of 4 bytes: more than 3 chunks */
#define MINE       1000
#define CUSTOM     300 /* room */
#define ROUND      UINT64_C(7)
#define COMMIT(n)  (COMMIT_FIRST_OF(ROUND) | (n))
#define PATIENCE_S 100

/* One worker: its live state, and its mapping of the snapshot. */
struct trainer {
    struct snapshot *snapshot;
    float *weights;
    uint8_t mine[MINE];
    uint64_t number; /* what its custom entry saves, as text */
};

static struct {
    struct event_base *base;
    struct event *tick;
    struct snapshots *snapshots;
    struct checkpoint_thread *thread;
    struct manifest manifest;
    struct trainer trainers[SLOTS];
    bool runs[SLOTS + 1];
    struct VEC(struct msg) results; /* copies */
    bool starved;
    char folder[LIMIT_PATH_BYTES];
    struct checkpoint_store *storage;
    struct checkpoint_manifest read;
    struct checkpoint_reader *reader;
    struct hvd_err err;
} scene;

/* ---- a disk that hangs ------------------------------------------------------------------------
 */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_closed;
static unsigned gate_waiting;

static void gate_set(bool closed)
{
    pthread_mutex_lock(&gate);
    gate_closed = closed;
    pthread_cond_broadcast(&gate_changed);
    while (!closed && gate_waiting) /* so that no thread of a case outlives it in here */
        pthread_cond_wait(&gate_changed, &gate);
    pthread_mutex_unlock(&gate);
}

static unsigned gate_count(void)
{
    unsigned count;

    pthread_mutex_lock(&gate);
    count = gate_waiting;
    pthread_mutex_unlock(&gate);
    return count;
}

static int open_behind_gate(const char *where, struct checkpoint_store **ret_storage,
                            struct hvd_err *err)
{
    pthread_mutex_lock(&gate);
    gate_waiting++;
    while (gate_closed)
        pthread_cond_wait(&gate_changed, &gate);
    gate_waiting--;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate);
    return checkpoint_store_open(where, ret_storage, err);
}

/* ---- the scene --------------------------------------------------------------------------------
 */

static void on_result(void *arg, const struct msg *result)
{
    (void)arg;
    if (!result || VEC_RESERVE(&scene.results, 1, 1000) ||
        msg_copy(result, &scene.results.items[scene.results.count])) {
        scene.starved = true;
        return;
    }
    scene.results.count++;
}

static bool slot_runs(void *arg, uint32_t slot)
{
    (void)arg;
    return slot <= SLOTS && scene.runs[slot];
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

static const struct checkpoint_ops ops = { on_result, slot_runs };

static void begin(struct test *t)
{
    const struct checkpoint_config *config;

    memset(&scene, 0, sizeof(scene));
    gate_set(false);
    manifest_init(&scene.manifest);
    checkpoint_manifest_init(&scene.read);
    snprintf(scene.folder, sizeof(scene.folder), "%s/commit-7.1", test_dir(t));
    CHECK_OK(t, manifest_add_typed(&scene.manifest, "weights", WEIGHTS * 4, ENTRY_REPLICATED, false,
                                   1 + HVD_FLOAT32, NULL));
    /* a custom entry may have a type, as the progress of a sampler has */
    CHECK_OK(t, manifest_add_typed(&scene.manifest, "progress", CUSTOM, ENTRY_REPLICATED, true,
                                   ENTRY_TYPE_OF(HVD_INT8), NULL));
    CHECK_OK(t, manifest_add(&scene.manifest, "mine", MINE, ENTRY_PER_RANK, false, NULL));
    manifest_seal(&scene.manifest);
    scene.base = event_base_new();
    CHECK(t, scene.base != NULL);
    scene.tick = event_new(scene.base, -1, EV_PERSIST, on_tick, NULL);
    CHECK(t, scene.tick && !event_add(scene.tick, &(struct timeval){ 1, 0 }));
    CHECK_OK(t, snapshots_create(&scene.snapshots, NULL));
    config = &(struct checkpoint_config){ scene.snapshots, open_behind_gate, PATIENCE_S * TIME_S,
                                          2 * PATIENCE_S * TIME_S };
    CHECK_OK(t, checkpoint_thread_start(scene.base, config, &ops, NULL, &scene.thread, NULL));
}

static void end(struct test *t)
{
    (void)t;
    gate_set(false);
    checkpoint_thread_stop(scene.thread);
    for (uint32_t i = 0; i < SLOTS; i++) {
        snapshot_free(scene.trainers[i].snapshot);
        mem_free(scene.trainers[i].weights);
    }
    for (size_t i = 0; i < scene.results.count; i++)
        msg_release(&scene.results.items[i]);
    VEC_RELEASE(&scene.results);
    checkpoint_reader_close(scene.reader);
    checkpoint_manifest_release(&scene.read);
    checkpoint_store_close(scene.storage);
    snapshots_free(scene.snapshots);
    manifest_release(&scene.manifest);
    if (scene.tick)
        event_free(scene.tick);
    if (scene.base)
        event_base_free(scene.base);
}
FIXTURE(begin, end)

static float weight_of(uint64_t commit, size_t i)
{
    return (float)((commit & 0xff) * 100000 + i % 99991);
}

static int64_t save_number(void *arg, void *into, size_t room)
{
    const struct trainer *trainer = arg;

    return snprintf(into, room, "%llu", (unsigned long long)trainer->number);
}

static void train(struct test *t, uint32_t slot)
{
    const struct snapshot_shape shape = { scene.manifest.digest, scene.manifest.replicated_bytes,
                                          scene.manifest.bytes };
    struct trainer *trainer = &scene.trainers[slot];
    int fd;

    CHECK_OK(t, snapshots_grant(scene.snapshots, slot, 1 + slot, &shape, &fd, NULL));
    CHECK_OK(t, snapshot_open(dup(fd), &shape, &trainer->snapshot, NULL));
    trainer->weights = mem_zalloc_array(WEIGHTS, sizeof(float));
    CHECK(t, trainer->weights != NULL);
    scene.runs[slot] = true;
}

/* The worker makes a commit whose bytes are a function of its number. */
static void commit(struct test *t, uint32_t slot, uint64_t number)
{
    struct trainer *trainer = &scene.trainers[slot];
    const struct copy_part parts[] = {
        {.at = trainer->weights},
        { .save = save_number,   .arg = trainer },
        { .at = trainer->mine                    },
    };
    const struct copy copy = {
        .manifest = &scene.manifest, .parts = parts, .which = COPY_ALL, .threads = 1
    };

    for (size_t i = 0; i < WEIGHTS; i++)
        trainer->weights[i] = weight_of(number, i);
    memset(trainer->mine, (int)(number * 16 + slot) & 0xff, sizeof(trainer->mine));
    trainer->number = number;
    CHECK_OK(t, copy_commit(trainer->snapshot, &copy, NULL));
    snapshot_end(trainer->snapshot, number);
}

static void hold(struct test *t, uint64_t number, uint64_t at, size_t slots)
{
    static const uint64_t all[] = { 0, 1, 2 };
    struct msg msg = { .type = MSG_HOLD, .round = ROUND };

    msg.u.hold = (struct msg_hold){
        .number = number, .at = at, .slots = {all, slots}
    };
    CHECK_OK(t, checkpoint_thread_ask(scene.thread, &msg));
}

static void hold_only(struct test *t, uint64_t number, uint64_t at, size_t slots)
{
    static const uint64_t all[] = { 0, 1, 2 };
    struct msg msg = { .type = MSG_HOLD, .round = ROUND };

    msg.u.hold = (struct msg_hold){
        .number = number, .at = at, .only = true, .slots = {all, slots}
    };
    CHECK_OK(t, checkpoint_thread_ask(scene.thread, &msg));
}

static struct msg_entry entry_of(size_t i)
{
    const struct manifest_entry *entry = &scene.manifest.items[i];

    return (struct msg_entry){ .name = entry->name,
                               .bytes = entry->bytes,
                               .kind = entry->kind,
                               .offset = entry->offset,
                               .type = entry->type,
                               .custom = entry->custom };
}

/* SAVE of the entries [from, to) of the manifest. */
static void save(struct test *t, uint64_t number, uint64_t commit, uint32_t slot, const char *name,
                 size_t from, size_t to)
{
    struct msg msg = { .type = MSG_SAVE, .round = ROUND };
    struct msg_entry entries[3];

    for (size_t i = from; i < to; i++)
        entries[i - from] = entry_of(i);
    msg.u.save = (struct msg_save){
        .number = number,
        .commit = commit,
        .slot = slot,
        .folder = scene.folder,
        .name = name,
        .entries = {entries, to - from}
    };
    CHECK_OK(t, checkpoint_thread_ask(scene.thread, &msg));
}

/* Waits until there are so many results, and returns the last one. */
static const struct msg *await(struct test *t, size_t count)
{
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;

    while (scene.results.count < count && !scene.starved && clock_now_us() < until_us)
        event_base_loop(scene.base, EVLOOP_ONCE);
    CHECK_INT(t, scene.results.count, ==, count);
    return &scene.results.items[count - 1];
}

/* Waits until the thread awaits a commit: all holds of a HOLD have begun, or a SAVE gives way. */
static void await_hold(struct test *t)
{
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;
    bool begun = false;

    while (!begun && clock_now_us() < until_us) {
        (void)sched_yield();
        pthread_mutex_lock(&scene.thread->mutex);
        begun = scene.thread->awaited != NULL;
        pthread_mutex_unlock(&scene.thread->mutex);
    }
    CHECK(t, begun);
}

static void await_held(struct test *t, size_t count, uint64_t number, uint64_t commit)
{
    const struct msg *msg = await(t, count);

    CHECK_INT(t, msg->type, ==, MSG_HOLDING);
    CHECK_INT(t, msg->u.holding.number, ==, number);
    CHECK_CODE(t, msg->u.holding.code, 0);
    for (size_t i = 0; i < msg->u.holding.kept.count; i++)
        CHECK_INT(t, msg->u.holding.kept.items[i].commit, ==, commit);
}

static void await_saved(struct test *t, size_t count, int code, const char *part)
{
    const struct msg *msg = await(t, count);

    CHECK_INT(t, msg->type, ==, MSG_SAVED);
    CHECK_CODE(t, msg->u.saved.code, code);
    CHECK_HAS(t, msg->u.saved.text, part);
}

/* ---- in order ---------------------------------------------------------------------------------
 */

/* Completes the checkpoint of the files that were saved, as a driver does, and opens it. */
static void complete(struct test *t, uint64_t commit)
{
    struct checkpoint_file files[3];
    struct msg_entry entries[] = { entry_of(0), entry_of(1), entry_of(2) };
    struct checkpoint_manifest manifest;
    uint64_t sum = 0;
    char where[LIMIT_PATH_BYTES];
    size_t count = 0;

    checkpoint_manifest_init(&manifest);
    for (size_t i = 0; i < scene.results.count; i++) {
        const struct msg *msg = &scene.results.items[i];

        if (msg->type != MSG_SAVED)
            continue;
        files[count] =
            (struct checkpoint_file){ .name = msg->u.saved.name,
                                      .bytes = msg->u.saved.bytes,
                                      .rank = count ? (int32_t)count - 1 : CHECKPOINT_REPLICATED,
                                      .sums = msg->u.saved.sums.at };
        count++;
    }
    manifest.job = "job";
    manifest.commit = commit;
    manifest.ranks = SLOTS;
    manifest.digest = scene.manifest.digest;
    manifest.entries = (struct msg_entry_list){ entries, 3 };
    manifest.files = files;
    manifest.file_count = count;
    snprintf(where, sizeof(where), "%.*s", (int)(strrchr(scene.folder, '/') - scene.folder),
             scene.folder);
    CHECK_OK(t, checkpoint_store_open(where, &scene.storage, NULL));
    CHECK_OK(t, checkpoint_write_manifest(scene.storage, &manifest, &sum, NULL));
    CHECK_OK(t, checkpoint_write_complete(scene.storage, commit, sum, NULL));
    CHECK_OK(t, checkpoint_load(scene.storage, "commit-7.1", &scene.read, &scene.err));
    CHECK_OK(t, checkpoint_reader_open(scene.storage, &scene.read, &scene.reader, &scene.err));
}

/* The checkpoint has the bytes of this commit, though the workers have made others since. */
TEST(a_commit_is_held_written_and_read_back)
{
    uint8_t mine[MINE], wanted[MINE];
    char progress[CUSTOM], number[32];
    uint64_t bytes = 0;
    float *weights;

    for (uint32_t i = 0; i < SLOTS; i++) {
        train(t, i);
        commit(t, i, COMMIT(1));
    }
    hold(t, 3, 0, SLOTS);
    await_held(t, 1, 3, COMMIT(1));
    save(t, 3, COMMIT(1), 0, "replicated", 0, 2);
    for (uint64_t i = 2; i < 7; i++) {
        commit(t, 0, COMMIT(i));
        commit(t, 1, COMMIT(i));
    }
    save(t, 3, COMMIT(1), 0, "rank-0", 2, 3);
    save(t, 3, COMMIT(1), 1, "rank-1", 2, 3);
    await_saved(t, 4, 0, "");
    complete(t, COMMIT(1));

    weights = scene.trainers[0].weights; /* the live state is not needed any more */
    CHECK_OK(t, checkpoint_entry_read(scene.reader, "weights", 0, weights, WEIGHTS * 4, &bytes,
                                      &scene.err));
    for (size_t i = 0; i < WEIGHTS; i++)
        CHECK(t, weights[i] == weight_of(COMMIT(1), i));
    CHECK_OK(t, checkpoint_entry_read(scene.reader, "progress", 0, progress, CUSTOM, &bytes,
                                      &scene.err));
    snprintf(number, sizeof(number), "%llu", (unsigned long long)COMMIT(1));
    CHECK_INT(t, bytes, ==, strlen(number));
    CHECK(t, !memcmp(progress, number, bytes));
    for (uint32_t i = 0; i < SLOTS; i++) {
        CHECK_OK(t, checkpoint_entry_read(scene.reader, "mine", i, mine, MINE, &bytes, &scene.err));
        memset(wanted, (int)(COMMIT(1) * 16 + i) & 0xff, MINE);
        CHECK(t, bytes == MINE && !memcmp(mine, wanted, MINE));
    }
    checkpoint_thread_release(scene.thread, 3);
}

TEST_FLAGS(a_hold_waits_for_the_commit_of_all_slots, TEST_NO_TORTURE)
{
    train(t, 0);
    train(t, 1);
    commit(t, 0, COMMIT(1));
    commit(t, 1, COMMIT(1));
    hold(t, 1, COMMIT(3), SLOTS);
    await_hold(t);
    commit(t, 0, COMMIT(2));
    commit(t, 0, COMMIT(3));
    commit(t, 0, COMMIT(4));
    CHECK_INT(t, scene.results.count, ==, 0);
    for (uint64_t i = 2; i < 6; i++)
        commit(t, 1, COMMIT(i));
    await_held(t, 1, 1, COMMIT(3));
    hold(t, 1, COMMIT(3), SLOTS); /* asked twice: the same commits */
    await_held(t, 2, 1, COMMIT(3));
    hold(t, 2, 0, 1); /* ends the attempt before */
    await_held(t, 3, 2, COMMIT(4));
    save(t, 1, COMMIT(3), 0, "late", 0, 1);
    save(t, 2, COMMIT(4), 0, "part", 0, 1);
    await_saved(t, 4, 0, "");
    CHECK_TEXT(t, scene.results.items[3].u.saved.name, "part");
}

/* ---- what may fail -----------------------------------------------------------------------------
 */

TEST(a_release_ends_a_hold_that_waits)
{
    train(t, 0);
    hold(t, 1, COMMIT(9), 1);
    checkpoint_thread_release(scene.thread, 1);
    hold(t, 2, COMMIT(9), 1);
    hold(t, 3, 0, 1); /* also ends one that waits */
    commit(t, 0, COMMIT(1));
    await_held(t, 1, 3, COMMIT(1));
    checkpoint_thread_release(scene.thread, 2); /* comes late */
    save(t, 3, COMMIT(1), 0, "part", 0, 1);
    await_saved(t, 2, 0, "");
}

TEST(a_worker_that_has_ended_makes_no_commit)
{
    const struct msg *msg;

    train(t, 0);
    train(t, 1);
    commit(t, 0, COMMIT(1));
    commit(t, 1, COMMIT(1));
    hold(t, 1, COMMIT(2), SLOTS);
    commit(t, 0, COMMIT(2));
    scene.runs[1] = false;
    checkpoint_thread_ended(scene.thread, 1);
    msg = await(t, 1);
    CHECK_CODE(t, msg->u.holding.code, HVD_E_LOST);
    CHECK_HAS(t, msg->u.holding.text, "slot 1");
    hold(t, 2, COMMIT(2), SLOTS); /* no worker runs there any more */
    CHECK_CODE(t, await(t, 2)->u.holding.code, HVD_E_LOST);
    hold(t, 3, 0, 1); /* a worker dies while its commit is held */
    await_held(t, 3, 3, COMMIT(2));
    checkpoint_thread_ended(scene.thread, 0);
    save(t, 3, COMMIT(2), 0, "part", 0, 3);
    await_saved(t, 4, 0, "");
}

/* One of the dead workers was a commit ahead: the commit before is kept for both. */
TEST(dead_workers_keep_the_commit_that_both_have)
{
    train(t, 0);
    train(t, 1);
    for (uint64_t i = 1; i <= 3; i++)
        commit(t, 0, COMMIT(i));
    for (uint64_t i = 1; i <= 2; i++)
        commit(t, 1, COMMIT(i));
    for (uint32_t slot = 0; slot < 2; slot++) {
        scene.runs[slot] = false;
        checkpoint_thread_ended(scene.thread, slot);
    }
    hold_only(t, 1, COMMIT(2), 2);
    await_held(t, 1, 1, COMMIT(2));
    save(t, 1, COMMIT(2), 0, "part", 0, 3);
    await_saved(t, 2, 0, "");
    hold_only(t, 2, COMMIT(1), 2); /* written over long ago */
    CHECK_CODE(t, await(t, 3)->u.holding.code, HVD_E_NOTFOUND);
}

/* A commit that is still to come is not awaited. */
TEST(only_a_commit_that_is_there_is_kept)
{
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold_only(t, 1, COMMIT(2), 1);
    CHECK_CODE(t, await(t, 1)->u.holding.code, HVD_E_NOTFOUND);
}

TEST_FLAGS(a_slot_without_state_has_nothing_to_hold, TEST_NO_TORTURE)
{
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 2);
    CHECK_CODE(t, await(t, 1)->u.holding.code, HVD_E_NOTFOUND);
    save(t, 1, COMMIT(1), 0, "part", 0, 1); /* the failed hold keeps nothing */
    await_saved(t, 2, HVD_E_STATE, "keeps no commit");
}

TEST_FLAGS(a_save_that_does_not_fit_is_refused, TEST_NO_TORTURE)
{
    struct msg msg = { .type = MSG_SAVE, .round = ROUND };
    struct msg_entry entry;

    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    save(t, 1, COMMIT(2), 0, "part", 0, 1);
    await_saved(t, 2, HVD_E_STATE, "and the driver asks for commit");
    save(t, 1, COMMIT(1), 1, "part", 0, 1);
    await_saved(t, 3, HVD_E_STATE, "slot 1 keeps no commit");
    for (int i = 0; i < 3; i++) {
        entry = entry_of((size_t)i);
        entry.offset = i == 0 ? UINT64_MAX - 3 : entry.offset;
        entry.bytes = i == 1 ? UINT64_MAX - 7 : i == 2 ? STATE_CHUNK_BYTES + 1 : entry.bytes;
        msg.u.save = (struct msg_save){
            .number = 1,
            .commit = COMMIT(1),
            .folder = scene.folder,
            .name = "part",
            .entries = {&entry, 1}
        };
        CHECK_OK(t, checkpoint_thread_ask(scene.thread, &msg));
        await_saved(t, 4 + (size_t)i, HVD_E_INVAL, "does not lie in the commit");
    }
    save(t, 1, COMMIT(1), 0, "../part", 0, 1);
    CHECK(t, await(t, 7)->u.saved.code < 0);
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    await_saved(t, 8, 0, "");
}

/* tests/unit/test_checkpoint_storage.c has more ways in which a directory fails. */
TEST_FLAGS(a_directory_that_cannot_be_written_is_named, TEST_NO_TORTURE)
{
    char *slash = strrchr(scene.folder, '/');

    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    snprintf(slash, 32, "/missing/commit-7.1");
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    await_saved(t, 2, HVD_E_NOTFOUND, "missing");
    snprintf(slash, 32, "/commit-7.1");
    files_write(scene.folder, "", 0); /* a file is in the way */
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    CHECK(t, await(t, 3)->u.saved.code < 0);
    CHECK_HAS(t, scene.results.items[2].u.saved.text, "commit-7.1");
    CHECK(t, !unlink(scene.folder));
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    await_saved(t, 4, 0, "");
}

TEST_FLAGS(a_commit_that_was_changed_is_not_saved, TEST_NO_TORTURE)
{
    char path[LIMIT_PATH_BYTES + 16];
    uint8_t *byte;

    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    byte = (uint8_t *)(uintptr_t)snapshot_find(scene.trainers[0].snapshot, COMMIT(1));
    byte[2 * STATE_CHUNK_BYTES + 9] ^= 1;
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    await_saved(t, 2, HVD_E_CORRUPT, "chunk 2 is wrong");
    snprintf(path, sizeof(path), "%s/part", scene.folder);
    CHECK(t, !files_exist(path));
    save(t, 1, COMMIT(1), 0, "part", 2, 3); /* an entry that lies elsewhere */
    await_saved(t, 3, 0, "");
}

/* ---- a commit beside a write -------------------------------------------------------------------
 */

/* Attempt 1 holds commit 1, and the write of its file waits for the next commit, which has begun.
 */
static void save_beside_a_commit(struct test *t)
{
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    (void)snapshot_begin(scene.trainers[0].snapshot);
    save(t, 1, COMMIT(1), 0, "part", 0, 3);
    await_hold(t);
}

TEST_FLAGS(a_save_gives_way_to_a_commit, TEST_NO_TORTURE)
{
    save_beside_a_commit(t);
    CHECK_INT(t, scene.results.count, ==, 1);
    commit(t, 0, COMMIT(2));
    await_saved(t, 2, 0, "");
}

/* A worker that was killed in a commit leaves the commit open for ever. */
TEST_FLAGS(a_save_does_not_wait_for_a_dead_worker, TEST_NO_TORTURE)
{
    save_beside_a_commit(t);
    checkpoint_thread_ended(scene.thread, 0);
    await_saved(t, 2, 0, "");
}

TEST_FLAGS(a_save_that_waits_ends_with_its_attempt, TEST_NO_TORTURE)
{
    save_beside_a_commit(t);
    checkpoint_thread_release(scene.thread, 1);
    await_saved(t, 2, HVD_E_REVOKED, "");
    hold(t, 2, 0, 1);
    await_held(t, 3, 2, COMMIT(1));
}

/* A training that does little but commits still gets its checkpoints. */
TEST_FLAGS(a_save_waits_for_a_bounded_time, TEST_NO_TORTURE)
{
    scene.thread->config.give_way_us = 0;
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    (void)snapshot_begin(scene.trainers[0].snapshot);
    save(t, 1, COMMIT(1), 0, "part", 0, 3);
    await_saved(t, 2, 0, "");
}

/* The worker has taken its held buffer back, and the end of its commit is not told any more. */
TEST_FLAGS(a_save_does_not_wait_without_its_commit, TEST_NO_TORTURE)
{
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    commit(t, 0, COMMIT(2));
    (void)snapshot_begin(scene.trainers[0].snapshot);
    save(t, 1, COMMIT(1), 0, "part", 0, 3);
    await_hold(t);
    CHECK(t, snapshot_take_back(scene.trainers[0].snapshot));
    await_saved(t, 2, HVD_E_NOMEM, "slot 0");
}

/* ---- a disk that hangs -------------------------------------------------------------------------
 */

/* Waits until the thread is in the disk. */
static void await_hanging(struct test *t)
{
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;

    while (!gate_count() && clock_now_us() < until_us)
        sched_yield();
    CHECK_INT(t, gate_count(), ==, 1);
}

/* Attempt 1 holds commit 1, and the write of its file hangs. */
static void hang_in_a_save(struct test *t)
{
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    gate_set(true);
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    await_hanging(t);
}

/* The list of messages is full while the disk hangs: one more message is dropped, although the call
 * returns 0. Even a dropped HOLD ends the earlier attempts, so the thread comes back. */
TEST_FLAGS(a_message_too_many_is_dropped, TEST_NO_TORTURE)
{
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;
    size_t waiting = 1;

    hang_in_a_save(t);
    for (int i = 0; i < LIMIT_CHECKPOINT_TASKS; i++)
        save(t, 1, COMMIT(1), 0, "late", 0, 1);
    CHECK_INT(t, scene.thread->asked_count, ==, LIMIT_CHECKPOINT_TASKS);
    hold(t, 2, 0, 1);
    CHECK_INT(t, scene.thread->asked_count, ==, LIMIT_CHECKPOINT_TASKS);
    CHECK_INT(t, scene.thread->wanted, ==, 2);
    gate_set(false);
    while (waiting && clock_now_us() < until_us) {
        (void)sched_yield();
        pthread_mutex_lock(&scene.thread->mutex);
        waiting = scene.thread->asked_count;
        pthread_mutex_unlock(&scene.thread->mutex);
    }
    CHECK_INT(t, waiting, ==, 0);
    hold(t, 3, 0, 1);
    /* The messages that waited, and the dropped one, have no result. */
    await_held(t, 3, 3, COMMIT(1));
    CHECK_CODE(t, scene.results.items[1].u.saved.code, HVD_E_REVOKED);
}

TEST_FLAGS(a_worker_without_memory_ends_the_hold, TEST_NO_TORTURE)
{
    train(t, 0);
    commit(t, 0, COMMIT(1));
    hold(t, 1, 0, 1);
    await_held(t, 1, 1, COMMIT(1));
    commit(t, 0, COMMIT(2));
    gate_set(true);
    save(t, 1, COMMIT(1), 0, "part", 0, 1);
    await_hanging(t);
    CHECK(t, snapshot_take_back(scene.trainers[0].snapshot));
    commit(t, 0, COMMIT(3));
    gate_set(false);
    await_saved(t, 2, HVD_E_NOMEM, "slot 0");
    hold(t, 2, 0, 1);
    await_held(t, 3, 2, COMMIT(3));
}

/* While a write hangs, the loop goes on, and the workers commit. */
TEST_FLAGS(a_write_that_hangs_holds_up_nothing_else, TEST_NO_TORTURE)
{
    hang_in_a_save(t);
    checkpoint_thread_release(scene.thread, 1);
    hold(t, 2, 0, 1);
    checkpoint_thread_ended(scene.thread, 0);
    for (uint64_t i = 2; i < 6; i++)
        commit(t, 0, COMMIT(i));
    gate_set(false);
    CHECK_INT(t, await(t, 3)->type, ==, MSG_HOLDING); /* after the SAVED that no driver awaits */
    CHECK_INT(t, scene.results.items[2].u.holding.number, ==, 2);
}

/* Returns the number of threads of this process. */
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

/* The agent ends while a write hangs: it does not wait for the disk. The write ends later. */
TEST_FLAGS(an_agent_ends_while_a_write_hangs, TEST_NO_TORTURE)
{
    int64_t until_us = clock_now_us() + PATIENCE_S * TIME_S;
    size_t threads;

    hang_in_a_save(t);
    threads = threads_now();
    scene.thread->config.stop_us = TIME_S / 10;
    checkpoint_thread_stop(scene.thread);
    scene.thread = NULL;
    CHECK_INT(t, gate_count(), ==, 1);
    CHECK_INT(t, scene.results.count, ==, 1);
    gate_set(false);
    while (threads_now() == threads && clock_now_us() < until_us)
        sched_yield();
    CHECK_INT(t, threads_now(), ==, threads - 1); /* it has freed all that it had */
}
