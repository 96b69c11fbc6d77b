/*
 * test_timeline.c: timeline/: events of every kind from threads and processes, files that grow,
 * full disks, and a reader that finds only whole lines. The place is the folder and the file of a
 * test.
 */
#include "timeline/calls.h"

#include "base/time.h"
#include "os/clock.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"
#include "tests/lib/torture.h"
#include "timeline/page_file.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS        4
#define EVENTS         3000
#define FILE_BYTES_MAX (16 * 1024 * 1024)

/* ---- a file and its content ---- */

struct place {
    const char *folder;
    char path[256];
    struct timeline *timeline;
    const char *text; /* the whole text of the file, after read_all */
    unsigned complaints;
    char complaint[ERR_TEXT_MAX];
};

static void place_make(struct place *place, struct test *t)
{
    *place = (struct place){ .folder = test_dir(t) };
    snprintf(place->path, sizeof(place->path), "%s/t.json", place->folder);
}

/* Returns how many files of the folder are left over from the making of the timeline. */
static size_t files_in(const struct place *place)
{
    DIR *folder = opendir(place->folder);
    size_t found = 0;

    if (!folder)
        abort();
    while (readdir(folder))
        found++;
    closedir(folder);
    return found - 2;
}

static void hear(void *arg, const char *text)
{
    struct place *place = arg;

    place->complaints++;
    snprintf(place->complaint, sizeof(place->complaint), "%s", text);
}

static int start(struct timeline *timeline, const char *path, int64_t began_us, struct hvd_err *err)
{
    const struct timeline_file file = { .path = path, .job = "j\"1", .job_began_us = began_us };

    return timeline_start(timeline, &file, err);
}

/* A timeline that is on. */
static int open_as(struct place *place, uint64_t process, int64_t began_us,
                   struct timeline **ret_timeline, struct hvd_err *err)
{
    const struct timeline_options options = { .process = process, .complain = hear, .arg = place };
    struct timeline *timeline;
    int rc = timeline_create(&options, &timeline);

    if (rc)
        return rc;
    rc = start(timeline, place->path, began_us, err);
    if (rc)
        timeline_free(timeline);
    else
        *ret_timeline = timeline;
    return rc;
}

static const char *read_all(struct place *place)
{
    static char all[FILE_BYTES_MAX];
    FILE *file = fopen(place->path, "r");
    size_t length;

    if (!file)
        abort();
    length = fread(all, 1, sizeof(all) - 1, file);
    all[length] = 0;
    place->text = all;
    fclose(file);
    return place->text;
}

static size_t size_of(const struct place *place)
{
    struct stat status;

    return stat(place->path, &status) ? 0 : (size_t)status.st_size;
}

/* Searches line by line, because strstr of a sanitizer reads all of the text in each call. */
static size_t count(const char *text, const char *part)
{
    size_t length = strlen(part), found = 0;

    for (const char *end; *text; text = end) {
        end = strchr(text, '\n');
        end = end ? end + 1 : text + strlen(text);
        for (const char *at = text; (at = memmem(at, (size_t)(end - at), part, length)); at++)
            found++;
    }
    return found;
}

/* true: every line is "[", an object with a comma, or blank, and every line has its end. */
static bool is_whole(const char *text)
{
    const char *end;

    if (strncmp(text, "[\n", 2) != 0)
        return false;
    for (text += 2; *text; text = end + 1) {
        size_t length;

        end = strchr(text, '\n');
        if (!end)
            return false;
        length = (size_t)(end - text);
        if (strspn(text, " ") == length)
            continue;
        if (length < 3 || text[0] != '{' || strncmp(end - 2, "},", 2) != 0)
            return false;
    }
    return true;
}

static void show_one(struct timeline *timeline, int64_t at_us, const char *name)
{
    timeline_event(timeline, &(struct timeline_event){ .lane = TIMELINE_STATE,
                                                       .name = name,
                                                       .begun_us = at_us,
                                                       .ended_us = at_us + 5 });
}

/* ---- the text of events ---- */

static struct place own;
static struct timeline *late;

/* The threads of a case; the end of the case waits for them. */
static struct writer {
    pthread_t thread;
    uint64_t process;
} writers[WRITERS];
static size_t started;

static void start_writers(void *(*run)(void *writer))
{
    for (; started < WRITERS; started++) {
        writers[started].process = started + 1;
        if (pthread_create(&writers[started].thread, NULL, run, &writers[started]))
            abort();
    }
}

static void join_writers(void)
{
    while (started)
        pthread_join(writers[--started].thread, NULL);
}

static void end_case(struct test *t)
{
    (void)t;
    join_writers();
    timeline_free(late);
    late = NULL;
    timeline_free(own.timeline);
    own.timeline = NULL;
}
FIXTURE(NULL, end_case)

TEST(nothing_happens_without_a_timeline)
{
    CHECK_INT(t, timeline_now_us(NULL), ==, 0);
    timeline_name(NULL, "x", 0);
    show_one(NULL, 1, "x");
    timeline_phase(NULL, "x", 1, 2, 3);
    timeline_call(NULL, &(struct timeline_call){ .operation = "x" });
    timeline_flush(NULL);
    timeline_free(NULL);
}

TEST(shows_all_kinds)
{
    int64_t now_us;

    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    now_us = clock_now_us();
    timeline_name(own.timeline, "rank 2, a slot 1 (incarnation 7)", 2);
    show_one(own.timeline, now_us, "commit 1.1");
    timeline_phase(own.timeline, "copy in", 512, now_us, now_us + 3);
    timeline_call(own.timeline, &(struct timeline_call){ .operation = "allreduce",
                                                         .number = 17,
                                                         .round = 2,
                                                         .type = "float32",
                                                         .op = "sum",
                                                         .bytes = 4096,
                                                         .requests = 16,
                                                         .rank = 1,
                                                         .members = 3,
                                                         .code = HVD_E_REVOKED,
                                                         .why = "rank 1 is gone",
                                                         .begun_us = now_us,
                                                         .ended_us = now_us + 9 });
    timeline_flush(own.timeline);
    read_all(&own);
    CHECK(t, is_whole(own.text));
    CHECK_INT(t, size_of(&own) % PAGE_FILE_PAGE, ==, 0);
    CHECK_HAS(t, own.text, "\"ts\":1000,");
    CHECK_HAS(t, own.text, "\"name\":\"the job begins\",\"args\":{\"job\":\"j\\\"1\"}");
    CHECK_HAS(t, own.text, "\"args\":{\"name\":\"rank 2, a slot 1 (incarnation 7)\"}");
    CHECK_HAS(t, own.text, "\"name\":\"process_sort_index\",\"args\":{\"sort_index\":2}");
    CHECK_HAS(t, own.text, "\"dur\":5,\"name\":\"commit 1.1\",\"args\":{}},\n");
    CHECK_HAS(t, own.text, "\"dur\":3,\"name\":\"copy in\",\"args\":{\"bytes\":512}},\n");
    CHECK_HAS(t, own.text,
              "\"dur\":9,\"name\":\"allreduce\",\"args\":{\"number\":17,\"round\":2,\"rank\":1,"
              "\"members\":3,"
              "\"type\":\"float32\",\"op\":\"sum\",\"bytes\":4096,\"requests\":16,\"ended\":\"HVD_"
              "E_REVOKED\","
              "\"why\":\"rank 1 is gone\"}},\n");
    CHECK_INT(t, count(own.text, "\"thread_name\""), ==, TIMELINE_PHASES);
    CHECK_INT(t, own.complaints, ==, 0);
}

TEST(texts_are_escaped_and_cut)
{
    char text[600];

    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    show_one(own.timeline, 1, "a\"b\\c\nd\xc3\xa9");
    show_one(own.timeline, 1, "x\xff\xc3z\x7f");
    memset(text, 'u', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    show_one(own.timeline, 1, text);
    for (size_t i = 0; i + 1 < sizeof(text) - 1; i += 2)
        memcpy(text + i + 1, "\xc3\xa9", 2);
    show_one(own.timeline, 1, text);
    timeline_flush(own.timeline);
    read_all(&own);
    CHECK(t, is_whole(own.text));
    CHECK_HAS(t, own.text, "\"a\\\"b\\\\c\\u000ad\xc3\xa9\"");
    CHECK_HAS(t, own.text, "\"x??z\\u007f\"");
    CHECK_INT(t, count(own.text, "uuuuuuuuuu\""), ==, 1);
    CHECK_INT(t, count(own.text, "\xc3\xa9\""), ==, 2);
}

TEST(an_end_before_its_beginning_lasts_nothing)
{
    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    timeline_phase(own.timeline, "reduce", 0, INT64_MAX / 4, INT64_MAX / 8);
    timeline_flush(own.timeline);
    CHECK_HAS(t, read_all(&own), "\"dur\":0,\"name\":\"reduce\",\"args\":{}");
}

TEST_FLAGS(is_written_when_half_full_or_old, TEST_NO_TORTURE)
{
    int64_t now_us;
    size_t before;

    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    timeline_flush(own.timeline); /* the names of the lanes are older on a busy machine */
    now_us = clock_now_us();
    before = size_of(&own);
    CHECK(t, before >= 2 * (size_t)PAGE_FILE_PAGE && before % PAGE_FILE_PAGE == 0);
    show_one(own.timeline, now_us, "young");
    CHECK_INT(t, size_of(&own), ==, before);
    show_one(own.timeline, now_us + 300000, "old");
    CHECK_INT(t, size_of(&own), ==, before + PAGE_FILE_PAGE);
    for (int i = 0; i < EVENTS; i++)
        show_one(own.timeline, now_us, "many");
    CHECK_INT(t, size_of(&own), >, before + EVENTS * 80);
    timeline_free(own.timeline);
    own.timeline = NULL;
    CHECK_INT(t, count(read_all(&own), "\"many\""), ==, EVENTS);
    CHECK(t, is_whole(own.text));
}

static void *write_shared(void *arg)
{
    (void)arg;
    for (int i = 0; i < EVENTS; i++)
        show_one(own.timeline, clock_now_us(), "shared");
    return NULL;
}

/* ---- turned on and off ----------------------------------------------------------------------- */

TEST(starts_and_stops_and_starts_again)
{
    struct hvd_err err = { .code = 0 };
    int64_t long_ago_us = clock_now_us() - TIME_S;
    int64_t starts_us, ends_us;
    const char *dur;
    char other[300];

    place_make(&own, t);
    snprintf(other, sizeof(other), "%s/other.json", own.folder);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    timeline_name(own.timeline, "rank 2", 2);
    show_one(own.timeline, clock_now_us(), "in the first");
    CHECK_CODE(t, start(own.timeline, other, 1000, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "/t.json already; call hvd_timeline_stop first");
    CHECK_INT(t, files_in(&own), ==, 1);
    CHECK_OK(t, timeline_stop(own.timeline, NULL));
    CHECK(t, !timeline_is_on(own.timeline));
    CHECK_CODE(t, timeline_stop(own.timeline, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "no timeline is being written");
    CHECK_INT(t, timeline_now_us(own.timeline), ==, 0);
    show_one(own.timeline, clock_now_us(), "in no file");
    timeline_name(own.timeline, "rank 1", 1);

    /* The same file goes on. An event that began before the start is shown from the start on. */
    starts_us = clock_now_us();
    CHECK_OK(t, start(own.timeline, own.path, 1000, NULL));
    ends_us = clock_now_us();
    timeline_phase(own.timeline, "long ago", 0, long_ago_us, ends_us);
    CHECK_OK(t, timeline_stop(own.timeline, NULL));
    read_all(&own);
    CHECK(t, is_whole(own.text));
    CHECK_HAS(t, own.text, "in the first");
    CHECK_INT(t, count(own.text, "in no file"), ==, 0);
    CHECK_INT(t, count(own.text, "\"rank 2\""), ==, 1);
    CHECK_INT(t, count(own.text, "\"rank 1\""), ==, 1);
    CHECK_INT(t, count(own.text, "the job begins"), ==, 1);
    dur = strstr(strstr(own.text, "in the first"), "\"dur\":");
    CHECK_INT(t, strtoll(dur + 6, NULL, 10), <=, ends_us - starts_us);
}

TEST(a_start_that_fails_changes_nothing)
{
    char other[300];

    place_make(&own, t);
    snprintf(other, sizeof(other), "%s/none/t.json", own.folder);
    CHECK_OK(t, timeline_create(&(struct timeline_options){ .process = 7 }, &own.timeline));
    CHECK_CODE(t, start(own.timeline, other, 1000, NULL), HVD_E_NOTFOUND);
    CHECK(t, !timeline_is_on(own.timeline));
    CHECK_OK(t, start(own.timeline, own.path, 1000, NULL));
    CHECK_CODE(t, start(own.timeline, other, 1000, NULL), HVD_E_STATE);
    show_one(own.timeline, clock_now_us(), "still here");
    CHECK_OK(t, timeline_stop(own.timeline, NULL));
    CHECK_HAS(t, read_all(&own), "still here");
}

/* Threads add events while another thread turns the timeline on and off. */
TEST_FLAGS(is_switched_while_threads_write, TEST_NO_TORTURE)
{
    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    start_writers(write_shared);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(t, timeline_stop(own.timeline, NULL));
        CHECK_OK(t, start(own.timeline, own.path, 1000, NULL));
    }
    join_writers();
    CHECK_OK(t, timeline_stop(own.timeline, NULL));
    CHECK(t, is_whole(read_all(&own)));
    CHECK_INT(t, count(own.text, "the job begins"), ==, 1);
    CHECK_INT(t, own.complaints, ==, 0);
}

/* ---- several writers ------------------------------------------------------------------------- */

/* The first writer makes the file. Each line contains the number of its writer. */
static void write_many(struct place *place, uint64_t process)
{
    struct timeline *timeline;
    char name[32];

    if (open_as(place, process, 1000, &timeline, NULL))
        abort();
    for (int i = 0; i < EVENTS; i++) {
        snprintf(name, sizeof(name), "event %d of %" PRIu64 ".", i, process);
        show_one(timeline, clock_now_us(), name);
    }
    timeline_free(timeline);
}

static void *write_thread(void *arg)
{
    struct writer *writer = arg;

    write_many(&own, writer->process);
    return NULL;
}

static bool has_all(const char *text)
{
    char name[48];

    for (int i = 0; i < EVENTS; i += 97) {
        for (uint64_t process = 1; process <= WRITERS; process++) {
            snprintf(name, sizeof(name), "\"event %d of %" PRIu64 ".\"", i, process);
            if (count(text, name) != 1)
                return false;
        }
    }
    return true;
}

TEST_FLAGS(threads_of_one_timeline, TEST_NO_TORTURE)
{
    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 7, 1000, &own.timeline, NULL));
    start_writers(write_shared);
    join_writers();
    timeline_flush(own.timeline);
    CHECK_INT(t, count(read_all(&own), "\"shared\""), ==, WRITERS * EVENTS);
    CHECK(t, is_whole(own.text));
}

TEST_FLAGS(many_come_at_once, TEST_NO_TORTURE)
{
    place_make(&own, t);
    start_writers(write_thread);
    join_writers();
    read_all(&own);
    CHECK(t, is_whole(own.text));
    CHECK_INT(t, count(own.text, "the job begins"), ==, 1);
    CHECK(t, has_all(own.text));
    CHECK_INT(t, files_in(&own), ==, 1);
}

/* All processes find the file of an earlier job; only one replaces that file. */
TEST_FLAGS(processes_replace_an_old_file_once, TEST_NO_TORTURE)
{
    pid_t pids[WRITERS];
    int status;

    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 9, 999, &own.timeline, NULL));
    for (uint64_t i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            write_many(&own, i + 1);
            _exit(0);
        }
    }
    for (size_t i = 0; i < WRITERS; i++)
        CHECK(t, waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    read_all(&own);
    CHECK(t, is_whole(own.text));
    CHECK_HAS(t, own.text, "\"ts\":1000,");
    CHECK(t, has_all(own.text));
    CHECK_INT(t, files_in(&own), ==, 1);
}

/* Each process writes much more than the case waits for, but not without end: on a busy machine the
 * kill may come late, and the file must stay below FILE_BYTES_MAX. */
TEST_FLAGS(a_killed_process_leaves_whole_lines, TEST_NO_TORTURE)
{
    int status;

    place_make(&own, t);
    for (uint64_t i = 1; i <= 25; i++) {
        size_t before = size_of(&own);
        pid_t pid = fork();

        if (pid == 0) {
            test_die_with_parent();
            write_many(&own, i);
            for (;;)
                (void)pause();
        }
        while (size_of(&own) < before + (i % 5 + 1) * 5 * PAGE_FILE_PAGE)
            sched_yield();
        kill(pid, SIGKILL);
        CHECK(t, waitpid(pid, &status, 0) == pid);
    }
    read_all(&own);
    CHECK(t, is_whole(own.text));
    CHECK_INT(t, count(own.text, "the job begins"), ==, 1);
}

/* ---- a file of an earlier job ---- */

TEST(the_same_job_goes_on)
{
    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 1, 1000, &own.timeline, NULL));
    show_one(own.timeline, 1, "first");
    timeline_free(own.timeline);
    own.timeline = NULL;
    CHECK_OK(t, open_as(&own, 2, 1000, &own.timeline, NULL));
    show_one(own.timeline, 1, "second");
    timeline_flush(own.timeline);
    CHECK_HAS(t, read_all(&own), "\"first\"");
    CHECK_HAS(t, own.text, "\"second\"");
    CHECK_INT(t, count(own.text, "the job begins"), ==, 1);
}

TEST(a_later_job_begins_anew)
{
    struct hvd_err err = { .code = 0 };

    place_make(&own, t);
    files_write(own.path, "", 0);
    CHECK_OK(t, open_as(&own, 1, 1000, &own.timeline, NULL));
    show_one(own.timeline, 1, "first");
    timeline_free(own.timeline);
    own.timeline = NULL;
    CHECK_OK(t, open_as(&own, 1, 1001, &own.timeline, NULL));
    CHECK_INT(t, count(read_all(&own), "\"first\""), ==, 0);
    CHECK_CODE(t, open_as(&own, 1, 1000, &late, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "is the timeline of a later job");
}

TEST(a_foreign_file_stays)
{
    struct hvd_err err = { .code = 0 };

    place_make(&own, t);
    files_write(own.path, "my thesis\n", 10);
    CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_EXISTS);
    CHECK_HAS(t, err.text, "exists and is no timeline");
    CHECK_TEXT(t, read_all(&own), "my thesis\n");
}

TEST(a_link_is_refused_and_a_new_file_is_private)
{
    struct hvd_err err = { .code = 0 };
    mode_t before = umask(0);
    struct stat status;
    char file[256];
    int rc;

    place_make(&own, t);
    rc = open_as(&own, 1, 1000, &own.timeline, &err);
    umask(before);
    CHECK_OK(t, rc);
    CHECK(t, !stat(own.path, &status) && (status.st_mode & 07777) == 0600);
    timeline_free(own.timeline);
    own.timeline = NULL;
    memcpy(file, own.path, sizeof(file));
    snprintf(own.path, sizeof(own.path), "%s/link.json", own.folder);
    CHECK(t, !symlink(file, own.path));
    CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "link.json is a symbolic link; give the name of the file itself");
    if (geteuid() == 0) {
        snprintf(own.path, sizeof(own.path), "%s/t.json", own.folder);
        CHECK(t, !chown(own.path, 12345, 12345));
        CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_DENIED);
        CHECK_HAS(t, err.text, "t.json belongs to user 12345");
    }
}

TEST(odd_places_are_refused)
{
    struct hvd_err err = { .code = 0 };

    place_make(&own, t);
    if (mkfifo(own.path, 0600))
        abort();
    CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_EXISTS);
    unlink(own.path);
    snprintf(own.path, sizeof(own.path), "/dev/full");
    CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_EXISTS);
    snprintf(own.path, sizeof(own.path), "%s/none/t.json", own.folder);
    CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "none/t.json: No such file");
}

/* ---- no room --------------------------------------------------------------------------------- */

/* The limit of a process for the size of files stands in for a full disk: both let a part of a
 * write through. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_FSIZE, &limit))
        abort();
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_FSIZE, &limit))
        abort();
}

TEST_FLAGS(a_full_disk_is_said_once, TEST_NO_TORTURE)
{
    struct hvd_err err = { .code = 0 };

    place_make(&own, t);
    CHECK_OK(t, open_as(&own, 1, 1000, &own.timeline, NULL));
    limit_files(20 * PAGE_FILE_PAGE + 100);
    for (int i = 0; i < EVENTS; i++)
        show_one(own.timeline, clock_now_us(), "too many");
    timeline_flush(own.timeline);
    limit_files(RLIM_INFINITY);
    show_one(own.timeline, clock_now_us(), "too late");
    timeline_flush(own.timeline);
    CHECK_CODE(t, timeline_stop(own.timeline, &err), HVD_E_FULL);
    CHECK_HAS(t, err.text, "/t.json: File too large");
    CHECK(t, !timeline_is_on(own.timeline));
    CHECK_INT(t, own.complaints, ==, 1);
    CHECK_HAS(t, own.complaint, "/t.json: File too large; this worker writes nothing more");
    CHECK_INT(t, size_of(&own), ==, 20 * PAGE_FILE_PAGE);
    CHECK(t, is_whole(read_all(&own)));
    CHECK_INT(t, count(own.text, "\"too late\""), ==, 0);
    limit_files(RLIM_INFINITY);
}

TEST_FLAGS(no_room_for_the_first_page, TEST_NO_TORTURE)
{
    struct hvd_err err = { .code = 0 };

    place_make(&own, t);
    limit_files(100);
    CHECK_CODE(t, open_as(&own, 1, 1000, &own.timeline, &err), HVD_E_FULL);
    CHECK_INT(t, files_in(&own), ==, 0);
    limit_files(RLIM_INFINITY);
}
