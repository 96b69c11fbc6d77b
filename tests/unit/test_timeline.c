#include "timeline/call.h"

#include "os/clock.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"
#include "timeline/page_file.h"

#include <dirent.h>
#include <fcntl.h>
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

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define WRITERS              4
#define EVENTS               3000
#define FILE_BYTES_MAX       (16 * 1024 * 1024)

/* ---- a file, and what is in it --------------------------------------------------------------- */

struct place {
    const char *folder;
    char path[256];
    struct timeline *timeline;
    const char *text; /* all of it, once it was read */
    unsigned complaints;
    char complaint[ERR_TEXT_MAX];
};

static void place_make(struct place *place, struct test *t)
{
    *place = (struct place){ .folder = test_dir(t) };
    snprintf(place->path, sizeof(place->path), "%s/t.json", place->folder);
}

static void place_release(struct place *place)
{
    timeline_close(place->timeline);
}

/* Of what was made to become the file nothing is left. */
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

static int open_as(struct place *place, uint64_t process, int64_t began_us,
                   struct timeline **ret_timeline, struct hvd_err *err)
{
    const struct timeline_options options = { .path = place->path,
                                              .job = "j\"1",
                                              .job_began_us = began_us,
                                              .process = process,
                                              .complain = hear,
                                              .arg = place };

    return timeline_open(&options, ret_timeline, err);
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

static size_t count(const char *text, const char *part)
{
    size_t found = 0;

    for (; (text = strstr(text, part)); text++)
        found++;
    return found;
}

/* Every line is "[", an object with a comma, or blank; all of them end. */
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

/* ---- what is written ------------------------------------------------------------------------- */

static void nothing_happens_without_one(struct test *t)
{
    CHECK_INT(t, timeline_now_us(NULL), ==, 0);
    timeline_name(NULL, "x", 0);
    show_one(NULL, 1, "x");
    timeline_mark(NULL, &(struct timeline_event){ .name = "x" });
    timeline_phase(NULL, "x", 1, 2, 3);
    timeline_call(NULL, &(struct timeline_call){ .operation = "x" });
    timeline_flush(NULL);
    timeline_close(NULL);
out:
    return;
}

static void shows_all_kinds(struct test *t)
{
    struct place place;
    int64_t now_us = clock_now_us();

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 7, 1000, &place.timeline, NULL));
    timeline_name(place.timeline, "rank 2, a slot 1 (incarnation 7)", 2);
    show_one(place.timeline, now_us, "commit 1.1");
    timeline_phase(place.timeline, "copy in", 512, now_us, now_us + 3);
    timeline_mark(place.timeline, &(struct timeline_event){ .lane = TIMELINE_CHANGES,
                                                            .name = "revoked",
                                                            .begun_us = now_us });
    timeline_call(place.timeline, &(struct timeline_call){ .operation = "allreduce",
                                                           .number = 17,
                                                           .round = 2,
                                                           .type = "float32",
                                                           .op = "sum",
                                                           .bytes = 4096,
                                                           .code = HVD_E_REVOKED,
                                                           .why = "rank 1 is gone",
                                                           .begun_us = now_us,
                                                           .ended_us = now_us + 9 });
    timeline_flush(place.timeline);
    read_all(&place);
    CHECK(t, is_whole(place.text));
    CHECK_INT(t, size_of(&place) % PAGE_FILE_PAGE, ==, 0);
    CHECK_HAS(t, place.text, "\"ts\":1000,");
    CHECK_HAS(t, place.text, "\"name\":\"the job begins\",\"args\":{\"job\":\"j\\\"1\"}");
    CHECK_HAS(t, place.text, "\"args\":{\"name\":\"rank 2, a slot 1 (incarnation 7)\"}");
    CHECK_HAS(t, place.text, "\"name\":\"process_sort_index\",\"args\":{\"sort_index\":2}");
    CHECK_HAS(t, place.text, "\"dur\":5,\"name\":\"commit 1.1\",\"args\":{}},\n");
    CHECK_HAS(t, place.text, "\"dur\":3,\"name\":\"copy in\",\"args\":{\"bytes\":512}},\n");
    CHECK_HAS(t, place.text, "\"s\":\"t\",\"name\":\"revoked\"");
    CHECK_HAS(t, place.text,
              "\"dur\":9,\"name\":\"allreduce\",\"args\":{\"number\":17,\"round\":2,"
              "\"type\":\"float32\",\"op\":\"sum\",\"bytes\":4096,\"ended\":\"HVD_E_REVOKED\","
              "\"why\":\"rank 1 is gone\"}},\n");
    CHECK_INT(t, count(place.text, "\"thread_name\""), ==, TIMELINE_PHASES);
    CHECK_INT(t, place.complaints, ==, 0);
out:
    place_release(&place);
}

static void texts_are_escaped_and_cut(struct test *t)
{
    struct place place;
    char text[600];

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 7, 1000, &place.timeline, NULL));
    show_one(place.timeline, 1, "a\"b\\c\nd\xc3\xa9");
    show_one(place.timeline, 1, "x\xff\xc3z\x7f");
    memset(text, 'u', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    show_one(place.timeline, 1, text);
    for (size_t i = 0; i + 1 < sizeof(text) - 1; i += 2)
        memcpy(text + i + 1, "\xc3\xa9", 2);
    show_one(place.timeline, 1, text);
    timeline_flush(place.timeline);
    read_all(&place);
    CHECK(t, is_whole(place.text));
    CHECK_HAS(t, place.text, "\"a\\\"b\\\\c\\u000ad\xc3\xa9\"");
    CHECK_HAS(t, place.text, "\"x??z\\u007f\"");
    CHECK_INT(t, count(place.text, "uuuuuuuuuu\""), ==, 1);
    CHECK_INT(t, count(place.text, "\xc3\xa9\""), ==, 2);
out:
    place_release(&place);
}

static void an_end_before_its_beginning_lasts_nothing(struct test *t)
{
    struct place place;

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 7, 1000, &place.timeline, NULL));
    timeline_phase(place.timeline, "reduce", 0, 9, 4);
    timeline_flush(place.timeline);
    CHECK_HAS(t, read_all(&place), "\"dur\":0,\"name\":\"reduce\",\"args\":{}");
out:
    place_release(&place);
}

static void is_written_when_half_full_or_old(struct test *t)
{
    struct place place;
    int64_t now_us = clock_now_us();
    size_t before;

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 7, 1000, &place.timeline, NULL));
    before = size_of(&place);
    CHECK_INT(t, before, ==, PAGE_FILE_PAGE);
    show_one(place.timeline, now_us, "young");
    CHECK_INT(t, size_of(&place), ==, before);
    show_one(place.timeline, now_us + 300000, "old");
    CHECK_INT(t, size_of(&place), ==, before + PAGE_FILE_PAGE);
    for (int i = 0; i < EVENTS; i++)
        show_one(place.timeline, now_us, "many");
    CHECK_INT(t, size_of(&place), >, before + EVENTS * 80);
    timeline_close(place.timeline);
    place.timeline = NULL;
    CHECK_INT(t, count(read_all(&place), "\"many\""), ==, EVENTS);
    CHECK(t, is_whole(place.text));
out:
    place_release(&place);
}

/* ---- several writers ------------------------------------------------------------------------- */

struct writer {
    struct place *place;
    struct timeline *timeline;
    pthread_t thread;
    uint64_t process;
};

/* Whoever comes first makes it; each line says who wrote it. */
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
    timeline_close(timeline);
}

static void *write_thread(void *arg)
{
    struct writer *writer = arg;

    write_many(writer->place, writer->process);
    return NULL;
}

static void *write_shared(void *arg)
{
    struct writer *writer = arg;

    for (int i = 0; i < EVENTS; i++)
        show_one(writer->timeline, clock_now_us(), "shared");
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

static void threads_of_one_timeline(struct test *t)
{
    struct writer writers[WRITERS];
    struct place place;

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 7, 1000, &place.timeline, NULL));
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .timeline = place.timeline };
        if (pthread_create(&writers[i].thread, NULL, write_shared, &writers[i]))
            abort();
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    timeline_flush(place.timeline);
    CHECK_INT(t, count(read_all(&place), "\"shared\""), ==, WRITERS * EVENTS);
    CHECK(t, is_whole(place.text));
out:
    place_release(&place);
}

static void many_come_at_once(struct test *t)
{
    struct writer writers[WRITERS];
    struct place place;

    place_make(&place, t);
    for (uint64_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .place = &place, .process = i + 1 };
        if (pthread_create(&writers[i].thread, NULL, write_thread, &writers[i]))
            abort();
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    read_all(&place);
    CHECK(t, is_whole(place.text));
    CHECK_INT(t, count(place.text, "the job begins"), ==, 1);
    CHECK(t, has_all(place.text));
    CHECK_INT(t, files_in(&place), ==, 1);
out:
    place_release(&place);
}

/* And all find the file of an earlier job. */
static void processes_replace_an_old_one_once(struct test *t)
{
    struct place place;
    pid_t pids[WRITERS];
    int status;

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 9, 999, &place.timeline, NULL));
    for (uint64_t i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            write_many(&place, i + 1);
            _exit(0);
        }
    }
    for (size_t i = 0; i < WRITERS; i++)
        CHECK(t, waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    read_all(&place);
    CHECK(t, is_whole(place.text));
    CHECK_HAS(t, place.text, "\"ts\":1000,");
    CHECK(t, has_all(place.text));
    CHECK_INT(t, files_in(&place), ==, 1);
out:
    place_release(&place);
}

static void who_is_killed_leaves_whole_lines(struct test *t)
{
    struct place place;
    int status;

    place_make(&place, t);
    for (uint64_t i = 1; i <= 25; i++) {
        size_t before = size_of(&place);
        pid_t pid = fork();

        if (pid == 0) {
            for (;;)
                write_many(&place, i);
        }
        while (size_of(&place) < before + (i % 5 + 1) * 5 * PAGE_FILE_PAGE)
            sched_yield();
        kill(pid, SIGKILL);
        CHECK(t, waitpid(pid, &status, 0) == pid);
    }
    read_all(&place);
    CHECK(t, is_whole(place.text));
    CHECK_INT(t, count(place.text, "the job begins"), ==, 1);
out:
    place_release(&place);
}

/* ---- what was there -------------------------------------------------------------------------- */

static void the_same_job_goes_on(struct test *t)
{
    struct place place;

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 1, 1000, &place.timeline, NULL));
    show_one(place.timeline, 1, "first");
    timeline_close(place.timeline);
    place.timeline = NULL;
    CHECK_OK(t, open_as(&place, 2, 1000, &place.timeline, NULL));
    show_one(place.timeline, 1, "second");
    timeline_flush(place.timeline);
    CHECK_HAS(t, read_all(&place), "\"first\"");
    CHECK_HAS(t, place.text, "\"second\"");
    CHECK_INT(t, count(place.text, "the job begins"), ==, 1);
out:
    place_release(&place);
}

static void a_later_job_begins_anew(struct test *t)
{
    struct hvd_err err = { .code = 0 };
    struct timeline *late = NULL;
    struct place place;

    place_make(&place, t);
    files_write(place.path, "", 0);
    CHECK_OK(t, open_as(&place, 1, 1000, &place.timeline, NULL));
    show_one(place.timeline, 1, "first");
    timeline_close(place.timeline);
    place.timeline = NULL;
    CHECK_OK(t, open_as(&place, 1, 1001, &place.timeline, NULL));
    CHECK_INT(t, count(read_all(&place), "\"first\""), ==, 0);
    CHECK_CODE(t, open_as(&place, 1, 1000, &late, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "is the timeline of a later job");
out:
    timeline_close(late);
    place_release(&place);
}

static void what_is_no_timeline_stays(struct test *t)
{
    struct hvd_err err = { .code = 0 };
    struct place place;

    place_make(&place, t);
    files_write(place.path, "my thesis\n", 10);
    CHECK_CODE(t, open_as(&place, 1, 1000, &place.timeline, &err), HVD_E_EXISTS);
    CHECK_HAS(t, err.text, "is there and is no timeline");
    CHECK_TEXT(t, read_all(&place), "my thesis\n");
out:
    place_release(&place);
}

static void odd_places_are_refused(struct test *t)
{
    struct hvd_err err = { .code = 0 };
    struct place place;

    place_make(&place, t);
    if (mkfifo(place.path, 0600))
        abort();
    CHECK_CODE(t, open_as(&place, 1, 1000, &place.timeline, &err), HVD_E_EXISTS);
    unlink(place.path);
    snprintf(place.path, sizeof(place.path), "/dev/full");
    CHECK_CODE(t, open_as(&place, 1, 1000, &place.timeline, &err), HVD_E_EXISTS);
    snprintf(place.path, sizeof(place.path), "%s/none/t.json", place.folder);
    CHECK_CODE(t, open_as(&place, 1, 1000, &place.timeline, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "none/t.json: No such file");
out:
    place_release(&place);
}

/* ---- no room --------------------------------------------------------------------------------- */

/* The limit of a process for its files stands in for the disk's: it too lets a part of a write
 * through. */
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

static void a_full_disk_is_said_once(struct test *t)
{
    struct place place;

    place_make(&place, t);
    CHECK_OK(t, open_as(&place, 1, 1000, &place.timeline, NULL));
    limit_files(20 * PAGE_FILE_PAGE + 100);
    for (int i = 0; i < EVENTS; i++)
        show_one(place.timeline, clock_now_us(), "too many");
    timeline_flush(place.timeline);
    limit_files(RLIM_INFINITY);
    show_one(place.timeline, clock_now_us(), "too late");
    timeline_flush(place.timeline);
    CHECK_INT(t, place.complaints, ==, 1);
    CHECK_HAS(t, place.complaint, "/t.json: File too large; nothing more of this worker");
    CHECK_INT(t, size_of(&place), ==, 20 * PAGE_FILE_PAGE);
    CHECK(t, is_whole(read_all(&place)));
    CHECK_INT(t, count(place.text, "\"too late\""), ==, 0);
out:
    limit_files(RLIM_INFINITY);
    place_release(&place);
}

static void no_room_for_the_first_page(struct test *t)
{
    struct hvd_err err = { .code = 0 };
    struct place place;

    place_make(&place, t);
    limit_files(100);
    CHECK_CODE(t, open_as(&place, 1, 1000, &place.timeline, &err), HVD_E_FULL);
    CHECK_INT(t, files_in(&place), ==, 0);
out:
    limit_files(RLIM_INFINITY);
    place_release(&place);
}

TESTS(CASE(nothing_happens_without_one), CASE(shows_all_kinds), CASE(texts_are_escaped_and_cut),
      CASE(an_end_before_its_beginning_lasts_nothing), NO_TORTURE(is_written_when_half_full_or_old),
      NO_TORTURE(threads_of_one_timeline), NO_TORTURE(many_come_at_once),
      NO_TORTURE(processes_replace_an_old_one_once), NO_TORTURE(who_is_killed_leaves_whole_lines),
      CASE(the_same_job_goes_on), CASE(a_later_job_begins_anew), CASE(what_is_no_timeline_stays),
      CASE(odd_places_are_refused), NO_TORTURE(a_full_disk_is_said_once),
      NO_TORTURE(no_room_for_the_first_page))
