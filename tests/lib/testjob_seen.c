/*
 * testjob_seen.c: what testjob.h has for every store: random records that are written and compared.
 */
#include "tests/lib/testjob.h"

const struct job_facts testjob_fresh = {
    .job = "job-17.a_B", .key = {0, 1, 0xab, 0xff},
         .created_wall_us = 77, .port = 0
};

struct journal_random testjob_made;

int testjob_write(struct store *file, uint64_t seed, struct hvd_err *err)
{
    const struct job_write write = { .record = &testjob_made.record };

    journal_random_make(&testjob_made, seed);
    return store_write(file, &write, 1, err);
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

int testjob_see(struct store *file, struct testjob_seen *seen, struct hvd_err *err)
{
    int rc;

    *seen = (struct testjob_seen){ .same = true };
    rc = store_replay(file, see_record, seen, err);
    return rc ? rc : store_blacklist(file, see_change, seen, err);
}
