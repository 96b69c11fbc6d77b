/*
 * test_checkpoint_manifest.c: state/checkpoint/manifest: what makes a checkpoint count; one that is
 * broken or half is skipped, and the one before it is taken.
 */
#include "base/panic.h"
#include "proto/commit.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT(round, place) (COMMIT_FIRST_OF(round) | (place))

static struct checkpoint_store *storage;
static struct checkpoint_manifest manifest, copy;
static struct hvd_err err;
static struct buf text, again;
static char dir[256];
/* the folders that were skipped last */
static char skipped[8][CHECKPOINT_FOLDER_MAX];
static struct hvd_err reasons[8];
static size_t skips;

static void begin(struct test *t)
{
    storage = NULL;
    checkpoints_weights = 1000;
    err = (struct hvd_err){ .code = 0 };
    skips = 0;
    buf_init(&text, 1 << 20);
    buf_init(&again, 1 << 20);
    checkpoint_manifest_init(&manifest);
    checkpoint_manifest_init(&copy);
    snprintf(dir, sizeof(dir), "%s", test_dir(t));
    CHECK_OK(t, checkpoint_store_open(dir, &storage, NULL));
}

static void end(struct test *t)
{
    (void)t;
    checkpoint_manifest_release(&manifest);
    checkpoint_manifest_release(&copy);
    buf_release(&text);
    buf_release(&again);
    checkpoint_store_close(storage);
}
FIXTURE(begin, end)

static const char *path_of(const char *folder, const char *name)
{
    static char path[600];

    snprintf(path, sizeof(path), "%s/%s/%s", dir, folder, name);
    return path;
}

static void note_skip(void *arg, const char *folder, int code, const char *reason)
{
    (void)arg;
    if (skips >= ARRAY_SIZE(skipped))
        abort();
    snprintf(skipped[skips], sizeof(skipped[skips]), "%s", folder);
    err_set(&reasons[skips++], code, "%s", reason);
}

TEST(a_manifest_is_read_back)
{
    CHECK_OK(t, checkpoints_write_parts(storage, COMMIT(12, 5), 7, &manifest, NULL));
    CHECK_OK(t, checkpoint_print(&manifest, &text));
    CHECK_HAS(t, buf_text(&text),
              "{\"format\":\"hvd-checkpoint\",\"version\":1,\"job\":\"job "
              "\\u00221\\u0022\",\"round\":12,\"commit\":5,\"ranks\":2,\"wall\":\"2026-");
    CHECK_HAS(t, buf_text(&text), "\"state\":{\"digest\":\"fedcba9876543210\",\"entries\":[");
    CHECK_HAS(t, buf_text(&text),
              "{\"name\":\"notes\",\"bytes\":999,\"kind\":\"replicated\",\"type\":null,\"custom\":"
              "false}");
    CHECK_HAS(t, buf_text(&text), "\"kind\":\"per_rank\",\"type\":\"I32\",\"custom\":false}");
    CHECK_HAS(t, buf_text(&text), "{\"name\":\"rank-00001.t1a7.safetensors\",\"bytes\":");
    CHECK_OK(t, checkpoint_parse("m", text.data, text.length, &copy, NULL));
    CHECK(t, copy.commit == manifest.commit && copy.wall_us == manifest.wall_us);
    CHECK_INT(t, copy.entries.count, ==, manifest.entries.count);
    CHECK_INT(t, copy.file_count, ==, 4);
    CHECK_TEXT(t, copy.job, "job \"1\"");
    CHECK(t, checkpoint_sum(&copy.files[0], 1) == checkpoint_sum(&manifest.files[0], 1));
    CHECK_OK(t, checkpoint_print(&copy, &again));
    CHECK_TEXT(t, buf_text(&again), buf_text(&text));
}

TEST(a_copy_owns_its_memory)
{
    CHECK_OK(t, checkpoints_write_parts(storage, COMMIT(1, 5), 7, &manifest, NULL));
    CHECK_OK(t, checkpoint_print(&manifest, &text));
    CHECK_OK(t, checkpoint_manifest_copy(&manifest, &copy));
    checkpoint_manifest_release(&manifest);
    CHECK_OK(t, checkpoint_print(&copy, &again));
    CHECK_TEXT(t, buf_text(&again), buf_text(&text));
}

TEST(folders_have_the_names_of_commits)
{
    static const char *const wrong[] = { "commit-",     "commit-1",    "commit-1.",
                                         "commit-01.2", "commit-1.2x", "commit-4294967296.0",
                                         "other-1.2",   "commit-1.-2", "commit-1.2.3" };
    char folder[CHECKPOINT_FOLDER_MAX];
    uint64_t commit = 0;

    CHECK_TEXT(t, checkpoint_folder(COMMIT(12, 5), folder), "commit-12.5");
    CHECK(t, checkpoint_folder_commit("commit-12.5", &commit) && commit == COMMIT(12, 5));
    CHECK_TEXT(t, checkpoint_folder(UINT64_MAX, folder), "commit-4294967295.4294967295");
    CHECK(t, checkpoint_folder_commit(folder, &commit) && commit == UINT64_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK(t, !checkpoint_folder_commit(wrong[i], &commit));
}

TEST(the_newest_complete_checkpoint_is_found)
{
    CHECK_CODE(t, checkpoint_find_newest(storage, note_skip, NULL, &manifest, &err),
               HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "has no complete checkpoint");
    CHECK_OK(t, checkpoints_write(storage, COMMIT(2, 9), NULL));
    CHECK_OK(t, checkpoints_write(storage, COMMIT(10, 0), NULL));
    CHECK_OK(t, checkpoints_write(storage, COMMIT(9, 77), NULL));
    CHECK_OK(t, checkpoint_find_newest(storage, note_skip, NULL, &manifest, NULL));
    CHECK(t, manifest.commit == COMMIT(10, 0));
    CHECK_INT(t, skips, ==, 0);
    CHECK_OK(t, checkpoints_check(storage, &manifest, NULL));
}

/* Breaks a file of the newest checkpoint. That checkpoint is skipped with the code and the reason,
 * and the one before it is taken. Bytes that are NULL remove the file. Each way to break one is a
 * case of its own: torture repeats only that case for each of its operations. */
static void break_newest(struct test *t, const char *file, const char *bytes, int code,
                         const char *why)
{
    CHECK_OK(t, checkpoints_write(storage, COMMIT(4, 1), NULL));
    CHECK_OK(t, checkpoints_write(storage, COMMIT(5, 1), NULL));
    CHECK_INT(t, remove(path_of("commit-5.1", file)), ==, 0);
    if (bytes)
        files_write(path_of("commit-5.1", file), bytes, strlen(bytes));
    CHECK_OK(t, checkpoint_find_newest(storage, note_skip, NULL, &manifest, NULL));
    CHECK(t, manifest.commit == COMMIT(4, 1));
    CHECK_INT(t, skips, ==, 1);
    CHECK_TEXT(t, skipped[0], "commit-5.1");
    CHECK_HAS(t, reasons[0].text, why);
    CHECK_INT(t, reasons[0].code, ==, code);
}

TEST(a_checkpoint_that_is_not_complete_is_skipped)
{
    break_newest(t, "COMPLETE", NULL, HVD_E_NOTFOUND,
                 "commit-5.1: the checkpoint is not complete: the file COMPLETE is missing");
}

TEST(an_empty_mark_of_completion_is_named)
{
    break_newest(t, "COMPLETE", "", HVD_E_CORRUPT,
                 "COMPLETE: the file has no checksum of 16 digits");
}

TEST(a_mark_of_completion_with_another_checksum_is_named)
{
    break_newest(t, "COMPLETE", "0123456789abcdef\n", HVD_E_CORRUPT,
                 "manifest.json: the checksum of this file is not");
}

TEST(a_checkpoint_without_its_manifest_is_skipped)
{
    break_newest(t, "manifest.json", NULL, HVD_E_CORRUPT,
                 "manifest.json: the file is missing; choose another");
}

TEST(a_manifest_that_was_changed_is_skipped)
{
    break_newest(t, "manifest.json", "{}", HVD_E_CORRUPT,
                 "manifest.json: the checksum of this file is not");
}

TEST(a_missing_part_is_named)
{
    break_newest(t, "rank-00000.t1a1.safetensors", NULL, HVD_E_CORRUPT,
                 "t1a1.safetensors: the file is missing");
}

TEST(a_part_of_another_length_is_named)
{
    break_newest(t, "rank-00001.t1a1.safetensors", "xx", HVD_E_CORRUPT, "has 2 bytes instead of ");
}

/* No job begins anew beside checkpoints that were completed and cannot be read. */
TEST(completed_checkpoints_that_are_all_broken_are_an_error)
{
    CHECK_OK(t, checkpoints_write(storage, COMMIT(4, 1), NULL));
    files_write(path_of("commit-4.1", "manifest.json"), "x", 1);
    CHECK_OK(t, checkpoints_write(storage, COMMIT(5, 1), NULL));
    CHECK_INT(t, remove(path_of("commit-5.1", "COMPLETE")), ==, 0);
    CHECK_CODE(t, checkpoint_find_newest(storage, note_skip, NULL, &manifest, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "commit-4.1/manifest.json: the checksum of this file is not");
    CHECK_INT(t, skips, ==, 2);
}

/* A folder that was renamed by hand is not the commit that its name says. */
TEST(a_renamed_checkpoint_is_refused)
{
    char to[600];

    CHECK_OK(t, checkpoints_write(storage, COMMIT(4, 1), NULL));
    snprintf(to, sizeof(to), "%s", path_of("commit-9.1", ""));
    to[strlen(to) - 1] = '\0';
    CHECK_INT(t, rename(path_of("commit-4.1", ""), to), ==, 0);
    CHECK_CODE(t, checkpoint_load(storage, "commit-9.1", &manifest, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "manifest.json: this manifest belongs to the folder commit-4.1");
}

/* Replaces the first `old` of the printed manifest, and parses the text. */
static int parse_changed(const char *old, const char *new_text)
{
    const char *at = strstr(buf_text(&text), old);
    int rc;

    if (!at)
        PANIC("no %s", old);
    buf_clear(&again);
    rc = buf_append(&again, text.data, (size_t)(at - text.data));
    if (!rc)
        rc = buf_append_text(&again, new_text);
    if (!rc)
        rc = buf_append_text(&again, at + strlen(old));
    return rc ? rc : checkpoint_parse("m", again.data, again.length, &copy, &err);
}

TEST(a_newer_version_is_named)
{
    CHECK_OK(t, checkpoints_write_parts(storage, COMMIT(12, 5), 7, &manifest, NULL));
    CHECK_OK(t, checkpoint_print(&manifest, &text));
    CHECK_CODE(t, parse_changed("\"version\":1", "\"version\":7"), HVD_E_VERSION);
    CHECK_HAS(t, err.text,
              "m: the format has version 7, and this hvd-elastic knows versions up to 1");
    CHECK_OK(t, parse_changed("\"version\":1", "\"later\":[1],\"version\":1"));
}

TEST(a_wrong_manifest_is_refused)
{
    static const char *const changes[][2] = {
        {"hvd-checkpoint",              "other"                                     },
        { "\"version\":1",              "\"version\":0"                             },
        { "\"round\":12",               "\"round\":-1"                              },
        { "\"round\":12",               "\"round\":4294967296"                      },
        { "\"commit\":5",               "\"commit\":\"5\""                          },
        { "\"ranks\":2",                "\"ranks\":0"                               },
        { "\"ranks\":2",                "\"ranks\":1"                               },
        { "\"ranks\":2",                "\"ranks\":131073"                          },
        { "\"wall\":\"2026",            "\"wall\":\"x2026"                          },
        { "Z\",",                       "\","                                       },
        { "fedcba98",                   "FEDCBA98"                                  },
        { "fedcba98",                   "fedcba9"                                   },
        { "\"chunk_bytes\":1048576",    "\"chunk_bytes\":1024"                      },
        { "\"kind\":\"replicated\"",    "\"kind\":\"other\""                        },
        { "\"type\":\"F32\"",           "\"type\":\"F31\""                          },
        { "\"type\":\"F32\"",           "\"type\":32"                               },
        { "\"custom\":false",           "\"custom\":0"                              },
        { "\"name\":\"weights\"",       "\"name\":\"wei\\nghts\""                   },
        { "\"name\":\"replicated-0001", "\"name\":\"../0001"                        },
        { "\"name\":\"replicated-0001", "\"name\":\"a/0001"                         },
        { "\"rank\":-1",                "\"rank\":-2"                               },
        { "\"rank\":-1",                "\"rank\":2"                                },
        { "safetensors\",\"bytes\":",   "safetensors\",\"bytes\":99999999,\"more\":"},
        { "\"sums\":\"",                "\"sums\":\"0"                              },
        { "\"sums\":\"",                "\"sums\":\"g"                              },
        { "\"files\":[",                "\"files\":{},\"other\":["                  },
        { "]}\n",                       ""                                          },
    };

    CHECK_OK(t, checkpoints_write_parts(storage, COMMIT(12, 5), 7, &manifest, NULL));
    CHECK_OK(t, checkpoint_print(&manifest, &text));
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        CHECK_CODE(t, parse_changed(changes[i][0], changes[i][1]), HVD_E_CORRUPT);
        CHECK(t, !strncmp(err.text, "m: ", 3));
        CHECK_HAS(t, err.text, "choose another checkpoint");
    }
}
