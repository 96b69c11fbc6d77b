/*
 * test_chaos_checkpoints.c: how chaos finds the newest complete checkpoint and its step, in a
 * directory with complete, unfinished and strange ones.
 */
#include "tests/chaos/checkpoints.h"

#include "base/buf.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER \
    "{\"__metadata__\":{},\"epoch\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
#define STEP "\"step\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[8,16]}}"

static bool make_folder(const char *directory, const char *name)
{
    char path[400];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return !mkdir(path, 0700);
}

static bool put(const char *directory, const char *name, const void *bytes, size_t length)
{
    char path[400];
    FILE *file;
    bool whole;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "we");
    whole = file && fwrite(bytes, 1, length, file) == length;
    return file && !fclose(file) && whole;
}

/* A file with the entries epoch 3 and `step`. */
static bool put_part(const char *directory, const char *name, const char *header, int64_t step)
{
    uint64_t length = strlen(header);
    const int64_t epoch = 3;
    struct buf bytes;
    bool whole;

    buf_init(&bytes, 400);
    whole = !buf_append(&bytes, &length, sizeof(length)) && !buf_append(&bytes, header, length) &&
            !buf_append(&bytes, &epoch, sizeof(epoch)) &&
            !buf_append(&bytes, &step, sizeof(step)) &&
            put(directory, name, bytes.data, bytes.length);
    buf_release(&bytes);
    return whole;
}

TEST(the_newest_complete_one_counts)
{
    const char *directory = test_dir(t);
    struct checkpoint_seen seen = { .round = 0 };
    struct hvd_err err;

    CHECK_INT(t, checkpoints_newest(directory, &seen, &err), ==, HVD_DONE);
    CHECK_INT(t, checkpoints_newest("/no/such/directory", &seen, &err), ==, HVD_DONE);
    CHECK_INT(t, checkpoints_count("/no/such/directory"), ==, 0);
    CHECK(t, make_folder(directory, "commit-2.90") && make_folder(directory, "commit-10.7") &&
                 make_folder(directory, "commit-10.8") && make_folder(directory, "commit-11") &&
                 make_folder(directory, "other"));
    CHECK(t,
          put(directory, "commit-11/COMPLETE", "", 0) && put(directory, "other/COMPLETE", "", 0));
    CHECK_INT(t, checkpoints_newest(directory, &seen, &err), ==, HVD_DONE);
    CHECK(t, put(directory, "commit-2.90/COMPLETE", "", 0) &&
                 put_part(directory, "commit-2.90/a.safetensors", HEADER STEP, 90));
    CHECK_OK(t, checkpoints_newest(directory, &seen, &err));
    CHECK_INT(t, seen.step, ==, 90);

    /* the step is in one of the files; a file without it, and one that is no file of entries */
    CHECK(t, put_part(directory, "commit-10.7/a.safetensors", HEADER "\"x\":0}", 1) &&
                 put_part(directory, "commit-10.7/b.safetensors", HEADER STEP, 170) &&
                 put(directory, "commit-10.7/c.safetensors", "x", 1) &&
                 put(directory, "commit-10.7/COMPLETE", "", 0));
    CHECK_OK(t, checkpoints_newest(directory, &seen, &err));
    CHECK_INT(t, seen.round, ==, 10);
    CHECK_INT(t, seen.commit, ==, 7);
    CHECK_INT(t, seen.step, ==, 170);
    CHECK_INT(t, checkpoints_count(directory), ==, 3);

    CHECK(t, put(directory, "commit-10.8/COMPLETE", "", 0));
    CHECK_CODE(t, checkpoints_newest(directory, &seen, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "commit-10.8: is complete, and no file in it has the entry step");
out:;
}
