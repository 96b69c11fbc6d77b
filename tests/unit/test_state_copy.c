#include "state/snapshot/copy.h"

#include "base/mem.h"
#include "base/rng.h"
#include "state/snapshot/room.h"
#include "state/sum.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK     STATE_CHUNK_BYTES
#define CELLS_MAX 40

/* An entry and its live memory. A custom one uses some of its room. */
struct cell {
    uint8_t *live; /* not aligned to anything */
    uint8_t *block;
    uint64_t bytes;
    uint64_t used;
    int64_t save_says; /* negative: instead of what it writes */
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

/* What is in a cell after step `step` is a function of that. */
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

static void comes_back(struct test *t)
{
    struct worker worker;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    CHECK_OK(t, commit(&worker, 1));
    worker.cells[3].used = 10;
    CHECK_OK(t, commit(&worker, 2));
    fill(&worker, 3);
    CHECK_OK(t, restore(&worker, 1, NULL));
    CHECK(t, holds(&worker, 1));
    CHECK_INT(t, worker.cells[3].used, ==, 3 * CHUNK / 2);
    CHECK_OK(t, restore(&worker, 2, NULL));
    CHECK(t, holds(&worker, 2));
    CHECK_INT(t, worker.cells[3].used, ==, 10);
    CHECK_INT(t, worker.cells[3].loads, ==, 2);
out:
    worker_release(&worker);
}

static void what_is_not_named_is_no_commit(struct test *t)
{
    struct worker worker;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    CHECK_CODE(t, restore(&worker, 0, NULL), HVD_E_NOTFOUND);
    CHECK_CODE(t, restore(&worker, 1, NULL), HVD_E_NOTFOUND);
    CHECK_OK(t, commit(&worker, 1));
    CHECK_OK(t, copy_commit(worker.snapshot, &worker.copy, NULL));
    CHECK_INT(t, snapshot_newest(worker.snapshot), ==, 1);
    CHECK_CODE(t, restore(&worker, 2, NULL), HVD_E_NOTFOUND);
    CHECK_INT(t, worker.cells[3].loads, ==, 0);
out:
    worker_release(&worker);
}

static void of_nothing_it_works(struct test *t)
{
    struct worker worker;

    worker_init(&worker);
    CHECK_OK(t, add(&worker, 0, ENTRY_REPLICATED, false));
    CHECK_OK(t, start(&worker));
    worker.copy.threads = 0;
    CHECK_INT(t, worker.manifest.bytes, ==, 0);
    CHECK_OK(t, commit(&worker, 1));
    CHECK_OK(t, restore(&worker, 1, NULL));
out:
    worker_release(&worker);
}

/* After a fetch the replicated part is there, and a worker adds its own; and the other way. */
static void takes_one_kind_alone(struct test *t)
{
    struct worker worker;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    CHECK_OK(t, commit(&worker, 1));
    CHECK_OK(t, commit(&worker, 2));
    worker.copy.which = COPY_PER_RANK;
    CHECK_OK(t, commit(&worker, 3)); /* over commit 1 */
    worker.copy.which = COPY_ALL;
    CHECK_OK(t, restore(&worker, 3, NULL));
    CHECK(t, holds_kind(&worker, 3, ENTRY_PER_RANK));
    CHECK(t, holds_kind(&worker, 1, ENTRY_REPLICATED));
    worker.copy.which = COPY_REPLICATED;
    CHECK_OK(t, restore(&worker, 2, NULL));
    CHECK(t, holds_kind(&worker, 3, ENTRY_PER_RANK));
    CHECK(t, holds_kind(&worker, 2, ENTRY_REPLICATED));
    worker.copy.which = COPY_PER_RANK;
    CHECK_OK(t, restore(&worker, 2, NULL));
    CHECK(t, holds(&worker, 2));
out:
    worker_release(&worker);
}

/* ---- custom entries -------------------------------------------------------------------------- */

static void unused_room_takes_no_memory(struct test *t)
{
    struct hvd_err err;
    struct worker worker;
    struct stat st;

    worker_init(&worker);
    CHECK_OK(t, add(&worker, 100 * CHUNK, ENTRY_REPLICATED, true));
    CHECK_OK(t, start(&worker));
    worker.cells[0].used = CHUNK;
    CHECK_OK(t, commit(&worker, 1));
    CHECK(t, !fstat(snapshot_fd(worker.snapshot), &st));
    CHECK_INT(t, (uint64_t)st.st_blocks * 512, <, 8 * CHUNK);
    CHECK(t, snapshot_chunk_sum(worker.snapshot, 1, 1) != SUM_NONE);
    CHECK(t, snapshot_chunk_sum(worker.snapshot, 1, 2) == SUM_NONE);
    worker.cells[0].used = 10 * CHUNK;
    CHECK_OK(t, commit(&worker, 2));
    CHECK_OK(t, commit(&worker, 3));
    worker.cells[0].used = 0;
    CHECK_OK(t, commit(&worker, 4));
    CHECK(t, snapshot_chunk_sum(worker.snapshot, 4, 0) != SUM_NONE);
    CHECK(t, snapshot_chunk_sum(worker.snapshot, 4, 1) == SUM_NONE);
    CHECK(t, snapshot_chunk_sum(worker.snapshot, 3, 10) != SUM_NONE);
    CHECK_OK(t, restore(&worker, 3, &err));
    CHECK(t, holds(&worker, 3));
    CHECK_INT(t, worker.cells[0].used, ==, 10 * CHUNK);
    CHECK_OK(t, restore(&worker, 4, NULL));
    CHECK_INT(t, worker.cells[0].used, ==, 0);
out:
    worker_release(&worker);
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

static void a_save_that_fails_is_no_commit(struct test *t)
{
    struct worker worker;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    CHECK_OK(t, commit(&worker, 1));
    CHECK(t, refuses(&worker, -123, -123, "\"entry 3\": its save function has failed with -123"));
    CHECK(t, refuses(&worker, HVD_E_NOMEM, HVD_E_NOMEM, "out of memory"));
    CHECK(t, refuses(&worker, INT64_MIN, HVD_E_INVAL, "\"entry 3\""));
    CHECK(t, refuses(&worker, 3 * CHUNK + 1, HVD_E_LIMIT, "\"entry 3\""));
    CHECK(t, refuses(&worker, INT64_MAX, HVD_E_LIMIT, "\"entry 3\""));
    CHECK_OK(t, commit(&worker, 2));
    CHECK_OK(t, restore(&worker, 1, NULL));
    CHECK(t, holds(&worker, 1));
out:
    worker_release(&worker);
}

static void a_load_that_fails_is_said(struct test *t)
{
    struct worker worker;
    struct hvd_err err;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    CHECK_OK(t, commit(&worker, 1));
    worker.cells[3].load_says = -55;
    CHECK_CODE(t, restore(&worker, 1, &err), -55);
    CHECK_HAS(t, err.text, "\"entry 3\": its load function has failed with -55");
out:
    worker_release(&worker);
}

/* ---- checksums ------------------------------------------------------------------------------- */

/* Ranks compare them: they depend on nothing that was there before. */
static void equal_states_have_equal_checksums(struct test *t)
{
    struct worker workers[2];
    struct msg_held held[2][2];

    worker_init(&workers[0]);
    worker_init(&workers[1]);
    for (int i = 0; i < 2; i++)
        CHECK_OK(t, some_entries(&workers[i]));
    workers[1].cells[3].used = 3 * CHUNK; /* leaves rubbish behind in both buffers */
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
out:
    worker_release(&workers[0]);
    worker_release(&workers[1]);
}

static uint8_t *bytes_of(struct worker *worker, uint64_t number)
{
    return (uint8_t *)(uintptr_t)snapshot_find(worker->snapshot, number);
}

static void damage_is_found_and_named(struct test *t)
{
    struct worker worker;
    struct hvd_err err;
    uint64_t length = UINT64_MAX;
    uint64_t custom;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    CHECK_OK(t, commit(&worker, 1));
    worker.copy.threads = 2;
    custom = worker.manifest.items[3].offset;
    for (uint64_t at = 5; at < worker.manifest.bytes; at += CHUNK / 2) {
        bool written = snapshot_chunk_sum(worker.snapshot, 1, at / CHUNK) != SUM_NONE;

        bytes_of(&worker, 1)[at] ^= 1;
        CHECK_CODE(t, restore(&worker, 1, &err), written ? HVD_E_CORRUPT : 0);
        bytes_of(&worker, 1)[at] ^= 1;
    }
    bytes_of(&worker, 1)[CHUNK + 1] ^= 1;
    CHECK_CODE(t, restore(&worker, 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "\"entry 0\" of commit 1");
    bytes_of(&worker, 1)[CHUNK + 1] ^= 1;
    memcpy(bytes_of(&worker, 1) + custom, &length, sizeof(length));
    CHECK_CODE(t, restore(&worker, 1, &err), HVD_E_CORRUPT);
    length = worker.cells[3].used;
    memcpy(bytes_of(&worker, 1) + custom, &length, sizeof(length));
    CHECK_OK(t, restore(&worker, 1, &err));
    CHECK(t, holds(&worker, 1));
out:
    worker_release(&worker);
}

/* Somebody who knows how to make checksums can still not make us read or write elsewhere. */
static void a_length_beyond_its_room_is_not_followed(struct test *t)
{
    struct worker worker;
    struct hvd_err err;
    uint64_t length = 3 * CHUNK + 1;
    uint64_t custom;
    uint8_t *bytes;

    worker_init(&worker);
    CHECK_OK(t, some_entries(&worker));
    custom = worker.manifest.items[3].offset;
    worker.cells[3].used = 3 * CHUNK;
    fill(&worker, 1);
    CHECK_OK(t, copy_commit(worker.snapshot, &worker.copy, NULL));
    bytes = snapshot_begin(worker.snapshot);
    memcpy(bytes + custom, &length, sizeof(length));
    snapshot_set_sum(worker.snapshot, custom / CHUNK,
                     sum_of(bytes + custom / CHUNK * CHUNK, CHUNK));
    snapshot_end(worker.snapshot, 1);
    CHECK_CODE(t, restore(&worker, 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "\"entry 3\" of the commit says that it has 3145729 bytes");
    CHECK_INT(t, worker.cells[3].loads, ==, 0);
out:
    worker_release(&worker);
}

/* ---- much of it ------------------------------------------------------------------------------ */

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

static void any_state_comes_back(struct test *t)
{
    struct worker worker;
    struct rng rng;

    worker_init(&worker);
    rng_seed(&rng, 5);
    for (int i = 0; i < 8; i++) {
        CHECK_OK(t, random_entries(&worker, &rng));
        for (uint64_t step = 1; step <= 3; step++) {
            change(&worker, &rng);
            CHECK_OK(t, commit(&worker, step));
        }
        for (uint64_t step = 2; step <= 3; step++) {
            fill(&worker, 9);
            change(&worker, &rng);
            CHECK_OK(t, restore(&worker, step, NULL));
            CHECK(t, holds(&worker, step));
        }
        worker_release(&worker);
        worker_init(&worker);
    }
out:
    worker_release(&worker);
}

/* Memory that was asked for and never written takes none; a commit of it would. */
static void more_than_the_machine_has_is_an_error(struct test *t)
{
    uint64_t bytes = room_left() < LIMIT_STATE_BYTES / 4 ? 2 * room_left() : LIMIT_STATE_BYTES / 2;
    void *live = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct worker worker;
    struct hvd_err err;

    worker_init(&worker);
    if (live == MAP_FAILED)
        goto out; /* there is no such address space to try it with */
    CHECK_OK(t, manifest_add(&worker.manifest, "large", bytes, ENTRY_REPLICATED, false, NULL));
    worker.parts[0].at = live;
    CHECK_OK(t, start(&worker));
    CHECK_CODE(t, copy_commit(worker.snapshot, &worker.copy, &err), HVD_E_NOMEM);
    CHECK_HAS(t, err.text, "of memory left, and a commit needs");
    CHECK_INT(t, snapshot_newest(worker.snapshot), ==, 0);
out:
    worker_release(&worker);
    if (live != MAP_FAILED)
        munmap(live, bytes);
}

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(CASE(comes_back), CASE(what_is_not_named_is_no_commit), CASE(of_nothing_it_works),
      CASE(takes_one_kind_alone), NO_TORTURE(unused_room_takes_no_memory),
      CASE(a_save_that_fails_is_no_commit), CASE(a_load_that_fails_is_said),
      NO_TORTURE(equal_states_have_equal_checksums), NO_TORTURE(damage_is_found_and_named),
      CASE(a_length_beyond_its_room_is_not_followed), NO_TORTURE(any_state_comes_back),
      NO_TORTURE(more_than_the_machine_has_is_an_error))
