/*
 * test_checkpoint_read.c: state/checkpoint/read: entries by name, every chunk verified.
 */
#include "state/checkpoint/read.h"

#include "proto/commit.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

static struct checkpoint_store *storage;
static struct checkpoint_manifest manifest;
static struct checkpoint_reader *reader;
static struct hvd_err err;
static char dir[256];

static void begin(struct test *t)
{
    storage = NULL;
    reader = NULL;
    err = (struct hvd_err){ .code = 0 };
    checkpoint_manifest_init(&manifest);
    snprintf(dir, sizeof(dir), "%s", test_dir(t));
    CHECK_OK(t, checkpoint_store_open(dir, &storage, NULL));
    CHECK_OK(t, checkpoints_write(storage, COMMIT_FIRST_OF(3) | 4, NULL));
    CHECK_OK(t, checkpoint_load(storage, "commit-3.4", &manifest, NULL));
}

static void end(struct test *t)
{
    (void)t;
    checkpoint_reader_close(reader);
    checkpoint_manifest_release(&manifest);
    checkpoint_store_close(storage);
}
FIXTURE(begin, end)

static const char *path_of(const char *name)
{
    static char path[600];

    snprintf(path, sizeof(path), "%s/commit-3.4/%s", dir, name);
    return path;
}

TEST(all_entries_are_read_back)
{
    uint64_t bytes = 0;

    CHECK_OK(t, checkpoints_check(storage, &manifest, NULL));
    CHECK_OK(t, checkpoint_reader_open(storage, &manifest, &reader, NULL));
    CHECK_OK(t, checkpoint_verify(reader, &bytes, NULL));
    CHECK_INT(t, bytes, ==,
              manifest.files[0].bytes + manifest.files[1].bytes + manifest.files[2].bytes +
                  manifest.files[3].bytes);
}

TEST(an_entry_that_is_not_there_is_named)
{
    int32_t mine[3];
    uint64_t bytes = 0;

    CHECK_OK(t, checkpoint_reader_open(storage, &manifest, &reader, NULL));
    CHECK_INT(t, checkpoint_entry_find(reader, "none"), ==, -1);
    CHECK_INT(t, checkpoint_entry_find(reader, "mine"), ==, 4);
    CHECK_CODE(t, checkpoint_entry_read(reader, "none", 0, mine, 12, &bytes, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "commit-3.4: the checkpoint has no entry \"none\"");
    CHECK_CODE(t, checkpoint_entry_read(reader, "mine", 2, mine, 12, &bytes, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "has no per-rank entries of rank 2, because 2 ranks wrote");
    CHECK_CODE(t, checkpoint_entry_read(reader, "mine", 1, mine, 11, &bytes, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "entry \"mine\" has 12 bytes, but the program");
    CHECK_OK(t, checkpoint_entry_read(reader, "mine", 1, mine, 12, &bytes, NULL));
    CHECK_INT(t, bytes, ==, 12);
    CHECK_INT(t, mine[0], ==, 1000 + (int)((COMMIT_FIRST_OF(3) | 4) % 100));
}

/* One bit of each file is turned, at its beginning, in its middle and at its end. */
TEST(a_bit_that_turned_is_found)
{

    for (size_t i = 0; i < manifest.file_count; i++)
        for (uint64_t place = 0; place < 3; place++) {
            uint64_t at = place * (manifest.files[i].bytes - 1) / 2;
            FILE *stream = fopen(path_of(manifest.files[i].name), "r+");
            int byte;

            CHECK(t, stream != NULL);
            fseek(stream, (long)at, SEEK_SET);
            byte = fgetc(stream);
            fseek(stream, (long)at, SEEK_SET);
            fputc(byte ^ 4, stream);
            fclose(stream);
            CHECK_CODE(t, checkpoints_check(storage, &manifest, &err), HVD_E_CORRUPT);
            CHECK_HAS(t, err.text, "has a wrong checksum; choose another checkpoint");
            CHECK_HAS(t, err.text, manifest.files[i].name);
            files_patch(path_of(manifest.files[i].name), at, &(char){ (char)byte }, 1);
        }
    CHECK_OK(t, checkpoints_check(storage, &manifest, NULL));
}

TEST(a_file_that_is_gone_is_named)
{
    CHECK_OK(t, checkpoint_reader_open(storage, &manifest, &reader, NULL));
    CHECK_INT(t, remove(path_of(manifest.files[2].name)), ==, 0);
    CHECK_CODE(t, checkpoints_check(storage, &manifest, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, manifest.files[2].name);
    CHECK_INT(t, remove(path_of(manifest.files[0].name)), ==, 0);
    checkpoint_reader_close(reader);
    reader = NULL;
    CHECK_CODE(t, checkpoint_reader_open(storage, &manifest, &reader, &err), HVD_E_NOTFOUND);
}

/* The manifest names entries that the files do not have as it says. */
TEST(files_that_do_not_fit_the_manifest_are_refused)
{
    static const struct {
        size_t entry;
        struct msg_entry other;
        const char *why;
    } changes[] = {
        {1,  { .name = "more", .bytes = 8, .type = 1 + HVD_INT64 },   "is not in the manifest"        },
        { 1, { .name = "step", .bytes = 16, .type = 1 + HVD_INT64 },  "has another size"              },
        { 1, { .name = "step", .bytes = 8, .type = 1 + HVD_FLOAT64 }, "has another type"              },
        { 1,
         { .name = "step", .bytes = 8, .kind = ENTRY_PER_RANK },
         "is per rank in the manifest and"                                                            },
        { 3, { .name = "sampler", .bytes = 10, .custom = true },      "has another size"              },
        { 1, { .name = "weights", .bytes = 8 },                       "names an entry twice"          },
        { 4, { .name = "mine", .bytes = 12 },                         "no file has the entry \"mine\""},
    };
    struct msg_entry entries[5];

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        struct checkpoint_manifest changed = manifest;

        memcpy(entries, manifest.entries.items, sizeof(entries));
        entries[changes[i].entry] = changes[i].other;
        changed.entries.items = entries;
        CHECK_CODE(t, checkpoint_reader_open(storage, &changed, &reader, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, changes[i].why);
    }
}
