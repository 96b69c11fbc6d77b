/*
 * testjob.c: a job file in the folder of a case, written and read back with the records of
 * journal_random.h.
 */
#include "tests/lib/testjob.h"

#include "tests/lib/fault_vfs.h"

const struct job_facts testjob_fresh = {
    .job = "job-17.a_B", .key = {0, 1, 0xab, 0xff},
         .created_wall_us = 77, .port = 0
};

struct journal_random testjob_made;

int testjob_open(struct job_file **ret_file, struct hvd_err *err)
{
    return job_file_open(testdb_path, &testdb_options, &testjob_fresh, ret_file, err);
}

int testjob_begin(struct test *t, struct job_file **ret_file)
{
    int rc;

    testdb_begin(t);
    rc = testjob_open(ret_file, NULL);
    return rc ? rc : job_file_claim(*ret_file, 1, "pid 1 on a", NULL);
}

void testjob_end(struct job_file **file)
{
    fault_vfs_quiet(true);
    job_file_close(*file);
    fault_vfs_quiet(false);
    *file = NULL;
}

int testjob_write(struct job_file *file, uint64_t seed, struct hvd_err *err)
{
    const struct job_write write = { .record = &testjob_made.record };

    journal_random_make(&testjob_made, seed);
    return job_file_write(file, &write, 1, err);
}

static int see_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct testjob_seen *seen = arg;

    (void)err;
    journal_random_make(&testjob_made, seen->records++);
    seen->same = seen->same && journal_same(record, &testjob_made.record);
    return 0;
}

static int see_change(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    struct testjob_seen *seen = arg;

    if (seen->changes == TESTJOB_CHANGES_MAX)
        return err_set(err, HVD_E_LIMIT, "too many");
    seen->change[seen->changes++] = *record;
    return 0;
}

int testjob_see(struct job_file *file, struct testjob_seen *seen, struct hvd_err *err)
{
    int rc;

    *seen = (struct testjob_seen){ .same = true };
    rc = job_file_replay(file, see_record, seen, err);
    return rc ? rc : job_file_blacklist(file, see_change, seen, err);
}
