/*
 * test_event_hook.c: the command of --on-event: it gets each event that it wants as JSON; one that
 * hangs, fails, floods, never reads or cannot be run costs its events and nothing else; nothing of
 * it is left behind.
 */
#include "driver/io/event_hook.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/lib/fixture.h"
#include "tests/lib/log_kept.h"
#include "tests/lib/scripts.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

static struct event_base *base;
static struct events *events;
static struct event_hook *hook;
static struct event_hook_config config;
static const char *folder;

static void begin(struct test *t)
{
    folder = test_dir(t);
    log_kept_begin();
    config = (struct event_hook_config){ .limit_us = TIME_MIN };
    base = event_base_new();
    CHECK(t, base);
    CHECK_OK(t, events_create(NULL, "j1", &events, NULL));
    CHECK_OK(t, event_filter_parse("info,job_over", &config.filter, NULL));
}

static void end(struct test *t)
{
    (void)t;
    event_hook_free(hook);
    hook = NULL;
    events_free(events);
    events = NULL;
    if (base)
        event_base_free(base);
    base = NULL;
    log_open(NULL);
}
FIXTURE(begin, end)

static void hook_runs(struct test *t, const char *script)
{
    config.command = script;
    CHECK_OK(t, event_hook_create(base, &config, events, &hook, NULL));
}

static void add(enum trace_level level, enum facts_kind kind, const char *text)
{
    events_add(events, level, FACTS(.kind = kind, .host = "a\"\n<b>"), text);
}

/* Runs the loop until all events are told, or their time is over. */
static void finish(struct test *t)
{
    event_hook_end(hook);
    CHECK_INT(t, event_base_dispatch(base), >=, 0);
    event_hook_free(hook);
    hook = NULL;
    CHECK(t, scripts_no_children());
}

static size_t lines_of(const char *path)
{
    size_t count = 0;

    for (const char *at = scripts_read(path); (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

TEST_FLAGS(each_event_is_a_line_of_json, TEST_NO_TORTURE)
{
    const char *said = scripts_path(folder, "said");
    char script[600];

    add(TRACE_WARNING, KIND_HOST_LOST, "in memory already");
    snprintf(script, sizeof(script), " %s  one\ttwo ",
             scripts_write(folder, "hook", "{ cat; echo \"$#$1$2\"; } >>said\n"));
    hook_runs(t, script);
    add(TRACE_INFO, KIND_ROUND_TRAINS, "say \"x\"\x1b[2J\xff");
    add(TRACE_DETAIL, KIND_WORKER_READY, "not wanted");
    add(TRACE_DETAIL, KIND_JOB_OVER, "wanted");
    finish(t);
    CHECK_INT(t, lines_of(said), ==, 6);
    CHECK_HAS(t, scripts_read(said), "\"severity\":\"warning\",\"text\":\"in memory already\",");
    CHECK_HAS(t, scripts_read(said),
              "\"text\":\"say \\\"x\\\" [2J\\ufffd\",\"job\":\"j1\",\"kind\":\"round_trains\","
              "\"host\":\"a\\\" <b>\"}\n2onetwo\n{");
    CHECK_HAS(t, scripts_read(said), "\"text\":\"wanted\"");
    CHECK(t, !strstr(scripts_read(said), "not wanted"));
    CHECK_TEXT(t, log_kept(), "");
}

TEST_FLAGS(a_command_that_fails_is_named_once, TEST_NO_TORTURE)
{
    const char *said = scripts_path(folder, "said");

    hook_runs(t, scripts_write(folder, "hook",
                               "cat >>said\n"
                               "[ $(wc -l <said) = 3 ] || { echo 'no network' >&2; exit 3; }\n"));
    for (int i = 0; i < 3; i++)
        add(TRACE_INFO, KIND_HOSTS_CHANGED, "hosts");
    finish(t);
    CHECK_INT(t, lines_of(said), ==, 3);
    CHECK_HAS(t, log_kept(), "hook: exit code 3 (standard error: no network); this event is lost");
    CHECK(t, !strstr(strstr(log_kept(), "no network") + 1, "no network"));
    CHECK_HAS(t, log_kept(), "works again; 2 events were lost");
}

TEST_FLAGS(a_command_that_cannot_be_run_costs_nothing_else, TEST_NO_TORTURE)
{
    hook_runs(t, "/no/such/command");
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "hosts");
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "hosts");
    finish(t);
    CHECK_HAS(t, log_kept(), "/no/such/command");
    CHECK_HAS(t, log_kept(), "no such program");
    CHECK(t, !strstr(strstr(log_kept(), "this event is lost") + 1, "this event is lost"));
}

TEST_FLAGS(a_command_that_hangs_is_killed_with_its_children, TEST_NO_TORTURE)
{
    const char *child = scripts_path(folder, "child");

    config.limit_us = TIME_S / 2;
    hook_runs(t, scripts_write(folder, "hook", "sleep 1000 & echo $! >child; wait\n"));
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "it never reads");
    finish(t);
    CHECK_HAS(t, log_kept(), "hook: did not end within 500ms, and was killed");
    CHECK(t, scripts_gone(child));
}

TEST_FLAGS(a_flood_ends_the_call, TEST_NO_TORTURE)
{
    hook_runs(t, scripts_write(folder, "hook", "yes >&2\n"));
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "hosts");
    finish(t);
    CHECK_HAS(t, log_kept(), "hook: printed more than 65536 bytes, and was killed");
}

/* The first call waits while more events come than may wait: the oldest are dropped, and told. */
TEST_FLAGS(events_that_have_no_room_are_counted, TEST_NO_TORTURE)
{
    const char *said = scripts_path(folder, "said");
    const char *started = scripts_path(folder, "started");
    const char *gate = scripts_path(folder, "gate");
    char text[32];

    scripts_make_fifo(gate);
    hook_runs(t, scripts_write(folder, "hook",
                               "read -r line\n"
                               "[ -e started ] || { echo >started; read -r go <gate; }\n"
                               "echo \"$line\" >>said\n"));
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "first");
    CHECK(t, scripts_wait_line(base, started));
    for (int i = 0; i < LIMIT_HOOK_EVENTS + 7; i++) {
        snprintf(text, sizeof(text), "event %d", i);
        add(TRACE_INFO, KIND_HOSTS_CHANGED, text);
    }
    scripts_say(gate, "go\n");
    event_hook_end(hook);
    CHECK(t, event_base_loop(base, EVLOOP_ONCE) >= 0);
    while (lines_of(said) < 3)
        CHECK_INT(t, event_base_loop(base, EVLOOP_ONCE), ==, 0);
    CHECK_HAS(t, scripts_read(said), "\"text\":\"event 7\",\"dropped\":7,\"job\"");
    CHECK_HAS(t, scripts_read(said), "\"text\":\"event 8\",\"job\"");
    CHECK(t, !strstr(scripts_read(said), "event 6\""));
    CHECK_HAS(t, log_kept(), "is slower than events come: 7 events were dropped");
}

TEST_FLAGS(the_end_waits_for_a_moment_only, TEST_NO_TORTURE)
{
    const char *pid = scripts_path(folder, "pid");
    int64_t began_us;

    hook_runs(t, scripts_write(folder, "hook", "echo $$ >pid; exec sleep 1000\n"));
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "one");
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "two");
    CHECK(t, scripts_wait_line(base, pid));
    began_us = clock_now_us();
    finish(t);
    CHECK_INT(t, clock_now_us() - began_us, <, TIME_MIN); /* without an end it takes two minutes */
    CHECK(t, scripts_gone(pid));
    CHECK_HAS(t, log_kept(), "was too slow for the last 2 events");
}

/* A driver that dies of an error frees the hook at once. */
TEST_FLAGS(a_call_that_runs_is_killed_by_free, TEST_NO_TORTURE)
{
    const char *pid = scripts_path(folder, "pid");

    hook_runs(t, scripts_write(folder, "hook", "echo $$ >pid; exec sleep 1000\n"));
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "one");
    CHECK(t, scripts_wait_line(base, pid));
    event_hook_free(hook);
    hook = NULL;
    CHECK(t, scripts_gone(pid));
    add(TRACE_INFO, KIND_HOSTS_CHANGED, "no hook hears this");
}

TEST(what_is_wrong_is_named)
{
    struct event_filter filter;
    struct hvd_err err;

    CHECK_INT(t, event_filter_parse("", &filter, &err), ==, HVD_E_INVAL);
    CHECK_INT(t, event_filter_parse("info,worker_died", &filter, &err), ==, HVD_E_INVAL);
    CHECK_HAS(t, err.text, "\"worker_died\" is neither a severity");
    CHECK_OK(t, event_filter_parse("warning, job_over", &filter, &err));
    CHECK(t, event_filter_passes(&filter, TRACE_ERROR, KIND_NONE));
    CHECK(t, event_filter_passes(&filter, TRACE_DETAIL, KIND_JOB_OVER));
    CHECK(t, !event_filter_passes(&filter, TRACE_INFO, KIND_JOB_SUMMARY));
    config.command = " \t";
    CHECK_INT(t, event_hook_create(base, &config, events, &hook, &err), ==, HVD_E_INVAL);
    CHECK_OK(t, event_hook_create(base, &(struct event_hook_config){ .command = "x" }, events,
                                  &hook, &err));
}
