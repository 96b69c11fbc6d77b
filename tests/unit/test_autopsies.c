/*
 * test_autopsies.c: the files of autopsies: what is kept is read back and shown; the oldest go; a
 * disk that is full or hangs is warned of once and holds up nothing; damaged files, and those of a
 * former job, are not shown.
 */
#include "driver/control/autopsies.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "driver/control/autopsy_text.h"
#include "os/clock.h"
#include "proto/codec.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/log_kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static struct autopsies *autopsies;
static struct autopsy_list list;
static struct buf out;

/* ---- renames, which the thread makes ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned renames; /* that have begun */
static bool hanging;     /* a rename waits until this is false */
static int failing;      /* the errno of each rename; 0: it works */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    int number;

    pthread_mutex_lock(&mutex);
    renames++;
    pthread_cond_broadcast(&changed);
    while (hanging)
        pthread_cond_wait(&changed, &mutex);
    number = failing;
    pthread_mutex_unlock(&mutex);
    errno = number;
    return number ? -1 : __real_rename(from, to);
}

static void disk_becomes(bool hangs, int number)
{
    pthread_mutex_lock(&mutex);
    hanging = hangs;
    failing = number;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void await_renames(unsigned count)
{
    pthread_mutex_lock(&mutex);
    while (renames < count)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void begin(struct test *t)
{
    folder = test_dir(t);
    log_kept_begin();
    renames = 0;
    autopsies = NULL;
    list = (struct autopsy_list){ .damaged = 0 };
    disk_becomes(false, 0);
    buf_init(&out, (size_t)1024 * 1024);
}

static void end(struct test *t)
{
    (void)t;
    disk_becomes(false, 0);
    autopsies_free(autopsies);
    autopsy_list_release(&list);
    buf_release(&out);
    log_open(NULL);
}
FIXTURE(begin, end)

/* ---- a worker that has died ---- */

static const struct msg_activity activities[] = {
    {"state",      2, 0,  0,    5 * TIME_S,   40 * TIME_MS, 0            },
    { "train",     2, 0,  0,    4 * TIME_S,   TIME_NEVER,   0            },
    { "commit",    2, 16, 1024, 20 * TIME_MS, 2 * TIME_MS,  HVD_E_REVOKED},
    { "allreduce", 2, 17, 4096, 12 * TIME_MS, TIME_NEVER,   0            },
};

static struct msg autopsy_of(uint64_t incarnation)
{
    static const char printed[] = "step 16\nstep 17\n", failed[] = "Segmentation \x1b[31mfault";

    return (struct msg){
        .type = MSG_AUTOPSY,
        .incarnation = incarnation,
        .u.autopsy = {.slot = 1,
                      .host = "",
                      .pid = 4242,
                      .ended = ENDED_SIGNAL,
                      .value = SIGSEGV,
                      .ran_us = 12 * TIME_S,
                      .rank = 1,
                      .size = 4,
                      .last_round = 2,
                      .step = 17,
                      .reason = "",
                      .core_pattern = "core.%p",
                      .activities = { activities, ARRAY_SIZE(activities) },
                      .output = { (const uint8_t *)printed, sizeof(printed) - 1 },
                      .errors = { (const uint8_t *)failed, sizeof(failed) - 1 }}
    };
}

static void keep(struct test *t, uint64_t incarnation)
{
    const struct msg msg = autopsy_of(incarnation);

    if (!autopsies)
        CHECK_OK(t, autopsies_create(folder, false, &autopsies, NULL));
    autopsies_take(autopsies, "a", &msg, false);
}

/* All that waits is written, and read back. */
static void read_back(struct test *t)
{
    autopsies_free(autopsies);
    autopsies = NULL;
    autopsy_list_release(&list);
    CHECK_OK(t, autopsy_file_list(folder, &list, NULL));
}

/* ---- the cases ---- */

TEST_FLAGS(what_is_kept_is_shown, TEST_SURVIVES_ALLOC)
{
    keep(t, 3);
    read_back(t);
    CHECK_INT(t, list.found.count, ==, 1);
    CHECK_OK(t, autopsy_text_line(&list.found.items[0], &out));
    CHECK_HAS(t, buf_text(&out),
              " a:1#3, rank 1 of 4: killed by signal 11 (SIGSEGV); allreduce 2.17, "
              "4096 bytes, for 12ms, in step 17\n");
    buf_clear(&out);
    CHECK_OK(t, autopsy_text_whole(&list.found.items[0], &out));
    CHECK_HAS(t, buf_text(&out),
              "Z, after 12s, process 4242\n"
              "  doing      allreduce 2.17, 4096 bytes, for 12ms, in step 17\n"
              "  activities       5s before  state 2, took 40ms\n");
    CHECK_HAS(t, buf_text(&out), "commit 2.16, 1024 bytes, took 2ms: HVD_E_REVOKED\n");
    CHECK_HAS(t, buf_text(&out),
              "allreduce 2.17, 4096 bytes, not ended\n"
              "  stdout     | step 16\n"
              "             | step 17\n"
              "  stderr     | Segmentation ");
    CHECK_HAS(t, buf_text(&out), "  backtrace  no core file; ");
    CHECK_INT(t, log_kept_times("hvd-elastic autopsy --state-dir"), ==, 1);
}

/* A worker that lives did nothing last, and the end of a worker by order is no warning. */
TEST_FLAGS(a_stall_and_an_order_have_words_of_their_own, TEST_SURVIVES_ALLOC)
{
    struct msg msg = autopsy_of(3);

    CHECK_OK(t, autopsies_create(folder, false, &autopsies, NULL));
    autopsies_take(autopsies, "a", &msg, true);
    read_back(t);
    CHECK_INT(t, list.found.count, ==, 1);
    CHECK_INT(t, log_kept_times("hvd-elastic autopsy"), ==, 0);
    CHECK_OK(t, autopsies_create(folder, false, &autopsies, NULL));
    msg.u.autopsy.ended = ENDED_NOT;
    autopsies_take(autopsies, "a", &msg, false);
    msg = autopsy_of(4);
    autopsies_take(autopsies, "a", &msg, false);
    read_back(t);
    CHECK_INT(t, log_kept_times("did last"), ==, 0);
    CHECK_INT(t, log_kept_times("what a:1#3 does in the stall is shown by: hvd-elastic autopsy"),
              ==, 1);
}

TEST_FLAGS(json_has_all_of_it, TEST_SURVIVES_ALLOC)
{
    struct json json = { .out = &out };

    keep(t, 3);
    read_back(t);
    CHECK_INT(t, list.found.count, ==, 1);
    autopsy_text_json(&list.found.items[0], &json);
    CHECK_OK(t, json.rc);
    CHECK_HAS(t, buf_text(&out),
              "\"host\":\"a\",\"slot\":1,\"incarnation\":3,\"pid\":4242,\"rank\":1,"
              "\"size\":4,\"ended\":\"killed by signal 11 (SIGSEGV)\","
              "\"exit_code\":null,\"signal\":11,");
    CHECK_HAS(t, buf_text(&out),
              "{\"name\":\"allreduce\",\"round\":2,\"number\":17,\"bytes\":4096,"
              "\"ago_s\":0.012,\"took_s\":null,\"code\":\"\"}");
    CHECK_HAS(t, buf_text(&out), "\"stdout\":\"step 16\\u000astep 17\\u000a\"");
}

/* Each way to end, and what the library knows of it, has words of its own. */
TEST(each_end_has_its_words)
{
    static const struct msg_activity waits = { "agree", 0, 0, 0, TIME_S, TIME_NEVER, 0 };
    struct autopsy autopsy = { .msg = autopsy_of(5) };
    struct msg_autopsy *of = &autopsy.msg.u.autopsy;

    of->host = "a";
    of->dumped = true;
    of->core_pattern = "|/lib/systemd/systemd-coredump %P";
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out), "  backtrace  on a: coredumpctl debug 4242\n");
    of->core_pattern = "core.%p";
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out),
              "  backtrace  a has a core file (core_pattern \"core.%p\", process "
              "4242): gdb PROGRAM CORE");
    of->value = SIGKILL;
    of->activities.count = 2;
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out), "look for the OOM killer in the kernel's log of a ");
    CHECK_HAS(t, buf_text(&out), "  doing      code of the program, in round 2, in step 17\n");
    buf_clear(&out);
    of->activities.count = 1; /* the begin of the round is long ago */
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out), "  doing      code of the program, in round 2, in step 17\n");
    buf_clear(&out);
    of->reason = "the worker did not come to a check in time";
    of->activities = (struct msg_activity_list){ &waits, 1 };
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out), "  reason     the worker did not come to a check in time\n");
    CHECK_HAS(t, buf_text(&out), "  doing      waiting for its next round, for 1s\n");
    CHECK(t, !strstr(buf_text(&out), "backtrace"));
    of->ended = ENDED_EXIT;
    of->value = -7;
    of->size = 0;
    of->activities.count = 0;
    of->output.length = 0;
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out), "a:1#5: exit code -7\n");
    CHECK_HAS(t, buf_text(&out), "it had not called hvd_init\n");
    CHECK_HAS(t, buf_text(&out), "  stdout     nothing was printed\n");
    of->ended = ENDED_SILENT;
    of->step = 0;
    of->activities = (struct msg_activity_list){ activities, 1 };
    CHECK_OK(t, autopsy_text_whole(&autopsy, &out));
    CHECK_HAS(t, buf_text(&out), "a:1#5: silent for longer than its lease");
    CHECK_HAS(t, buf_text(&out),
              "  doing      no call of the library: its part in the job was over\n");
}

/* Twice the same worker is one file. */
TEST_FLAGS(the_oldest_go, TEST_NO_TORTURE)
{
    struct stat status;
    char path[512];
    unsigned files = 0;
    DIR *dir;

    for (uint64_t i = 1; i <= AUTOPSIES_KEPT + 6; i++) {
        keep(t, i);
        await_renames((unsigned)i);
    }
    keep(t, AUTOPSIES_KEPT + 6);
    read_back(t);
    CHECK_INT(t, list.found.count, ==, AUTOPSIES_KEPT);
    for (size_t i = 0; i < list.found.count; i++)
        CHECK_INT(t, list.found.items[i].msg.incarnation, ==, i + 7);
    snprintf(path, sizeof(path), "%s/autopsies", folder);
    CHECK_INT(t, stat(path, &status), ==, 0);
    CHECK_INT(t, status.st_mode & 0777, ==, 0700);
    dir = opendir(path);
    CHECK(t, dir);
    while (readdir(dir))
        files++;
    closedir(dir);
    CHECK_INT(t, files, ==, AUTOPSIES_KEPT + 2); /* with "." and ".." */
}

TEST_FLAGS(damaged_and_foreign_files_are_left_out, TEST_SURVIVES_ALLOC)
{
    static const char *const names[] = { "7", "8", "x", "new" };
    char path[512];

    keep(t, 3);
    read_back(t);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/autopsies/%s", folder, names[i]);
        file = fopen(path, "w");
        CHECK(t, file);
        if (i)
            fputs("hvdE\1\1 rubbish that is no frame", file);
        CHECK_INT(t, fclose(file), ==, 0);
    }
    autopsy_list_release(&list);
    CHECK_OK(t, autopsy_file_list(folder, &list, NULL));
    CHECK_INT(t, list.found.count, ==, 1);
    CHECK_INT(t, list.damaged, ==, 2);
    CHECK_OK(t, autopsy_file_clear(folder, NULL));
    autopsy_list_release(&list);
    CHECK_OK(t, autopsy_file_list(folder, &list, NULL));
    CHECK_INT(t, list.found.count + list.damaged, ==, 0);
}

/* Half of a file, and one with more behind it, are damaged. */
TEST(a_file_is_whole_or_damaged)
{
    struct msg msg = autopsy_of(3), read;
    size_t whole;

    CHECK_OK(t, msg_encode(&msg, &out, NULL));
    whole = out.length;
    for (size_t i = 0; i < whole; i++)
        CHECK_CODE(t, autopsy_file_parse(buf_text(&out), i, &read), HVD_E_CORRUPT);
    CHECK_OK(t, autopsy_file_parse(buf_text(&out), whole, &read));
    CHECK_INT(t, read.u.autopsy.activities.count, ==, ARRAY_SIZE(activities));
    msg_release(&read);
    CHECK_OK(t, buf_append_text(&out, "x"));
    CHECK_CODE(t, autopsy_file_parse(buf_text(&out), whole + 1, &read), HVD_E_CORRUPT);
    buf_clear(&out);
    msg = (struct msg){ .type = MSG_LAUNCHED, .incarnation = 3 };
    CHECK_OK(t, msg_encode(&msg, &out, NULL));
    CHECK_CODE(t, autopsy_file_parse(buf_text(&out), out.length, &read), HVD_E_CORRUPT);
}

TEST_FLAGS(another_job_begins_without_them, TEST_NO_TORTURE)
{
    keep(t, 3);
    read_back(t);
    CHECK_INT(t, list.found.count, ==, 1);
    CHECK_OK(t, autopsies_create(folder, true, &autopsies, NULL));
    read_back(t);
    CHECK_INT(t, list.found.count, ==, 0);
}

TEST_FLAGS(a_full_disk_is_warned_of_once, TEST_NO_TORTURE)
{
    disk_becomes(false, ENOSPC);
    keep(t, 3);
    await_renames(1);
    keep(t, 4);
    await_renames(2);
    disk_becomes(false, 0);
    keep(t, 5);
    read_back(t);
    CHECK_INT(t,
              log_kept_times("what dead workers were doing cannot be kept, and the job goes on: "),
              ==, 1);
    CHECK_INT(t, log_kept_times("No space left on device; free some space"), ==, 1);
    CHECK_INT(t, list.found.count, ==, 1);
    CHECK_INT(t, list.damaged, ==, 0);
}

/* While the disk hangs the driver goes on, and memory is bounded. */
TEST_FLAGS(a_disk_that_hangs_holds_up_nothing, TEST_NO_TORTURE)
{
    disk_becomes(true, 0);
    keep(t, 1);
    await_renames(1);
    for (uint64_t i = 2; i < AUTOPSIES_WAITING + 10; i++)
        keep(t, i);
    CHECK_INT(t, log_kept_times("too many workers die at once, or the disk hangs"), ==, 1);
    disk_becomes(false, 0);
    read_back(t);
    CHECK_INT(t, renames, ==, AUTOPSIES_WAITING + 1);
    CHECK_INT(t, list.found.count, ==, AUTOPSIES_KEPT);
}

TEST_FLAGS(a_disk_that_hangs_does_not_hold_up_the_end, TEST_NO_TORTURE)
{
    size_t blocks = heap_blocks();
    int64_t began_us;

    disk_becomes(true, 0);
    keep(t, 1);
    await_renames(1);
    began_us = clock_now_us();
    autopsies_free(autopsies);
    autopsies = NULL;
    CHECK_INT(t, clock_now_us() - began_us, >=, AUTOPSIES_LAST_US);
    CHECK_INT(t, log_kept_times("a write hangs, so the last autopsies are missing"), ==, 1);
    disk_becomes(false, 0); /* the thread writes the last one, and frees everything */
    while (heap_blocks() > blocks)
        sched_yield();
    CHECK_OK(t, autopsy_file_list(folder, &list, NULL));
    CHECK_INT(t, list.found.count, ==, 1);
}
