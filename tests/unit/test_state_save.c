/*
 * test_state_save.c: hvd_state_save and hvd_state_load in a program without hvd-elastic: all kinds
 * of entries come back, what was saved before outlives a save that fails, and what does not fit is
 * named.
 */
#include "hvd/hvd.h"
#include "proto/commit.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/part.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WEIGHTS 300000 /* more than one chunk */
#define SAMPLES 100
#define BATCH   10

struct program {
    struct test *t;
    hvd_state *state;
    hvd_sampler *sampler;
    float weights[WEIGHTS];
    int64_t step;
    int32_t mine[3];
    char note[64];
    int64_t save_code; /* the result of the save callback, unless 0 */
    int load_code;
    char dir[300];
    int (*body)(struct program *program);
};

static struct program program;

static int64_t save_note(void *arg, void *into, size_t room)
{
    const struct program *of = arg;
    size_t length = strlen(of->note);

    if (of->save_code)
        return of->save_code;
    if (length > room)
        return HVD_E_LIMIT;
    memcpy(into, of->note, length);
    return (int64_t)length;
}

static int load_note(void *arg, const void *from, size_t bytes)
{
    struct program *of = arg;

    memcpy(of->note, from, bytes);
    of->note[bytes] = '\0';
    return of->load_code;
}

/* Registers the entries: the newest state of the program. */
static int open_state(void)
{
    int rc;

    program.state = hvd_state_create();
    if (!program.state)
        return HVD_E_NOMEM;
    rc = hvd_state_add_array(program.state, "weights", program.weights, WEIGHTS, HVD_FLOAT32);
    if (!rc)
        rc = hvd_state_add_scalar(program.state, "step", &program.step, HVD_INT64);
    if (!rc)
        rc = hvd_state_add_array_per_rank(program.state, "mine", program.mine, 3, HVD_INT32);
    if (!rc)
        rc = hvd_state_add(program.state, "nothing", NULL, 0);
    if (!rc) /* much more room than any machine has memory */
        rc = hvd_state_add_custom(program.state, "note", (size_t)1 << 38, save_note, load_note,
                                  &program);
    if (!rc)
        rc = hvd_sampler_create(program.state, "samples", SAMPLES, BATCH, HVD_BATCH_GLOBAL, 1,
                                &program.sampler);
    return rc;
}

static void close_state(void)
{
    hvd_state_free(program.state);
    program.state = NULL;
}

static void begin_case(struct test *t)
{
    memset(&program, 0, sizeof(program));
    program.t = t;
    snprintf(program.dir, sizeof(program.dir), "%s/saved", test_dir(t));
    unsetenv("HVD_AGENT");
}

static void end_case(struct test *t)
{
    (void)t;
    close_state();
    hvd_shutdown();
}
FIXTURE(begin_case, end_case)

static void set(int64_t step)
{
    program.step = step;
    for (size_t i = 0; i < WEIGHTS; i++)
        program.weights[i] = (float)(step * 1000 + (int64_t)(i % 1000));
    for (int i = 0; i < 3; i++)
        program.mine[i] = (int32_t)step + i;
    snprintf(program.note, sizeof(program.note), "note %lld", (long long)step);
}

/* Returns true if all entries but `mine` have the values of this step. */
static bool is(int64_t step)
{
    char note[64];

    snprintf(note, sizeof(note), "note %lld", (long long)step);
    return program.step == step && program.weights[0] == (float)(step * 1000) &&
           program.weights[WEIGHTS - 1] == (float)(step * 1000 + (WEIGHTS - 1) % 1000) &&
           !strcmp(program.note, note);
}

static bool is_mine(int64_t step)
{
    return program.mine[0] == (int32_t)step && program.mine[2] == (int32_t)step + 2;
}

static const char *file_of(const char *folder, const char *file)
{
    static char path[400];

    snprintf(path, sizeof(path), "%s/%s/%s", program.dir, folder, file);
    return path;
}

/* ---- there and back -------------------------------------------------------------------------- */

/* The removal of an older state may fail without a trace: a later call repeats it. */
TEST_FLAGS(a_saved_state_comes_back, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, open_state());
    set(5);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    set(6);
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is(5) && is_mine(5));
    close_state();
    memset(program.weights, 0, sizeof(program.weights));
    CHECK_OK(t, open_state()); /* as another process does */
    set(7);
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is(5) && is_mine(5));
    CHECK(t, files_exist(file_of("commit-0.1", "COMPLETE")));
}

TEST_FLAGS(only_the_newest_is_kept, TEST_SURVIVES_ALLOC)
{
    char folder[400];

    CHECK_OK(t, open_state());
    for (int64_t step = 1; step <= 3; step++) {
        set(step);
        CHECK_OK(t, hvd_state_save(program.state, program.dir));
    }
    CHECK(t, !files_exist(file_of("commit-0.1", "")) && !files_exist(file_of("commit-0.2", "")));
    set(9);
    snprintf(folder, sizeof(folder), "%s/commit-0.3//", program.dir);
    CHECK_OK(t, hvd_state_load(program.state, folder));
    CHECK(t, is(3));
    set(9);
    CHECK_INT(t, chdir(program.dir), ==, 0);
    CHECK_OK(t, hvd_state_load(program.state, "commit-0.3"));
    CHECK(t, is(3));
    CHECK_OK(t, hvd_state_load(program.state, "."));
}

/* A process has died during a save: its folder is not complete. */
TEST_FLAGS(a_half_written_state_is_not_taken, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, open_state());
    set(1);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    CHECK_INT(t, mkdir(file_of("commit-0.2", ""), 0700), ==, 0);
    files_write(file_of("commit-0.2", "replicated.safetensors"), "half", 4);
    set(2);
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is(1));
    set(3);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    CHECK(t, files_exist(file_of("commit-0.3", "COMPLETE")));
    CHECK(t, !files_exist(file_of("commit-0.2", "")));
}

/* Checkpoints of a job are not those of hvd_state_save. */
TEST_FLAGS(what_a_job_has_written_stays, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, open_state());
    set(1);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    CHECK_INT(t, mkdir(file_of("commit-7.1", ""), 0700), ==, 0);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    CHECK(t, files_exist(file_of("commit-7.1", "")));
}

/* ---- in train -------------------------------------------------------------------------------- */

static int train(hvd_state *state, void *arg)
{
    struct program *of = arg;

    (void)state;
    return of->body(of);
}

static int run(int (*body)(struct program *of))
{
    program.body = body;
    return hvd_elastic_run(program.state, train, &program);
}

/* Takes a batch and returns the index of its first sample; below 0: a code. */
static int64_t next_batch(void)
{
    hvd_batch batch;
    int rc = hvd_sampler_next(program.sampler, &batch);

    return rc ? rc : (int64_t)(batch.epoch * SAMPLES + batch.first);
}

/* In train a check that fails must not leave hvd_elastic_run. */
#define WANT(condition)                                             \
    do {                                                            \
        if (!(condition)) {                                         \
            test_fail(of->t, __FILE__, __LINE__, "%s", #condition); \
            return HVD_E_INTERNAL;                                  \
        }                                                           \
    } while (0)

static int save_in_the_middle(struct program *of)
{
    WANT(next_batch() == 0);
    WANT(next_batch() == BATCH);
    set(2);
    WANT(!hvd_state_commit_async(of->state));
    WANT(!hvd_state_save(of->state, of->dir));
    WANT(next_batch() == 2 * BATCH);
    set(3);
    WANT(!hvd_state_commit(of->state));
    WANT(!hvd_state_load(of->state, of->dir));
    WANT(is(2) && is_mine(2));
    WANT(next_batch() == 2 * BATCH);
    WANT(!hvd_state_restore(of->state)); /* the commit is still there */
    WANT(is(3));
    WANT(next_batch() == 3 * BATCH);
    return 0;
}

static int go_on(struct program *of)
{
    WANT(is(2) && is_mine(2));
    WANT(next_batch() == 2 * BATCH);
    return 0;
}

TEST_FLAGS(a_training_goes_on_where_it_was_saved, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, hvd_init());
    CHECK_OK(t, open_state());
    CHECK_OK(t, run(save_in_the_middle));
    close_state();
    CHECK_OK(t, open_state());
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK_OK(t, run(go_on));
}

static int64_t save_in_save(void *arg, void *into, size_t room)
{
    struct program *of = arg;

    (void)into;
    (void)room;
    return hvd_state_save(of->state, of->dir);
}

static int save_within(struct program *of)
{
    return hvd_state_save(of->state, of->dir);
}

static int on_reset(hvd_state *state, void *arg)
{
    const struct program *of = arg;

    return hvd_state_load(state, of->dir);
}

TEST_FLAGS(a_call_at_another_moment_is_refused, TEST_SURVIVES_ALLOC)
{
    CHECK_CODE(t, hvd_state_save(NULL, program.dir), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_save: the state is NULL");
    program.state = hvd_state_create();
    CHECK(t, program.state);
    CHECK_CODE(t, hvd_state_load(program.state, ""), HVD_E_INVAL);
    CHECK_CODE(t, hvd_state_save(program.state, program.dir), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "the state has no entries");
    CHECK_OK(t, hvd_state_add_custom(program.state, "self", 8, save_in_save, load_note, &program));
    CHECK_CODE(t, hvd_state_save(program.state, program.dir), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "entry \"self\"");
    CHECK_OK(t, hvd_init());
    CHECK_CODE(t, run(save_within), HVD_E_STATE);
    CHECK(t, !files_exist(program.dir));
    close_state();
    CHECK_OK(t, open_state());
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    CHECK_OK(t, hvd_state_on_reset(program.state, on_reset, &program));
    CHECK_CODE(t, run(go_on), HVD_E_STATE);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

/* A state of one entry, which the saved state has otherwise. */
#define REFUSED(registration, code, part)                                \
    do {                                                                 \
        close_state();                                                   \
        program.state = hvd_state_create();                              \
        CHECK(t, program.state);                                         \
        CHECK_OK(t, registration);                                       \
        CHECK_CODE(t, hvd_state_load(program.state, program.dir), code); \
        CHECK_HAS(t, hvd_last_error(), "hvd_state_load: ");              \
        CHECK_HAS(t, hvd_last_error(), part);                            \
    } while (0)

TEST_FLAGS(an_entry_that_does_not_fit_is_named, TEST_SURVIVES_ALLOC)
{
    hvd_state **state = &program.state;

    CHECK_OK(t, open_state());
    set(4);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    set(5);
    REFUSED(hvd_state_add(*state, "bias", program.mine, 4), HVD_E_NOTFOUND,
            "has no entry \"bias\"");
    REFUSED(hvd_state_add_array(*state, "weights", program.weights, 7, HVD_FLOAT32), HVD_E_INVAL,
            "entry \"weights\" has 28 bytes, and 1200000");
    REFUSED(hvd_state_add_array(*state, "weights", program.weights, WEIGHTS, HVD_INT32),
            HVD_E_INVAL, "entry \"weights\" consists of int32, and of float32");
    REFUSED(hvd_state_add_per_rank(*state, "step", &program.step, 8), HVD_E_INVAL,
            "entry \"step\" is of another kind");
    REFUSED(hvd_state_add(*state, "note", program.note, 6), HVD_E_INVAL,
            "entry \"note\" is of another kind");
    REFUSED(hvd_state_add_custom(*state, "note", 5, save_note, load_note, &program), HVD_E_LIMIT,
            "\"note\"");
    CHECK(t, is(5) && is_mine(5));
    close_state();
    program.state = hvd_state_create();
    CHECK(t, program.state);
    /* An entry without a type has the bytes of any type; other entries of the file are left. */
    CHECK_OK(t, hvd_state_add(program.state, "step", &program.step, 8));
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK_INT(t, program.step, ==, 4);
    CHECK(t, program.weights[0] == 5000.0F);
}

TEST(what_is_not_there_is_named)
{
    CHECK_OK(t, open_state());
    CHECK_CODE(t, hvd_state_load(program.state, program.dir), HVD_E_NOTFOUND);
    CHECK_HAS(t, hvd_last_error(), program.dir);
    CHECK_INT(t, mkdir(program.dir, 0700), ==, 0);
    CHECK_CODE(t, hvd_state_load(program.state, program.dir), HVD_E_NOTFOUND);
    CHECK_HAS(t, hvd_last_error(), "no complete checkpoint");
    files_write(file_of("", "file"), "x", 1);
    CHECK_CODE(t, hvd_state_save(program.state, file_of("", "file")), HVD_E_NOTFOUND);
    CHECK_HAS(t, hvd_last_error(), "hvd_state_save: ");
}

TEST_FLAGS(a_damaged_state_is_refused, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, open_state());
    set(4);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    files_patch(file_of("commit-0.1", "replicated.safetensors"), 700000, "damage", 6);
    CHECK_CODE(t, hvd_state_load(program.state, program.dir), HVD_E_CORRUPT);
    CHECK_HAS(t, hvd_last_error(), "replicated.safetensors: chunk 0 has a wrong checksum");
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST_FLAGS(a_save_that_fails_keeps_what_was_saved, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, open_state());
    set(1);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    set(2);
    program.save_code = HVD_E_IO;
    CHECK_CODE(t, hvd_state_save(program.state, program.dir), HVD_E_IO);
    CHECK_HAS(t, hvd_last_error(), "entry \"note\"");
    program.save_code = HVD_E_REVOKED; /* a code that the library alone gives */
    CHECK_CODE(t, hvd_state_save(program.state, program.dir), HVD_E_STATE);
    program.save_code = 0;
    program.load_code = -77;
    CHECK_CODE(t, hvd_state_load(program.state, program.dir), -77);
    CHECK_HAS(t, hvd_last_error(), "entry \"note\"");
    program.load_code = 0;
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is(1));
}

TEST_FLAGS(a_directory_has_one_writer, TEST_SURVIVES_ALLOC)
{
    int other;

    CHECK_OK(t, open_state());
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    other = open(program.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(t, flock(other, LOCK_EX | LOCK_NB), ==, 0);
    CHECK_CODE(t, hvd_state_save(program.state, program.dir), HVD_E_BUSY);
    close(other);
    CHECK_HAS(t, hvd_last_error(), "another process is writing");
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
}

/* Another process saves all the time: each load finds a whole state. */
TEST_FLAGS(a_load_may_meet_a_save, TEST_NO_TORTURE)
{
    pid_t child;
    int status;

    CHECK_OK(t, open_state());
    set(1);
    CHECK_OK(t, hvd_state_save(program.state, program.dir));
    child = fork();
    if (!child) {
        int rc = 0;

        for (int64_t step = 2; step < 60 && !rc; step++) {
            set(step);
            rc = hvd_state_save(program.state, program.dir);
        }
        _exit(rc ? 1 : 0);
    }
    CHECK(t, child > 0);
    for (int i = 0; i < 60; i++) {
        CHECK_TEXT(t, hvd_state_load(program.state, program.dir) ? hvd_last_error() : "", "");
        CHECK(t, is(program.step) && is_mine(program.step));
    }
    CHECK_INT(t, waitpid(child, &status, 0), ==, child);
    CHECK_INT(t, status, ==, 0);
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is(59));
}

/* ---- checkpoints of a job -------------------------------------------------------------------- */

/* Writes what a job of so many ranks writes: the per-rank entry of rank r is { r, r + 1, r + 2 }.
 */
static int write_of_job(uint64_t commit, uint32_t ranks, struct hvd_err *err)
{
    static const struct msg_entry entries[] = {
        {.name = "mine", .bytes = sizeof(program.mine), .kind = ENTRY_PER_RANK}
    };
    struct checkpoint_file files[2];
    struct part_written written[2];
    char names[2][64];
    struct checkpoint_manifest manifest;
    struct checkpoint_store *store = NULL;
    char folder[CHECKPOINT_FOLDER_MAX];
    uint32_t count = 0;
    uint64_t sum;
    int rc = checkpoint_store_make(program.dir, &store, err);

    checkpoint_manifest_init(&manifest);
    for (uint32_t r = 0; !rc && r < ranks; r++) {
        const int32_t mine[] = { (int32_t)r, (int32_t)r + 1, (int32_t)r + 2 };
        const struct part_source source = { "mine", mine, sizeof(mine), 0 };
        const struct part_sources sources = { commit, &source, 1 };
        char path[128];

        snprintf(names[r], sizeof(names[r]), "rank-%05u.t1a1.safetensors", r);
        snprintf(path, sizeof(path), "%s/%s", checkpoint_folder(commit, folder), names[r]);
        rc = part_write(store, path, &sources, NULL, NULL, &written[r], err);
        if (rc)
            break;
        files[count++] = (struct checkpoint_file){ names[r], written[r].bytes, (int32_t)r,
                                                   (const uint8_t *)written[r].sums.data };
    }
    manifest.commit = commit;
    manifest.ranks = ranks;
    manifest.digest = 1;
    manifest.entries = (struct msg_entry_list){ entries, 1 };
    manifest.files = files;
    manifest.file_count = count;
    if (!rc)
        rc = checkpoint_write_manifest(store, &manifest, &sum, err);
    if (!rc)
        rc = checkpoint_write_complete(store, commit, sum, err);
    for (uint32_t r = 0; r < count; r++)
        buf_release(&written[r].sums);
    checkpoint_manifest_release(&manifest);
    checkpoint_store_close(store);
    return rc;
}

TEST(per_rank_entries_of_a_job_need_as_many_ranks)
{
    struct hvd_err err;

    program.state = hvd_state_create();
    CHECK(t, program.state);
    CHECK_OK(t, hvd_state_add_array_per_rank(program.state, "mine", program.mine, 3, HVD_INT32));
    CHECK_OK(t, write_of_job(COMMIT_FIRST_OF(3) | 1, 2, &err));
    set(50);
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is_mine(50));
    CHECK_OK(t, write_of_job(COMMIT_FIRST_OF(3) | 2, 1, &err));
    CHECK_OK(t, hvd_state_load(program.state, program.dir));
    CHECK(t, is_mine(0));
}
