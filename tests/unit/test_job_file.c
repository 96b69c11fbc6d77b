/*
 * test_job_file.c: the job file: only its user can read it, two processes may use it, and a file
 * that is damaged, foreign or in use is refused. Cases that hold in every store are in
 * test_store.c.
 */
#include "driver/journal/job_file.h"

#include "tests/lib/fault.h"
#include "tests/lib/fixture.h"
#include "tests/lib/records.h"
#include "tests/lib/testjob.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct testjob_seen seen;

static struct store *file, *older, *newer;
static struct db *db;
static pid_t writer; /* a child process that writes, unless 0 */

static void begin(struct test *t)
{
    file = older = newer = NULL;
    db = NULL;
    testdb_begin(t);
}

static void end(struct test *t)
{
    (void)t;
    if (writer > 0) {
        (void)kill(writer, SIGKILL);
        (void)waitpid(writer, NULL, 0);
    }
    writer = 0;
    testdb_end(db);
    testjob_end(&older);
    testjob_end(&newer);
    testjob_end(&file);
}
FIXTURE(begin, end)

TEST(a_missing_file_is_made_with_its_facts)
{
    struct job_facts other = testjob_fresh;
    struct job_facts facts;

    CHECK_OK(t, testjob_open(&file, NULL));
    testjob_end(&file);
    snprintf(other.job, sizeof(other.job), "other");
    CHECK_OK(t, job_file_open(testdb_path, &testdb_options, &other, &file, NULL));
    CHECK_OK(t, store_facts(file, &facts, NULL));
    CHECK_TEXT(t, facts.job, testjob_fresh.job);
    CHECK(t, !memcmp(facts.key, testjob_fresh.key, sizeof(facts.key)));
    CHECK_INT(t, facts.created_wall_us, ==, 77);
    CHECK(t, facts.port == 0 && !facts.ended && facts.code == 0 && !facts.text[0]);
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK_INT(t, seen.records + seen.changes, ==, 0);
}

static unsigned mode_of(const char *suffix)
{
    struct stat st;

    return stat(testdb_beside(suffix), &st) ? 0 : (unsigned)st.st_mode & 0777;
}

TEST(only_the_owner_may_read_the_file)
{
    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_INT(t, mode_of(""), ==, 0600);
    CHECK_INT(t, mode_of("-wal"), ==, 0600);
    CHECK_INT(t, mode_of("-shm"), ==, 0600);
    testjob_end(&file);
    CHECK_INT(t, chmod(testdb_path, 0644), ==, 0);
    CHECK_OK(t, testjob_open(&file, NULL));
    CHECK_OK(t, store_claim(file, 1, "pid 1 on a", NULL));
    CHECK_INT(t, mode_of(""), ==, 0600);
    CHECK_INT(t, mode_of("-wal"), ==, 0600);
    CHECK_INT(t, mode_of("-shm"), ==, 0600);
}

static struct blacklist_change change_of(uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_change change = { .none = false };

    records_make(number, host, slot, &change.record, &change.event);
    return change;
}

/* While another process is in the middle of a write. */
TEST(a_locked_file_is_busy)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct hvd_err err;

    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_OK(t, db_open(testdb_path, &same, &testdb_options, &db, NULL));
    CHECK_OK(t, db_begin(db, NULL));
    CHECK_CODE(t, testjob_write(file, 0, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "another process uses the file");
    CHECK_CODE(t, store_claim(file, 2, "", NULL), HVD_E_BUSY);
    CHECK_OK(t, store_check(file, NULL));
    db_rollback(db);
    CHECK_OK(t, testjob_write(file, 0, NULL));
}

static const struct db_options patient = { .busy_ms = 20000 };

/* A driver that does nothing but write: says so after some, and ends when it is replaced. */
static int write_until_lost(int ready_fd)
{
    uint64_t seed = 0;
    int rc = job_file_open(testdb_path, &patient, &testjob_fresh, &file, NULL);

    if (!rc)
        rc = store_claim(file, 1, "pid 1 on a", NULL);
    while (!rc) {
        rc = testjob_write(file, seed++, NULL);
        if (seed == 10 && write(ready_fd, "x", 1) != 1)
            return 1;
    }
    store_close(file);
    return rc == HVD_E_LOST ? 0 : 1;
}

static pid_t fork_writer(int *ret_ready_fd)
{
    int fds[2];
    pid_t child;

    if (pipe(fds) || (child = fork()) < 0)
        return -1;
    if (child == 0)
        _exit(write_until_lost(fds[1]));
    close(fds[1]);
    *ret_ready_fd = fds[0];
    return child;
}

/* The successor reads the journal after the claim: the former owner adds nothing to it. */
TEST_FLAGS(an_earlier_owner_adds_nothing_after_the_claim, TEST_NO_TORTURE)
{
    uint64_t records;
    int ready = -1;
    int status;
    char byte;

    for (int round = 0; round < 5; round++) {
        testdb_begin(t);
        writer = fork_writer(&ready);
        CHECK(t, writer > 0);
        CHECK_INT(t, read(ready, &byte, 1), ==, 1);
        close(ready);
        CHECK_OK(t, job_file_open(testdb_path, &patient, &testjob_fresh, &file, NULL));
        CHECK_OK(t, store_claim(file, 2, "pid 2 on b", NULL));
        CHECK_OK(t, testjob_see(file, &seen, NULL));
        CHECK(t, seen.same && seen.records >= 10);
        records = seen.records;
        CHECK_INT(t, waitpid(writer, &status, 0), ==, writer);
        writer = 0;
        CHECK_INT(t, status, ==, 0);
        CHECK_OK(t, testjob_see(file, &seen, NULL));
        CHECK_INT(t, seen.records, ==, records);
        store_close(file);
        file = NULL;
    }
}

TEST(an_unreadable_record_is_not_written)
{
    static char text[LIMIT_TEXT_BYTES + 2];
    static const char *const addresses[LIMIT_ADDRESSES + 1] = { text, "", "", "", "", "",
                                                                "",   "", "", "", "", "",
                                                                "",   "", "", "", "" };
    static const uint64_t ids[] = { 0 };
    static const uint64_t high[] = { LIMIT_INCARNATIONS + 1 };
    const struct journal_record wrong[] = {
        {.kind = 0,                              .host = "", .text = ""                                         },
        { .kind = JOURNAL_REPORTED + 1,          .host = "", .text = ""                                         },
        { .incarnation = LIMIT_INCARNATIONS + 1, .host = "", .text = ""                                         },
        { .cause = CAUSE_COUNT,                  .host = "", .text = ""                                         },
        { .ended = ENDED_COUNT,                  .host = "", .text = ""                                         },
        { .wall_us = -1,                         .host = "", .text = ""                                         },
        { .host = "a b",                         .text = ""},
        { .host = "",                          .text = text         },
        { .addresses = { addresses, 1 },                            .host = "",                                     .text = ""                                                   },
        { .addresses = { addresses + 1, LIMIT_ADDRESSES + 1 },                            .host = "",                                     .text = ""                       },
        { .members = { ids, 1 },                            .host = "",                                     .text = ""},
        { .holders = { high, 1 },                            .host = "",                                     .text = ""        },
        { .members = { high, LIMIT_WORKERS + 1 },                            .host = "",                                     .text = ""                                                                                },
    };
    struct hvd_err err;

    memset(text, 'x', sizeof(text) - 1);
    CHECK_OK(t, testjob_begin(t, &file));
    journal_random_make(&testjob_made, 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct journal_record record = wrong[i];
        const struct job_write writes[] = { { .record = &testjob_made.record },
                                            { .record = &record } };

        if (i > 1)
            record.kind = JOURNAL_ROUND;
        CHECK_CODE(t, store_write(file, writes, 2, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "the journal cannot hold");
    }
    CHECK_OK(t, testjob_see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 0);
}

/* A write that fails is as if it had not been asked for, and the next one works. */
TEST_FLAGS(a_failed_write_changes_nothing, TEST_NO_TORTURE)
{
    static struct blacklist_change change;
    struct job_write writes[] = { { .record = &testjob_made.record },
                                  { .change = &change },
                                  { .port = 7 } };
    struct job_facts facts;
    unsigned full = 0;
    uint64_t k = 0;
    bool delivered;

    change = change_of(1, "a", 0);
    fault_arm(FAULT_STORE, 0);
    CHECK_OK(t, testjob_begin(t, &file));
    do {
        int rc;

        journal_random_make(&testjob_made, 0);
        fault_arm(FAULT_STORE, ++k);
        rc = store_write(file, writes, ARRAY_SIZE(writes), NULL);
        delivered = fault_delivered(FAULT_STORE);
        fault_arm(FAULT_STORE, 0);
        CHECK(t, (rc != 0) == delivered);
        CHECK(t, rc == 0 || rc == HVD_E_IO || rc == HVD_E_FULL);
        full += rc == HVD_E_FULL;
        CHECK_OK(t, store_check(file, NULL));
        CHECK_OK(t, testjob_see(file, &seen, NULL));
        CHECK_INT(t, seen.records, ==, delivered ? 0 : 1);
        CHECK_INT(t, seen.changes, ==, delivered ? 0 : 1);
        CHECK_OK(t, store_facts(file, &facts, NULL));
        CHECK_INT(t, facts.port, ==, delivered ? 0 : 7);
    } while (delivered);
    CHECK_INT(t, k, >, 4);
    CHECK_INT(t, full, >, 0);
}

/* A claim that fails leaves the one before, or is there whole. */
TEST_FLAGS(a_failed_claim_changes_nothing, TEST_NO_TORTURE)
{
    uint64_t k = 0;
    bool delivered;

    CHECK_OK(t, testjob_begin(t, &older));
    CHECK_OK(t, testjob_open(&newer, NULL));
    do {
        int rc;

        fault_arm(FAULT_STORE, ++k);
        rc = store_claim(newer, 2, "pid 2 on b", NULL);
        delivered = fault_delivered(FAULT_STORE);
        fault_arm(FAULT_STORE, 0);
        CHECK(t, (rc != 0) == delivered);
        CHECK_CODE(t, store_check(older, NULL), delivered ? 0 : HVD_E_LOST);
    } while (delivered);
    CHECK_OK(t, store_check(newer, NULL));
    CHECK_INT(t, k, >, 2);
}

TEST(a_directory_that_may_not_be_written_is_refused)
{
    char dir[LIMIT_DB_PATH_BYTES];
    struct hvd_err err;

    snprintf(dir, sizeof(dir), "%.*s", (int)(strlen(testdb_path) - strlen("/x.db")), testdb_path);
    files_obey_permissions(true);
    CHECK_INT(t, chmod(dir, 0500), ==, 0);
    CHECK_CODE(t, testjob_open(&file, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "writable for this user");
    CHECK_INT(t, chmod(dir, 0700), ==, 0);
    CHECK_OK(t, testjob_open(&file, &err));
    files_obey_permissions(false);
}

TEST(a_job_has_a_name_that_a_file_can_have)
{
    static const char *const wrong[] = { "", ".", ".a", "a/b", "a b", "a\n", "\xc3\xa4", "a'" };
    struct job_facts facts = testjob_fresh;
    struct hvd_err err;
    char longest[JOB_NAME_MAX + 2];

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(t, job_name_check(wrong[i], &err) < 0);
        CHECK_HAS(t, err.text, "name of a job");
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[JOB_NAME_MAX + 1] = '\0';
    CHECK_CODE(t, job_name_check(longest, &err), HVD_E_LIMIT);
    longest[JOB_NAME_MAX] = '\0';
    CHECK_OK(t, job_name_check(longest, &err));
    snprintf(facts.job, sizeof(facts.job), "a/b");
    CHECK_CODE(t, job_file_open(testdb_path, &testdb_options, &facts, &file, NULL), HVD_E_INVAL);
    CHECK(t, !files_exist(testdb_path));
}

TEST_FLAGS(misuse_is_a_bug_of_ours, TEST_NO_TORTURE)
{
    const struct job_write nothing = { .port = 0 };

    CHECK_OK(t, testjob_open(&file, NULL));
    CHECK_PANICS(t, "token != 0", (void)!store_claim(file, 0, "", NULL));
    CHECK_PANICS(t, "token != 0", (void)!store_check(file, NULL));
    CHECK_OK(t, store_claim(file, 1, "", NULL));
    CHECK_PANICS(t, "].record || ", (void)!store_write(file, &nothing, 1, NULL));
    store_close(NULL);
}
