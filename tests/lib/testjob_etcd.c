/*
 * testjob_etcd.c: the store of testjob.h in an etcd of the test. Without the program etcd the test
 * ends at once, as skipped.
 */
#include "base/time.h"
#include "driver/store/etcd_store.h"
#include "tests/lib/etcd_server.h"
#include "tests/lib/testjob.h"

#include <stdio.h>
#include <stdlib.h>

static const char *folder;

__attribute__((constructor)) static void skip_without_etcd(void)
{
    if (etcd_server_found())
        return;
    printf("skipped: the program etcd is not installed (etcd-server)\n");
    exit(77);
}

void testjob_start(struct test *t)
{
    folder = test_dir(t);
    if (!etcd_server_start(folder, 1, NULL))
        test_fail(t, __FILE__, __LINE__, "etcd cannot be started");
}

void testjob_stop(void)
{
    etcd_server_stop();
}

/* Any claim succeeds at once, as in a job file. */
int testjob_open(struct store **ret_file, struct hvd_err *err)
{
    const struct etcd_store_config config = { .url = etcd_server_url(),
                                              .lease_us = 60 * TIME_S,
                                              .takeover = true };

    return etcd_store_open(&config, testjob_fresh.job, &testjob_fresh, ret_file, err);
}

int testjob_begin(struct test *t, struct store **ret_file)
{
    int rc = testjob_open(ret_file, NULL);

    (void)t;
    return rc ? rc : store_claim(*ret_file, 1, "pid 1 on a", NULL);
}

void testjob_end(struct store **file)
{
    store_close(*file);
    *file = NULL;
}
