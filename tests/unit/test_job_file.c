#include "driver/journal/job_file.h"

#include "tests/lib/fault.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/journal_random.h"
#include "tests/lib/records.h"
#include "tests/lib/testdb.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEEN_MAX 256

static const struct job_facts fresh = {
    .job = "job-17.a_B", .key = {0, 1, 0xab, 0xff},
         .created_wall_us = 77, .port = 0
};

static struct journal_random made;
static struct file_bytes before;

static int open_file(struct job_file **ret_file, struct hvd_err *err)
{
    return job_file_open(testdb_path, &testdb_options, &fresh, ret_file, err);
}

/* One that is there, and is ours. */
static int begin(struct test *t, struct job_file **ret_file)
{
    int rc;

    testdb_begin(t);
    rc = open_file(ret_file, NULL);
    return rc ? rc : job_file_claim(*ret_file, 1, "pid 1 on a", NULL);
}

/* As testdb_end. */
static void end(struct job_file **file)
{
    fault_vfs_quiet(true);
    job_file_close(*file);
    fault_vfs_quiet(false);
    *file = NULL;
}

static int write_record(struct job_file *file, uint64_t seed, struct hvd_err *err)
{
    const struct job_write write = { .record = &made.record };

    journal_random_make(&made, seed);
    return job_file_write(file, &write, 1, err);
}

/* Those that were shown are the ones of the seeds 0, 1, 2 ... */
struct seen {
    uint64_t records;
    bool same;
    size_t changes;
    struct blacklist_record change[SEEN_MAX];
};

static int see_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct seen *seen = arg;

    (void)err;
    journal_random_make(&made, seen->records++);
    seen->same = seen->same && journal_same(record, &made.record);
    return 0;
}

static int see_change(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    struct seen *seen = arg;

    if (seen->changes == SEEN_MAX)
        return err_set(err, HVD_E_LIMIT, "too many");
    seen->change[seen->changes++] = *record;
    return 0;
}

static int see(struct job_file *file, struct seen *seen, struct hvd_err *err)
{
    int rc;

    *seen = (struct seen){ .same = true };
    rc = job_file_replay(file, see_record, seen, err);
    return rc ? rc : job_file_blacklist(file, see_change, seen, err);
}

static struct seen seen;

/* As somebody would with a program of SQLite's. */
static int run_sql(const char *sql)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct db_stmt stmt;
    struct db *db;
    int rc = db_open(testdb_path, &same, &testdb_options, &db, NULL);

    if (rc)
        return rc;
    rc = db_prepare(&stmt, db, sql, NULL);
    if (!rc) {
        rc = db_run(&stmt, NULL);
        db_stmt_release(&stmt);
    }
    testdb_end(db);
    return rc;
}

static void a_missing_file_is_made_with_its_facts(struct test *t)
{
    struct job_facts other = fresh;
    struct job_file *file = NULL;
    struct job_facts facts;

    testdb_begin(t);
    CHECK_OK(t, open_file(&file, NULL));
    end(&file);
    snprintf(other.job, sizeof(other.job), "other");
    CHECK_OK(t, job_file_open(testdb_path, &testdb_options, &other, &file, NULL));
    CHECK_OK(t, job_file_facts(file, &facts, NULL));
    CHECK_TEXT(t, facts.job, fresh.job);
    CHECK(t, !memcmp(facts.key, fresh.key, sizeof(facts.key)));
    CHECK_INT(t, facts.created_wall_us, ==, 77);
    CHECK(t, facts.port == 0 && !facts.ended && facts.code == 0 && !facts.text[0]);
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK_INT(t, seen.records + seen.changes, ==, 0);
out:
    end(&file);
}

static unsigned mode_of(const char *suffix)
{
    struct stat st;

    return stat(testdb_beside(suffix), &st) ? 0 : (unsigned)st.st_mode & 0777;
}

static void only_its_owner_may_read_it(struct test *t)
{
    struct job_file *file = NULL;

    CHECK_OK(t, begin(t, &file));
    CHECK_INT(t, mode_of(""), ==, 0600);
    CHECK_INT(t, mode_of("-wal"), ==, 0600);
    CHECK_INT(t, mode_of("-shm"), ==, 0600);
    end(&file);
    CHECK_INT(t, chmod(testdb_path, 0644), ==, 0);
    CHECK_OK(t, open_file(&file, NULL));
    CHECK_OK(t, job_file_claim(file, 1, "pid 1 on a", NULL));
    CHECK_INT(t, mode_of(""), ==, 0600);
    CHECK_INT(t, mode_of("-wal"), ==, 0600);
    CHECK_INT(t, mode_of("-shm"), ==, 0600);
out:
    end(&file);
}

/* Every kind, twice; read twice, by who wrote them and by the next. */
static void records_of_every_kind_come_back_in_order(struct test *t)
{
    struct job_file *file = NULL;

    CHECK_OK(t, begin(t, &file));
    for (uint64_t seed = 0; seed < 2 * JOURNAL_OVER; seed++)
        CHECK_OK(t, write_record(file, seed, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(t, see(file, &seen, NULL));
        CHECK_INT(t, seen.records, ==, 2 * JOURNAL_OVER);
        CHECK(t, seen.same);
    }
    end(&file);
    CHECK_OK(t, open_file(&file, NULL));
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 2 * JOURNAL_OVER);
    CHECK(t, seen.same);
out:
    end(&file);
}

static void any_record_comes_back(struct test *t)
{
    const uint64_t count = 2000;
    static struct journal_random batch[100];
    struct job_write writes[100];
    struct job_file *file = NULL;

    CHECK_OK(t, begin(t, &file));
    for (uint64_t seed = 0; seed < count; seed += 100) {
        for (uint64_t i = 0; i < 100; i++) {
            journal_random_make(&batch[i], seed + i);
            writes[i] = (struct job_write){ .record = &batch[i].record };
        }
        CHECK_OK(t, job_file_write(file, writes, 100, NULL));
    }
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, count);
    CHECK(t, seen.same);
out:
    end(&file);
}

static void the_largest_round_comes_back(struct test *t)
{
    static uint64_t ids[LIMIT_WORKERS];
    const struct journal_record record = {
        .kind = JOURNAL_ROUND,
        .host = "",
        .text = "",
        .members = {ids,  LIMIT_WORKERS},
        .holders = { ids, LIMIT_WORKERS}
    };
    const struct job_write write = { .record = &record };
    struct job_file *file = NULL;

    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        ids[i] = LIMIT_INCARNATIONS - i;
    CHECK_OK(t, begin(t, &file));
    CHECK_OK(t, job_file_write(file, &write, 1, NULL));
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 1);
out:
    end(&file);
}

static struct blacklist_change change_of(uint32_t number, const char *host, uint32_t slot)
{
    struct blacklist_change change = { .none = false };

    records_make(number, host, slot, &change.record, &change.event);
    return change;
}

static void the_blacklist_is_in_it_too(struct test *t)
{
    static struct blacklist_change change[4];
    struct job_write writes[4] = { 0 };
    struct job_file *file = NULL;

    change[0] = change_of(1, "a", 0);
    change[1] = change_of(2, "b", 3);
    change[2] = change_of(3, "c", BLACKLIST_WHOLE_HOST);
    change[2].evicted = true;
    snprintf(change[2].evicted_host, sizeof(change[2].evicted_host), "a");
    change[3] = change_of(4, "d", 0);
    change[3].none = true;
    for (size_t i = 0; i < 4; i++)
        writes[i].change = &change[i];
    CHECK_OK(t, begin(t, &file));
    CHECK_OK(t, job_file_write(file, writes, 2, NULL));
    CHECK_OK(t, job_file_write(file, writes + 2, 2, NULL));
    end(&file);
    CHECK_OK(t, open_file(&file, NULL));
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK_INT(t, seen.changes, ==, 2);
    CHECK(t, records_same(&seen.change[0], &change[1].record));
    CHECK(t, records_same(&seen.change[1], &change[2].record));
out:
    end(&file);
}

static void the_port_and_the_end_are_facts(struct test *t)
{
    const struct job_write port = { .port = 65535 };
    const struct job_write ended = { .ended = true, .code = -3, .text = "it's \"over\"\n" };
    struct job_file *file = NULL;
    struct job_facts facts;

    CHECK_OK(t, begin(t, &file));
    CHECK_OK(t, job_file_write(file, &port, 1, NULL));
    CHECK_OK(t, job_file_facts(file, &facts, NULL));
    CHECK(t, facts.port == 65535 && !facts.ended);
    CHECK_OK(t, job_file_write(file, &ended, 1, NULL));
    end(&file);
    CHECK_OK(t, open_file(&file, NULL));
    CHECK_OK(t, job_file_facts(file, &facts, NULL));
    CHECK_TEXT(t, facts.job, fresh.job);
    CHECK(t, facts.port == 65535 && facts.ended);
    CHECK_INT(t, facts.code, ==, -3);
    CHECK_HAS(t, facts.text, "it's \"over\"");
out:
    end(&file);
}

static void one_write_may_say_several_things(struct test *t)
{
    static struct blacklist_change change;
    struct job_write write = {
        .record = &made.record, .change = &change, .port = 7, .ended = true, .code = 1
    };
    struct job_file *file = NULL;
    struct job_facts facts;

    change = change_of(1, "a", 0);
    journal_random_make(&made, 0);
    CHECK_OK(t, begin(t, &file));
    CHECK_OK(t, job_file_write(file, &write, 1, NULL));
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same && seen.changes == 1);
    CHECK_OK(t, job_file_facts(file, &facts, NULL));
    CHECK(t, facts.port == 7 && facts.ended && facts.code == 1 && !facts.text[0]);
out:
    end(&file);
}

static void an_earlier_owner_writes_nothing(struct test *t)
{
    const struct job_write port = { .port = 9 };
    struct job_file *older = NULL;
    struct job_file *newer = NULL;
    struct job_facts facts;
    struct hvd_err err;

    CHECK_OK(t, begin(t, &older));
    CHECK_OK(t, write_record(older, 0, NULL));
    CHECK_OK(t, job_file_check(older, NULL));
    CHECK_OK(t, open_file(&newer, NULL));
    CHECK_OK(t, job_file_claim(newer, UINT64_MAX, "pid 77 on node3", NULL));
    CHECK_CODE(t, write_record(older, 1, &err), HVD_E_LOST);
    CHECK_TEXT(t, err.text, "another driver (pid 77 on node3) has taken over this job");
    CHECK_CODE(t, job_file_check(older, &err), HVD_E_LOST);
    CHECK_CODE(t, job_file_write(older, &port, 1, &err), HVD_E_LOST);
    CHECK_OK(t, job_file_check(newer, NULL));
    CHECK_OK(t, see(newer, &seen, NULL));
    CHECK(t, seen.records == 1 && seen.same);
    CHECK_OK(t, job_file_facts(newer, &facts, NULL));
    CHECK_INT(t, facts.port, ==, 0);
    CHECK_OK(t, write_record(newer, 1, NULL));
    CHECK_CODE(t, write_record(older, 2, &err), HVD_E_LOST);
    CHECK_OK(t, see(newer, &seen, NULL));
    CHECK(t, seen.records == 2 && seen.same);
    CHECK_OK(t, job_file_claim(older, 5, "", NULL)); /* and back again */
    CHECK_OK(t, write_record(older, 2, NULL));
    CHECK_CODE(t, job_file_check(newer, &err), HVD_E_LOST);
out:
    end(&older);
    end(&newer);
}

/* While somebody is in the middle of a write. */
static void a_locked_file_is_busy(struct test *t)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct job_file *file = NULL;
    struct db *db = NULL;
    struct hvd_err err;

    CHECK_OK(t, begin(t, &file));
    CHECK_OK(t, db_open(testdb_path, &same, &testdb_options, &db, NULL));
    CHECK_OK(t, db_begin(db, NULL));
    CHECK_CODE(t, write_record(file, 0, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "another process is using it");
    CHECK_CODE(t, job_file_claim(file, 2, "", NULL), HVD_E_BUSY);
    CHECK_OK(t, job_file_check(file, NULL));
    db_rollback(db);
    CHECK_OK(t, write_record(file, 0, NULL));
out:
    testdb_end(db);
    end(&file);
}

static const struct db_options patient = { .busy_ms = 20000 };

/* A driver that does nothing but write: says so after some, and ends when it is replaced. */
static int write_until_lost(int ready_fd)
{
    struct job_file *file = NULL;
    uint64_t seed = 0;
    int rc = job_file_open(testdb_path, &patient, &fresh, &file, NULL);

    if (!rc)
        rc = job_file_claim(file, 1, "pid 1 on a", NULL);
    while (!rc) {
        rc = write_record(file, seed++, NULL);
        if (seed == 10 && write(ready_fd, "x", 1) != 1)
            return 1;
    }
    job_file_close(file);
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

/* What the successor has read is all there will ever be of the one before. */
static void after_the_claim_an_earlier_owner_adds_nothing(struct test *t)
{
    struct job_file *file = NULL;
    uint64_t records;
    pid_t child = -1;
    int ready = -1;
    int status;
    char byte;

    for (int round = 0; round < 5; round++) {
        testdb_begin(t);
        child = fork_writer(&ready);
        CHECK(t, child > 0);
        CHECK_INT(t, read(ready, &byte, 1), ==, 1);
        close(ready);
        CHECK_OK(t, job_file_open(testdb_path, &patient, &fresh, &file, NULL));
        CHECK_OK(t, job_file_claim(file, 2, "pid 2 on b", NULL));
        CHECK_OK(t, see(file, &seen, NULL));
        CHECK(t, seen.same && seen.records >= 10);
        records = seen.records;
        CHECK_INT(t, waitpid(child, &status, 0), ==, child);
        child = -1;
        CHECK_INT(t, status, ==, 0);
        CHECK_OK(t, see(file, &seen, NULL));
        CHECK_INT(t, seen.records, ==, records);
        job_file_close(file);
        file = NULL;
    }
out:
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    job_file_close(file);
}

static void what_could_not_be_read_back_is_not_written(struct test *t)
{
    static char text[LIMIT_TEXT_BYTES + 2];
    static const char *const addresses[LIMIT_ADDRESSES + 1] = { text, "", "", "", "", "",
                                                                "",   "", "", "", "", "",
                                                                "",   "", "", "", "" };
    static const uint64_t ids[] = { 0 };
    static const uint64_t high[] = { LIMIT_INCARNATIONS + 1 };
    const struct journal_record wrong[] = {
        {.kind = 0,                              .host = "", .text = ""                                         },
        { .kind = JOURNAL_OVER + 1,              .host = "", .text = ""                                         },
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
    struct job_file *file = NULL;
    struct hvd_err err;

    memset(text, 'x', sizeof(text) - 1);
    CHECK_OK(t, begin(t, &file));
    journal_random_make(&made, 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct journal_record record = wrong[i];
        const struct job_write writes[] = { { .record = &made.record }, { .record = &record } };

        if (i > 1)
            record.kind = JOURNAL_ROUND;
        CHECK_CODE(t, job_file_write(file, writes, 2, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "the journal cannot hold");
    }
    CHECK_OK(t, see(file, &seen, NULL));
    CHECK_INT(t, seen.records, ==, 0);
out:
    end(&file);
}

/* A write that fails is as if it had not been asked for, and the next one works. */
static void a_failed_write_changes_nothing(struct test *t)
{
    static struct blacklist_change change;
    struct job_file *file = NULL;
    struct job_write writes[] = { { .record = &made.record },
                                  { .change = &change },
                                  { .port = 7 } };
    struct job_facts facts;
    unsigned full = 0;
    uint64_t k = 0;
    bool delivered;

    change = change_of(1, "a", 0);
    fault_arm(FAULT_STORE, 0);
    CHECK_OK(t, begin(t, &file));
    do {
        int rc;

        journal_random_make(&made, 0);
        fault_arm(FAULT_STORE, ++k);
        rc = job_file_write(file, writes, ARRAY_SIZE(writes), NULL);
        delivered = fault_delivered(FAULT_STORE);
        fault_arm(FAULT_STORE, 0);
        CHECK(t, (rc != 0) == delivered);
        CHECK(t, rc == 0 || rc == HVD_E_IO || rc == HVD_E_FULL);
        full += rc == HVD_E_FULL;
        CHECK_OK(t, job_file_check(file, NULL));
        CHECK_OK(t, see(file, &seen, NULL));
        CHECK_INT(t, seen.records, ==, delivered ? 0 : 1);
        CHECK_INT(t, seen.changes, ==, delivered ? 0 : 1);
        CHECK_OK(t, job_file_facts(file, &facts, NULL));
        CHECK_INT(t, facts.port, ==, delivered ? 0 : 7);
    } while (delivered);
    CHECK_INT(t, k, >, 4);
    CHECK_INT(t, full, >, 0);
out:
    end(&file);
}

/* A claim that fails leaves the one before, or is there whole. */
static void a_failed_claim_is_none(struct test *t)
{
    struct job_file *older = NULL;
    struct job_file *newer = NULL;
    uint64_t k = 0;
    bool delivered;

    CHECK_OK(t, begin(t, &older));
    CHECK_OK(t, open_file(&newer, NULL));
    do {
        int rc;

        fault_arm(FAULT_STORE, ++k);
        rc = job_file_claim(newer, 2, "pid 2 on b", NULL);
        delivered = fault_delivered(FAULT_STORE);
        fault_arm(FAULT_STORE, 0);
        CHECK(t, (rc != 0) == delivered);
        CHECK_CODE(t, job_file_check(older, NULL), delivered ? 0 : HVD_E_LOST);
    } while (delivered);
    CHECK_OK(t, job_file_check(newer, NULL));
    CHECK_INT(t, k, >, 2);
out:
    end(&older);
    end(&newer);
}

static int stop_at_second(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    (void)record;
    return ++*(int *)arg == 2 ? err_set(err, HVD_E_STATE, "enough") : 0;
}

static int stop_at_once(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    (void)arg;
    (void)record;
    return err_set(err, HVD_E_STATE, "enough");
}

static void a_visit_ends_when_it_is_told_to(struct test *t)
{
    static struct blacklist_change change;
    const struct job_write write = { .change = &change };
    struct job_file *file = NULL;
    struct hvd_err err;
    int count = 0;

    change = change_of(1, "a", 0);
    CHECK_OK(t, begin(t, &file));
    for (uint64_t seed = 0; seed < 3; seed++)
        CHECK_OK(t, write_record(file, seed, NULL));
    CHECK_OK(t, job_file_write(file, &write, 1, NULL));
    CHECK_CODE(t, job_file_replay(file, stop_at_second, &count, &err), HVD_E_STATE);
    CHECK_TEXT(t, err.text, "enough");
    CHECK_INT(t, count, ==, 2);
    CHECK_CODE(t, job_file_blacklist(file, stop_at_once, NULL, &err), HVD_E_STATE);
    CHECK_TEXT(t, err.text, "enough");
    CHECK_OK(t, see(file, &seen, NULL)); /* and the next one begins anew */
    CHECK_INT(t, seen.records, ==, 3);
out:
    end(&file);
}

static int make_three(struct test *t)
{
    struct job_file *file = NULL;
    int rc = begin(t, &file);

    for (uint64_t seed = 0; seed < 3 && !rc; seed++)
        rc = write_record(file, seed, NULL);
    end(&file);
    return rc;
}

/* Rows that somebody has written by hand, past every check of the tables. */
static void foreign_records_are_checked(struct test *t)
{
    static const struct {
        const char *sql;
        const char *words;
    } rows[] = {
        {"kind = 0",                                              "a kind that this version does not know" },
        { "kind = 11",                                            "a kind that this version does not know" },
        { "kind = -1",                                            "kind is out of range"                   },
        { "kind = 4294967297",                                    "kind is out of range"                   },
        { "incarnation = -1",                                     "incarnation is out of range"            },
        { "incarnation = 16777217",                               "incarnation is out of range"            },
        { "cause = 3",                                            "cause is out of range"                  },
        { "slot = 4294967296",                                    "slot is out of range"                   },
        { "slot = -1",                                            "slot is out of range"                   },
        { "ended = 4",                                            "ended is out of range"                  },
        { "value = 2147483648",                                   "value is out of range"                  },
        { "code = -2147483649",                                   "code is out of range"                   },
        { "wall_us = -1",                                         "wall_us is out of range"                },
        { "host = 'a b'",                                         "there can be no such host"              },
        { "host = hex(zeroblob(200))",                            "the text in the column host is too long"},
        { "text = hex(zeroblob(200))",                            "the text in the column text is too long"},
        { "text = 'a' || char(0)",                                "the text in the column text holds a NUL"},
        { "addresses = 'x'",                                      "its addresses cannot be read"           },
        { "addresses = '1:a'",                                    "its addresses cannot be read"           },
        { "addresses = '2:a,'",                                   "its addresses cannot be read"           },
        { "addresses = '1:a,b'",                                  "its addresses cannot be read"           },
        { "addresses = '1:ab,'",                                  "its addresses cannot be read"           },
        { "addresses = '1:'",                                     "its addresses cannot be read"           },
        { "addresses = ':,'",                                     "its addresses cannot be read"           },
        { "addresses = '-1:a,'",                                  "its addresses cannot be read"           },
        { "addresses = '18446744073709551615:a,'",                "its addresses cannot be read"           },
        { "addresses = replace(hex(zeroblob(17)), '00', '0:,')",  "its addresses cannot be"                },
        { "addresses = hex(zeroblob(20000))",                     "column addresses is too long"           },
        { "members = 'x'",                                        "an id that no worker can have"          },
        { "members = ','",                                        "an id that no worker can have"          },
        { "members = '1,'",                                       "an id that no worker can have"          },
        { "members = '1,,2'",                                     "an id that no worker can have"          },
        { "members = '0'",                                        "an id that no worker can have"          },
        { "holders = '16777217'",                                 "an id that no worker can have"          },
        { "holders = '18446744073709551617'",                     "an id that no worker can have"          },
        { "members = replace(hex(zeroblob(131073)), '00', '1,')", "more ids than"                          },
        { "members = hex(zeroblob(1000000))",                     "column members is too long"             },
        { "id = 7",                                               "it is missing"                          },
    };
    struct job_file *file = NULL;
    struct hvd_err err;
    char sql[256];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, make_three(t));
        snprintf(sql, sizeof(sql), "UPDATE journal SET %s WHERE id = 2", rows[i].sql);
        CHECK_OK(t, run_sql(sql));
        CHECK_OK(t, open_file(&file, NULL));
        CHECK_CODE(t, see(file, &seen, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, testdb_path);
        CHECK_HAS(t, err.text, "record 2 of the journal: ");
        CHECK_HAS(t, err.text, rows[i].words);
        CHECK_HAS(t, err.text, "; move it and its -wal file aside");
        end(&file);
    }
out:
    end(&file);
}

static void foreign_facts_are_checked(struct test *t)
{
    static const struct {
        const char *sql;
        const char *words;
    } rows[] = {
        {"DELETE FROM fact",                              "it does not say whose job it is"},
        { "UPDATE fact SET job = '../x'",                 "no such name of a job"          },
        { "UPDATE fact SET job = ''",                     "no such name of a job"          },
        { "UPDATE fact SET job = hex(zeroblob(40))",      "column job is too long"         },
        { "UPDATE fact SET key = 'ab'",                   "the key is none"                },
        { "UPDATE fact SET key = replace(key, '0', 'g')", "the key is none"                },
        { "UPDATE fact SET key = key || 'a'",             "column key is too long"         },
        { "UPDATE fact SET port = 65536",                 "column port is out of range"    },
        { "UPDATE fact SET ended = 2",                    "column ended is out of range"   },
        { "UPDATE fact SET code = 1 << 40",               "column code is out of range"    },
        { "UPDATE fact SET text = hex(zeroblob(200))",    "column text is too long"        },
    };
    struct job_file *file = NULL;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, make_three(t));
        CHECK_OK(t, run_sql(rows[i].sql));
        CHECK_CODE(t, open_file(&file, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, testdb_path);
        CHECK_HAS(t, err.text, rows[i].words);
    }
out:
    end(&file);
}

static void an_owner_who_cannot_be_is_damage(struct test *t)
{
    struct job_file *file = NULL;
    struct hvd_err err;

    CHECK_OK(t, begin(t, &file));
    CHECK_OK(t, run_sql("UPDATE owner SET who = hex(zeroblob(200))"));
    CHECK_CODE(t, job_file_check(file, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "the owner: the text in the column who is too long");
    CHECK_OK(t, run_sql("DELETE FROM owner"));
    CHECK_CODE(t, job_file_check(file, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "its owner is missing");
    CHECK_CODE(t, write_record(file, 0, NULL), HVD_E_CORRUPT);
out:
    end(&file);
}

static void files_of_others_are_refused(struct test *t)
{
    struct job_file *file = NULL;
    struct hvd_err err;

    CHECK_OK(t, make_three(t));
    files_patch(testdb_path, TESTDB_AT_VERSION, "\0\0\0\3", 4);
    files_read(testdb_path, &before);
    CHECK_CODE(t, open_file(&file, &err), HVD_E_VERSION);
    CHECK(t, files_hold(testdb_path, &before));
    files_patch(testdb_path, TESTDB_AT_APPLICATION, "hvdB", 4);
    CHECK_CODE(t, open_file(&file, &err), HVD_E_INVAL);
    files_write(testdb_path, "", 0);
    CHECK_CODE(t, open_file(&file, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "it is empty, and was not when it was made");
    CHECK_INT(t, unlink(testdb_path), ==, 0);
    snprintf(testdb_path, sizeof(testdb_path), "%s/nowhere/x.db", test_dir(t));
    CHECK_CODE(t, open_file(&file, &err), HVD_E_NOTFOUND);
out:
    end(&file);
}

static void a_directory_that_may_not_be_written_is_refused(struct test *t)
{
    struct job_file *file = NULL;
    char dir[LIMIT_DB_PATH_BYTES];
    struct hvd_err err;

    testdb_begin(t);
    snprintf(dir, sizeof(dir), "%.*s", (int)(strlen(testdb_path) - strlen("/x.db")), testdb_path);
    files_obey_permissions(true);
    CHECK_INT(t, chmod(dir, 0500), ==, 0);
    CHECK_CODE(t, open_file(&file, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "writable for this user");
    CHECK_INT(t, chmod(dir, 0700), ==, 0);
    CHECK_OK(t, open_file(&file, &err));
out:
    files_obey_permissions(false);
    end(&file);
}

static void a_job_has_a_name_that_can_be_one_of_a_file(struct test *t)
{
    static const char *const wrong[] = { "", ".", ".a", "a/b", "a b", "a\n", "\xc3\xa4", "a'" };
    struct job_facts facts = fresh;
    struct job_file *file = NULL;
    struct hvd_err err;
    char longest[JOB_NAME_MAX + 2];

    testdb_begin(t);
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
out:
    end(&file);
}

static void misuse_is_a_bug_of_ours(struct test *t)
{
    const struct job_write nothing = { .port = 0 };
    struct job_file *file = NULL;

    testdb_begin(t);
    CHECK_OK(t, open_file(&file, NULL));
    CHECK_PANICS(t, "token != 0", (void)!job_file_claim(file, 0, "", NULL));
    CHECK_PANICS(t, "token != 0", (void)!job_file_check(file, NULL));
    CHECK_OK(t, job_file_claim(file, 1, "", NULL));
    CHECK_PANICS(t, "write->record", (void)!job_file_write(file, &nothing, 1, NULL));
    job_file_close(NULL);
out:
    end(&file);
}

TESTS(CASE(a_missing_file_is_made_with_its_facts), CASE(only_its_owner_may_read_it),
      CASE_FLAGS(records_of_every_kind_come_back_in_order, TEST_NO_TORTURE),
      CASE_FLAGS(any_record_comes_back, TEST_NO_TORTURE),
      CASE_FLAGS(the_largest_round_comes_back, TEST_NO_TORTURE), CASE(the_blacklist_is_in_it_too),
      CASE(the_port_and_the_end_are_facts), CASE(one_write_may_say_several_things),
      CASE(an_earlier_owner_writes_nothing), CASE(a_locked_file_is_busy),
      CASE_FLAGS(after_the_claim_an_earlier_owner_adds_nothing, TEST_NO_TORTURE),
      CASE(what_could_not_be_read_back_is_not_written),
      CASE_FLAGS(a_failed_write_changes_nothing, TEST_NO_TORTURE),
      CASE_FLAGS(a_failed_claim_is_none, TEST_NO_TORTURE), CASE(a_visit_ends_when_it_is_told_to),
      CASE_FLAGS(foreign_records_are_checked, TEST_NO_TORTURE),
      CASE_FLAGS(foreign_facts_are_checked, TEST_NO_TORTURE),
      CASE(an_owner_who_cannot_be_is_damage), CASE(files_of_others_are_refused),
      CASE(a_directory_that_may_not_be_written_is_refused),
      CASE(a_job_has_a_name_that_can_be_one_of_a_file),
      CASE_FLAGS(misuse_is_a_bug_of_ours, TEST_NO_TORTURE))
