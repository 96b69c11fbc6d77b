#include "driver/journal/scribe.h"

#include "tests/lib/fault.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/journal_random.h"
#include "tests/lib/records.h"
#include "tests/lib/testdb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SELDOM  (3600 * TIME_S) /* the thread is not to look by itself */
#define WAIT_MS 60000           /* whoever waits as long as this has lost a wake-up */

static const struct job_facts fresh = { .job = "job", .created_wall_us = 1 };

static struct journal_random made;

static int open_file(const struct db_options *options, uint64_t token, struct job_file **ret_file)
{
    struct job_file *file = NULL;
    int rc = job_file_open(testdb_path, options, &fresh, &file, NULL);

    if (!rc)
        rc = job_file_claim(file, token, token == 1 ? "pid 1 on a" : "pid 77 on node3", NULL);
    if (rc)
        job_file_close(file);
    else
        *ret_file = file;
    return rc;
}

static int start(int64_t check_us, struct scribe **ret_scribe)
{
    struct job_file *file = NULL;
    int rc = open_file(&testdb_options, 1, &file);

    if (!rc)
        rc = scribe_start(file, check_us, ret_scribe, NULL);
    if (rc)
        job_file_close(file);
    return rc;
}

static int stop(struct scribe **scribe, struct hvd_err *err)
{
    int rc = scribe_stop(*scribe, err);

    *scribe = NULL;
    return rc;
}

static uint64_t put(struct scribe *scribe, uint64_t seed)
{
    const struct job_write write = { .record = &made.record };

    journal_random_make(&made, seed);
    return scribe_put(scribe, &write);
}

static int wait_for(const struct scribe *scribe)
{
    struct pollfd fd = { scribe_fd(scribe), POLLIN, 0 };
    int rc;

    do
        rc = poll(&fd, 1, WAIT_MS);
    while (rc < 0 && errno == EINTR);
    return rc == 1 ? 0 : HVD_E_TIMEOUT;
}

/* Until all up to this number is durable. */
static int wait_durable(struct scribe *scribe, uint64_t number)
{
    uint64_t durable = 0;
    int rc = scribe_look(scribe, &durable, NULL);

    while (!rc && durable < number) {
        rc = wait_for(scribe);
        if (!rc)
            rc = scribe_look(scribe, &durable, NULL);
    }
    return rc;
}

struct seen {
    uint64_t records;
    uint64_t changes;
    bool same;
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

    (void)err;
    (void)record;
    seen->changes++;
    return 0;
}

/* What is in the file, which the scribe may have open. */
static int see(struct seen *seen, struct job_facts *facts)
{
    struct job_file *file = NULL;
    int rc = job_file_open(testdb_path, &db_options_usual, &fresh, &file, NULL);

    *seen = (struct seen){ .same = true };
    if (!rc)
        rc = job_file_replay(file, see_record, seen, NULL);
    if (!rc)
        rc = job_file_blacklist(file, see_change, seen, NULL);
    if (!rc)
        rc = job_file_facts(file, facts, NULL);
    job_file_close(file);
    return rc;
}

static struct seen seen;
static struct job_facts facts;

/* Each is there when its number is said, without waiting for the next. */
static void what_is_put_becomes_durable(struct test *t)
{
    struct scribe *scribe = NULL;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t number = put(scribe, seed);

        CHECK_INT(t, number, ==, seed + 1);
        CHECK_OK(t, wait_durable(scribe, number));
        CHECK_OK(t, see(&seen, &facts));
        CHECK_INT(t, seen.records, ==, seed + 1);
        CHECK(t, seen.same);
    }
    CHECK_OK(t, stop(&scribe, NULL));
out:
    (void)stop(&scribe, NULL);
}

static void everything_that_can_be_written_is_copied(struct test *t)
{
    static struct blacklist_change change;
    char text[] = "it is over";
    struct job_write write = {
        .change = &change, .ended = true, .code = 3, .text = text, .port = 99
    };
    struct scribe *scribe = NULL;

    testdb_begin(t);
    change = (struct blacklist_change){ .none = false };
    records_make(1, "a", 0, &change.record, &change.event);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK_INT(t, scribe_put(scribe, &write), ==, 1);
    memset(text, 'x', sizeof(text) - 1);
    write = (struct job_write){ .record = &(const struct journal_record){ .kind = JOURNAL_TERM } };
    CHECK_INT(t, scribe_put(scribe, &write), ==, 2); /* NULL is no text */
    CHECK_OK(t, stop(&scribe, NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.changes, ==, 1);
    CHECK_INT(t, seen.records, ==, 1);
    CHECK(t, facts.ended && facts.code == 3 && facts.port == 99);
    CHECK_TEXT(t, facts.text, "it is over");
out:
    (void)stop(&scribe, NULL);
}

static void many_are_written_together_and_in_order(struct test *t)
{
    const uint64_t count = 20000;
    struct scribe *scribe = NULL;
    uint64_t durable = 0;
    uint64_t looks = 0;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    for (uint64_t seed = 0; seed < count; seed++)
        CHECK_INT(t, put(scribe, seed), ==, seed + 1);
    while (durable < count) {
        uint64_t last = durable;

        CHECK_OK(t, wait_for(scribe));
        CHECK_OK(t, scribe_look(scribe, &durable, NULL));
        CHECK(t, durable >= last && durable <= count);
        looks++;
    }
    CHECK_INT(t, looks, <, count / 2);
    CHECK_OK(t, stop(&scribe, NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.records, ==, count);
    CHECK(t, seen.same);
out:
    (void)stop(&scribe, NULL);
}

static void stopping_writes_what_waits(struct test *t)
{
    struct scribe *scribe = NULL;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    for (uint64_t seed = 0; seed < 3000; seed++)
        CHECK(t, put(scribe, seed) != 0);
    CHECK_OK(t, stop(&scribe, NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.records, ==, 3000);
    CHECK(t, seen.same);
out:
    (void)stop(&scribe, NULL);
}

/* Takes the job over, as another process would: it has faults and a patience of its own. */
static int take_over(void)
{
    static const struct db_options patient = { .busy_ms = 20000 };
    struct job_file *file = NULL;
    int rc = open_file(&patient, 2, &file);

    job_file_close(file);
    return rc;
}

static void a_write_after_a_takeover_is_lost(struct test *t)
{
    struct scribe *scribe = NULL;
    uint64_t durable = 0;
    struct hvd_err err;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK_OK(t, wait_durable(scribe, put(scribe, 0)));
    CHECK_OK(t, take_over());
    CHECK_INT(t, put(scribe, 1), ==, 2);
    CHECK_OK(t, wait_for(scribe));
    CHECK_CODE(t, scribe_look(scribe, &durable, &err), HVD_E_LOST);
    CHECK_TEXT(t, err.text, "another driver (pid 77 on node3) has taken over this job");
    CHECK_INT(t, put(scribe, 2), ==, 3); /* dropped */
    CHECK_CODE(t, scribe_look(scribe, &durable, NULL), HVD_E_LOST);
    CHECK_INT(t, durable, ==, 0);
    CHECK_CODE(t, stop(&scribe, &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "node3");
    CHECK_OK(t, see(&seen, &facts));
    CHECK(t, seen.records == 1 && seen.same);
out:
    (void)stop(&scribe, NULL);
}

/* A driver that has nothing to write learns of it too. */
static void an_idle_scribe_looks_at_its_owner(struct test *t)
{
    struct scribe *scribe = NULL;
    uint64_t durable = 0;

    testdb_begin(t);
    CHECK_OK(t, start(TIME_MS, &scribe));
    CHECK_OK(t, take_over());
    CHECK_OK(t, wait_for(scribe));
    CHECK_CODE(t, scribe_look(scribe, &durable, NULL), HVD_E_LOST);
    CHECK_CODE(t, stop(&scribe, NULL), HVD_E_LOST);
out:
    (void)stop(&scribe, NULL);
}

/* What a failure leaves behind is dropped when it is stopped. */
static void a_record_that_cannot_be_is_the_end(struct test *t)
{
    const struct journal_record record = { .kind = JOURNAL_LAUNCH, .host = "a b" };
    const struct job_write write = { .record = &record };
    struct scribe *scribe = NULL;
    struct hvd_err err;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK(t, scribe_put(scribe, &write) == 1);
    CHECK_CODE(t, stop(&scribe, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "the journal cannot hold LAUNCH: there can be no such host");
out:
    (void)stop(&scribe, NULL);
}

/* Another process is in the middle of something: nothing is lost, and nothing waits for it. */
static void a_lock_is_waited_for(struct test *t)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct scribe *scribe = NULL;
    struct db *db = NULL;
    struct pollfd fd;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK_OK(t, db_open(testdb_path, &same, &db_options_usual, &db, NULL));
    CHECK_OK(t, db_begin(db, NULL));
    for (uint64_t seed = 0; seed < 10; seed++)
        CHECK(t, put(scribe, seed) != 0);
    fd = (struct pollfd){ scribe_fd(scribe), POLLIN, 0 };
    CHECK_INT(t, poll(&fd, 1, 300), ==, 0);
    db_rollback(db);
    CHECK_OK(t, wait_durable(scribe, 10));
out:
    (void)stop(&scribe, NULL);
    db_close(db);
}

/* Whichever write fails: a full disk is tried again, a broken one is the end, and said. */
static void a_disk_that_fails_once(struct test *t)
{
    struct scribe *scribe = NULL;
    unsigned given_up = 0;
    unsigned retried = 0;
    struct hvd_err err;
    uint64_t number;
    int rc;

    for (uint64_t k = 1; k < 12; k++) {
        testdb_begin(t);
        CHECK_OK(t, start(SELDOM, &scribe));
        fault_arm(FAULT_STORE, k);
        number = put(scribe, 0);
        rc = wait_durable(scribe, number);
        CHECK(t, rc == 0 || rc == HVD_E_IO);
        if (rc)
            CHECK_CODE(t, stop(&scribe, &err), HVD_E_IO);
        else
            CHECK_OK(t, stop(&scribe, NULL));
        retried += !rc && fault_delivered(FAULT_STORE);
        given_up += rc != 0;
        fault_arm(FAULT_STORE, 0);
        CHECK_OK(t, see(&seen, &facts));
        CHECK_INT(t, seen.records, ==, rc ? 0 : 1);
    }
    CHECK_INT(t, given_up, >, 0);
    CHECK_INT(t, retried, >, 0);
out:
    fault_arm(FAULT_STORE, 0);
    (void)stop(&scribe, NULL);
}

static void what_may_wait_is_limited(struct test *t)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    static uint64_t ids[LIMIT_WORKERS];
    const struct journal_record record = {
        .kind = JOURNAL_ROUND, .members = {ids, LIMIT_WORKERS}
    };
    const struct job_write write = { .record = &record };
    const uint64_t most = LIMIT_JOURNAL_WAITING_BYTES / sizeof(ids);
    struct scribe *scribe = NULL;
    struct db *db = NULL;
    uint64_t number = 0;
    int rc;

    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        ids[i] = i + 1;
    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK_OK(t, db_open(testdb_path, &same, &db_options_usual, &db, NULL));
    CHECK_OK(t, db_begin(db, NULL)); /* so that nothing of it can be written */
    while (number < most && scribe_put(scribe, &write))
        number++;
    CHECK_INT(t, number, ==, most - 1);
    CHECK(t, put(scribe, 0) != 0); /* a small one has room */
    db_rollback(db);
    db_close(db);
    db = NULL;
    CHECK_OK(t, wait_durable(scribe, 1)); /* and with it all that went into one transaction */
    CHECK(t, scribe_put(scribe, &write) != 0);
    CHECK_OK(
        t, take_over()); /* the rest is dropped, as it would take its time: if it is not through */
    rc = stop(&scribe, NULL);
    CHECK(t, rc == HVD_E_LOST || !rc);
out:
    db_close(db);
    (void)stop(&scribe, NULL);
}

static void the_thread_takes_no_signals(struct test *t)
{
    struct scribe *scribe = NULL;
    sigset_t blocked, before, pending;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK_INT(t, pthread_sigmask(SIG_BLOCK, &blocked, &before), ==, 0);
    CHECK_INT(t, kill(getpid(), SIGUSR1), ==, 0); /* it would end the process */
    CHECK_OK(t, wait_durable(scribe, put(scribe, 0)));
    CHECK_INT(t, sigpending(&pending), ==, 0);
    CHECK(t, sigismember(&pending, SIGUSR1));
    CHECK_OK(t, stop(&scribe, NULL));
out:
    (void)stop(&scribe, NULL);
}

static void nothing_to_write_is_fine(struct test *t)
{
    struct scribe *scribe = NULL;
    uint64_t durable = 7;

    testdb_begin(t);
    CHECK_OK(t, start(SELDOM, &scribe));
    CHECK_INT(t, fcntl(scribe_fd(scribe), F_GETFD) & FD_CLOEXEC, !=, 0);
    CHECK_OK(t, scribe_look(scribe, &durable, NULL));
    CHECK_INT(t, durable, ==, 0);
    CHECK_OK(t, stop(&scribe, NULL));
    CHECK_OK(t, scribe_stop(NULL, NULL));
out:
    (void)stop(&scribe, NULL);
}

/* The file stays its caller's when there is no thread for it. */
static void a_start_that_fails_gives_nothing(struct test *t)
{
    struct scribe *scribe = NULL;
    struct job_file *file = NULL;
    struct rlimit before = { 0, 0 };
    struct rlimit none;
    struct hvd_err err;
    int rc;

    testdb_begin(t);
    CHECK_INT(t, getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    CHECK_OK(t, open_file(&testdb_options, 1, &file));
    none = (struct rlimit){ 0, before.rlim_max };
    CHECK_INT(t, setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    rc = scribe_start(file, SELDOM, &scribe, &err);
    CHECK_INT(t, setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    CHECK_CODE(t, rc, HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "raise the limit on open files");
    CHECK_OK(t, job_file_check(file, NULL));
out:
    job_file_close(file);
}

/* With TEST_NO_TORTURE: what fails in the thread may be tried again there, in its own time. */
TESTS(CASE_FLAGS(what_is_put_becomes_durable, TEST_NO_TORTURE),
      CASE_FLAGS(everything_that_can_be_written_is_copied,
                 TEST_SURVIVES_STORE | TEST_SURVIVES_ALLOC),
      CASE_FLAGS(many_are_written_together_and_in_order, TEST_NO_TORTURE),
      CASE_FLAGS(stopping_writes_what_waits, TEST_NO_TORTURE),
      CASE_FLAGS(a_write_after_a_takeover_is_lost, TEST_SURVIVES_STORE | TEST_SURVIVES_ALLOC),
      CASE_FLAGS(an_idle_scribe_looks_at_its_owner, TEST_SURVIVES_STORE),
      CASE_FLAGS(a_record_that_cannot_be_is_the_end, TEST_SURVIVES_STORE),
      CASE_FLAGS(a_lock_is_waited_for, TEST_NO_TORTURE),
      CASE_FLAGS(a_disk_that_fails_once, TEST_NO_TORTURE),
      CASE_FLAGS(what_may_wait_is_limited, TEST_NO_TORTURE),
      CASE_FLAGS(the_thread_takes_no_signals, TEST_NO_TORTURE),
      CASE_FLAGS(nothing_to_write_is_fine, TEST_SURVIVES_STORE),
      CASE_FLAGS(a_start_that_fails_gives_nothing, TEST_NO_TORTURE))
