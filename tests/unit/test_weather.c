#include "tests/chaos/weather.h"

#include "os/clock.h"
#include "os/process.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAY_S    (24 * 3600)
#define DELAY_US INT64_C(50000)

static const char PRELOAD[] = "LD_PRELOAD=" WEATHER_PRELOAD;
static const char ASAN[] = "ASAN_OPTIONS=verify_asan_link_order=0"; /* it wants to be the first */

/* With that page; what it says of itself goes to err. */
static int start(const char *page, int in, int out, int err_fd, pid_t *ret_pid, struct hvd_err *err)
{
    char variable[400];
    const char *argv[] = { WEATHER_PROBE, NULL };
    const char *envp[] = { PRELOAD, variable, ASAN, NULL };
    struct process_spec spec = { .argv = argv, .envp = envp, .in = in, .out = out, .err = err_fd };

    snprintf(variable, sizeof(variable), "CHAOS_WEATHER=%s", page);
    return process_spawn(&spec, ret_pid, err);
}

/* A probe that has the weather of our page. */
struct bench {
    struct weather *weather;
    pid_t pid;
    FILE *in, *out;
    char page[300], path[300], other[300];
};

static int bench_begin(struct bench *bench, struct test *t, struct hvd_err *err)
{
    int in[2];
    int out[2];
    int rc;

    *bench = (struct bench){ .pid = -1 };
    snprintf(bench->page, sizeof(bench->page), "%s/weather", test_dir(t));
    snprintf(bench->path, sizeof(bench->path), "%s/file", test_dir(t));
    snprintf(bench->other, sizeof(bench->other), "%s/other", test_dir(t));
    rc = weather_open(bench->page, &bench->weather, err);
    if (rc)
        return rc;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return HVD_E_IO;
    rc = start(bench->page, in[0], out[1], STDERR_FILENO, &bench->pid, err);
    close(in[0]);
    close(out[1]);
    bench->in = fdopen(in[1], "w");
    bench->out = fdopen(out[0], "r");
    return rc;
}

static void bench_end(struct bench *bench)
{
    if (bench->in)
        fclose(bench->in);
    if (bench->out)
        fclose(bench->out);
    if (bench->pid > 0)
        waitpid(bench->pid, NULL, 0);
    weather_close(bench->weather);
}

/* Its answer; empty when it has ended. */
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

static void calm_changes_nothing(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_begin(&bench, t, NULL));
    CHECK_TEXT(t, ask(&bench, "create", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "write", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "overwrite", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "sync", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "datasync", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "write", bench.other), text_of(ENOENT));
    CHECK_TEXT(t, ask(&bench, "env", ""), "0"); /* for what it starts */
    CHECK_INT(t, bench.weather->refused, ==, 0);
    CHECK_INT(t, bench.weather->delayed, ==, 0);
out:
    bench_end(&bench);
}

static void nothing_is_written_to_a_full_disk(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_begin(&bench, t, NULL));
    CHECK_TEXT(t, ask(&bench, "create", bench.path), "0");
    atomic_store(&bench.weather->disk_full, 1);
    CHECK_TEXT(t, ask(&bench, "write", bench.path), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&bench, "overwrite", bench.path), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&bench, "create", bench.other), text_of(ENOSPC));
    CHECK_TEXT(t, ask(&bench, "folder", bench.other), text_of(ENOSPC));
    CHECK_INT(t, bench.weather->refused, ==, 4);
    CHECK_TEXT(t, ask(&bench, "create", bench.path), "0"); /* it is there */
    CHECK_TEXT(t, ask(&bench, "sync", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "pipe", ""), "0");
    weather_calm(bench.weather);
    CHECK_TEXT(t, ask(&bench, "write", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "folder", bench.other), "0");
    CHECK_INT(t, bench.weather->refused, ==, 4);
out:
    bench_end(&bench);
}

static void a_broken_disk_keeps_nothing(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_begin(&bench, t, NULL));
    CHECK_TEXT(t, ask(&bench, "create", bench.path), "0");
    atomic_store(&bench.weather->disk_broken, 1);
    CHECK_TEXT(t, ask(&bench, "write", bench.path), text_of(EIO));
    CHECK_TEXT(t, ask(&bench, "overwrite", bench.path), text_of(EIO));
    CHECK_TEXT(t, ask(&bench, "sync", bench.path), text_of(EIO));
    CHECK_TEXT(t, ask(&bench, "datasync", bench.path), text_of(EIO));
    CHECK_TEXT(t, ask(&bench, "pipe", ""), "0");
    weather_calm(bench.weather);
    CHECK_TEXT(t, ask(&bench, "sync", bench.path), "0");
out:
    bench_end(&bench);
}

static void a_slow_disk_takes_its_time(struct test *t)
{
    struct bench bench;
    int64_t began_us;

    CHECK_OK(t, bench_begin(&bench, t, NULL));
    CHECK_TEXT(t, ask(&bench, "create", bench.path), "0");
    atomic_store(&bench.weather->sync_delay_us, DELAY_US);
    began_us = clock_now_us();
    CHECK_TEXT(t, ask(&bench, "sync", bench.path), "0");
    CHECK_TEXT(t, ask(&bench, "datasync", bench.path), "0");
    CHECK_INT(t, clock_now_us() - began_us, >=, 2 * DELAY_US);
    CHECK_TEXT(t, ask(&bench, "write", bench.path), "0");
    CHECK_INT(t, bench.weather->delayed, ==, 2);
    atomic_store(&bench.weather->write_delay_us, DELAY_US);
    began_us = clock_now_us();
    CHECK_TEXT(t, ask(&bench, "write", bench.path), "0");
    CHECK_INT(t, clock_now_us() - began_us, >=, DELAY_US);
    CHECK_INT(t, bench.weather->delayed, ==, 3);
    CHECK_TEXT(t, ask(&bench, "pipe", ""), "0");
    CHECK_INT(t, bench.weather->delayed, ==, 3);
out:
    bench_end(&bench);
}

/* All that tell the wall clock, and nothing that does not. */
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

static void the_wall_clock_jumps(struct test *t)
{
    struct bench bench;

    CHECK_OK(t, bench_begin(&bench, t, NULL));
    CHECK(t, clocks_are_off_by(&bench, 0));
    atomic_store(&bench.weather->wall_offset_us, 3 * DAY_S * INT64_C(1000000) + 999999);
    CHECK(t, clocks_are_off_by(&bench, 3));
    atomic_store(&bench.weather->wall_offset_us, -10 * DAY_S * INT64_C(1000000) - 999999);
    CHECK(t, clocks_are_off_by(&bench, -10));
    weather_calm(bench.weather);
    CHECK(t, clocks_are_off_by(&bench, 0));
out:
    bench_end(&bench);
}

/* A process that has none although it was to have it must not go on. */
static void no_page_no_process(struct test *t)
{
    struct weather *weather = NULL;
    struct hvd_err err;
    int status = 0;
    pid_t pid = -1;

    CHECK_CODE(t, weather_open("/no/such/page", &weather, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "/no/such/page: cannot be mapped");
    CHECK_OK(t, start("/no/such/page", -1, -1, -1, &pid, NULL));
    CHECK_INT(t, waitpid(pid, &status, 0), ==, pid);
    pid = -1;
    CHECK(t, WIFSIGNALED(status));
out:
    if (pid > 0)
        waitpid(pid, NULL, 0);
    weather_close(weather);
}

TESTS(CASE_FLAGS(calm_changes_nothing, TEST_NO_TORTURE),
      CASE_FLAGS(nothing_is_written_to_a_full_disk, TEST_NO_TORTURE),
      CASE_FLAGS(a_broken_disk_keeps_nothing, TEST_NO_TORTURE),
      CASE_FLAGS(a_slow_disk_takes_its_time, TEST_NO_TORTURE),
      CASE_FLAGS(the_wall_clock_jumps, TEST_NO_TORTURE),
      CASE_FLAGS(no_page_no_process, TEST_NO_TORTURE))
