/*
 * test_chaos_disk_faults.c: the preloaded library of chaos, in a process made for it: a full, a
 * broken and a slow disk, a wall clock that jumps, and no effect at all without a fault.
 */
#include "tests/chaos/disk_faults.h"

#include "os/clock.h"
#include "os/process.h"
#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAY_S    (24 * 3600)
#define DELAY_US INT64_C(50000)

static const char PRELOAD[] = "LD_PRELOAD=" DISK_FAULTS_PRELOAD;
/* the sanitizer wants to be loaded first */
static const char ASAN[] = "ASAN_OPTIONS=verify_asan_link_order=0";

/* Starts the probe with this page; its standard error goes to err_fd. */
static int start(const char *page, bool of_folder, int in, int out, int err_fd, pid_t *ret_pid,
                 struct hvd_err *err)
{
    char variable[400];
    const char *argv[] = { DISK_FAULTS_PROBE, NULL };
    const char *envp[] = { PRELOAD, variable, ASAN, NULL };
    struct process_spec spec = { .argv = argv, .envp = envp, .in = in, .out = out, .err = err_fd };

    snprintf(variable, sizeof(variable), "CHAOS_%s_FAULTS=%s", of_folder ? "FOLDER" : "DISK", page);
    return process_spawn(&spec, ret_pid, err);
}

/* A probe with the disk faults of the test's page. */
struct bench {
    struct disk_faults *disk_faults;
    pid_t pid;
    FILE *in, *out;
    bool folder_page; /* the page is of a folder, which does not exist yet */
    char page[300], path[300], other[300];
};

static int bench_begin(struct bench *bench, struct test *t, struct hvd_err *err)
{
    int in[2];
    int out[2];
    int rc;

    *bench = (struct bench){ .pid = -1, .folder_page = bench->folder_page };
    snprintf(bench->page, sizeof(bench->page), "%s/disk_faults", test_dir(t));
    snprintf(bench->path, sizeof(bench->path), "%s/file", test_dir(t));
    snprintf(bench->other, sizeof(bench->other), "%s/other", test_dir(t));
    rc = disk_faults_open(bench->page, &bench->disk_faults, err);
    if (rc)
        return rc;
    if (bench->folder_page)
        snprintf(bench->disk_faults->folder, sizeof(bench->disk_faults->folder), "%.200s/store",
                 test_dir(t));
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return HVD_E_IO;
    rc = start(bench->page, bench->folder_page, in[0], out[1], STDERR_FILENO, &bench->pid, err);
    close(in[0]);
    close(out[1]);
    bench->in = fdopen(in[1], "w");
    bench->out = fdopen(out[0], "r");
    return rc;
}

/* Returns the probe's answer; "": the probe has ended. */
static const char *ask(struct bench *bench, const char *verb, const char *path)
{
    static char answer[128];

    fprintf(bench->in, "%s %s\n", verb, path);
    fflush(bench->in);
    if (!fgets(answer, sizeof(answer), bench->out))
        return "";
    answer[strcspn(answer, "\n")] = '\0';
    return answer;
}

static const char *text_of(int number)
{
    static char text[16];

    snprintf(text, sizeof(text), "%d", number);
    return text;
}

static struct bench own;

static void end_case(struct test *t)
{
    (void)t;
    if (own.in)
        fclose(own.in);
    if (own.out)
        fclose(own.out);
    if (own.pid > 0)
        waitpid(own.pid, NULL, 0);
    disk_faults_close(own.disk_faults);
    own.folder_page = false;
}
FIXTURE(NULL, end_case)

TEST_FLAGS(calm_changes_nothing, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_begin(&own, t, NULL));
    CHECK_TEXT(t, ask(&own, "create", own.path), "0");
    CHECK_TEXT(t, ask(&own, "write", own.path), "0");
    CHECK_TEXT(t, ask(&own, "overwrite", own.path), "0");
    CHECK_TEXT(t, ask(&own, "sync", own.path), "0");
    CHECK_TEXT(t, ask(&own, "datasync", own.path), "0");
    CHECK_TEXT(t, ask(&own, "write", own.other), text_of(ENOENT));
    CHECK_TEXT(t, ask(&own, "env", ""), "0"); /* for the processes that it starts */
    CHECK_INT(t, own.disk_faults->refused, ==, 0);
    CHECK_INT(t, own.disk_faults->delayed, ==, 0);
}

TEST_FLAGS(nothing_is_written_to_a_full_disk, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_begin(&own, t, NULL));
    CHECK_TEXT(t, ask(&own, "create", own.path), "0");
    atomic_store(&own.disk_faults->disk_full, 1);
    CHECK_TEXT(t, ask(&own, "write", own.path), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&own, "overwrite", own.path), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&own, "create", own.other), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&own, "folder", own.other), text_of(ENOSPC));
    CHECK_INT(t, own.disk_faults->refused, ==, 4);
    CHECK_TEXT(t, ask(&own, "create", own.path), "0"); /* the file is there */
    CHECK_TEXT(t, ask(&own, "sync", own.path), "0");
    CHECK_TEXT(t, ask(&own, "pipe", ""), "0");
    disk_faults_calm(own.disk_faults);
    CHECK_TEXT(t, ask(&own, "write", own.path), "0");
    CHECK_TEXT(t, ask(&own, "folder", own.other), "0");
    CHECK_INT(t, own.disk_faults->refused, ==, 4);
}

TEST_FLAGS(a_broken_disk_keeps_nothing, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_begin(&own, t, NULL));
    CHECK_TEXT(t, ask(&own, "create", own.path), "0");
    atomic_store(&own.disk_faults->disk_broken, 1);
    CHECK_TEXT(t, ask(&own, "write", own.path), text_of(EIO));
    CHECK_TEXT(t, ask(&own, "overwrite", own.path), text_of(EIO));
    CHECK_TEXT(t, ask(&own, "sync", own.path), text_of(EIO));
    CHECK_TEXT(t, ask(&own, "datasync", own.path), text_of(EIO));
    CHECK_TEXT(t, ask(&own, "pipe", ""), "0");
    disk_faults_calm(own.disk_faults);
    CHECK_TEXT(t, ask(&own, "sync", own.path), "0");
}

TEST_FLAGS(a_slow_disk_takes_its_time, TEST_NO_TORTURE)
{
    int64_t began_us;

    CHECK_OK(t, bench_begin(&own, t, NULL));
    CHECK_TEXT(t, ask(&own, "create", own.path), "0");
    atomic_store(&own.disk_faults->sync_delay_us, DELAY_US);
    began_us = clock_now_us();
    CHECK_TEXT(t, ask(&own, "sync", own.path), "0");
    CHECK_TEXT(t, ask(&own, "datasync", own.path), "0");
    CHECK_INT(t, clock_now_us() - began_us, >=, 2 * DELAY_US);
    CHECK_TEXT(t, ask(&own, "write", own.path), "0");
    CHECK_INT(t, own.disk_faults->delayed, ==, 2);
    atomic_store(&own.disk_faults->write_delay_us, DELAY_US);
    began_us = clock_now_us();
    CHECK_TEXT(t, ask(&own, "write", own.path), "0");
    CHECK_INT(t, clock_now_us() - began_us, >=, DELAY_US);
    CHECK_INT(t, own.disk_faults->delayed, ==, 3);
    CHECK_TEXT(t, ask(&own, "pipe", ""), "0");
    CHECK_INT(t, own.disk_faults->delayed, ==, 3);
}

/* true: all calls that return the wall clock are off, and the others are not. */
static bool clocks_are_off_by(struct bench *bench, int64_t days)
{
    int64_t wall_s = clock_wall_us() / 1000000 + days * DAY_S;
    int64_t steady_s = clock_now_us() / 1000000;
    const char *answer = ask(bench, "clock", "");

    for (int i = 0; i < 4; i++) {
        char *end = NULL;
        int64_t told_s = strtoll(answer, &end, 10);
        int64_t off_s = told_s - (i < 3 ? wall_s : steady_s);

        if (end == answer || off_s < -DAY_S / 2 || off_s > DAY_S / 2)
            return false;
        answer = end;
    }
    return true;
}

TEST_FLAGS(the_wall_clock_jumps, TEST_NO_TORTURE)
{
    CHECK_OK(t, bench_begin(&own, t, NULL));
    CHECK(t, clocks_are_off_by(&own, 0));
    atomic_store(&own.disk_faults->wall_offset_us, 3 * DAY_S * INT64_C(1000000) + 999999);
    CHECK(t, clocks_are_off_by(&own, 3));
    atomic_store(&own.disk_faults->wall_offset_us, -10 * DAY_S * INT64_C(1000000) - 999999);
    CHECK(t, clocks_are_off_by(&own, -10));
    disk_faults_calm(own.disk_faults);
    CHECK(t, clocks_are_off_by(&own, 0));
}

/* The second page: its faults apply below one folder, and children have them too. */
TEST_FLAGS(faults_of_one_folder, TEST_NO_TORTURE)
{
    char below[340];

    own.folder_page = true;
    CHECK_OK(t, bench_begin(&own, t, NULL));
    snprintf(below, sizeof(below), "%s/file", own.disk_faults->folder);
    CHECK_TEXT(t, ask(&own, "folder", own.disk_faults->folder), "0");
    CHECK_TEXT(t, ask(&own, "create", below), "0");
    CHECK_TEXT(t, ask(&own, "env", ""), "1");
    atomic_store(&own.disk_faults->disk_full, 1);
    CHECK_TEXT(t, ask(&own, "write", below), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&own, "create", own.path), "0");
    CHECK_TEXT(t, ask(&own, "write", own.path), "0");
    disk_faults_calm(own.disk_faults);
    atomic_store(&own.disk_faults->disk_readonly, 1);
    CHECK_TEXT(t, ask(&own, "write", below), text_of(EROFS));
    CHECK_TEXT(t, ask(&own, "remove", below), text_of(EROFS));
    snprintf(below, sizeof(below), "%s/other", own.disk_faults->folder);
    CHECK_TEXT(t, ask(&own, "create", below), text_of(EROFS));
    CHECK_TEXT(t, ask(&own, "folder", below), text_of(EROFS));
    /* a folder whose name only begins like it */
    snprintf(below, sizeof(below), "%s-2", own.disk_faults->folder);
    CHECK_TEXT(t, ask(&own, "folder", below), "0");
    CHECK_INT(t, own.disk_faults->refused, ==, 5);
    disk_faults_calm(own.disk_faults);
    CHECK_TEXT(t, ask(&own, "remove", own.path), "0");
}

/* A process whose page is missing must not go on. */
TEST_FLAGS(no_page_no_process, TEST_NO_TORTURE)
{
    struct disk_faults *disk_faults = NULL;
    struct hvd_err err;
    int status = 0;
    pid_t pid = -1;

    CHECK_CODE(t, disk_faults_open("/no/such/page", &disk_faults, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "/no/such/page: cannot be mapped");
    CHECK_OK(t, start("/no/such/page", false, -1, -1, -1, &pid, NULL));
    CHECK_INT(t, waitpid(pid, &status, 0), ==, pid);
    CHECK(t, WIFSIGNALED(status));
}
