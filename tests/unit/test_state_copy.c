/*
 * test_state_copy.c: copying a training state into a snapshot and back: entries of every kind,
 * saves that fail, damage that is found and reported. A cell is an entry of the test.
 */
#include "state/snapshot/copy.h"

#include "base/mem.h"
#include "base/rng.h"
#include "state/snapshot/memory_left.h"
#include "state/sum.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK     STATE_CHUNK_BYTES
#define CELLS_MAX 40

/* An entry and its memory in the program. A custom entry uses a part of its room. */
struct cell {
    uint8_t *live; /* at an odd address */
    uint8_t *block;
    uint64_t bytes;
    uint64_t used;
    int64_t save_says; /* negative: the save fails with this code */
    int load_says;
    int loads;
    bool custom;
};

struct worker {
    struct manifest manifest;
    struct snapshot *snapshot;
    struct cell cells[CELLS_MAX];
    struct copy_part parts[CELLS_MAX];
    struct copy copy;
    size_t count;
    uint64_t commit;
};

static int64_t save(void *arg, void *into, size_t room)
{
    struct cell *cell = arg;

    if (cell->save_says)
        return cell->save_says;
    if (cell->used > room)
        return HVD_E_LIMIT;
    memcpy(into, cell->live, cell->used);
    return (int64_t)cell->used;
}

static int load(void *arg, const void *from, size_t bytes)
{
    struct cell *cell = arg;

    cell->loads++;
    cell->used = bytes;
    memcpy(cell->live, from, bytes);
    return cell->load_says;
}

static void worker_init(struct worker *worker)
{
    *worker = (struct worker){ .commit = 0 };
    manifest_init(&worker->manifest);
    worker->copy = (struct copy){
        .manifest = &worker->manifest, .parts = worker->parts, .which = COPY_ALL, .threads = 1
    };
}

static void worker_release(struct worker *worker)
{
    snapshot_free(worker->snapshot);
    manifest_release(&worker->manifest);
    for (size_t i = 0; i < worker->count; i++)
        mem_free(worker->cells[i].block);
}

/* Adds an entry to the manifest and its cell to the worker; `custom`: with save and load
 * functions. */
static int add(struct worker *worker, uint64_t bytes, uint32_t kind, bool custom)
{
    struct cell *cell = &worker->cells[worker->count];
    char name[16];
    int rc;

    snprintf(name, sizeof(name), "entry %zu", worker->count);
    rc = manifest_add(&worker->manifest, name, bytes, kind, custom, NULL);
    if (rc)
        return rc;
    cell->block = mem_zalloc(bytes + 64);
    if (!cell->block)
        return HVD_E_NOMEM;
    cell->live = cell->block + worker->count * 7 % 64;
    cell->bytes = bytes;
    cell->custom = custom;
    cell->used = custom ? bytes / 2 : bytes;
    worker->parts[worker->count++] =
        custom ? (struct copy_part){ .save = save, .load = load, .arg = cell }
               : (struct copy_part){ .at = bytes ? cell->live : NULL };
    return 0;
}

static int start(struct worker *worker)
{
    struct snapshot_shape shape;

    manifest_seal(&worker->manifest);
    shape = (struct snapshot_shape){ worker->manifest.digest, worker->manifest.replicated_bytes,
                                     worker->manifest.bytes };
    return snapshot_create(&shape, &worker->snapshot, NULL);
}

/* Returns byte i of a cell after step `step`. */
static uint8_t byte_at(size_t cell, uint64_t step, uint64_t i)
{
    return (uint8_t)(cell * 31 + step * 7 + i + (i >> 8) * 3 + (i >> 16) * 5);
}

static void fill(struct worker *worker, uint64_t step)
{
    for (size_t i = 0; i < worker->count; i++)
        for (uint64_t k = 0; k < worker->cells[i].used; k++)
            worker->cells[i].live[k] = byte_at(i, step, k);
}

static bool holds_kind(const struct worker *worker, uint64_t step, uint32_t kind)
{
    for (size_t i = 0; i < worker->count; i++)
        for (uint64_t k = 0; k < worker->cells[i].used; k++)
            if (worker->manifest.items[i].kind == kind &&
                worker->cells[i].live[k] != byte_at(i, step, k))
                return false;
    return true;
}

static bool holds(const struct worker *worker, uint64_t step)
{
    return holds_kind(worker, step, ENTRY_REPLICATED) && holds_kind(worker, step, ENTRY_PER_RANK);
}

static int commit(struct worker *worker, uint64_t step)
{
    int rc;

    fill(worker, step);
    rc = copy_commit(worker->snapshot, &worker->copy, NULL);
    if (!rc)
        snapshot_end(worker->snapshot, ++worker->commit);
    return rc;
}

static int restore(struct worker *worker, uint64_t number, struct hvd_err *err)
{
    return copy_restore(worker->snapshot, number, &worker->copy, err);
}

static int some_entries(struct worker *worker)
{
    int rc = add(worker, 2 * CHUNK + 100, ENTRY_REPLICATED, false);

    if (!rc)
        rc = add(worker, 8, ENTRY_PER_RANK, false);
    if (!rc)
        rc = add(worker, 0, ENTRY_REPLICATED, false);
    if (!rc)
        rc = add(worker, 3 * CHUNK, ENTRY_REPLICATED, true);
    return rc ? rc : start(worker);
}

static struct worker own;

static void end_case(struct test *t)
{
    (void)t;
    worker_release(&own);
}
FIXTURE(NULL, end_case)

TEST(comes_back)
{
    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    CHECK_OK(t, commit(&own, 1));
    own.cells[3].used = 10;
    CHECK_OK(t, commit(&own, 2));
    fill(&own, 3);
    CHECK_OK(t, restore(&own, 1, NULL));
    CHECK(t, holds(&own, 1));
    CHECK_INT(t, own.cells[3].used, ==, 3 * CHUNK / 2);
    CHECK_OK(t, restore(&own, 2, NULL));
    CHECK(t, holds(&own, 2));
    CHECK_INT(t, own.cells[3].used, ==, 10);
    CHECK_INT(t, own.cells[3].loads, ==, 2);
}

TEST(an_unnamed_copy_is_no_commit)
{
    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    CHECK_CODE(t, restore(&own, 0, NULL), HVD_E_NOTFOUND);
    CHECK_CODE(t, restore(&own, 1, NULL), HVD_E_NOTFOUND);
    CHECK_OK(t, commit(&own, 1));
    CHECK_OK(t, copy_commit(own.snapshot, &own.copy, NULL));
    CHECK_INT(t, snapshot_newest(own.snapshot), ==, 1);
    CHECK_CODE(t, restore(&own, 2, NULL), HVD_E_NOTFOUND);
    CHECK_INT(t, own.cells[3].loads, ==, 0);
}

TEST(a_state_of_no_entries_works)
{
    worker_init(&own);
    CHECK_OK(t, add(&own, 0, ENTRY_REPLICATED, false));
    CHECK_OK(t, start(&own));
    own.copy.threads = 0;
    CHECK_INT(t, own.manifest.bytes, ==, 0);
    CHECK_OK(t, commit(&own, 1));
    CHECK_OK(t, restore(&own, 1, NULL));
}

/* A fetch brings the replicated entries, and the worker adds its own entries; and the other way
 * round. */
TEST(takes_one_kind_alone)
{
    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    CHECK_OK(t, commit(&own, 1));
    CHECK_OK(t, commit(&own, 2));
    own.copy.which = COPY_PER_RANK;
    CHECK_OK(t, commit(&own, 3)); /* replaces commit 1 */
    own.copy.which = COPY_ALL;
    CHECK_OK(t, restore(&own, 3, NULL));
    CHECK(t, holds_kind(&own, 3, ENTRY_PER_RANK));
    CHECK(t, holds_kind(&own, 1, ENTRY_REPLICATED));
    own.copy.which = COPY_REPLICATED;
    CHECK_OK(t, restore(&own, 2, NULL));
    CHECK(t, holds_kind(&own, 3, ENTRY_PER_RANK));
    CHECK(t, holds_kind(&own, 2, ENTRY_REPLICATED));
    own.copy.which = COPY_PER_RANK;
    CHECK_OK(t, restore(&own, 2, NULL));
    CHECK(t, holds(&own, 2));
}

/* ---- custom entries -------------------------------------------------------------------------- */

/* A custom entry with much unused room: chunks without content have no checksum and take no memory,
 * and each restore gives the right length. */
TEST_FLAGS(unused_room_takes_no_memory, TEST_NO_TORTURE)
{
    struct hvd_err err;
    struct stat st;

    worker_init(&own);
    CHECK_OK(t, add(&own, 100 * CHUNK, ENTRY_REPLICATED, true));
    CHECK_OK(t, start(&own));
    own.cells[0].used = CHUNK;
    CHECK_OK(t, commit(&own, 1));
    CHECK(t, !fstat(snapshot_fd(own.snapshot), &st));
    CHECK_INT(t, (uint64_t)st.st_blocks * 512, <, 8 * CHUNK);
    CHECK(t, snapshot_chunk_sum(own.snapshot, 1, 1) != SUM_NONE);
    CHECK(t, snapshot_chunk_sum(own.snapshot, 1, 2) == SUM_NONE);
    own.cells[0].used = 10 * CHUNK;
    CHECK_OK(t, commit(&own, 2));
    CHECK_OK(t, commit(&own, 3));
    own.cells[0].used = 0;
    CHECK_OK(t, commit(&own, 4));
    CHECK(t, snapshot_chunk_sum(own.snapshot, 4, 0) != SUM_NONE);
    CHECK(t, snapshot_chunk_sum(own.snapshot, 4, 1) == SUM_NONE);
    CHECK(t, snapshot_chunk_sum(own.snapshot, 3, 10) != SUM_NONE);
    CHECK_OK(t, restore(&own, 3, &err));
    CHECK(t, holds(&own, 3));
    CHECK_INT(t, own.cells[0].used, ==, 10 * CHUNK);
    CHECK_OK(t, restore(&own, 4, NULL));
    CHECK_INT(t, own.cells[0].used, ==, 0);
}

static bool refuses(struct worker *worker, int64_t save_says, int code, const char *said)
{
    struct hvd_err err = { 0 };
    bool refused;

    worker->cells[3].save_says = save_says;
    refused = copy_commit(worker->snapshot, &worker->copy, &err) == code &&
              test_has_text(err.text, said) && snapshot_newest(worker->snapshot) == 1;
    worker->cells[3].save_says = 0;
    return refused;
}

TEST(a_save_that_fails_is_no_commit)
{
    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    CHECK_OK(t, commit(&own, 1));
    CHECK(t, refuses(&own, -123, -123,
                     "\"entry 3\": the save function of this entry has failed with -123"));
    CHECK(t, refuses(&own, HVD_E_NOMEM, HVD_E_NOMEM, "out of memory"));
    CHECK(t, refuses(&own, INT64_MIN, HVD_E_INVAL, "\"entry 3\""));
    CHECK(t, refuses(&own, 3 * CHUNK + 1, HVD_E_LIMIT, "\"entry 3\""));
    CHECK(t, refuses(&own, INT64_MAX, HVD_E_LIMIT, "\"entry 3\""));
    CHECK_OK(t, commit(&own, 2));
    CHECK_OK(t, restore(&own, 1, NULL));
    CHECK(t, holds(&own, 1));
}

TEST(a_load_that_fails_is_said)
{
    struct hvd_err err;

    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    CHECK_OK(t, commit(&own, 1));
    own.cells[3].load_says = -55;
    CHECK_CODE(t, restore(&own, 1, &err), -55);
    CHECK_HAS(t, err.text, "\"entry 3\": its load function has failed with -55");
}

/* ---- checksums ------------------------------------------------------------------------------- */

/* Ranks compare their checksums, so a checksum must not depend on earlier contents. */
TEST_FLAGS(equal_states_have_equal_checksums, TEST_NO_TORTURE)
{
    struct worker workers[2];
    struct msg_held held[2][2];

    worker_init(&workers[0]);
    worker_init(&workers[1]);
    for (int i = 0; i < 2; i++)
        CHECK_OK(t, some_entries(&workers[i]));
    workers[1].cells[3].used = 3 * CHUNK; /* leaves old bytes behind in both buffers */
    CHECK_OK(t, commit(&workers[1], 8));
    CHECK_OK(t, commit(&workers[1], 9));
    workers[0].copy.threads = 3;
    for (int i = 0; i < 2; i++) {
        workers[i].cells[3].used = 12345;
        CHECK_OK(t, commit(&workers[i], 1));
        CHECK_INT(t, snapshot_held(workers[i].snapshot, held[i]), >=, 1);
        for (uint64_t k = 0; k < 6; k++)
            CHECK(t, snapshot_chunk_sum(workers[i].snapshot, workers[i].commit, k) ==
                         snapshot_chunk_sum(workers[0].snapshot, workers[0].commit, k));
    }
    CHECK(t, held[0][0].checksum == held[1][0].checksum);
    worker_release(&workers[0]);
    worker_release(&workers[1]);
}

static uint8_t *bytes_of(struct worker *worker, uint64_t number)
{
    return (uint8_t *)(uintptr_t)snapshot_find(worker->snapshot, number);
}

/* One bit changes in each written chunk: restore reports damage and names the entry and commit. A
 * changed bit in an unused chunk does not matter. */
TEST_FLAGS(damage_is_found_and_named, TEST_NO_TORTURE)
{
    struct hvd_err err;
    uint64_t length = UINT64_MAX;
    uint64_t custom;

    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    CHECK_OK(t, commit(&own, 1));
    own.copy.threads = 2;
    custom = own.manifest.items[3].offset;
    for (uint64_t at = 5; at < own.manifest.bytes; at += CHUNK / 2) {
        bool written = snapshot_chunk_sum(own.snapshot, 1, at / CHUNK) != SUM_NONE;

        bytes_of(&own, 1)[at] ^= 1;
        CHECK_CODE(t, restore(&own, 1, &err), written ? HVD_E_CORRUPT : 0);
        bytes_of(&own, 1)[at] ^= 1;
    }
    bytes_of(&own, 1)[CHUNK + 1] ^= 1;
    CHECK_CODE(t, restore(&own, 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "\"entry 0\" of commit 0.1");
    bytes_of(&own, 1)[CHUNK + 1] ^= 1;
    memcpy(bytes_of(&own, 1) + custom, &length, sizeof(length));
    CHECK_CODE(t, restore(&own, 1, &err), HVD_E_CORRUPT);
    length = own.cells[3].used;
    memcpy(bytes_of(&own, 1) + custom, &length, sizeof(length));
    CHECK_OK(t, restore(&own, 1, &err));
    CHECK(t, holds(&own, 1));
}

/* A process may write a wrong length with a right checksum: the reader must not read or write
 * outside the entry. */
TEST(a_length_beyond_its_room_is_not_followed)
{
    struct hvd_err err;
    uint64_t length = 3 * CHUNK + 1;
    uint64_t custom;
    uint8_t *bytes;

    worker_init(&own);
    CHECK_OK(t, some_entries(&own));
    custom = own.manifest.items[3].offset;
    own.cells[3].used = 3 * CHUNK;
    fill(&own, 1);
    CHECK_OK(t, copy_commit(own.snapshot, &own.copy, NULL));
    bytes = snapshot_begin(own.snapshot);
    memcpy(bytes + custom, &length, sizeof(length));
    snapshot_set_sum(own.snapshot, custom / CHUNK, sum_of(bytes + custom / CHUNK * CHUNK, CHUNK));
    snapshot_end(own.snapshot, 1);
    CHECK_CODE(t, restore(&own, 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "\"entry 3\" has 3145729 bytes in the commit");
    CHECK_INT(t, own.cells[3].loads, ==, 0);
}

/* ---- large states ---- */

static int random_entries(struct worker *worker, struct rng *rng)
{
    size_t count = 1 + rng_below(rng, CELLS_MAX - 1);
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        uint64_t most = rng_below(rng, 8) ? 5000 : 3 * CHUNK;
        uint64_t bytes = rng_below(rng, 6) ? rng_below(rng, most) : 64 * rng_below(rng, 3);

        rc = add(worker, bytes, (uint32_t)rng_below(rng, ENTRY_KIND_COUNT), rng_below(rng, 4) == 0);
    }
    return rc ? rc : start(worker);
}

static void change(struct worker *worker, struct rng *rng)
{
    worker->copy.threads = (unsigned)rng_below(rng, 4);
    for (size_t i = 0; i < worker->count; i++)
        if (worker->cells[i].custom)
            worker->cells[i].used = rng_below(rng, worker->cells[i].bytes + 1);
}

TEST_FLAGS(any_state_comes_back, TEST_NO_TORTURE)
{
    struct rng rng;

    worker_init(&own);
    rng_seed(&rng, 5);
    for (int i = 0; i < 8; i++) {
        CHECK_OK(t, random_entries(&own, &rng));
        for (uint64_t step = 1; step <= 3; step++) {
            change(&own, &rng);
            CHECK_OK(t, commit(&own, step));
        }
        for (uint64_t step = 2; step <= 3; step++) {
            fill(&own, 9);
            change(&own, &rng);
            CHECK_OK(t, restore(&own, step, NULL));
            CHECK(t, holds(&own, step));
        }
        worker_release(&own);
        worker_init(&own);
    }
}

/* Memory that was never written takes no room, but a commit of it would. */
TEST_FLAGS(more_than_the_machine_has_is_an_error, TEST_NO_TORTURE)
{
    uint64_t bytes =
        memory_left() < LIMIT_STATE_BYTES / 4 ? 2 * memory_left() : LIMIT_STATE_BYTES / 2;
    void *live = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct hvd_err err;

    worker_init(&own);
    if (live == MAP_FAILED)
        test_leave(t); /* this machine's address space is too small */
    CHECK_OK(t, manifest_add(&own.manifest, "large", bytes, ENTRY_REPLICATED, false, NULL));
    own.parts[0].at = live;
    CHECK_OK(t, start(&own));
    CHECK_CODE(t, copy_commit(own.snapshot, &own.copy, &err), HVD_E_NOMEM);
    CHECK_HAS(t, err.text, "of memory left, and a commit needs");
    CHECK_INT(t, snapshot_newest(own.snapshot), ==, 0);
    if (live != MAP_FAILED)
        munmap(live, bytes);
}
