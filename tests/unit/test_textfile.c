/*
 * test_textfile.c: the file of --metrics-textfile: it is whole at each moment; a disk that fails or
 * hangs is warned of once and holds up no loop; the newest text wins; no driver without a job
 * writes. The 15 s between two texts are a millisecond here.
 */
#include "driver/control/textfile.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/log_kept.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct event_base *base;
static struct textfile *textfile;
static struct buf out;
static char path[400], fresh[404];
static const char *trouble;
static uint64_t round_number; /* in the views */
static unsigned views;
static mode_t umask_before;

/* ---- renames, which the thread makes ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned renames; /* that have begun */
static bool hanging;     /* a rename waits until this is false */
static int failing;      /* the errno of each rename; 0: it works */

struct timeval __wrap_clock_timeval(int64_t us);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

struct timeval __wrap_clock_timeval(int64_t us)
{
    (void)us;
    return (struct timeval){ .tv_usec = 1000 };
}

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

static bool renamed(unsigned count)
{
    bool enough;

    pthread_mutex_lock(&mutex);
    enough = renames >= count;
    pthread_mutex_unlock(&mutex);
    return enough;
}

/* ---- the driver ---- */

static int on_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    (void)arg;
    views++;
    ret_view->round = round_number;
    *ret_facts = (struct table_facts){ .job = "j1", .state_dir = "/s" };
    return 0;
}

static const char *on_trouble(void *arg)
{
    (void)arg;
    return trouble;
}

static const struct scrapes_ops ops = { .view = on_view, .trouble = on_trouble };

static void begin(struct test *t)
{
    umask_before = umask(077);
    log_kept_begin();
    renames = views = 0;
    round_number = 7;
    trouble = NULL;
    textfile = NULL;
    disk_becomes(false, 0);
    buf_init(&out, LIMIT_METRICS_BYTES);
    snprintf(path, sizeof(path), "%s/hvd.prom", test_dir(t));
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    base = event_base_new();
    CHECK(t, base);
}

static void end(struct test *t)
{
    (void)t;
    disk_becomes(false, 0);
    textfile_end(textfile, false);
    textfile_free(textfile);
    if (base)
        event_base_free(base);
    base = NULL;
    buf_release(&out);
    log_open(NULL);
    umask(umask_before);
}
FIXTURE(begin, end)

/* Begins to write, and turns the loop until `count` texts were made. */
static void write_texts(struct test *t, unsigned count)
{
    if (!textfile)
        CHECK_OK(t, textfile_create(base, path, &ops, NULL, &textfile, NULL));
    for (unsigned want = views + count; views < want;)
        CHECK_INT(t, event_base_loop(base, EVLOOP_ONCE), ==, 0);
}

static void finish(bool last)
{
    textfile_end(textfile, last);
    textfile_free(textfile);
    textfile = NULL;
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

/* Returns the text of the file; "" if it cannot be read. */
static const char *written(const char *name)
{
    buf_clear(&out);
    return file_read(name, &out, NULL) ? "" : buf_text(&out);
}

/* ---- the cases ---- */

TEST(a_wrong_path_is_named)
{
    char long_path[LIMIT_PATH_BYTES + 8], text[512];
    struct hvd_err err;
    FILE *file;

    CHECK_CODE(t, textfile_check("/tmp/hvd.txt", true, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "/tmp/hvd.txt: node_exporter reads only files whose names end in .prom");
    CHECK_CODE(t, textfile_check("/tmp/.prom", true, &err), HVD_E_INVAL);
    CHECK_CODE(t, textfile_check("/tmp.prom/x", true, &err), HVD_E_INVAL);
    memset(long_path, 'x', sizeof(long_path));
    snprintf(long_path + LIMIT_PATH_BYTES, 8, ".prom");
    CHECK_CODE(t, textfile_check(long_path, true, &err), HVD_E_LIMIT);
    CHECK_CODE(t, textfile_check("/no/such/hvd.prom", true, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--metrics-textfile: /no/such: no file can be made in this folder: ");
    CHECK_HAS(t, err.text, "; create the directory");
    CHECK_OK(t, textfile_check("/no/such/hvd.prom", false, &err));
    CHECK_OK(t, textfile_check(path, true, &err));
    CHECK_OK(t, textfile_check("hvd.prom", true, &err));
    file = fopen(path, "w");
    CHECK(t, file && !fclose(file));
    snprintf(text, sizeof(text), "%s/x.prom", path);
    CHECK_CODE(t, textfile_check(text, true, &err), HVD_E_NOTFOUND); /* a file is no folder */
}

/* The text of a former driver is no part of it, and the umask keeps no reader away. */
TEST_FLAGS(the_text_is_whole, TEST_SURVIVES_ALLOC)
{
    struct stat status = { 0 };
    const char *text;
    FILE *file = fopen(fresh, "w");

    CHECK(t, file && fputs("half", file) >= 0 && !fclose(file));
    write_texts(t, 1);
    finish(true);
    text = written(path);
    CHECK_HAS(t, text, "# HELP hvd_elastic_job_info");
    CHECK_HAS(t, text, "hvd_elastic_round 7\n");
    CHECK(t, !strstr(text, "half") && !strstr(text, "# EOF") && !strstr(text, "# UNIT"));
    CHECK(t, out.length && text[out.length - 1] == '\n');
    CHECK(t, !exists(fresh));
    CHECK_INT(t, stat(path, &status), ==, 0);
    CHECK_INT(t, status.st_mode & 0777, ==, 0644);
}

/* Until the rename the old file stands, and the whole new text is beside it. */
TEST_FLAGS(the_old_text_stays_until_the_new_one_is_whole, TEST_NO_TORTURE)
{
    write_texts(t, 1);
    while (!renamed(1) || !exists(path))
        write_texts(t, 1);
    finish(true);
    disk_becomes(true, 0);
    round_number = 8;
    renames = 0;
    write_texts(t, 1);
    while (!renamed(1))
        write_texts(t, 1);
    CHECK_HAS(t, written(path), "hvd_elastic_round 7\n");
    CHECK(t, out.length && buf_text(&out)[out.length - 1] == '\n');
    CHECK_HAS(t, written(fresh), "hvd_elastic_round 8\n");
    CHECK_HAS(t, buf_text(&out), "_seconds_count{cause=\"recovery\",phase=\"first_step\"} 0\n");
    disk_becomes(false, 0);
    finish(true);
    CHECK_HAS(t, written(path), "hvd_elastic_round 8\n");
}

TEST_FLAGS(a_full_disk_is_warned_of_once, TEST_NO_TORTURE)
{
    const char *first;

    disk_becomes(false, ENOSPC);
    write_texts(t, 1);
    while (!renamed(3))
        write_texts(t, 1);
    CHECK(t, log_kept_times("the job goes on with old metrics in its file: "));
    CHECK(t,
          log_kept_times("hvd.prom: the metrics cannot be written: No space left on device; free "
                         "some space"));
    CHECK(t, !exists(path));
    disk_becomes(false, 0);
    while (!log_kept_times("hvd.prom: the metrics are written again"))
        write_texts(t, 1);
    finish(true);
    first = strstr(log_kept(), "cannot be written");
    CHECK(t, first && !strstr(first + 1, "cannot be written"));
    CHECK_HAS(t, written(path), "hvd_elastic_round 7\n");
    CHECK(t, !exists(fresh));
}

/* While the disk hangs, the loop turns on. Then only the newest of the texts is written. */
TEST_FLAGS(a_disk_that_hangs_holds_up_nothing, TEST_NO_TORTURE)
{
    const char *first;

    disk_becomes(true, 0);
    write_texts(t, 1);
    while (!renamed(1))
        write_texts(t, 1);
    for (; round_number < 50; round_number++)
        write_texts(t, 1);
    CHECK(t, log_kept_times("hvd.prom: a write has not ended for 15 s; check its file system"));
    textfile_end(textfile, true);
    CHECK_INT(t, renames, ==, 1);
    disk_becomes(false, 0);
    textfile_free(textfile);
    textfile = NULL;
    CHECK_INT(t, renames, ==, 2);
    CHECK_HAS(t, written(path), "hvd_elastic_round 50\n");
    first = strstr(log_kept(), "has not ended");
    CHECK(t, first && !strstr(first + 1, "has not ended"));
    CHECK(t, log_kept_times("hvd.prom: the metrics are written again"));
}

TEST_FLAGS(a_disk_that_hangs_does_not_hold_up_the_end, TEST_NO_TORTURE)
{
    size_t blocks = heap_blocks();
    int64_t began_us;

    disk_becomes(true, 0);
    write_texts(t, 1);
    while (!log_kept_times("has not ended"))
        write_texts(t, 1);
    began_us = clock_now_us();
    finish(true);
    CHECK_INT(t, clock_now_us() - began_us, >=, TEXTFILE_LAST_US);
    CHECK(t, log_kept_times("a write hangs, so the last metrics are missing"));
    disk_becomes(false, 0); /* the thread logs, writes the last text, and frees everything */
    while (!renamed(2) || heap_blocks() > blocks)
        sched_yield();
    CHECK_INT(t, renames, ==, 2);
    CHECK(t, log_kept_times("hvd.prom: the metrics are written again"));
}

/* A driver that may have been replaced does not write over the file of the next one. */
TEST_FLAGS(a_driver_that_does_not_work_writes_nothing, TEST_NO_TORTURE)
{
    trouble = "the driver has not begun yet";
    CHECK_OK(t, textfile_create(base, path, &ops, NULL, &textfile, NULL));
    for (int i = 0; i < 20; i++)
        CHECK_INT(t, event_base_loop(base, EVLOOP_ONCE), ==, 0);
    CHECK_INT(t, views, ==, 0);
    trouble = NULL;
    write_texts(t, 1);
    trouble = "the journal is not written";
    round_number = 8;
    for (int i = 0; i < 20; i++)
        CHECK_INT(t, event_base_loop(base, EVLOOP_ONCE), ==, 0);
    CHECK_INT(t, views, ==, 1);
    finish(false);
    CHECK(t, !strstr(written(path), "hvd_elastic_round 8\n"));
}
