/*
 * test_scribe.c: the scribe, the thread that writes the driver's journal: records become durable in
 * order, a takeover by another driver ends the scribe, and a failure of the disk is reported.
 */
#include "driver/journal/scribe.h"

#include "driver/journal/job_file.h"
#include "tests/lib/fault.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/fixture.h"
#include "tests/lib/journal_random.h"
#include "tests/lib/records.h"
#include "tests/lib/testdb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SELDOM  (3600 * TIME_S) /* the thread is not to look by itself */
#define WAIT_MS 60000           /* a wait of this length means a lost wake-up */

static const struct job_facts fresh = { .job = "job", .created_wall_us = 1 };

static struct journal_random made;
static struct scribe *scribe;
static struct db *db;

static int open_file(const struct db_options *options, uint64_t token, struct store **ret_file)
{
    struct store *file = NULL;
    int rc = job_file_open(testdb_path, options, &fresh, &file, NULL);

    if (!rc)
        rc = store_claim(file, token, token == 1 ? "pid 1 on a" : "pid 77 on node3", NULL);
    if (rc)
        store_close(file);
    else
        *ret_file = file;
    return rc;
}

static int start(int64_t check_us)
{
    struct store *file = NULL;
    int rc = open_file(&testdb_options, 1, &file);

    if (!rc)
        rc = scribe_start(file, check_us, &scribe, NULL);
    if (rc)
        store_close(file);
    return rc;
}

static int stop(struct hvd_err *err)
{
    int rc = scribe_stop(scribe, err);

    scribe = NULL;
    return rc;
}

static uint64_t put(uint64_t seed)
{
    const struct job_write write = { .record = &made.record };

    journal_random_make(&made, seed);
    return scribe_put(scribe, &write);
}

static int wait_for(void)
{
    struct pollfd fd = { scribe_fd(scribe), POLLIN, 0 };
    int rc;

    do
        rc = poll(&fd, 1, WAIT_MS);
    while (rc < 0 && errno == EINTR);
    return rc == 1 ? 0 : HVD_E_TIMEOUT;
}

/* Waits until all records up to this number are durable. */
static int wait_durable(uint64_t number)
{
    uint64_t durable = 0;
    int rc = scribe_look(scribe, &durable, NULL);

    while (!rc && durable < number) {
        rc = wait_for();
        if (!rc)
            rc = scribe_look(scribe, &durable, NULL);
    }
    return rc;
}

/* Waits until the scribe has failed, and returns the failure. The descriptor may be readable
 * although the last look has seen all (scribe.h), so one wait is not enough. */
static int wait_failed(uint64_t *ret_durable, struct hvd_err *err)
{
    int rc;

    do {
        rc = wait_for();
        if (!rc)
            rc = scribe_look(scribe, ret_durable, err);
    } while (!rc);
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

/* Reads the file, which the scribe may have open. */
static int see(struct seen *seen, struct job_facts *facts)
{
    struct store *file = NULL;
    int rc = job_file_open(testdb_path, &db_options_usual, &fresh, &file, NULL);

    *seen = (struct seen){ .same = true };
    if (!rc)
        rc = store_replay(file, see_record, seen, NULL);
    if (!rc)
        rc = store_blacklist(file, see_change, seen, NULL);
    if (!rc)
        rc = store_facts(file, facts, NULL);
    store_close(file);
    return rc;
}

static struct seen seen;
static struct job_facts facts;

/* The thread of the scribe stops at its next step on the disk, until let_go. */
static atomic_bool stops;
static sem_t let_go;

static void stop_at_step(void *arg, uint64_t point, const char *what)
{
    (void)arg;
    (void)point;
    (void)what;
    while (atomic_load(&stops) && sem_wait(&let_go) && errno == EINTR)
        ;
    atomic_store(&stops, false);
}

/* TEST_NO_TORTURE: the thread repeats a failed write at a time of its own. */

static void begin(struct test *t)
{
    scribe = NULL;
    db = NULL;
    stops = false;
    CHECK_INT(t, sem_init(&let_go, 0, 0), ==, 0);
    testdb_begin(t);
}

static void end(struct test *t)
{
    (void)t;
    fault_arm(FAULT_STORE, 0);
    db_close(db);
    sem_post(&let_go);
    (void)stop(NULL);
    fault_vfs_set_hook(NULL, NULL);
}
FIXTURE(begin, end)

/* Each record is in the file when its number is reported, before the next record. */
TEST_FLAGS(records_become_durable, TEST_NO_TORTURE)
{
    CHECK_OK(t, start(SELDOM));
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t number = put(seed);

        CHECK_INT(t, number, ==, seed + 1);
        CHECK_OK(t, wait_durable(number));
        CHECK_OK(t, see(&seen, &facts));
        CHECK_INT(t, seen.records, ==, seed + 1);
        CHECK(t, seen.same);
    }
    CHECK_OK(t, stop(NULL));
}

TEST_FLAGS(everything_that_can_be_written_is_copied, TEST_SURVIVES_STORE | TEST_SURVIVES_ALLOC)
{
    static struct blacklist_change change;
    char text[] = "it is over";
    struct job_write write = {
        .change = &change, .ended = true, .code = 3, .text = text, .port = 99
    };

    change = (struct blacklist_change){ .none = false };
    records_make(1, "a", 0, &change.record, &change.event);
    CHECK_OK(t, start(SELDOM));
    CHECK_INT(t, scribe_put(scribe, &write), ==, 1);
    memset(text, 'x', sizeof(text) - 1);
    write = (struct job_write){ .record = &(const struct journal_record){ .kind = JOURNAL_TERM } };
    CHECK_INT(t, scribe_put(scribe, &write), ==, 2); /* NULL is no text */
    CHECK_OK(t, stop(NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.changes, ==, 1);
    CHECK_INT(t, seen.records, ==, 1);
    CHECK(t, facts.ended && facts.code == 3 && facts.port == 99);
    CHECK_TEXT(t, facts.text, "it is over");
}

TEST_FLAGS(many_are_written_together_and_in_order, TEST_NO_TORTURE)
{
    const uint64_t count = 20000;
    uint64_t durable = 0;
    uint64_t looks = 0;

    CHECK_OK(t, start(SELDOM));
    for (uint64_t seed = 0; seed < count; seed++)
        CHECK_INT(t, put(seed), ==, seed + 1);
    while (durable < count) {
        uint64_t last = durable;

        CHECK_OK(t, wait_for());
        CHECK_OK(t, scribe_look(scribe, &durable, NULL));
        CHECK(t, durable >= last && durable <= count);
        looks++;
    }
    CHECK_INT(t, looks, <, count / 2);
    CHECK_OK(t, stop(NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.records, ==, count);
    CHECK(t, seen.same);
}

/* A driver may die at any moment. A successor must never find the first write of a step without the
 * second: the end of a worker without the failure that is charged for it. */
TEST_FLAGS(the_writes_of_a_step_are_durable_together, TEST_NO_TORTURE)
{
    uint64_t durable = 0;

    CHECK_OK(t, start(SELDOM));
    for (uint64_t step = 1; step <= 50; step++) {
        struct pollfd fd = { scribe_fd(scribe), POLLIN, 0 };

        scribe_step_begin(scribe);
        CHECK(t, put(0) != 0);
        scribe_check(scribe);   /* the thread is awake while the step is open */
        (void)!poll(&fd, 1, 1); /* a write that is made too early is seen here */
        CHECK_OK(t, scribe_look(scribe, &durable, NULL));
        CHECK_INT(t, durable, ==, 2 * (step - 1));
        CHECK(t, put(1) != 0);
        scribe_step_end(scribe);
        CHECK_OK(t, wait_durable(2 * step));
    }
}

/* Steps of 400 writes wait behind a lock. Two of them fit into a transaction, the third does not. A
 * step of more than LIMIT_JOURNAL_BATCH writes is cut, and loses nothing. */
TEST_FLAGS(a_transaction_ends_with_a_step, TEST_NO_TORTURE)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    const uint64_t whole = 10, writes = 400, large = LIMIT_JOURNAL_BATCH + 1;
    uint64_t durable = 0;

    CHECK_OK(t, start(SELDOM));
    CHECK_OK(t, db_open(testdb_path, &same, &db_options_usual, &db, NULL));
    CHECK_OK(t, db_begin(db, NULL));
    for (uint64_t step = 0; step <= whole; step++) {
        scribe_step_begin(scribe);
        for (uint64_t k = 0; k < (step < whole ? writes : large); k++)
            CHECK(t, put(step * writes + k) != 0);
        scribe_step_end(scribe);
    }
    db_rollback(db);
    while (durable < whole * writes) {
        CHECK_INT(t, durable % writes, ==, 0);
        CHECK_OK(t, wait_for());
        CHECK_OK(t, scribe_look(scribe, &durable, NULL));
    }
    CHECK_OK(t, wait_durable(whole * writes + large));
    CHECK_OK(t, stop(NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.records, ==, whole * writes + large);
    CHECK(t, seen.same);
}

TEST_FLAGS(stopping_writes_what_waits, TEST_NO_TORTURE)
{
    CHECK_OK(t, start(SELDOM));
    for (uint64_t seed = 0; seed < 3000; seed++)
        CHECK(t, put(seed) != 0);
    CHECK_OK(t, stop(NULL));
    CHECK_OK(t, see(&seen, &facts));
    CHECK_INT(t, seen.records, ==, 3000);
    CHECK(t, seen.same);
}

/* Takes the job over, as another process would do, with its own faults and its own patience: the
 * scribe may have much to write, and leaves the lock to others for moments only. */
static int take_over(void)
{
    static const struct db_options patient = { .busy_ms = WAIT_MS };
    struct store *file = NULL;
    int rc = open_file(&patient, 2, &file);

    store_close(file);
    return rc;
}

TEST_FLAGS(a_write_after_a_takeover_is_lost, TEST_SURVIVES_STORE | TEST_SURVIVES_ALLOC)
{
    uint64_t durable = 0, before = 0;
    struct hvd_err err;

    CHECK_OK(t, start(SELDOM));
    CHECK_OK(t, wait_durable(put(0)));
    CHECK_OK(t, take_over());
    CHECK_INT(t, put(1), ==, 2);
    CHECK_CODE(t, wait_failed(&before, &err), HVD_E_LOST);
    CHECK_INT(t, before, <=, 1); /* 1: the descriptor was readable for the first write still */
    CHECK_TEXT(t, err.text,
               "another driver (pid 77 on node3) has taken over this job; this driver ends");
    CHECK_INT(t, put(2), ==, 3); /* dropped */
    CHECK_CODE(t, scribe_look(scribe, &durable, NULL), HVD_E_LOST);
    CHECK_INT(t, durable, ==, 0);
    CHECK_CODE(t, stop(&err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "node3");
    CHECK_OK(t, see(&seen, &facts));
    CHECK(t, seen.records == 1 && seen.same);
}

/* A scribe without records to write must also learn of the takeover. */
TEST_FLAGS(an_idle_scribe_looks_at_its_owner, TEST_SURVIVES_STORE)
{
    uint64_t durable = 0;

    CHECK_OK(t, start(TIME_MS));
    CHECK_OK(t, take_over());
    CHECK_CODE(t, wait_failed(&durable, NULL), HVD_E_LOST);
    CHECK_INT(t, durable, ==, 0);
    CHECK_CODE(t, stop(NULL), HVD_E_LOST);
}

/* Writes that wait after a failure are dropped when the scribe is stopped. */
TEST_FLAGS(an_impossible_record_ends_the_scribe, TEST_SURVIVES_STORE)
{
    const struct journal_record record = { .kind = JOURNAL_LAUNCH, .host = "a b" };
    const struct job_write write = { .record = &record };
    struct hvd_err err;

    CHECK_OK(t, start(SELDOM));
    CHECK(t, scribe_put(scribe, &write) == 1);
    CHECK_CODE(t, stop(&err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "the journal cannot hold LAUNCH: a host name that no host can have");
}

/* Another process holds the lock for a time: no record is lost, and put does not wait. */
TEST_FLAGS(a_lock_is_waited_for, TEST_NO_TORTURE)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct pollfd fd;

    CHECK_OK(t, start(SELDOM));
    CHECK_OK(t, db_open(testdb_path, &same, &db_options_usual, &db, NULL));
    CHECK_OK(t, db_begin(db, NULL));
    for (uint64_t seed = 0; seed < 10; seed++)
        CHECK(t, put(seed) != 0);
    fd = (struct pollfd){ scribe_fd(scribe), POLLIN, 0 };
    CHECK_INT(t, poll(&fd, 1, 300), ==, 0);
    db_rollback(db);
    CHECK_OK(t, wait_durable(10));
}

/* Each write fails once: with a full disk the scribe tries again; with a broken disk it ends and
 * reports this. */
TEST_FLAGS(a_disk_that_fails_once, TEST_NO_TORTURE)
{
    unsigned given_up = 0;
    unsigned retried = 0;
    struct hvd_err err;
    uint64_t number;
    int rc;

    for (uint64_t k = 1; k < 12; k++) {
        testdb_begin(t);
        CHECK_OK(t, start(SELDOM));
        fault_arm(FAULT_STORE, k);
        number = put(0);
        rc = wait_durable(number);
        CHECK(t, rc == 0 || rc == HVD_E_IO);
        if (rc)
            CHECK_CODE(t, stop(&err), HVD_E_IO);
        else
            CHECK_OK(t, stop(NULL));
        retried += !rc && fault_delivered(FAULT_STORE);
        given_up += rc != 0;
        fault_arm(FAULT_STORE, 0);
        CHECK_OK(t, see(&seen, &facts));
        CHECK_INT(t, seen.records, ==, rc ? 0 : 1);
    }
    CHECK_INT(t, given_up, >, 0);
    CHECK_INT(t, retried, >, 0);
}

TEST_FLAGS(waiting_records_are_limited, TEST_NO_TORTURE)
{
    static uint64_t ids[LIMIT_WORKERS];
    const struct journal_record record = {
        .kind = JOURNAL_ROUND, .members = {ids, LIMIT_WORKERS}
    };
    const struct job_write write = { .record = &record };
    const uint64_t most = LIMIT_JOURNAL_WAITING_BYTES / sizeof(ids);
    uint64_t number = 0;
    int rc;

    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        ids[i] = i + 1;
    fault_vfs_set_hook(stop_at_step, NULL);
    CHECK_OK(t, start(SELDOM));
    atomic_store(&stops, true); /* so that no record is written */
    while (number < most && scribe_put(scribe, &write))
        number++;
    CHECK_INT(t, number, ==, most - 1);
    CHECK(t, put(0) != 0); /* a small record has room */
    sem_post(&let_go);
    CHECK_OK(t, wait_durable(1)); /* with all records of the same transaction */
    CHECK(t, scribe_put(scribe, &write) != 0);
    CHECK_OK(
        t, take_over()); /* the rest is dropped, as it would take its time: if it is not through */
    rc = stop(NULL);
    CHECK(t, rc == HVD_E_LOST || !rc);
}

TEST_FLAGS(the_thread_takes_no_signals, TEST_NO_TORTURE)
{
    sigset_t blocked, before, pending;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CHECK_OK(t, start(SELDOM));
    CHECK_INT(t, pthread_sigmask(SIG_BLOCK, &blocked, &before), ==, 0);
    CHECK_INT(t, kill(getpid(), SIGUSR1), ==, 0); /* the signal would end the process */
    CHECK_OK(t, wait_durable(put(0)));
    CHECK_INT(t, sigpending(&pending), ==, 0);
    CHECK(t, sigismember(&pending, SIGUSR1));
    CHECK_OK(t, stop(NULL));
}

TEST_FLAGS(nothing_to_write_is_fine, TEST_SURVIVES_STORE)
{
    uint64_t durable = 7;

    CHECK_OK(t, start(SELDOM));
    CHECK_INT(t, fcntl(scribe_fd(scribe), F_GETFD) & FD_CLOEXEC, !=, 0);
    CHECK_OK(t, scribe_look(scribe, &durable, NULL));
    CHECK_INT(t, durable, ==, 0);
    CHECK_OK(t, stop(NULL));
    CHECK_OK(t, scribe_stop(NULL, NULL));
}

/* Without a thread for the scribe the file stays with its caller. */
TEST_FLAGS(a_start_that_fails_gives_nothing, TEST_NO_TORTURE)
{
    struct store *file = NULL;
    struct rlimit before = { 0, 0 };
    struct rlimit none;
    struct hvd_err err;
    int rc;

    CHECK_INT(t, getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    CHECK_OK(t, open_file(&testdb_options, 1, &file));
    none = (struct rlimit){ 0, before.rlim_max };
    CHECK_INT(t, setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    rc = scribe_start(file, SELDOM, &scribe, &err);
    CHECK_INT(t, setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    CHECK_CODE(t, rc, HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "raise the limit on open files");
    CHECK_OK(t, store_check(file, NULL));
    store_close(file);
}
