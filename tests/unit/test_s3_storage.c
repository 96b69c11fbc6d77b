/*
 * test_s3_storage.c: checkpoints in a real server of S3 that fails in every way which the front of
 * tests/s3/s3_server.py can make. tests/s3/with_s3.py runs this program.
 */
#include "state/remote/s3_storage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "proto/commit.h"
#include "tests/lib/checkpoints.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART     (5 * 1024 * 1024) /* the smallest that S3 takes */
#define LARGE    (2 * (size_t)PART + 1000)
#define WHERE    "s3://kept/unit/a b+c"
#define COMMIT_A (COMMIT_FIRST_OF(1) | 1)

static const struct s3_limits limits = { .connect_us = 20 * TIME_S,
                                         .request_us = 20 * TIME_S,
                                         .patience_us = 20 * TIME_S,
                                         .pause_us = 10 * TIME_MS,
                                         .pause_max_us = 100 * TIME_MS,
                                         .part_bytes = PART };
static const char *const server_variables[] = { "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID",
                                                "AWS_SECRET_ACCESS_KEY" };
static char server[ARRAY_SIZE(server_variables)][128];
static struct checkpoint_store *storage;
static struct checkpoint_object *object;
static struct http_client *asker;
static struct hvd_err err;
static char *large, *back;
static char names[8][LIMIT_CHECKPOINT_NAME_BYTES + 1];
static size_t count;

/* Asks the front of the server for something: a fault, or how many there were. */
static void ask(struct test *t, const char *path, char *answer, size_t room)
{
    char url[512];
    struct buf body;
    const struct http_request get = { .url = url, .body_to = &body };
    struct http_answer got = { .status = 0 };

    buf_init(&body, 4096);
    snprintf(url, sizeof(url), "%s/-/%s", server[0], path);
    CHECK_OK(t, http_send(asker, &get, &got, NULL));
    if (answer)
        snprintf(answer, room, "%s", buf_text(&body));
    buf_release(&body);
    CHECK_INT(t, got.status, ==, 200);
}

static void begin(struct test *t)
{
    const struct http_config config = { .connect_us = 20 * TIME_S, .request_us = 20 * TIME_S };

    for (size_t i = 0; i < ARRAY_SIZE(server_variables); i++) {
        const char *value = getenv(server_variables[i]);

        snprintf(server[i], sizeof(server[i]), "%s", value ? value : "");
    }
    CHECK(t, server[0][0]);
    CHECK_OK(t, http_client_create(&config, &asker, NULL));
    ask(t, "fault?percent=0", NULL, 0);
    CHECK_OK(t, s3_storage_open_with(WHERE, true, &limits, &storage, &err));
    CHECK_OK(t, checkpoint_store_remove(storage, "f", NULL));
}

static void end(struct test *t)
{
    (void)t;
    checkpoint_store_abandon(object);
    checkpoint_store_close(storage);
    http_client_free(asker);
    mem_free(large);
    mem_free(back);
    large = back = NULL;
}
FIXTURE(begin, end)

static int put(const char *name, const char *at, size_t bytes)
{
    struct checkpoint_object *made;
    int rc = checkpoint_store_create(storage, name, bytes, &made, &err);

    if (rc)
        return rc;
    rc = checkpoint_store_write(made, at, bytes / 3, &err);
    rc = rc ? rc : checkpoint_store_write(made, at + bytes / 3, bytes - bytes / 3, &err);
    if (!rc)
        return checkpoint_store_finish(made, &err);
    checkpoint_store_abandon(made);
    return rc;
}

static int note_name(void *arg, const char *name)
{
    (void)arg;
    if (count < ARRAY_SIZE(names))
        snprintf(names[count], sizeof(names[count]), "%s", name);
    count++;
    return 0;
}

static void list(struct test *t, const char *folder, size_t expected)
{
    count = 0;
    CHECK_OK(t, checkpoint_store_list(storage, folder, note_name, NULL, &err));
    CHECK_INT(t, count, ==, expected);
}

static void make_large(struct test *t)
{
    large = mem_alloc(LARGE);
    back = mem_alloc(LARGE);
    CHECK(t, large && back);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 2654435761u >> 13);
}

TEST_FLAGS(an_object_is_read_back_listed_and_removed, TEST_NO_TORTURE)
{
    struct checkpoint_object *half;
    uint64_t bytes = 1;
    char text[8] = "";

    CHECK_CODE(t, checkpoint_store_size(storage, "f/one", &bytes, &err), HVD_E_NOTFOUND);
    CHECK_CODE(t, checkpoint_store_read(storage, "f/one", 0, text, 1, &err), HVD_E_NOTFOUND);
    list(t, "f", 0);
    CHECK_OK(t, put("f/one", "abcdef", 6));
    CHECK_OK(t, put("f/none", "", 0));
    CHECK_OK(t, checkpoint_store_size(storage, "f/one", &bytes, NULL));
    CHECK_INT(t, bytes, ==, 6);
    CHECK_OK(t, checkpoint_store_size(storage, "f/none", &bytes, NULL));
    CHECK_INT(t, bytes, ==, 0);
    CHECK_OK(t, checkpoint_store_read(storage, "f/one", 2, text, 3, NULL));
    CHECK_TEXT(t, text, "cde");
    CHECK_CODE(t, checkpoint_store_read(storage, "f/one", 4, text, 3, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "/f/one: the object ends at byte 6, 1 bytes too early");
    CHECK_CODE(t, checkpoint_store_read(storage, "f/one", 100, text, 3, &err), HVD_E_CORRUPT);
    CHECK_OK(t, put("f/one", "xy", 2));
    CHECK_OK(t, checkpoint_store_size(storage, "f/one", &bytes, NULL));
    CHECK_INT(t, bytes, ==, 2);
    list(t, "f", 2);
    list(t, "", 1);
    CHECK_TEXT(t, names[0], "f");
    CHECK_OK(t, checkpoint_store_create(storage, "f/two", 3, &object, NULL));
    CHECK_OK(t, checkpoint_store_write(object, "abcd", 4, NULL));
    half = object;
    object = NULL;
    CHECK_CODE(t, checkpoint_store_finish(half, &err), HVD_E_STATE);
    CHECK_OK(t, checkpoint_store_remove(storage, "f/one", NULL));
    CHECK_OK(t, checkpoint_store_remove(storage, "f/one", NULL));
    list(t, "f", 1);
    CHECK_OK(t, checkpoint_store_remove(storage, "f", NULL));
    list(t, "", 0);
}

/* The answers to the requests that begin, send and end an upload are lost or wrong, one after the
 * other. */
TEST_FLAGS(a_large_object_goes_in_parts, TEST_NO_TORTURE)
{
    static const char *const faults[] = { "percent=0", "kind=late&next=1&only=POST",
                                          "kind=error200&next=2&only=POST",
                                          "kind=late500,reset,late&percent=30&seed=3" };
    uint64_t bytes = 0;

    make_large(t);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        char path[96];

        snprintf(path, sizeof(path), "fault?%s", faults[i]);
        ask(t, path, NULL, 0);
        CHECK_OK(t, put("f/large", large, LARGE));
        CHECK_OK(t, checkpoint_store_size(storage, "f/large", &bytes, NULL));
        CHECK_INT(t, bytes, ==, LARGE);
        memset(back, 0, LARGE);
        for (size_t at = 0; at < LARGE; at += 1 << 20)
            CHECK_OK(t, checkpoint_store_read(storage, "f/large", at, back + at,
                                              LARGE - at < 1 << 20 ? LARGE - at : 1 << 20, &err));
        CHECK(t, !memcmp(large, back, LARGE));
    }
    ask(t, "fault?percent=0", NULL, 0);
    /* An upload whose first answer was lost is begun twice; one of the two goes with the folder. */
    CHECK_OK(t, checkpoint_store_remove(storage, "f", &err));
    ask(t, "uploads", names[0], sizeof(names[0]));
    CHECK_TEXT(t, names[0], "uploads 0\n");
    /* A writer gives up: there is neither an object nor an upload. */
    CHECK_OK(t, checkpoint_store_create(storage, "f/given", LARGE, &object, NULL));
    CHECK_OK(t, checkpoint_store_write(object, large, LARGE, NULL));
    checkpoint_store_abandon(object);
    object = NULL;
    CHECK_CODE(t, checkpoint_store_size(storage, "f/given", &bytes, NULL), HVD_E_NOTFOUND);
    ask(t, "uploads", names[0], sizeof(names[0]));
    CHECK_TEXT(t, names[0], "uploads 0\n");
    /* A writer dies: its upload goes with the folder. */
    CHECK_OK(t, checkpoint_store_create(storage, "f/dead", LARGE, &object, NULL));
    CHECK_OK(t, checkpoint_store_write(object, large, LARGE, NULL));
    ask(t, "uploads", names[0], sizeof(names[0]));
    CHECK_TEXT(t, names[0], "uploads 1\n");
    CHECK_OK(t, checkpoint_store_remove(storage, "f", NULL));
    ask(t, "uploads", names[0], sizeof(names[0]));
    CHECK_TEXT(t, names[0], "uploads 0\n");
}

TEST_FLAGS(a_fault_that_passes_is_not_noticed, TEST_NO_TORTURE)
{
    static const char *const kinds[] = { "500",  "503",     "html",    "reset",
                                         "late", "late500", "truncate" };
    char path[96], text[8];
    uint64_t bytes;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        snprintf(path, sizeof(path), "fault?kind=%s&next=2", kinds[i]);
        ask(t, path, NULL, 0);
        CHECK_OK(t, put("f/one", "abcdef", 6));
        ask(t, path, NULL, 0);
        CHECK_OK(t, checkpoint_store_size(storage, "f/one", &bytes, &err));
        ask(t, path, NULL, 0);
        memset(text, 0, sizeof(text));
        CHECK_OK(t, checkpoint_store_read(storage, "f/one", 1, text, 4, &err));
        CHECK_TEXT(t, text, "bcde");
        ask(t, path, NULL, 0);
        list(t, "f", 1);
        ask(t, path, NULL, 0);
        CHECK_OK(t, checkpoint_store_remove(storage, "f", &err));
    }
}

TEST_FLAGS(a_fault_that_stays_names_culprit_and_remedy, TEST_NO_TORTURE)
{
    static const struct {
        const char *kind;
        int code;
        const char *text;
    } rows[] = {
        {"403",      HVD_E_DENIED,
         "/f/one: cannot write it: AccessDenied: Access Denied (status 403), with "
          "credentials of the environment (AWS_ACCESS_KEY_ID); let these"                      },
        { "expired", HVD_E_DENIED, "ExpiredToken: The provided token has expired. (status 400)"},
        { "skewed",  HVD_E_DENIED, "; set the clock of this host"                              },
        { "region",  HVD_E_INVAL,
         ", region us-east-1 from the default of hvd-elastic); set AWS_REGION to"              },
        { "full",    HVD_E_FULL,   "; make room in the bucket, or keep fewer checkpoints"      },
    };
    char path[96];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(path, sizeof(path), "fault?kind=%s&percent=100", rows[i].kind);
        ask(t, path, NULL, 0);
        CHECK_CODE(t, put("f/one", "abcdef", 6), rows[i].code);
        CHECK_HAS(t, err.text, WHERE);
        CHECK_HAS(t, err.text, rows[i].text);
    }
}

static int put_new(const char *name, const char *at, size_t bytes)
{
    struct checkpoint_object *made;
    int rc = checkpoint_store_create(storage, name, bytes, &made, &err);

    if (rc)
        return rc;
    checkpoint_store_only_new(made);
    rc = checkpoint_store_write(made, at, bytes, &err);
    if (!rc)
        return checkpoint_store_finish(made, &err);
    checkpoint_store_abandon(made);
    return rc;
}

/* Of two writers one completes a checkpoint. A writer whose answer was lost is no second writer. */
TEST_FLAGS(an_object_that_must_be_new_has_one_writer, TEST_NO_TORTURE)
{
    char text[8] = "";

    CHECK_OK(t, put_new("f/COMPLETE", "abcdef", 6));
    CHECK_CODE(t, put_new("f/COMPLETE", "ABCDEF", 6), HVD_E_EXISTS);
    CHECK_HAS(t, err.text, WHERE "/f/COMPLETE: another writer has completed this checkpoint; give");
    CHECK_CODE(t, put_new("f/COMPLETE", "abcde", 5), HVD_E_EXISTS);
    CHECK_OK(t, checkpoint_store_read(storage, "f/COMPLETE", 0, text, 6, NULL));
    CHECK_TEXT(t, text, "abcdef");
    CHECK_OK(t, put_new("f/COMPLETE", "abcdef", 6));
    ask(t, "fault?kind=late&next=1&only=PUT", NULL, 0);
    CHECK_OK(t, put_new("f/other", "abcdef", 6));
    CHECK_CODE(t, put_new("f/other", "x", 1), HVD_E_EXISTS);
    /* Without a condition the last writer wins. */
    CHECK_OK(t, put("f/other", "x", 1));
}

static char logged[LOG_LINE_MAX + 1];
static unsigned log_count;

static void keep_line(void *arg, const char *line, size_t length)
{
    (void)arg;
    snprintf(logged, sizeof(logged), "%.*s", (int)length, line);
    log_count++;
}

static int64_t no_time(void)
{
    return 0;
}

/* Older servers refuse the header. It is left out then, which the log tells once. */
TEST_FLAGS(a_server_without_conditional_writes_is_used_without, TEST_NO_TORTURE)
{
    static const char *const faults[] = { "kind=unknown501&percent=100",
                                          "kind=unknown400&percent=100" };
    static const struct log_sink sink = { keep_line, no_time, NULL };
    char path[96];

    log_open(&sink);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        log_count = 0;
        checkpoint_store_close(storage);
        storage = NULL;
        CHECK_OK(t, s3_storage_open_with(WHERE, true, &limits, &storage, &err));
        snprintf(path, sizeof(path), "fault?%s", faults[i]);
        ask(t, path, NULL, 0);
        CHECK_OK(t, put_new("f/one", "abcdef", 6));
        CHECK_OK(t, put_new("f/one", "ABCDEF", 6));
        CHECK_HAS(t, logged, "the server refuses conditional writes (If-None-Match)");
        CHECK_INT(t, log_count, ==, 1);
    }
    /* Another 400 is no such server. */
    checkpoint_store_close(storage);
    storage = NULL;
    CHECK_OK(t, s3_storage_open_with(WHERE, true, &limits, &storage, &err));
    ask(t, "fault?kind=expired&percent=100", NULL, 0);
    CHECK_CODE(t, put_new("f/one", "abcdef", 6), HVD_E_DENIED);
    CHECK_INT(t, log_count, ==, 1);
    log_open(NULL);
}

/* No call takes much longer than its limits, if the server hangs or refuses. */
TEST_FLAGS(a_server_that_hangs_or_is_busy_ends_the_call, TEST_NO_TORTURE)
{
    struct s3_limits brief = limits;

    brief.patience_us = 100 * TIME_MS;
    brief.request_us = 200 * TIME_MS;
    checkpoint_store_close(storage);
    storage = NULL;
    CHECK_OK(t, s3_storage_open_with(WHERE, false, &brief, &storage, &err));
    ask(t, "fault?kind=hang&percent=100", NULL, 0);
    CHECK_CODE(t, put("f/one", "abcdef", 6), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "; check the network, AWS_ENDPOINT_URL and");
    ask(t, "fault?kind=503&percent=100", NULL, 0);
    CHECK_CODE(t, put("f/one", "abcdef", 6), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "SlowDown: Please reduce your request rate. (status 503); write fewer");
}

TEST_FLAGS(a_wrong_bucket_server_or_key_is_named, TEST_NO_TORTURE)
{
    struct checkpoint_store *other = NULL;
    struct s3_limits brief = limits;

    brief.patience_us = 100 * TIME_MS;
    CHECK_CODE(t, s3_storage_open_with("s3://no-bucket/x", true, &brief, &other, &err),
               HVD_E_INVAL);
    CHECK_HAS(t, err.text, "s3://no-bucket/x/: cannot list it: NoSuchBucket");
    CHECK_HAS(t, err.text, "; create the bucket, or write another name after s3://");
    setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
    CHECK_CODE(t, s3_storage_open_with(WHERE, true, &brief, &other, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "SignatureDoesNotMatch");
    setenv("AWS_ENDPOINT_URL", "http://name.invalid", 1);
    CHECK_CODE(t, s3_storage_open_with(WHERE, true, &brief, &other, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "name.invalid: Could not resolve host");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    CHECK_CODE(t, s3_storage_open_with(WHERE, true, &brief, &other, &err), HVD_E_INVAL);
    CHECK_HAS(
        t, err.text,
        "AWS_ACCESS_KEY_ID: this variable is set, and AWS_SECRET_ACCESS_KEY is not; set both");
}

/* The text of an error names the variable that has the wrong value. */
TEST_FLAGS(a_wrong_setting_is_named_with_its_variable, TEST_NO_TORTURE)
{
    static const char *const rows[][2] = {
        {"AWS_DEFAULT_REGION",   "Europe"},
        { "AWS_REGION",          "Europe"},
        { "AWS_ENDPOINT_URL",    "h:80"  },
        { "AWS_ENDPOINT_URL_S3", "h:80"  },
    };
    struct checkpoint_store *other = NULL;
    char expected[96];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        setenv(rows[i][0], rows[i][1], 1);
        CHECK_CODE(t, s3_storage_open_with(WHERE, false, &limits, &other, &err), HVD_E_INVAL);
        snprintf(expected, sizeof(expected), ": %s: \"%s\" is not the ", rows[i][0], rows[i][1]);
        CHECK_HAS(t, err.text, expected);
        unsetenv(rows[i][0]);
    }
}

/* A profile with a region or a server that is wrong is named, too. */
TEST_FLAGS(a_wrong_setting_of_a_profile_is_named_with_the_profile, TEST_NO_TORTURE)
{
    static const char profile[] = "[default]\nregion = Europe\n";
    struct checkpoint_store *other = NULL;
    char path[512];

    snprintf(path, sizeof(path), "%s/aws", test_dir(t));
    files_write(path, profile, sizeof(profile) - 1);
    setenv("AWS_CONFIG_FILE", path, 1);
    CHECK_CODE(t, s3_storage_open_with(WHERE, false, &limits, &other, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "the profile \"default\" in the files of AWS_SHARED_CREDENTIALS_FILE");
    CHECK_HAS(t, err.text, ": \"Europe\" is not the name of a region; write a name such as");
}

/* The places of credentials, from the last to the first. */
TEST_FLAGS(credentials_come_from_the_first_place_that_has_them, TEST_NO_TORTURE)
{
    static const char profile[] =
        "[mine]\naws_access_key_id = AKTEST\naws_secret_access_key = no\n";
    struct checkpoint_store *other = NULL;
    char path[512];

    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    setenv("HOME", test_dir(t), 1);
    CHECK_CODE(t, s3_storage_open_with(WHERE, true, &limits, &other, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text,
              "AWS_ACCESS_KEY_ID is not set, the profile \"default\" in ~/.aws has none");
    CHECK_HAS(t, err.text, "AWS_EC2_METADATA_DISABLED is \"true\"; set AWS_ACCESS_KEY_ID and");
    unsetenv("AWS_EC2_METADATA_DISABLED");
    snprintf(path, sizeof(path), "%s/-/imds", server[0]);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", path, 1);
    CHECK_OK(t, s3_storage_open_with(WHERE, true, &limits, &other, &err));
    /* The credentials are too old: the service is asked again. */
    ask(t, "fault?kind=expired&next=1", NULL, 0);
    count = 0;
    CHECK_OK(t, checkpoint_store_list(other, "", note_name, NULL, &err));
    checkpoint_store_close(other);
    other = NULL;
    snprintf(path, sizeof(path), "%s/aws", test_dir(t));
    files_write(path, profile, sizeof(profile) - 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_PROFILE", "mine", 1);
    CHECK_CODE(t, s3_storage_open_with(WHERE, true, &limits, &other, &err), HVD_E_DENIED);
    CHECK_HAS(
        t, err.text,
        "with credentials of the profile \"mine\" in the files of AWS_SHARED_CREDENTIALS_FILE");
    setenv("AWS_ACCESS_KEY_ID", server[1], 1);
    setenv("AWS_SECRET_ACCESS_KEY", server[2], 1);
    CHECK_OK(t, s3_storage_open_with(WHERE, true, &limits, &other, &err));
    checkpoint_store_close(other);
}

TEST_FLAGS(a_checkpoint_survives_a_server_that_fails_at_random, TEST_NO_TORTURE)
{
    struct checkpoint_manifest manifest;
    char path[128], answer[64];

    snprintf(path, sizeof(path),
             "fault?kind=500,503,html,reset,late,late500,truncate,error200&percent=25&seed=11");
    ask(t, path, NULL, 0);
    for (uint64_t commit = COMMIT_A; commit < COMMIT_A + 3; commit++) {
        CHECK_OK(t, checkpoints_write(storage, commit, &err));
        CHECK_OK(t, checkpoint_find_newest(storage, NULL, NULL, &manifest, &err));
        CHECK_INT(t, manifest.commit, ==, commit);
        CHECK_OK(t, checkpoints_check(storage, &manifest, &err));
        checkpoint_manifest_release(&manifest);
    }
    CHECK_OK(t, checkpoint_remove(storage, "commit-1.3", &err));
    CHECK_OK(t, checkpoint_find_newest(storage, NULL, NULL, &manifest, &err));
    CHECK_INT(t, manifest.commit, ==, COMMIT_A + 1);
    checkpoint_manifest_release(&manifest);
    ask(t, "counts", answer, sizeof(answer));
    CHECK(t, !strstr(answer, "faults 0"));
    ask(t, "fault?percent=0", NULL, 0);
    CHECK_OK(t, checkpoint_remove(storage, "commit-1.2", &err));
    CHECK_OK(t, checkpoint_remove(storage, "commit-1.1", &err));
}
