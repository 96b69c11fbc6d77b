/*
 * testjob.h: the store of a job for tests. testjob.c makes it a job file on the VFS of fault_vfs.h;
 * testjob_etcd.c makes it a job in an etcd of the test.
 */
#ifndef TESTS_LIB_TESTJOB_H
#define TESTS_LIB_TESTJOB_H

#include "driver/journal/job_file.h"
#include "tests/lib/journal_random.h"
#include "tests/lib/testdb.h"

#define TESTJOB_CHANGES_MAX 256

/* The facts with which a new file is made. */
extern const struct job_facts testjob_fresh;

/* The record that was last written or compared. */
extern struct journal_random testjob_made;

/* Begins and ends the place in which the stores of a case are: a file, or an etcd. */
void testjob_start(struct test *t);
void testjob_stop(void);

/* Opens the store: the job file at testdb_path. */
int testjob_open(struct store **ret_file, struct hvd_err *err);

/* Opens the store, which is new, and takes it over as its owner. */
int testjob_begin(struct test *t, struct store **ret_file);

/* Closes the store, as testdb_end does. */
void testjob_end(struct store **file);

int testjob_write(struct store *file, uint64_t seed, struct hvd_err *err);

/* The contents of a file. same: its records are those of the seeds 0, 1, 2, ... */
struct testjob_seen {
    uint64_t records;
    bool same;
    size_t changes;
    struct blacklist_record change[TESTJOB_CHANGES_MAX];
};
int testjob_see(struct store *file, struct testjob_seen *seen, struct hvd_err *err);

#endif
