/*
 * testjob.h: a job file for the tests of driver/journal/job_file.h, on the VFS that fails.
 */
#ifndef TESTS_LIB_TESTJOB_H
#define TESTS_LIB_TESTJOB_H

#include "driver/journal/job_file.h"
#include "tests/lib/journal_random.h"
#include "tests/lib/testdb.h"

#define TESTJOB_CHANGES_MAX 256

/* What a file that was not there is made with. */
extern const struct job_facts testjob_fresh;

/* The record that was written or compared last. */
extern struct journal_random testjob_made;

/* The one at testdb_path. */
int testjob_open(struct job_file **ret_file, struct hvd_err *err);

/* One that is new, and is ours. */
int testjob_begin(struct test *t, struct job_file **ret_file);

/* As testdb_end. */
void testjob_end(struct job_file **file);

int testjob_write(struct job_file *file, uint64_t seed, struct hvd_err *err);

/* All that a file holds; the same when its records are those of the seeds 0, 1, 2 ... */
struct testjob_seen {
    uint64_t records;
    bool same;
    size_t changes;
    struct blacklist_record change[TESTJOB_CHANGES_MAX];
};
int testjob_see(struct job_file *file, struct testjob_seen *seen, struct hvd_err *err);

#endif
