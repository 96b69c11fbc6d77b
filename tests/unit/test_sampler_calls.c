/*
 * test_sampler_calls.c: the sampler's calls in hvd.h: dealt samples come again after a restore
 * unless they were committed, and each dealt batch is written to a log.
 */
#include "base/mem.h"
#include "tests/lib/test.h"
#include "worker/fail.h"
#include "worker/state.h"
#include "worker/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Stands for the library's other files: a job whose round and state the case sets. */
struct hvd_state {
    bool training;
    void *object;
    void (*free_object)(void *);
    void (*commits)(void *);
    const char *name;
    size_t room;
    hvd_save_fn *save;
    hvd_load_fn *load;
    void *arg;
};

static struct {
    int rank, size, max_np;
    uint64_t round;
} job;
static struct hvd_err newest_error;

int hvd_rank(void)
{
    return job.rank;
}

int hvd_size(void)
{
    return job.size;
}

int hvd_max_np(void)
{
    return job.max_np;
}

uint64_t hvd_round(void)
{
    return job.round;
}

struct hvd_err *fail_err(void)
{
    return &newest_error;
}

void fail_begin(void)
{
    newest_error = (struct hvd_err){ .code = 0 };
}

int worker_place(struct place *ret_place)
{
    *ret_place = (struct place){ .rank = (uint32_t)job.rank, .size = (uint32_t)job.size };
    return job.round ? 0 : HVD_E_STATE;
}

int state_goes_on(const hvd_state *state, const char *call)
{
    (void)call;
    return state->training ? 0 : HVD_E_STATE;
}

int state_own(hvd_state *state, void *object, void (*free_object)(void *), void (*commits)(void *))
{
    void *room = mem_alloc(1); /* this allocation may fail, as the real one may */

    if (!room)
        return err_set(fail_err(), HVD_E_NOMEM, "state: %s", err_text(HVD_E_NOMEM));
    mem_free(room);
    state->object = object;
    state->free_object = free_object;
    state->commits = commits;
    return 0;
}

int state_add_numbers(hvd_state *state, const char *call, const char *name, size_t count,
                      hvd_save_fn *save, hvd_load_fn *load, void *arg)
{
    if (state->name)
        return err_set(fail_err(), HVD_E_EXISTS, "%s: %s: the state has it already", call, name);
    state->name = name;
    state->room = count * sizeof(int64_t);
    state->save = save;
    state->load = load;
    state->arg = arg;
    return 0;
}

/* The progress that a commit would contain. */
struct progress {
    uint64_t epoch, used;
};

static struct progress copy(const struct hvd_state *state)
{
    struct progress progress = { 77, 77 };

    if (state->save(state->arg, &progress, sizeof(progress)) != sizeof(progress))
        progress.epoch = 78;
    return progress;
}

static struct progress commit(const struct hvd_state *state)
{
    state->commits(state->object);
    return copy(state);
}

static int restore(const struct hvd_state *state, struct progress progress)
{
    return state->load(state->arg, &progress, sizeof(progress));
}

static void state_end(struct hvd_state *state)
{
    if (state->free_object)
        state->free_object(state->object);
}

static const char *logged(const char *folder)
{
    static char text[4096];
    char path[512];
    ssize_t got = 0;
    int fd;

    snprintf(path, sizeof(path), "%s/12.samples", folder);
    fd = open(path, O_RDONLY);
    if (fd >= 0) {
        got = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return text;
}

/* The job of rank 1 of 2 in round 3, incarnation 12. */
static void job_is(const char *sample_log)
{
    setenv("HVD_SAMPLE_LOG", sample_log, 1);
    setenv("HVD_INCARNATION", "12", 1);
    job.rank = 1;
    job.size = 2;
    job.max_np = 4;
    job.round = 3;
}

TEST(deals_batches_and_writes_a_log)
{
    const char *folder = test_dir(t);
    struct hvd_state state = { .training = true };
    hvd_sampler *sampler = NULL;
    char expected[512];
    hvd_batch batch;

    job_is(folder);
    CHECK_OK(t, hvd_sampler_create(&state, "data", 10, 8, HVD_BATCH_GLOBAL, 1, &sampler));
    CHECK_TEXT(t, state.name, "data");
    CHECK_INT(t, state.room, ==, 16);
    CHECK_OK(t, hvd_sampler_next(sampler, &batch));
    CHECK_INT(t, batch.shards, ==, 2);
    CHECK_INT(t, batch.count, ==, 4);
    CHECK_INT(t, batch.total, ==, 8);
    snprintf(expected, sizeof(expected), "batch data 0 0 8 3 1 2 10: %llu %llu %llu %llu\n",
             (unsigned long long)batch.samples[0], (unsigned long long)batch.samples[1],
             (unsigned long long)batch.samples[2], (unsigned long long)batch.samples[3]);
    CHECK_TEXT(t, logged(folder), expected);
    CHECK_INT(t, commit(&state).used, ==, 8);
    CHECK_OK(t, hvd_sampler_next(sampler, &batch));
    CHECK_INT(t, hvd_sampler_epoch(sampler), ==, 0);
    CHECK_CODE(t, hvd_sampler_next(sampler, &batch), HVD_EPOCH_END);
    CHECK_INT(t, hvd_sampler_epoch(sampler), ==, 1);
    CHECK_INT(t, commit(&state).epoch, ==, 1);
out:
    state_end(&state);
}

/* A look ahead shows the batches that are dealt later, also after a restore, and moves nothing. */
TEST(looks_ahead_without_moving)
{
    struct hvd_state state = { .training = true };
    hvd_sampler *sampler = NULL;
    uint64_t seen[3][5];
    hvd_batch ahead, batch;

    job_is("");
    job.round = 0;
    CHECK_OK(t, hvd_sampler_create(&state, "data", 21, 8, HVD_BATCH_GLOBAL, 1, &sampler));
    CHECK_CODE(t, hvd_sampler_at(sampler, 0, seen[0], 5, &ahead), HVD_E_STATE);
    job.round = 3;
    CHECK_CODE(t, hvd_sampler_at(NULL, 0, seen[0], 5, &ahead), HVD_E_INVAL);
    CHECK_CODE(t, hvd_sampler_at(sampler, 0, NULL, 5, &ahead), HVD_E_INVAL);
    CHECK_CODE(t, hvd_sampler_at(sampler, 0, seen[0], 3, &ahead), HVD_E_FULL);
    CHECK_INT(t, ahead.count, ==, 4);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_OK(t, hvd_sampler_at(sampler, i, seen[i], 5, &ahead));
    CHECK_INT(t, ahead.total, ==, 5);
    CHECK_INT(t, ahead.first, ==, 16);
    CHECK_CODE(t, hvd_sampler_at(sampler, 3, seen[0], 5, &ahead), HVD_EPOCH_END);
    CHECK_CODE(t, hvd_sampler_at(sampler, UINT64_MAX, seen[0], 5, &ahead), HVD_EPOCH_END);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_OK(t, hvd_sampler_next(sampler, &batch));
        CHECK_INT(t, memcmp(batch.samples, seen[i], batch.count * sizeof(seen[0][0])), ==, 0);
    }
    CHECK_CODE(t, hvd_sampler_at(sampler, 0, seen[0], 5, &ahead), HVD_EPOCH_END);
    CHECK_OK(t, restore(&state, (struct progress){ .epoch = 0, .used = 8 }));
    CHECK_OK(t, hvd_sampler_at(sampler, 1, seen[0], 5, &ahead));
    CHECK_INT(t, memcmp(seen[0], seen[2], ahead.count * sizeof(seen[0][0])), ==, 0);
    CHECK_OK(t, restore(&state, (struct progress){ .epoch = 0, .used = 22 }));
    CHECK_CODE(t, hvd_sampler_at(sampler, 0, seen[0], 5, &ahead), HVD_E_CORRUPT);
out:
    state_end(&state);
}

/* A commit contains the progress at its beginning, even if the copy is made later. */
TEST(goes_back_to_what_was_committed)
{
    struct hvd_state state = { .training = true };
    hvd_sampler *sampler = NULL;
    struct progress committed;
    uint64_t first;
    hvd_batch batch;

    job_is("");
    CHECK_OK(t, hvd_sampler_create(&state, "data", 100, 8, HVD_BATCH_GLOBAL, 1, &sampler));
    CHECK_OK(t, hvd_sampler_next(sampler, &batch));
    state.commits(state.object);
    CHECK_OK(t, hvd_sampler_next(sampler, &batch));
    first = batch.samples[0];
    CHECK_OK(t, hvd_sampler_next(sampler, &batch));
    CHECK(t, batch.samples[0] != first);
    committed = copy(&state);
    CHECK_INT(t, committed.used, ==, 8);
    CHECK_OK(t, restore(&state, committed));
    CHECK_OK(t, hvd_sampler_next(sampler, &batch));
    CHECK_INT(t, batch.first, ==, 8);
    CHECK_INT(t, batch.samples[0], ==, first);
    CHECK_CODE(t, state.load(state.arg, &committed, 8), HVD_E_CORRUPT);
out:
    state_end(&state);
}

TEST(an_unlogged_batch_was_not_dealt)
{
    struct hvd_state state = { .training = true };
    hvd_sampler *sampler = NULL;
    hvd_batch batch = { .total = 77 };

    job_is("/dev/null");
    CHECK_OK(t, hvd_sampler_create(&state, "data", 10, 8, HVD_BATCH_GLOBAL, 1, &sampler));
    CHECK_CODE(t, hvd_sampler_next(sampler, &batch), HVD_E_IO);
    CHECK_HAS(t, newest_error.text, "/dev/null/12.samples: cannot open: Not a directory");
    CHECK_INT(t, commit(&state).used, ==, 0);
    CHECK_INT(t, batch.total, ==, 77);
out:
    state_end(&state);
}

TEST(refuses_senseless_values)
{
    struct hvd_state state = { .training = true };
    hvd_sampler *sampler = NULL;
    hvd_batch batch;

    job_is("");
    CHECK_CODE(t, hvd_sampler_create(NULL, "data", 1, 1, HVD_BATCH_GLOBAL, 1, &sampler),
               HVD_E_INVAL);
    CHECK_HAS(t, newest_error.text, "hvd_sampler_create: the argument state is NULL");
    CHECK_CODE(t, hvd_sampler_create(&state, NULL, 1, 1, HVD_BATCH_GLOBAL, 1, &sampler),
               HVD_E_INVAL);
    CHECK_CODE(t, hvd_sampler_create(&state, "data", 1, 1, HVD_BATCH_GLOBAL, 1, NULL), HVD_E_INVAL);
    CHECK_CODE(t, hvd_sampler_create(&state, "data", 0, 1, HVD_BATCH_GLOBAL, 1, &sampler),
               HVD_E_INVAL);
    CHECK_HAS(t, newest_error.text, "samples is 0");
    CHECK(t, !sampler && !state.name);
    CHECK_OK(t, hvd_sampler_create(&state, "data", 10, 8, HVD_BATCH_GLOBAL, 1, &sampler));
    CHECK_CODE(t, hvd_sampler_next(NULL, &batch), HVD_E_INVAL);
    CHECK_CODE(t, hvd_sampler_next(sampler, NULL), HVD_E_INVAL);
    state.training = false;
    CHECK_CODE(t, hvd_sampler_next(sampler, &batch), HVD_E_STATE);
    state.training = true;
    CHECK_OK(t, restore(&state, (struct progress){ 0, 11 }));
    CHECK_CODE(t, hvd_sampler_next(sampler, &batch), HVD_E_CORRUPT);
    CHECK_HAS(t, newest_error.text,
              "has used 11 samples, and the data set has 10; the state is of another data set");
    CHECK_INT(t, hvd_sampler_epoch(NULL), ==, 0);
out:
    state_end(&state);
}
