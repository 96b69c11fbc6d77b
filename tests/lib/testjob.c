/*
 * testjob.c: a job file in the folder of a case, written and read back with the records of
 * journal_random.h.
 */
#include "tests/lib/testjob.h"

#include "tests/lib/fault_vfs.h"

void testjob_start(struct test *t)
{
    testdb_begin(t);
}

void testjob_stop(void)
{
    testdb_end(NULL);
}

int testjob_open(struct store **ret_file, struct hvd_err *err)
{
    return job_file_open(testdb_path, &testdb_options, &testjob_fresh, ret_file, err);
}

int testjob_begin(struct test *t, struct store **ret_file)
{
    int rc;

    testdb_begin(t);
    rc = testjob_open(ret_file, NULL);
    return rc ? rc : store_claim(*ret_file, 1, "pid 1 on a", NULL);
}

void testjob_end(struct store **file)
{
    fault_vfs_quiet(true);
    store_close(*file);
    fault_vfs_quiet(false);
    *file = NULL;
}
