/* A job of one worker whose weights are in device memory, with an agent that plays a script. */
#include "gpu/device.h"
#include "state/snapshot/copy.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHTS_BYTES ((size_t)2 * 1024 * 1024 + 100)
#define OWN_BYTES     ((size_t)3000)

/* the code that the test's program returns when a call of the GPU's driver has failed; no code of
 * hvd.h */
#define PROGRAM_FAILED (-1000)

static const char *const modes[] = { "both", "host", "device" };

static struct fake_job job;
static const struct gpu_device *device;
/* the stream in which the weights change; NULL: the NULL stream */
static struct CUstream_st *stream;
static cuda_address weights, own;      /* all bytes have the number of the step */
static struct snapshot *kept_snapshot; /* a snapshot outside the job */
static bool playing;
static const char *wrong; /* what train found wrong */

/* ---- the program ----------------------------------------------------------------------------- */

static int set(cuda_address at, size_t bytes, int64_t step)
{
    return device->cuda->fill(at, (unsigned char)step, bytes, stream) ? PROGRAM_FAILED : 0;
}

static bool holds(cuda_address at, size_t bytes, int64_t step)
{
    const uint8_t *seen = fake_gpu_memory((void *)(uintptr_t)at);

    for (size_t i = 0; i < bytes; i++)
        if (seen[i] != (uint8_t)step)
            return false;
    return true;
}

static int add_entries(struct fake_job *each)
{
    int rc = hvd_state_add(each->state, "weights", (void *)(uintptr_t)weights, WEIGHTS_BYTES);

    return rc ? rc : hvd_state_add_per_rank(each->state, "own", (void *)(uintptr_t)own, OWN_BYTES);
}

static int add_in_stream(struct fake_job *each)
{
    int rc = hvd_set_stream(stream);

    return rc ? rc : add_entries(each);
}

/* Checks that train begins with the right step. */
static int look(struct fake_job *each)
{
    if (device->cuda->stream_sync(stream))
        return PROGRAM_FAILED;
    if (!holds(weights, WEIGHTS_BYTES, each->step))
        wrong = "the weights";
    if (!holds(own, OWN_BYTES, each->step))
        wrong = "what is of this rank";
    return 0;
}

static int step(struct fake_job *each)
{
    int rc = set(weights, WEIGHTS_BYTES, each->step);
    return rc ? rc : set(own, OWN_BYTES, each->step);
}

/* ---- before and after a case ---- */

static int take(void)
{
    const struct cuda *cuda;
    int code;

    if (cuda_open(&cuda, NULL) || gpu_device_get(0, &device, NULL) || gpu_enter(device, NULL))
        return HVD_E_IO;
    code = cuda->memory_alloc(&weights, WEIGHTS_BYTES);
    if (!code)
        code = cuda->memory_alloc(&own, OWN_BYTES);
    if (!code)
        code = set(weights, WEIGHTS_BYTES, 0);
    if (!code)
        code = set(own, OWN_BYTES, 0);
    return code ? HVD_E_IO : 0;
}

/* Makes the devices, the memory and the job. mode: HVD_COMMIT_TO; streamed: the weights change in a
 * stream of their own. */
static int begin(const char *mode, bool streamed)
{
    int rc;

    fake_gpu_use(2);
    rc = take();
    setenv("HVD_COMMIT_TO", mode, 1);
    if (!rc && streamed)
        rc = device->cuda->stream_create(&stream, CUDA_STREAM_NON_BLOCKING, 0);
    if (!rc && streamed)
        rc = device->cuda->stream_sync(NULL); /* the NULL stream wrote the first values */
    if (rc)
        return rc;
    rc = fake_job_init(&job);
    playing = true;
    job.ready = streamed ? add_in_stream : add_entries;
    job.first = look;
    job.each = step;
    return rc;
}

static void end(void)
{
    fake_gpu_faults(NULL);
    if (playing)
        fake_job_release(&job);
    playing = false;
    if (device) {
        if (stream)
            (void)!device->cuda->stream_destroy(stream);
        (void)!device->cuda->memory_free(weights);
        (void)!device->cuda->memory_free(own);
        gpu_leave(device);
    }
    device = NULL;
    stream = NULL;
    weights = own = 0;
    wrong = NULL;
    unsetenv("HVD_COMMIT_TO");
}

static void end_case(struct test *t)
{
    (void)t;
    end();
    snapshot_free(kept_snapshot);
    kept_snapshot = NULL;
}
FIXTURE(NULL, end_case)

#define PLAY_RIGHT(t, ...)          \
    do {                            \
        PLAY(t, __VA_ARGS__);       \
        CHECK_TEXT(t, wrong, NULL); \
    } while (0)

/* Returns the step of the weights in a commit of the agent's snapshot; -1: there is no such
 * commit. */
static int64_t weights_in(uint64_t commit)
{
    const uint8_t *at = snapshot_find(job.agent.snapshot, commit);
    const uint8_t *first = at ? at + 64 : NULL; /* after the step */

    return first && first[0] == first[WEIGHTS_BYTES - 1] ? first[0] : -1;
}

/* ---- without faults ---- */

TEST_FLAGS(trains_to_its_end, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < 2 * ARRAY_SIZE(modes); i++) {
        bool brought = i / 2 != 2;

        CHECK_OK(t, begin(modes[i / 2], i % 2));
        PLAY_RIGHT(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
        CHECK_OK(t, job.code);
        CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, 5)), ==, brought ? 5 : -1);
        CHECK_INT(t, weights_in(COMMIT(1, 5)), ==, brought ? 5 : -1);
        CHECK_INT(t, weights_in(COMMIT(1, 4)), ==, brought ? 4 : -1);
        CHECK_INT(t, weights_in(COMMIT(1, 0)), ==, brought ? -1 : 0);
        CHECK_INT(t, fake_gpu_live("memory"), ==, 2);
        CHECK_INT(t, fake_gpu_live("pinned"), ==, 0);
        end();
    }
}

#define RECOVERS                                                                   \
    JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&revoke_first), \
        HEAR(MSG_RECOVERING), SAY(&round_recovery), HEAR(MSG_ENTERED), END

TEST_FLAGS(a_revoked_round_goes_back_to_the_commit, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < 2 * ARRAY_SIZE(modes); i++) {
        CHECK_OK(t, begin(modes[i / 2], i % 2));
        job.wait_at = 4;
        PLAY_RIGHT(t, RECOVERS);
        CHECK_OK(t, job.code);
        CHECK_INT(t, job.trains, ==, 2);
        CHECK_INT(t, job.began_at[1], ==, 3);
        CHECK(t, fake_agent_heard(&job.agent, "RECOVERING incarnation=7 round=1 held=2"));
        CHECK_INT(t, weights_in(COMMIT(2, 2)), ==, i / 2 != 2 ? 5 : -1);
        CHECK_INT(t, weights_in(COMMIT(1, 3)), ==, i / 2 != 2 ? -1 : 3);
        end();
    }
}

#define SWITCHES                                                                   \
    JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&prepare_next), \
        HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK),              \
        { FAKE_SWITCH_AT, 0, &switch_at_next, NULL }, SAY(&round_switch), HEAR(MSG_ENTERED), END

/* The first commit of a round is complete in the snapshot before any other process hears of the
 * commit. */
TEST_FLAGS(a_switch_loses_nothing, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < 2 * ARRAY_SIZE(modes); i++) {
        CHECK_OK(t, begin(modes[i / 2], i % 2));
        job.wait_at = 4;
        PLAY_RIGHT(t, SWITCHES);
        CHECK_OK(t, job.code);
        CHECK_INT(t, job.began_at[1], ==, 4);
        CHECK_INT(t, weights_in(COMMIT(2, 0)), ==, 4);
        CHECK(t, fake_agent_heard(&job.agent, "ENTERED incarnation=7 round=2 commit=8589934592"));
        end();
    }
}

/* A commit that gets a new name may still be on its way to the host. */
TEST_FLAGS(a_fresh_commit_gets_the_name_of_the_switch, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        CHECK_OK(t, begin(modes[i], true));
        job.goal = INT64_MAX;
        job.trains_max = 2;
        PLAY_RIGHT(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), SAY(&prepare_next),
                   HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK),
                   { FAKE_SWITCH_AT, 0, &switch_at_next, NULL }, SAY(&round_switch), END);
        CHECK_OK(t, job.code);
        CHECK_INT(t, job.news, ==, HVD_HOSTS_UPDATED);
        CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 0)), ==, job.step);
        CHECK_INT(t, weights_in(COMMIT(2, 0)), ==, job.step % 256);
        CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, job.step)), ==, -1);
        end();
    }
}

/* The successor is another process in the same slot, with its own device. */
TEST_FLAGS(a_successor_finds_what_was_committed, TEST_NO_TORTURE)
{
    static const uint64_t self = FAKE_INCARNATION;
    static const struct msg_member members[] = {
        {.incarnation = FAKE_INCARNATION, .host = "a"}
    };
    static const struct msg later = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 3,
        .u.round = {.cause = CAUSE_RECOVERY,
                    .previous = 1,
                    .commit = COMMIT(1, 4),
                    .holders = { &self, 1 },
                    .members = { members, 1 }}
    };

    CHECK_OK(t, begin("both", true));
    PLAY_RIGHT(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    kept_snapshot = job.agent.snapshot;
    job.agent.snapshot = NULL;
    end();
    CHECK_OK(t, begin("both", true));
    job.agent.snapshot = kept_snapshot;
    kept_snapshot = NULL;
    job.goal = 6;
    PLAY_RIGHT(t, JOIN, SAY(&later), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.began_at[0], ==, 4);
    CHECK_INT(t, weights_in(COMMIT(3, 2)), ==, 6);
}

/* ---- a joiner -------------------------------------------------------------------------------- */

/* Makes commit 5.2 (step 40) of a rank whose weights are in memory of the host. */
static int keep_elsewhere(struct snapshot **ret_snapshot)
{
    static uint8_t their_weights[WEIGHTS_BYTES], their_own[OWN_BYTES];
    int64_t at = 40;
    int64_t mine = 1;
    struct manifest manifest;
    struct copy_part parts[] = {
        { .at = &at }, { .at = &mine }, { .at = their_weights }, { .at = their_own }
    };
    struct copy copy = { .manifest = &manifest, .parts = parts, .which = COPY_ALL };
    int rc;

    memset(their_weights, 40, sizeof(their_weights));
    manifest_init(&manifest);
    rc = manifest_add(&manifest, "step", sizeof(at), ENTRY_REPLICATED, false, NULL);
    if (!rc)
        rc = manifest_add(&manifest, "mine", sizeof(mine), ENTRY_PER_RANK, false, NULL);
    if (!rc)
        rc = manifest_add(&manifest, "weights", WEIGHTS_BYTES, ENTRY_REPLICATED, false, NULL);
    if (!rc)
        rc = manifest_add(&manifest, "own", OWN_BYTES, ENTRY_PER_RANK, false, NULL);
    manifest_seal(&manifest);
    if (!rc)
        rc = snapshot_create(
            &(struct snapshot_shape){ manifest.digest, manifest.replicated_bytes, manifest.bytes },
            ret_snapshot, NULL);
    if (!rc)
        rc = copy_commit(*ret_snapshot, &copy, NULL);
    if (!rc)
        snapshot_end(*ret_snapshot, COMMIT(5, 2));
    manifest_release(&manifest);
    return rc;
}

static int look_at_fetched(struct fake_job *each)
{
    if (each->step != 40 || !holds(weights, WEIGHTS_BYTES, 40))
        wrong = "the weights";
    if (!holds(own, OWN_BYTES, 0)) /* as at the beginning */
        wrong = "what is of this rank";
    return 0;
}

/* The worker joins a round whose commit 5.2 only another host has: the commit is fetched and
 * reaches the device. */
TEST_FLAGS(a_fetched_commit_comes_to_the_device, TEST_SURVIVES_ALLOC)
{
    static const struct msg_member self[] = {
        {.incarnation = FAKE_INCARNATION, .host = "a"}
    };
    static const struct msg_source kept[] = {
        {.host = "b", .slot = 1}
    };
    static const struct msg far = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 6,
        .u.round = {.cause = CAUSE_RECOVERY,
                    .previous = 1,
                    .commit = COMMIT(5, 2),
                    .members = { self, 1 },
                    .sources = { kept, 1 }}
    };

    CHECK_OK(t, keep_elsewhere(&kept_snapshot));
    CHECK_OK(t, begin("both", true));
    job.first = look_at_fetched;
    job.agent.source = kept_snapshot;
    job.goal = 41;
    PLAY_RIGHT(t, JOIN, SAY(&far), HEAR(MSG_FETCH), DO(FAKE_FETCHED), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, weights_in(COMMIT(5, 2)), ==, 40);
    CHECK_INT(t, weights_in(COMMIT(6, 1)), ==, 41);
}

/* ---- calls that a program may make ---- */

#define PLAIN JOIN, SAY(&round_first), END

static int commit_twice(struct fake_job *each)
{
    int rc = hvd_state_fence(each->state);

    if (!rc)
        rc = step(each);
    return rc ? rc : hvd_state_commit_async(each->state);
}

TEST_FLAGS(commits_may_go_on_beside, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(t, begin(modes[i / 2], i % 2));
        job.each = commit_twice;
        PLAY_RIGHT(t, PLAIN);
        CHECK_OK(t, job.code);
        CHECK_INT(t, weights_in(COMMIT(1, 10)), ==, 5);
        CHECK_INT(t, weights_in(COMMIT(1, 9)), ==, 5);
        end();
    }
}

/* After step 3 train restores once: the step, the weights and the own memory must be of step 2. */
static int restore_once(struct fake_job *each)
{
    static int64_t last;
    int rc = step(each);

    if (rc || each->step != 3 || last == 3) {
        last = each->step;
        return rc;
    }
    last = 3;
    rc = hvd_state_restore(each->state);
    if (each->step != 2 || !holds(weights, WEIGHTS_BYTES, 2) || !holds(own, OWN_BYTES, 2))
        wrong = "what was restored";
    return rc;
}

/* Also while the former commit is still on its way to the host. */
TEST_FLAGS(a_program_may_go_back_by_itself, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < 2 * ARRAY_SIZE(modes); i++) {
        CHECK_OK(t, begin(modes[i / 2], i % 2));
        job.each = restore_once;
        PLAY_RIGHT(t, PLAIN);
        CHECK_OK(t, job.code);
        CHECK_INT(t, job.step, ==, 5);
        end();
    }
}

TEST_FLAGS(a_state_is_on_one_device, TEST_NO_TORTURE)
{
    const struct gpu_device *second = NULL;
    hvd_state *state = NULL;
    cuda_address there = 0;

    fake_gpu_use(2);
    CHECK_OK(t, take());
    CHECK_OK(t, gpu_device_get(1, &second, NULL));
    CHECK_OK(t, gpu_enter(second, NULL));
    CHECK_OK(t, device->cuda->memory_alloc(&there, 100));
    gpu_leave(second);
    state = hvd_state_create();
    CHECK(t, state);
    CHECK_OK(t, hvd_state_add(state, "a", (void *)(uintptr_t)weights, WEIGHTS_BYTES));
    CHECK_CODE(t, hvd_state_add(state, "b", (void *)(uintptr_t)there, 100), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "\"b\" is in the memory of GPU 1 (");
    CHECK_OK(t, hvd_state_add(state, "b", (void *)(uintptr_t)own, OWN_BYTES));
    hvd_state_free(state);
    if (device && there)
        (void)!device->cuda->memory_free(there);
}

/* ---- faults ---- */

/* Without room on the device commits go to the host, with each setting. */
TEST_FLAGS(a_device_without_room_is_as_host, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        CHECK_OK(t, begin(modes[i], true));
        fake_gpu_faults("alloc:fail pin:fail");
        PLAY_RIGHT(t, PLAIN);
        CHECK_OK(t, job.code);
        CHECK_INT(t, weights_in(COMMIT(1, 5)), ==, 5);
        CHECK_INT(t, weights_in(COMMIT(1, 4)), ==, 4);
        end();
    }
}

/* true: the commits in the snapshot are complete, whenever the worker is killed. */
static bool is_consistent(void)
{
    struct msg_held held[2];
    size_t count = job.agent.snapshot ? snapshot_held(job.agent.snapshot, held) : 0;

    for (size_t i = 0; i < count; i++)
        if (fake_job_step_of(&job, held[i].commit) != weights_in(held[i].commit))
            return false;
    return true;
}

/* Runs the job with a fault at the n-th call. true: the worker failed because of the fault. */
static bool fails(struct test *t, const char *mode, const char *call, int n, const char *what)
{
    static const struct fake_step plain[] = { PLAIN };
    char fault[64];
    bool failed;

    CHECK_OK(t, begin(mode, true));
    snprintf(fault, sizeof(fault), "%s#%d:%s", call, n, what);
    fake_gpu_faults(fault);
    CHECK_OK(t, fake_job_play(&job, plain));
    fake_agent_stop(&job.agent);
    if (job.code && job.code != PROGRAM_FAILED) {
        CHECK_CODE(t, job.code, HVD_E_IO);
        CHECK_HAS(t, hvd_last_error(), "CUDA_ERROR");
    }
    CHECK(t, is_consistent());
    failed = job.code != 0;
    end();
    return failed;
}

TEST_FLAGS(a_driver_that_fails_ends_the_worker, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        int failed = 0;

        for (int n = 1; n <= 25; n++)
            failed += fails(t, modes[i], "copy", n, "fail");
        CHECK_INT(t, failed, >=, 20);
        for (int n = 20; n <= 320; n += 13)
            failed += fails(t, modes[i], "device", n, "lost");
        CHECK_INT(t, failed, >=, 30);
    }
}

/* One job of each mode, while each allocation fails once. */
TEST_FLAGS(memory_may_run_out, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, begin("both", true));
    job.goal = 2;
    PLAY_RIGHT(t, PLAIN);
    CHECK_OK(t, job.code);
    CHECK_INT(t, weights_in(COMMIT(1, 2)), ==, 2);
}

TEST_FLAGS(memory_may_run_out_in_a_recovery, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, begin("both", true));
    job.wait_at = 4;
    PLAY_RIGHT(t, RECOVERS);
    CHECK_OK(t, job.code);
    CHECK_INT(t, weights_in(COMMIT(2, 2)), ==, 5);
}

TEST_FLAGS(memory_may_run_out_in_a_switch, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, begin("device", false));
    job.wait_at = 2;
    job.goal = 3;
    PLAY_RIGHT(t, SWITCHES);
    CHECK_OK(t, job.code);
    CHECK_INT(t, weights_in(COMMIT(2, 0)), ==, 2);
}
