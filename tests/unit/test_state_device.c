/* Commits and restores of entries in device memory, directly from and to the device. */
#include "state/snapshot/copy.h"

#include "base/rng.h"
#include "os/thread.h"
#include "state/sum.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"
#include "tests/lib/gpu_state.h"

#include <stdio.h>
#include <string.h>

#define CHUNK STATE_CHUNK_BYTES

static struct gpu_state state;

static size_t left_behind(void)
{
    return fake_gpu_live("memory") + fake_gpu_live("streams") + fake_gpu_live("events") +
           fake_gpu_live("pinned");
}

/* Adds entries from the second on to the device, and between them entries of the host, in the same
 * chunks. */
static int some_entries(struct gpu_state *some)
{
    int rc = gpu_state_add(some, 100, ENTRY_REPLICATED, ON_HOST);

    if (!rc)
        rc = gpu_state_add(some, 2 * CHUNK + 100, ENTRY_REPLICATED, ON_DEVICE);
    if (!rc)
        rc = gpu_state_add(some, 8, ENTRY_PER_RANK, ON_DEVICE);
    if (!rc)
        rc = gpu_state_add(some, 0, ENTRY_REPLICATED, ON_DEVICE);
    if (!rc)
        rc = gpu_state_add(some, CHUNK, ENTRY_REPLICATED, CUSTOM);
    if (!rc)
        rc = gpu_state_add(some, 777, ENTRY_REPLICATED, ON_DEVICE);
    if (!rc)
        rc = gpu_state_add(some, 65, ENTRY_PER_RANK, ON_HOST);
    return rc ? rc : gpu_state_start(some);
}

/* ---- there and back -------------------------------------------------------------------------- */

/* TEST_SURVIVES_ALLOC: without memory for its list no memory is pinned. */

static struct gpu_state other;

static void end_case(struct test *t)
{
    (void)t;
    fake_gpu_faults(NULL);
    gpu_state_release(&state);
    gpu_state_release(&other);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(comes_back, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    CHECK_OK(t, gpu_state_commit(&state, 2, NULL));
    gpu_state_fill(&state, 3);
    CHECK_OK(t, gpu_state_restore(&state, 1, NULL));
    CHECK(t, gpu_state_holds_all(&state, 1));
    CHECK_OK(t, gpu_state_restore(&state, 2, NULL));
    CHECK(t, gpu_state_holds_all(&state, 2));
    gpu_state_release(&state);
    state = (struct gpu_state){ .count = 0 };
    CHECK_INT(t, left_behind(), ==, 0);
}

TEST_FLAGS(takes_one_kind_alone, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    CHECK_OK(t, gpu_state_commit(&state, 2, NULL));
    state.copy.which = COPY_PER_RANK;
    CHECK_OK(t, gpu_state_commit(&state, 3, NULL)); /* replaces commit 1 */
    state.copy.which = COPY_ALL;
    CHECK_OK(t, gpu_state_restore(&state, 3, NULL));
    CHECK(t, gpu_state_holds(&state, 3, ENTRY_PER_RANK));
    CHECK(t, gpu_state_holds(&state, 1, ENTRY_REPLICATED));
    state.copy.which = COPY_REPLICATED;
    CHECK_OK(t, gpu_state_restore(&state, 2, NULL));
    CHECK(t, gpu_state_holds(&state, 3, ENTRY_PER_RANK));
    CHECK(t, gpu_state_holds(&state, 2, ENTRY_REPLICATED));
}

/* One rank has the state on a device, another rank in memory of the host: their commits are
 * equal. */
TEST_FLAGS(a_commit_is_the_same_bytes_from_anywhere, TEST_NO_TORTURE)
{
    struct msg_held held[2][2];
    uint64_t chunks;

    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_init(&other, false));
    CHECK_OK(t, some_entries(&other));
    CHECK(t, state.manifest.digest == other.manifest.digest);
    CHECK_OK(t, gpu_state_commit(&state, 8, NULL)); /* leaves other bytes behind */
    CHECK_OK(t, gpu_state_commit(&state, 9, NULL));
    CHECK_OK(t, gpu_state_commit(&state, 10, NULL));
    CHECK_OK(t, gpu_state_commit(&other, 10, NULL));
    chunks = state.manifest.bytes / CHUNK;
    for (uint64_t i = 0; i < chunks; i++)
        CHECK(t, snapshot_chunk_sum(state.snapshot, 10, i) ==
                     snapshot_chunk_sum(other.snapshot, 10, i));
    for (uint64_t i = 0; i < chunks; i++)
        if (snapshot_chunk_sum(other.snapshot, 10, i) != SUM_NONE)
            CHECK(t, !memcmp(snapshot_find(state.snapshot, 10) + i * CHUNK,
                             snapshot_find(other.snapshot, 10) + i * CHUNK, CHUNK));
    CHECK_INT(t, snapshot_held(state.snapshot, held[0]), ==, 2);
    CHECK_INT(t, snapshot_held(other.snapshot, held[1]), ==, 1);
    CHECK(t, held[0][0].checksum == held[1][0].checksum);
}

TEST(a_state_of_no_entries_works)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, gpu_state_add(&state, 0, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_start(&state));
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    CHECK_OK(t, gpu_state_restore(&state, 1, NULL));
}

/* ---- large and random states ---- */

static int random_entries(struct gpu_state *some, struct rng *rng)
{
    size_t count = 1 + rng_below(rng, GPU_STATE_ENTRIES - 1);
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        uint64_t most = rng_below(rng, 8) ? 5000 : 5 * CHUNK;
        uint64_t bytes = rng_below(rng, 6) ? rng_below(rng, most) : 64 * rng_below(rng, 3);

        rc = gpu_state_add(some, bytes, (uint32_t)rng_below(rng, ENTRY_KIND_COUNT),
                           rng_below(rng, 3)   ? ON_DEVICE
                           : rng_below(rng, 2) ? CUSTOM
                                               : ON_HOST);
    }
    return rc ? rc : gpu_state_start(some);
}

TEST_FLAGS(any_state_comes_back, TEST_NO_TORTURE)
{
    struct rng rng;

    rng_seed(&rng, 5);
    for (int i = 0; i < 8; i++) {
        CHECK_OK(t, gpu_state_init(&state, true));
        CHECK_OK(t, random_entries(&state, &rng));
        for (uint64_t step = 1; step <= 3; step++) {
            state.copy.threads = (unsigned)rng_below(&rng, 4);
            CHECK_OK(t, gpu_state_commit(&state, step, NULL));
        }
        for (uint64_t step = 2; step <= 3; step++) {
            gpu_state_fill(&state, 9);
            CHECK_OK(t, gpu_state_restore(&state, step, NULL));
            CHECK(t, gpu_state_holds_all(&state, step));
        }
        gpu_state_release(&state);
        state = (struct gpu_state){ .count = 0 };
    }
    CHECK_INT(t, left_behind(), ==, 0);
}

/* More pieces than can be copied at the same time, and several threads that wait for them. */
TEST_FLAGS(more_than_is_under_way_at_once, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, gpu_state_add(&state, 3 * CHUNK + 5, ENTRY_REPLICATED, ON_HOST));
    CHECK_OK(t, gpu_state_add(&state, 70 * CHUNK + 3, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_add(&state, 9 * CHUNK, ENTRY_PER_RANK, ON_DEVICE));
    CHECK_OK(t, gpu_state_start(&state));
    state.copy.threads = 4;
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    gpu_state_fill(&state, 2);
    CHECK_OK(t, gpu_state_restore(&state, 1, NULL));
    CHECK(t, gpu_state_holds_all(&state, 1));
}

/* ---- pinned memory --------------------------------------------------------------------------- */

TEST_FLAGS(device_visible_memory_is_pinned_once, TEST_NO_TORTURE)
{
    size_t pinned;

    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    pinned = fake_gpu_live("pinned");
    CHECK_INT(t, pinned, >, 0);
    CHECK_OK(t, gpu_state_commit(&state, 2, NULL));
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 2 * pinned);
    CHECK_OK(t, gpu_state_commit(&state, 3, NULL));
    CHECK_OK(t, gpu_state_restore(&state, 2, NULL));
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 2 * pinned);
    CHECK(t, gpu_state_holds_all(&state, 2));
}

/* The device has no part in a custom entry, so the entry's room must not become memory. */
/* Each block of memory is pinned by its own call, which other threads wait for. One copy must lie
 * in one block. */
TEST_FLAGS(much_is_pinned_bit_by_bit, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t,
             gpu_state_add(&state, 2 * DEVICE_COPY_PIN_BYTES + CHUNK, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_start(&state));
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 3);
    gpu_state_fill(&state, 2);
    CHECK_OK(t, gpu_state_restore(&state, 1, NULL));
    CHECK(t, gpu_state_holds_all(&state, 1));
}

TEST_FLAGS(unused_room_is_not_pinned, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, gpu_state_add(&state, 100, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_add(&state, 50 * CHUNK, ENTRY_REPLICATED, CUSTOM));
    CHECK_OK(t, gpu_state_add(&state, 100, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_start(&state));
    state.entries[1].used = 10;
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 2);
    (void)snapshot_begin(state.snapshot); /* the other buffer, which is unchanged */
    CHECK_INT(t, snapshot_room(state.snapshot), <, 4 * CHUNK);
    snapshot_end(state.snapshot, 2);
    (void)snapshot_begin(state.snapshot);
    CHECK_INT(t, snapshot_room(state.snapshot), <, 5 * CHUNK);
}

TEST_FLAGS(a_lack_of_pinned_memory_is_only_slower, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    fake_gpu_faults("pin:fail");
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    CHECK_OK(t, gpu_state_commit(&state, 2, NULL));
    CHECK_INT(t, fake_gpu_live("pinned"), ==, 0);
    CHECK_OK(t, gpu_state_restore(&state, 1, NULL));
    CHECK(t, gpu_state_holds_all(&state, 1));
}

/* ---- faults ---- */

/* Commits with a fault at the n-th call of a kind. true: the call came, and the commit failed with
 * the text. */
static bool commit_fails(struct test *t, const char *call, int n, const char *says)
{
    struct hvd_err err = { 0 };
    char fault[64];
    bool failed = true;

    snprintf(fault, sizeof(fault), "%s#%d:%s", call, n, says);
    fake_gpu_faults(fault);
    if (gpu_state_commit(&state, 5, &err)) {
        CHECK_CODE(t, err.code, HVD_E_IO);
        CHECK_HAS(t, err.text, "CUDA_ERROR");
        CHECK_INT(t, snapshot_newest(state.snapshot), ==, 4);
    } else {
        failed = false;
        snapshot_drop(state.snapshot, 5);
    }
    fake_gpu_faults(NULL);
    (void)!device_copy_settle(state.device_copy, NULL); /* only clears the faults */
    return failed;
}

TEST_FLAGS(a_driver_that_fails_is_no_commit, TEST_NO_TORTURE)
{
    int copies = 0;
    int events = 0;

    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_commit(&state, 3, NULL));
    CHECK_OK(t, gpu_state_commit(&state, 4, NULL));
    while (commit_fails(t, "copy", copies + 1, "fail"))
        copies++;
    while (commit_fails(t, "event", events + 1, "fail"))
        events++;
    CHECK_INT(t, copies, >=, 3); /* one copy for each entry on the device */
    CHECK_INT(t, events, >=, 2);
    CHECK_OK(t, gpu_state_restore(&state, 4, NULL));
    CHECK(t, gpu_state_holds_all(&state, 4));
    CHECK_OK(t, gpu_state_commit(&state, 6, NULL));
    CHECK_OK(t, gpu_state_restore(&state, 6, NULL));
    CHECK(t, gpu_state_holds_all(&state, 6));
}

TEST_FLAGS(the_entry_is_named, TEST_NO_TORTURE)
{
    struct hvd_err err = { 0 };

    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, gpu_state_add(&state, 20 * CHUNK, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_add(&state, 80 * CHUNK, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_start(&state));
    fake_gpu_faults("copy#13:fail"); /* pieces of 8 chunks, and a piece with the end of an entry */
    CHECK_CODE(t, gpu_state_commit(&state, 1, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "entry \"entry 1\": ");
    CHECK_HAS(t, err.text, "a copy to the host: CUDA_ERROR");
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 0);
    fake_gpu_faults(NULL);
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    fake_gpu_faults("copy#30:fail");
    CHECK_CODE(t, gpu_state_restore(&state, 1, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "entry \"entry 1\": ");
    CHECK_HAS(t, err.text, "a copy to the device: CUDA_ERROR");
}

/* Loses the device at any call, and while a thread waits for a copy that never ends. */
static void *lose_device(void *arg)
{
    (void)arg;
    fake_gpu_faults("device:lost");
    return NULL;
}

TEST_FLAGS(a_device_that_is_lost_is_an_error, TEST_NO_TORTURE)
{
    struct hvd_err err = { 0 };
    pthread_t thread;
    int calls = 0;

    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_commit(&state, 3, NULL));
    CHECK_OK(t, gpu_state_commit(&state, 4, NULL));
    while (commit_fails(t, "device", calls + 1, "lost"))
        calls++;
    CHECK_INT(t, calls, >, 10);
    CHECK_OK(t, gpu_state_commit(&state, 6, NULL));
    fake_gpu_faults("copy#2:hang");
    CHECK_OK(t, thread_start(&thread, 0, lose_device, NULL));
    CHECK_CODE(t, gpu_state_commit(&state, 7, &err), HVD_E_IO);
    CHECK_OK(t, pthread_join(thread, NULL));
    CHECK_HAS(t, err.text, "CUDA_ERROR");
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 6);
    CHECK_CODE(t, gpu_state_restore(&state, 6, &err), HVD_E_IO);
}

/* Wrong bytes do not reach the device. */
TEST_FLAGS(damage_is_found_before_it_is_loaded, TEST_NO_TORTURE)
{
    struct hvd_err err = { 0 };
    uint8_t *bytes;
    uint64_t at;

    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, some_entries(&state));
    CHECK_OK(t, gpu_state_commit(&state, 1, NULL));
    bytes = (uint8_t *)(uintptr_t)snapshot_find(state.snapshot, 1);
    at = state.manifest.items[2].offset; /* an entry of this rank on the device */
    bytes[at] ^= 1;
    gpu_state_fill(&state, 2);
    CHECK_CODE(t, gpu_state_restore(&state, 1, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "entry \"entry 2\" of commit 0.1: the checksum of chunk");
    CHECK(t, gpu_state_holds(&state, 2, ENTRY_PER_RANK));
    bytes[at] ^= 1;
    CHECK_OK(t, gpu_state_restore(&state, 1, &err));
    CHECK(t, gpu_state_holds_all(&state, 1));
}
