/* When a commit of a state on a device counts. */
#include "worker/copier.h"

#include "tests/lib/fake_gpu.h"
#include "tests/lib/gpu_state.h"
#include "tests/lib/test.h"

#include <sched.h>
#include <stdatomic.h>

static struct gpu_state state;
static struct slot *slot;
static atomic_bool may_end, ended; /* what the device does before the copy */
static int verdict;
static bool asked_early;

static void kernel(void *arg)
{
    (void)arg;
    while (!atomic_load(&may_end))
        sched_yield();
    atomic_store(&ended, true);
}

static int judge(void *arg, struct hvd_err *err)
{
    (void)arg;
    asked_early = asked_early || !atomic_load(&ended);
    return verdict ? err_set(err, verdict, "it was cut short") : 0;
}

static int begin(void)
{
    int rc = gpu_state_init(&state, true);

    atomic_store(&may_end, false);
    atomic_store(&ended, false);
    asked_early = false;
    verdict = 0;
    if (!rc)
        rc = gpu_state_add(&state, 5000, ENTRY_REPLICATED, ON_DEVICE);
    if (!rc)
        rc = gpu_state_start(&state);
    if (!rc)
        rc = slot_create(&state.copy, &slot, NULL);
    return rc;
}

static void end(void)
{
    atomic_store(&may_end, true);
    slot_free(slot);
    gpu_state_release(&state);
    slot = NULL;
}

/* Behind a kernel that takes as long as the test wants. */
static int take(void)
{
    int rc = gpu_enter(state.device, NULL);

    if (rc)
        return rc;
    fake_gpu_run(NULL, kernel, NULL);
    gpu_leave(state.device);
    return slot_take(slot, &state.copy, NULL, NULL);
}

static struct copier_task task_of(bool by_slot)
{
    return (struct copier_task){ .copy = by_slot ? slot_copy(slot) : state.copy,
                                 .commit = 5,
                                 .slot = by_slot ? slot : NULL,
                                 .snapshot = state.snapshot,
                                 .judge = judge };
}

/* The round is judged when the device is there, not before. */
TEST_FLAGS(is_judged_when_the_device_has_come_there, TEST_SURVIVES_ALLOC)
{
    struct copier copier = { .started = false };
    struct copier_task task;
    struct hvd_err err;

    CHECK_OK(t, begin());
    CHECK_OK(t, take());
    task = task_of(true);
    CHECK_OK(t, copier_begin(&copier, &task, &err));
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 0);
    atomic_store(&may_end, true);
    CHECK_OK(t, copier_wait(&copier, &err));
    CHECK(t, !asked_early);
    CHECK_INT(t, slot_commit(slot), ==, 5);
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 5);
out:
    atomic_store(&may_end, true);
    copier_stop(&copier);
    end();
}

TEST_FLAGS(an_interrupted_copy_is_no_commit, TEST_SURVIVES_ALLOC)
{
    struct copier_task task;
    struct hvd_err err;

    CHECK_OK(t, begin());
    CHECK_OK(t, gpu_state_commit(&state, 4, NULL));
    atomic_store(&may_end, true);
    for (int by_slot = 0; by_slot < 2; by_slot++) {
        CHECK_OK(t, take());
        task = task_of(by_slot);
        verdict = HVD_E_REVOKED;
        CHECK_CODE(t, copier_make(&task, &err), HVD_E_REVOKED);
        CHECK_TEXT(t, err.text, "it was cut short");
        CHECK_INT(t, slot_commit(slot), ==, 0);
        CHECK_INT(t, snapshot_newest(state.snapshot), ==, 4);
    }
    CHECK_OK(t, take());
    verdict = 0;
    CHECK_OK(t, copier_make(&task, &err));
    CHECK_INT(t, slot_commit(slot), ==, 5);
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 5);
out:
    end();
}

/* On the device alone: the snapshot is not touched. */
TEST_FLAGS(may_stay_on_the_device, TEST_SURVIVES_ALLOC)
{
    struct copier_task task;
    struct hvd_err err;

    CHECK_OK(t, begin());
    CHECK_OK(t, gpu_state_commit(&state, 4, NULL));
    atomic_store(&may_end, true);
    CHECK_OK(t, take());
    task = task_of(true);
    task.snapshot = NULL;
    CHECK_OK(t, copier_make(&task, &err));
    CHECK_INT(t, slot_commit(slot), ==, 5);
    CHECK_INT(t, snapshot_newest(state.snapshot), ==, 4);
out:
    end();
}
