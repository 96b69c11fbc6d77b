/* A slot: a copy of the whole state, whose entries of a device stay on that device. */
#include "state/snapshot/slot.h"

#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"
#include "tests/lib/gpu_state.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define CHUNK STATE_CHUNK_BYTES

static struct gpu_state state;
static struct slot *slot;
static atomic_bool may_end; /* the kernel of a case may end */

static void begin(struct test *t)
{
    slot = NULL;
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, gpu_state_add(&state, 100, ENTRY_REPLICATED, ON_HOST));
    CHECK_OK(t, gpu_state_add(&state, CHUNK + 100, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_add(&state, 8, ENTRY_PER_RANK, ON_DEVICE));
    CHECK_OK(t, gpu_state_add(&state, 0, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_add(&state, CHUNK, ENTRY_REPLICATED, CUSTOM));
    CHECK_OK(t, gpu_state_add(&state, 65, ENTRY_PER_RANK, ON_HOST));
    CHECK_OK(t, gpu_state_start(&state));
}

static void end(struct test *t)
{
    (void)t;
    atomic_store(&may_end, true);
    fake_gpu_faults(NULL);
    slot_free(slot);
    gpu_state_release(&state);
    slot = NULL;
    state = (struct gpu_state){ .count = 0 };
}
FIXTURE(begin, end)

static int take(uint64_t step, struct hvd_err *err)
{
    int rc;

    gpu_state_fill(&state, step);
    rc = slot_take(slot, &state.copy, NULL, err);
    if (!rc)
        rc = device_copy_await(state.device_copy, err);
    if (!rc)
        slot_name(slot, step);
    return rc;
}

static int give(unsigned which)
{
    struct copy copy = state.copy;

    copy.which = which;
    return slot_restore(slot, &copy, NULL, NULL);
}

/* Copies the slot to the snapshot. */
static int bring(struct hvd_err *err)
{
    const struct copy copy = slot_copy(slot);
    int rc = copy_commit(state.snapshot, &copy, err);

    if (!rc)
        snapshot_end(state.snapshot, slot_commit(slot));
    return rc;
}

/* ---- the contents of a slot ---- */

TEST_FLAGS(holds_what_was_live, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, slot_create(&state.copy, &slot, NULL));
    CHECK_INT(t, slot_commit(slot), ==, 0);
    CHECK_OK(t, take(1, NULL));
    CHECK_INT(t, slot_commit(slot), ==, 1);
    gpu_state_fill(&state, 2);
    CHECK_OK(t, give(COPY_ALL));
    CHECK(t, gpu_state_holds_all(&state, 1));
    gpu_state_fill(&state, 2);
    CHECK_OK(t, give(COPY_PER_RANK));
    CHECK(t, gpu_state_holds(&state, 1, ENTRY_PER_RANK));
    CHECK(t, gpu_state_holds(&state, 2, ENTRY_REPLICATED));
    state.entries[4].used = 3;
    CHECK_OK(t, take(3, NULL));
    gpu_state_fill(&state, 4);
    CHECK_OK(t, give(COPY_REPLICATED));
    CHECK(t, gpu_state_holds(&state, 3, ENTRY_REPLICATED));
    CHECK(t, gpu_state_holds(&state, 4, ENTRY_PER_RANK));
    CHECK_INT(t, state.entries[4].used, ==, 3);
    end(t);
    CHECK_INT(t, fake_gpu_live("memory") + fake_gpu_live("streams"), ==, 0);
}

/* The commit equals one that is made from the live memory. */
TEST_FLAGS(goes_to_the_snapshot, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, slot_create(&state.copy, &slot, NULL));
    CHECK_OK(t, take(5, NULL));
    CHECK_OK(t, copy_commit(state.snapshot, &state.copy, NULL));
    snapshot_end(state.snapshot, 4); /* the same commit, of step 5 */
    gpu_state_fill(&state, 6);
    CHECK_OK(t, bring(NULL));
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 5);
    for (uint64_t i = 0; i < state.manifest.bytes / CHUNK; i++)
        CHECK(t,
              snapshot_chunk_sum(state.snapshot, 4, i) == snapshot_chunk_sum(state.snapshot, 5, i));
    CHECK_OK(t, gpu_state_restore(&state, 5, NULL));
    CHECK(t, gpu_state_holds_all(&state, 5));
}

/* ---- order ----------------------------------------------------------------------------------- */

#define BYTES ((uint64_t)3 * CHUNK)

static void kernel(void *arg)
{
    (void)arg;
    while (!atomic_load(&may_end))
        sched_yield();
}

/* Like a kernel, the copy sees work that was queued before it, however long that takes, and not
 * later work; and no host thread waits. */
static void keeps_the_order(struct test *t, struct CUstream_st *stream)
{
    const struct cuda *cuda = state.device->cuda;
    const uint8_t *live = state.entries[0].bytes;

    fake_gpu_faults("copy#1:slow=30 copy#3:slow=30");
    atomic_store(&may_end, false);
    CHECK_OK(t, gpu_enter(state.device, NULL));
    fake_gpu_run(stream, kernel, NULL);
    CHECK_OK(t, cuda->fill(state.entries[0].address, 0x11, BYTES, stream));
    CHECK_OK(t, slot_take(slot, &state.copy, stream, NULL));
    CHECK_OK(t, cuda->fill(state.entries[0].address, 0x22, BYTES, stream));
    CHECK_INT(t, cuda->stream_query(stream), ==, CUDA_NOT_READY);
    atomic_store(&may_end, true);
    slot_name(slot, 7);
    CHECK_OK(t, bring(NULL)); /* waits for the copy by itself */
    CHECK(t, snapshot_find(state.snapshot, 7)[BYTES - 1] == 0x11);
    CHECK_OK(t, cuda->stream_sync(stream));
    CHECK(t, live[0] == 0x22 && live[BYTES - 1] == 0x22);
    CHECK_OK(t, cuda->fill(state.entries[0].address, 0x33, BYTES, stream));
    CHECK_OK(t, slot_restore(slot, &state.copy, stream, NULL));
    CHECK(t, live[0] == 0x11 && live[BYTES - 1] == 0x11);
    snapshot_drop(state.snapshot, 7);
    gpu_leave(state.device);
    fake_gpu_faults(NULL);
}

TEST_FLAGS(keeps_the_order_of_the_stream, TEST_NO_TORTURE)
{
    struct CUstream_st *streams[2] = { NULL, NULL };

    end(t);
    CHECK_OK(t, gpu_state_init(&state, true));
    CHECK_OK(t, gpu_state_add(&state, BYTES, ENTRY_REPLICATED, ON_DEVICE));
    CHECK_OK(t, gpu_state_start(&state));
    CHECK_OK(t, slot_create(&state.copy, &slot, NULL));
    CHECK_OK(t, gpu_enter(state.device, NULL));
    for (unsigned i = 0; i < 2; i++)
        CHECK_OK(
            t, state.device->cuda->stream_create(&streams[i], i ? CUDA_STREAM_NON_BLOCKING : 0, 0));
    gpu_leave(state.device);
    keeps_the_order(t, streams[0]);
    keeps_the_order(t, streams[1]);
    keeps_the_order(t, NULL);
    for (unsigned i = 0; i < 2; i++)
        if (streams[i])
            (void)!state.device->cuda->stream_destroy(streams[i]);
}

/* ---- faults ---- */

TEST(a_device_without_room_has_no_slot)
{
    struct hvd_err err = { 0 };
    size_t before;

    before = fake_gpu_live("memory");
    fake_gpu_faults("alloc:fail");
    CHECK_CODE(t, slot_create(&state.copy, &slot, &err), HVD_E_NOMEM);
    CHECK_HAS(t, err.text, "memory for a copy of the state: CUDA_ERROR_OUT_OF_MEMORY");
    CHECK(t, !slot);
    CHECK_INT(t, fake_gpu_live("memory"), ==, before);
}

TEST_FLAGS(a_failure_leaves_the_slot_empty, TEST_NO_TORTURE)
{
    static const char *const kinds[] = { "copy", "event" };
    struct hvd_err err = { 0 };
    char fault[32];

    CHECK_OK(t, slot_create(&state.copy, &slot, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        for (int n = 1; n <= 2; n++) {
            CHECK_OK(t, take(1, NULL));
            snprintf(fault, sizeof(fault), "%s#%d:fail", kinds[i], n);
            fake_gpu_faults(fault);
            CHECK_CODE(t, take(2, &err), HVD_E_IO);
            CHECK_HAS(t, err.text, "CUDA_ERROR");
            CHECK_INT(t, slot_commit(slot), ==, 0);
            fake_gpu_faults(NULL);
        }
    }
    state.entries[4].save_says = -99;
    CHECK_OK(t, slot_commit(slot) ? HVD_E_INTERNAL : 0);
    CHECK_CODE(t, take(2, &err), -99);
    CHECK_HAS(t, err.text, "\"entry 4\": the save function of this entry has failed");
    CHECK_INT(t, slot_commit(slot), ==, 0);
    state.entries[4].save_says = 0;
    CHECK_OK(t, take(3, NULL));
    fake_gpu_faults("copy#1:fail");
    CHECK_CODE(t, give(COPY_ALL), HVD_E_IO);
    fake_gpu_faults(NULL);
    CHECK_OK(t, give(COPY_ALL));
}
