/*
 * testjob.h: a job file for the tests of driver/journal/job_file.h, on the VFS of fault_vfs.h.
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

/* Opens the job file at testdb_path. */
int testjob_open(struct job_file **ret_file, struct hvd_err *err);

/* Makes a new job file and takes it over as its owner. */
int testjob_begin(struct test *t, struct job_file **ret_file);

/* Closes the file, as testdb_end does. */
void testjob_end(struct job_file **file);

int testjob_write(struct job_file *file, uint64_t seed, struct hvd_err *err);

/* The contents of a file. same: its records are those of the seeds 0, 1, 2, ... */
struct testjob_seen {
    uint64_t records;
    bool same;
    size_t changes;
    struct blacklist_record change[TESTJOB_CHANGES_MAX];
};
int testjob_see(struct job_file *file, struct testjob_seen *seen, struct hvd_err *err);

#endif
