/*
 * test_checkpoint_catalog.c: driver/checkpoint: the directory of a job's checkpoints has one owner;
 * checkpoints are found, completed and pruned.
 */
#include "driver/checkpoint/catalog.h"

#include "driver/checkpoint/owner.h"
#include "driver/checkpoint/prune.h"
#include "proto/commit.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMIT(round, place) (COMMIT_FIRST_OF(round) | (place))
#define WAIT_MS              100000 /* the bound of a hang */
#define NOTES_MAX            16

static char dir[256];
static struct checkpoint_store *store, *second; /* second: of another job */
static struct catalog *catalog;
static struct checkpoint_manifest manifest;
static struct owner owner;
static struct hvd_err err;
static struct catalog_result result;
/* texts of the notes since the last start */
static char notes[NOTES_MAX][ERR_TEXT_MAX];
static size_t note_count;

static void begin(struct test *t)
{
    store = second = NULL;
    checkpoints_weights = 1000;
    catalog = NULL;
    owner.lock = -1;
    note_count = 0;
    err = (struct hvd_err){ .code = 0 };
    checkpoint_manifest_init(&manifest);
    snprintf(dir, sizeof(dir), "%s/checkpoints", test_dir(t));
    CHECK_OK(t, checkpoint_store_make(dir, &store, NULL));
}

static void end(struct test *t)
{
    (void)t;
    if (catalog_stop(catalog, TIME_NEVER))
        abort();
    owner_release(&owner);
    checkpoint_manifest_release(&manifest);
    checkpoint_store_close(store);
    checkpoint_store_close(second);
}
FIXTURE(begin, end)

static void stop(struct test *t)
{
    struct catalog *old = catalog;

    catalog = NULL;
    CHECK_OK(t, catalog_stop(old, TIME_NEVER));
}

/* Waits for the next result that is no note. */
static void await(struct test *t)
{
    struct pollfd fd = { catalog_fd(catalog), POLLIN, 0 };

    for (;;) {
        while (!catalog_next(catalog, &result))
            CHECK_INT(t, poll(&fd, 1, WAIT_MS), ==, 1);
        if (result.event != CATALOG_NOTE)
            return;
        if (note_count < NOTES_MAX)
            snprintf(notes[note_count++], ERR_TEXT_MAX, "%s", result.text);
    }
}

static bool noted(const char *part)
{
    for (size_t i = 0; i < note_count; i++)
        if (strstr(notes[i], part))
            return true;
    return false;
}

static void start(struct test *t, const char *where, const char *from, const char *job)
{
    const struct catalog_options options = { where, from, 2, job, job, false };

    note_count = 0;
    CHECK_OK(t, catalog_start(&options, &catalog, &err));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_READY);
    if (result.code == HVD_E_NOMEM)
        CHECK_OK(t, result.code);
}

/* Writes the files of a checkpoint, as agents do, and has the catalog complete it. */
static void complete(struct test *t, uint64_t commit, unsigned attempt)
{
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoints_write_parts(store, commit, attempt, &manifest, NULL));
    CHECK_OK(t, catalog_complete(catalog, attempt, &manifest));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_DONE);
    CHECK_INT(t, result.number, ==, attempt);
    if (result.code == HVD_E_NOMEM)
        CHECK_OK(t, result.code);
}

static bool there(const char *name)
{
    char path[600];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return files_exist(path);
}

TEST_FLAGS(a_new_job_has_no_checkpoint_and_then_one, TEST_SURVIVES_ALLOC)
{
    char path[300];

    start(t, dir, NULL, "one");
    CHECK_INT(t, result.code, ==, HVD_E_NOTFOUND);
    complete(t, COMMIT(1, 7), 1);
    CHECK_INT(t, result.code, ==, 0);
    snprintf(path, sizeof(path), "%s/commit-1.7", dir);
    CHECK_TEXT(t, result.path, path);
    CHECK(t, result.commit == COMMIT(1, 7));
    CHECK_INT(t, result.ranks, ==, CHECKPOINTS_RANKS);
    stop(t);
    start(t, dir, NULL, "two");
    CHECK_INT(t, result.code, ==, 0);
    CHECK_TEXT(t, result.path, path);
    CHECK(t, result.commit == COMMIT(1, 7));
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoint_load(store, "commit-1.7", &manifest, NULL));
    CHECK_OK(t, checkpoints_check(store, &manifest, NULL));
}

/* keep is 2. Folders of attempts that were never completed go, too; files beside are not touched.
 */
TEST_FLAGS(old_checkpoints_and_leftovers_are_removed, TEST_SURVIVES_ALLOC)
{
    start(t, dir, NULL, "one");
    complete(t, COMMIT(1, 1), 1);
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(1, 2), 2, &manifest, NULL));
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(1, 3), 3, &manifest, NULL));
    complete(t, COMMIT(1, 3), 4);
    complete(t, COMMIT(1, 4), 5);
    complete(t, COMMIT(2, 0), 6);
    stop(t); /* the catalog has pruned when its thread has ended */
    CHECK(t, !there("commit-1.1") && !there("commit-1.2") && !there("commit-1.3"));
    CHECK(t, there("commit-1.4/COMPLETE") && there("commit-2.0/COMPLETE"));
}

/* The newest checkpoint, and then the one before it, turn out to be damaged where they are read. */
TEST_FLAGS(a_rejected_checkpoint_leads_to_the_one_before_it, TEST_SURVIVES_ALLOC)
{
    start(t, dir, NULL, "one");
    complete(t, COMMIT(1, 4), 1);
    complete(t, COMMIT(2, 0), 2);
    CHECK_OK(t, catalog_reject(catalog, COMMIT(2, 0)));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_OLDER);
    if (result.code == HVD_E_NOMEM)
        CHECK_OK(t, result.code);
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(1, 4));
    CHECK_OK(t, catalog_reject(catalog, COMMIT(1, 4)));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_OLDER);
    if (result.code == HVD_E_NOMEM)
        CHECK_OK(t, result.code);
    CHECK_INT(t, result.code, ==, HVD_E_NOTFOUND);
    CHECK(t, there("commit-1.4/COMPLETE") && there("commit-2.0/COMPLETE"));
}

/* Gives the checkpoint of this folder another version, or another time. */
static void change(const char *name, const char *old, const char *new_text)
{
    char folder[400];

    snprintf(folder, sizeof(folder), "%s/%s", dir, name);
    checkpoints_change(folder, old, new_text);
}

/* A newer hvd-elastic has gone on with the training: an older state must not take its place. */
TEST_FLAGS(a_checkpoint_of_a_newer_version_is_refused_and_left, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 1), NULL));
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 2), NULL));
    change("commit-1.2", "\"version\":1", "\"version\":2");
    start(t, dir, NULL, "one");
    CHECK_INT(t, result.code, ==, HVD_E_VERSION);
    CHECK_HAS(t, result.text, "commit-1.2/manifest.json: the format has version 2");
    CHECK(t, there("commit-1.1/COMPLETE") && there("commit-1.2/COMPLETE"));
}

/* The same of a checkpoint that is found later: when those after it cannot be read, or when a job
 * comes to the same commit. */
TEST_FLAGS(a_checkpoint_of_a_newer_version_is_never_passed_or_replaced, TEST_SURVIVES_ALLOC)
{
    static struct file_bytes before;
    char path[400];

    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 1), NULL));
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 2), NULL));
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 3), NULL));
    change("commit-1.2", "\"version\":1", "\"version\":2");
    snprintf(path, sizeof(path), "%s/commit-1.2/manifest.json", dir);
    files_read(path, &before);
    start(t, dir, NULL, "one");
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(1, 3));
    CHECK_OK(t, catalog_reject(catalog, COMMIT(1, 3)));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_OLDER);
    if (result.code == HVD_E_NOMEM)
        CHECK_OK(t, result.code);
    CHECK_INT(t, result.code, ==, HVD_E_VERSION);
    complete(t, COMMIT(1, 2), 4);
    CHECK_INT(t, result.code, ==, HVD_E_VERSION);
    CHECK_HAS(t, result.text, "commit-1.2/manifest.json: the format has version 2");
    CHECK(t, files_hold(path, &before));
}

/* Machines whose clocks differ by decades write one after the other: the commit says which
 * checkpoint is newer. */
TEST_FLAGS(clocks_that_differ_decide_nothing, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 1), NULL));
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 2), NULL));
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 3), NULL));
    change("commit-1.1", "\"wall\":\"2026-", "\"wall\":\"2099-");
    change("commit-1.3", "\"wall\":\"2026-", "\"wall\":\"1999-");
    start(t, dir, NULL, "one");
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(1, 3));
    complete(t, COMMIT(1, 4), 1);
    CHECK_INT(t, result.code, ==, 0);
    stop(t);
    CHECK(t, !there("commit-1.1") && !there("commit-1.2"));
    CHECK(t, there("commit-1.3/COMPLETE") && there("commit-1.4/COMPLETE"));
}

TEST_FLAGS(leftovers_of_an_older_attempt_go_with_time, TEST_SURVIVES_ALLOC)
{
    start(t, dir, NULL, "one");
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(1, 3), 3, &manifest, NULL));
    complete(t, COMMIT(1, 3), 4);
    complete(t, COMMIT(1, 4), 5);
    stop(t);
    CHECK(t, !there("commit-1.3/rank-00000.t1a3.safetensors"));
    CHECK(t, there("commit-1.3/rank-00000.t1a4.safetensors"));
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoint_load(store, "commit-1.3", &manifest, NULL));
}

/* A start completes nothing, so it removes no checkpoint that counts. */
TEST_FLAGS(a_start_removes_only_what_was_never_completed, TEST_SURVIVES_ALLOC)
{
    for (uint32_t i = 1; i <= 4; i++)
        CHECK_OK(t, checkpoints_write(store, COMMIT(1, i), NULL));
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(9, 9), 2, &manifest, NULL));
    start(t, dir, NULL, "one");
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(1, 4));
    CHECK(t, noted("commit-9.9: the checkpoint is not complete"));
    stop(t);
    CHECK(t, there("commit-1.1") && there("commit-1.4") && !there("commit-9.9"));
}

/* Takes as long as the catalog waits for a slow file system. */
TEST_FLAGS(a_part_that_is_not_visible_says_that_the_directory_is_not_shared, TEST_NO_TORTURE)
{
    struct checkpoint_file files[4];
    char name[] = "rank-00000.t1a1.safetensors";
    char path[600];

    start(t, dir, NULL, "one");
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(1, 1), 1, &manifest, NULL));
    memcpy(files, manifest.files, sizeof(files));
    snprintf(path, sizeof(path), "%s/commit-1.1/%s", dir, name);
    CHECK_INT(t, remove(path), ==, 0);
    CHECK_OK(t, catalog_complete(catalog, 1, &manifest));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_DONE);
    if (result.code == HVD_E_NOMEM)
        CHECK_OK(t, result.code);
    CHECK_INT(t, result.code, ==, HVD_E_NOTFOUND);
    CHECK_HAS(t, result.text, "--checkpoint-dir must be a directory that all hosts and the driver");
    CHECK(t, !there("commit-1.1/COMPLETE"));
}

/* A job in another process holds the directory. */
TEST_FLAGS(a_second_job_is_refused_while_the_first_lives, TEST_NO_TORTURE)
{
    int fds[2];
    char pid[32];
    char byte;
    pid_t child;

    CHECK_INT(t, pipe(fds), ==, 0);
    child = fork();
    CHECK(t, child >= 0);
    if (child == 0) {
        if (!owner_take(store, "first job", "id-1", &owner, NULL) && write(fds[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(fds[1]);
    CHECK_INT(t, read(fds[0], &byte, 1), ==, 1);
    close(fds[0]);
    start(t, dir, NULL, "second");
    CHECK_INT(t, result.code, ==, HVD_E_BUSY);
    CHECK_HAS(t, result.text, "--checkpoint-dir: ");
    CHECK_HAS(t, result.text, "job \"first job\" (host ");
    snprintf(pid, sizeof(pid), ", pid %ld)", (long)child);
    CHECK_HAS(t, result.text, pid);
    stop(t);
    CHECK_INT(t, kill(child, SIGKILL), ==, 0);
    CHECK_INT(t, waitpid(child, NULL, 0), ==, child);
    start(t, dir, NULL, "second");
    CHECK_INT(t, result.code, ==, HVD_E_NOTFOUND);
}

/* An older driver of the same job is stopped (SIGSTOP): it holds the lock, and must not complete a
 * checkpoint when it wakes up. */
TEST_FLAGS(a_driver_that_was_replaced_completes_nothing, TEST_SURVIVES_ALLOC)
{
    start(t, dir, NULL, "one");
    CHECK_OK(t, owner_take(store, "one", "one", &owner, NULL));
    complete(t, COMMIT(1, 1), 1);
    CHECK_INT(t, result.code, ==, HVD_E_LOST);
    CHECK_HAS(t, result.text, "job \"one\" (host ");
    CHECK(t, !there("commit-1.1/COMPLETE"));
    CHECK_OK(t, owner_check(store, &owner, NULL));
    complete(t, COMMIT(1, 2), 2);
    CHECK_INT(t, result.code, ==, HVD_E_LOST);
}

TEST_FLAGS(a_job_begins_with_the_checkpoint_that_it_is_given, TEST_SURVIVES_ALLOC)
{
    char other[300], from[400];
    struct checkpoint_store *elsewhere;

    snprintf(other, sizeof(other), "%s/other", dir);
    CHECK_OK(t, checkpoint_store_make(other, &elsewhere, NULL));
    if (checkpoints_write(elsewhere, COMMIT(3, 1), NULL) ||
        checkpoints_write(elsewhere, COMMIT(3, 2), NULL)) {
        checkpoint_store_close(elsewhere);
        CHECK_TEXT(t, "", "written");
    }
    checkpoint_store_close(elsewhere);
    snprintf(from, sizeof(from), "%s/commit-3.1/", other);
    start(t, dir, from, "one");
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(3, 1));
    from[strlen(from) - 1] = '\0';
    CHECK_TEXT(t, result.path, from);
    complete(t, COMMIT(4, 0), 1);
    CHECK_INT(t, result.code, ==, 0);
    stop(t);
    start(t, NULL, other, "one");
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(3, 2));
    stop(t);
    /* The same command again, after the job has written a checkpoint of its own. */
    start(t, dir, from, "one");
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(4, 0));
    CHECK(t, noted("is not used, because --checkpoint-dir has a complete checkpoint"));
}

TEST_FLAGS(a_given_checkpoint_that_cannot_be_used_ends_the_job, TEST_SURVIVES_ALLOC)
{
    char from[400];

    snprintf(from, sizeof(from), "%s/commit-3.1", dir);
    start(t, NULL, from, "one");
    CHECK_INT(t, result.code, ==, HVD_E_INVAL);
    CHECK_HAS(t, result.text, "--from-checkpoint: ");
    CHECK_HAS(t, result.text, "commit-3.1: the checkpoint is not complete");
    stop(t);
    snprintf(from, sizeof(from), "%s/nowhere", dir);
    start(t, NULL, from, "one");
    CHECK_INT(t, result.code, ==, HVD_E_INVAL);
    CHECK_HAS(t, result.text, "nowhere: cannot open the directory");
}

TEST_FLAGS(a_directory_that_cannot_be_made_is_named, TEST_SURVIVES_ALLOC)
{
    char where[400];

    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 1), NULL));
    snprintf(where, sizeof(where), "%s/commit-1.1/COMPLETE/x", dir);
    start(t, where, NULL, "one");
    CHECK_INT(t, result.code, ==, HVD_E_INVAL);
    CHECK_HAS(t, result.text, "--checkpoint-dir: ");
    CHECK_HAS(t, result.text, "COMPLETE/x: cannot open the directory: Not a directory");
}

/* ---- the directory of a job that is taken over is away ----------------------------------------
 */

static void start_away(struct test *t, const char *away)
{
    const struct catalog_options options = { dir, NULL, 2, "one", "one", true };

    CHECK_INT(t, rename(dir, away), ==, 0);
    CHECK_OK(t, catalog_start(&options, &catalog, &err));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_AWAY);
    CHECK_INT(t, result.code, !=, 0);
    CHECK(t, !files_exist(dir)); /* it is not made, as its disk may not be mounted */
}

/* Waits until a directory that is there again is opened. */
static void await_ready(struct test *t)
{
    do
        await(t);
    while (result.event == CATALOG_AWAY);
    CHECK_INT(t, result.event, ==, CATALOG_READY);
}

/* A request fails while the directory is away. A checkpoint that agents have begun meanwhile stays.
 */
TEST_FLAGS(a_patient_catalog_tries_again_until_the_directory_is_there, TEST_SURVIVES_ALLOC)
{
    char away[300];

    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 1), NULL));
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(1, 2), 2, &manifest, NULL));
    snprintf(away, sizeof(away), "%s.away", dir);
    start_away(t, away);
    CHECK_OK(t, catalog_complete(catalog, 2, &manifest));
    do
        await(t);
    while (result.event == CATALOG_AWAY);
    CHECK_INT(t, result.event, ==, CATALOG_DONE);
    CHECK_INT(t, result.code, ==, HVD_E_IO);
    CHECK_HAS(t, result.text, "cannot open the directory: No such file or directory");
    CHECK_INT(t, rename(away, dir), ==, 0);
    await_ready(t);
    CHECK_INT(t, result.code, ==, 0);
    CHECK(t, result.commit == COMMIT(1, 1));
    CHECK(t, there("commit-1.2"));
    complete(t, COMMIT(1, 3), 3);
    CHECK_INT(t, result.code, ==, 0);
}

/* Another job has taken the directory meanwhile. */
TEST_FLAGS(a_patient_catalog_does_not_wait_for_another_job, TEST_SURVIVES_ALLOC)
{
    char away[300];

    snprintf(away, sizeof(away), "%s.away", dir);
    start_away(t, away);
    CHECK_OK(t, checkpoint_store_open(away, &second, NULL));
    CHECK_OK(t, owner_take(second, "other", "other", &owner, NULL));
    CHECK_INT(t, rename(away, dir), ==, 0);
    await_ready(t);
    CHECK_INT(t, result.code, ==, HVD_E_BUSY);
    CHECK_OK(t, checkpoints_write_parts(store, COMMIT(1, 2), 2, &manifest, NULL));
    CHECK_OK(t, catalog_complete(catalog, 2, &manifest));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_DONE);
    CHECK_INT(t, result.code, ==, HVD_E_BUSY);
}

/* A catalog that waits for its directory stops at once. */
TEST_FLAGS(a_patient_catalog_stops_while_the_directory_is_away, TEST_SURVIVES_ALLOC)
{
    char away[300];

    snprintf(away, sizeof(away), "%s.away", dir);
    start_away(t, away);
    stop(t);
}

/* No time mends an address that is wrong. */
TEST_FLAGS(a_patient_catalog_does_not_try_a_wrong_path_again, TEST_SURVIVES_ALLOC)
{
    char where[400];
    const struct catalog_options options = { where, NULL, 2, "one", "one", true };

    snprintf(where, sizeof(where), "/%0300d", 0); /* longer than a name may be */
    CHECK_OK(t, catalog_start(&options, &catalog, &err));
    await(t);
    CHECK_INT(t, result.event, ==, CATALOG_READY);
    CHECK_INT(t, result.code, ==, HVD_E_INVAL);
}

TEST(paths_are_absolute)
{
    const struct catalog_options where = { "relative", NULL, 1, "one", "one", false };
    const struct catalog_options from = { NULL, "relative", 1, "one", "one", false };

    CHECK_CODE(t, catalog_start(&where, &catalog, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--checkpoint-dir: \"relative\" is not an absolute path");
    CHECK_CODE(t, catalog_start(&from, &catalog, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--from-checkpoint: \"relative\"");
}

/* A driver died after COMPLETE, and its successor takes the same commit again. A complete
 * checkpoint is not written again: a server that keeps the first COMPLETE would have it beside a
 * second manifest. */
TEST_FLAGS(a_complete_checkpoint_is_not_written_again, TEST_SURVIVES_ALLOC)
{
    struct checkpoint_manifest found = { .commit = 0 };

    start(t, dir, NULL, "one");
    complete(t, COMMIT(1, 1), 1);
    CHECK_INT(t, result.code, ==, 0);
    complete(t, COMMIT(1, 1), 2);
    CHECK_INT(t, result.code, ==, 0);
    CHECK_INT(t, result.commit, ==, COMMIT(1, 1));
    CHECK_OK(t, checkpoint_load(store, "commit-1.1", &found, NULL));
    CHECK_HAS(t, found.files[0].name, "a1.safetensors");
    checkpoint_manifest_release(&found);
    stop(t);
}

/* Of three checkpoints the newest is broken: it is left for an operator as long as it is newer than
 * the ones that are kept. */
TEST_FLAGS(a_broken_checkpoint_goes_when_newer_ones_are_kept, TEST_SURVIVES_ALLOC)
{
    size_t removed = 0, kept = 0;
    char path[300];

    for (uint32_t i = 1; i <= 3; i++)
        CHECK_OK(t, checkpoints_write(store, COMMIT(1, i), NULL));
    snprintf(path, sizeof(path), "%s/commit-1.3/manifest.json", dir);
    files_write(path, "x", 1);
    CHECK_OK(t, prune_checkpoints(store, 1, false, NULL, NULL, &removed, &kept, &err));
    CHECK_INT(t, removed, ==, 1);
    CHECK_INT(t, kept, ==, 1);
    CHECK(t, !there("commit-1.1") && there("commit-1.2") && there("commit-1.3"));
    CHECK_OK(t, checkpoints_write(store, COMMIT(1, 4), NULL));
    CHECK_OK(t, prune_checkpoints(store, 1, false, NULL, NULL, &removed, &kept, &err));
    CHECK_INT(t, removed, ==, 2);
    CHECK(t, !there("commit-1.2") && !there("commit-1.3") && there("commit-1.4"));
}
