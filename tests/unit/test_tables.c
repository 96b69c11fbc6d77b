/*
 * test_tables.c: the tables for users and the JSON that hvd-elastic shows of a job, against golden
 * texts.
 */
#include "base/text_show.h"
#include "base/time.h"
#include "driver/control/commits.h"
#include "driver/control/json.h"
#include "driver/control/summary.h"
#include "driver/control/tables.h"
#include "tests/lib/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOBODY UINT32_MAX

static const struct view_worker on_a[] = {
    {.incarnation = 1,
     .slot = 0,
     .rank = 0,
     .state = WORKER_MEMBER,
     .entered = true,
     .since_us = TIME_S,
     .commit = UINT64_C(3) << 32 | 9,
     .commit_us = 99600 * TIME_MS,
     .heard_us = 99 * TIME_S},
    { .incarnation = 2,
     .slot = 1,
     .rank = 1,
     .state = WORKER_MEMBER,
     .entered = true,
     .since_us = TIME_S,
     .commit = UINT64_C(3) << 32 | 8,
     .commit_us = 90 * TIME_S,
     .heard_us = 92 * TIME_S,
     .draining = true,
     .drain_us = 111 * TIME_S,
     .silent = true,
     .behind = true },
};
static const struct view_worker on_b[] = {
    {.incarnation = 12,
     .slot = 0,
     .rank = NOBODY,
     .state = WORKER_BOOTING,
     .draining = true,
     .drain_us = 120 * TIME_S,
     .since_us = 99 * TIME_S,
     .commit_us = TIME_NEVER,
     .heard_us = TIME_NEVER},
};
static const struct view_host hosts[] = {
    {.name = "node-a",
     .slots = 2,
     .listed = true,
     .agent = AGENT_THERE,
     .heard_us = 99500 * TIME_MS,
     .why = "",
     .workers = on_a,
     .worker_count = 2 },
    { .name = "::1",
     .slots = 2,
     .listed = true,
     .draining = true,
     .drain_us = 120 * TIME_S,
     .agent = AGENT_THERE,
     .heard_us = 98 * TIME_S,
     .why = "slot 1: \"x\"\\\x01\xff\xc3\xa9",
     .workers = on_b,
     .worker_count = 1 },
    { .name = "c",
     .slots = 1,
     .listed = true,
     .agent = AGENT_NONE,
     .heard_us = TIME_NEVER,
     .why = "the host is not needed"},
};
static const struct view_held held[] = {
    {.host = "::1", .slot = 1,      .failures = 2, .left_us = 19 * TIME_S, .reason = "exit code 1"},
    { .host = "c",  .slot = NOBODY, .failures = 1, .left_us = TIME_NEVER,  .reason = "no agent"   },
    { .host = "d",  .slot = 0,      .failures = 1, .left_us = 0,           .reason = "signal 9"   },
};
static const struct view_change changed[] = {
    {.round = 1,
     .cause = CAUSE_FIRST,
     .to = 4,
     .ended_us = 10 * TIME_S,
     .pause_us = 165 * TIME_MS,
     .rebuild_us = 150 * TIME_MS,
     .first_step_us = 12345},
    { .round = 12,
     .cause = CAUSE_RECOVERY,
     .from = 4,
     .to = 3,
     .ended_us = 90 * TIME_S,
     .pause_us = 1523400,
     .detect_us = 500000,
     .agree_us = 2345,
     .rebuild_us = TIME_S,
     .state_us = 999 },
};
static const uint64_t members[] = { 1, 2 };
static const struct view_failures failed[] = {
    {"node-a",     2},
    { "b\x1b[31m", 7},
    { "c",         2},
    { "d",         1},
    { "e",         1},
    { "f",         1},
    { "",          9},
};
static const struct table_facts facts = {
    .job = "j1",
    .state_dir = "/s/j1",
    .pid = 77,
    .np = 2,
    .min_np = 1,
    .max_np = 8,
    .now_us = 100 * TIME_S,
    .started_us = 500 * TIME_MS,
};

static struct view_point points[] = {
    {40 * TIME_S,  2,   UINT64_C(3) << 32 | 2},
    { 97 * TIME_S, 0.1, 0                    }
};
/* The core lets no such name as the second one in; the tables do not rely on that. */
static struct view_report reports[] = {
    {"loss",            0.1,       3, UINT64_C(3) << 32 | 8, 97 * TIME_S,  points, ARRAY_SIZE(points)},
    { "a\"<b>\x1b[31m", NAN,       3, 0,                     200 * TIME_S, points, 1                 },
    { "inf",            -INFINITY, 3, 0,                     99 * TIME_S,  points, 1                 },
};

static struct core_view a_view(void)
{
    return (struct core_view){
        .job = JOB_PREPARING,
        .term = 2,
        .round = 3,
        .next = 4,
        .commit = UINT64_C(2) << 32 | 7,
        .resume_min_commit = UINT64_C(2) << 32,
        .newest = UINT64_C(3) << 32 | 9,
        .newest_us = 99600 * TIME_MS,
        .commits = 25,
        .commits_us = 12 * TIME_S,
        .reports = { reports, ARRAY_SIZE(reports) },
        .members = members,
        .member_count = 2,
        .resets = 2,
        .shortage = { TIME_NEVER, TIME_NEVER, 0 },
        .hosts = hosts,
        .host_count = ARRAY_SIZE(hosts),
        .held = held,
        .held_count = ARRAY_SIZE(held),
        .changes = changed,
        .change_count = ARRAY_SIZE(changed),
        .discovery = {97 * TIME_S, 99 * TIME_S, 98500 * TIME_MS, 2, "exit code 3"},
        .notices = {3, 2, 1, 30 * TIME_S, TIME_NEVER},
        .goodput = {
            .sums = {
                [GOODPUT_TRAINING] = { 90 * TIME_S, 180 * TIME_S },
                [GOODPUT_RECOVERY] = { 1500 * TIME_MS, 3 * TIME_S },
                [GOODPUT_NO_DRIVER] = { 8500 * TIME_MS, 17 * TIME_S },
            },
            .failures = failed,
            .failure_count = ARRAY_SIZE(failed),
        },
        .waiting_for = "connections of round 4",
    };
}

static struct buf out;

static void begin_case(struct test *t)
{
    (void)t;
    buf_init(&out, 1 << 16);
}

static void end_case(struct test *t)
{
    (void)t;
    buf_release(&out);
}
FIXTURE(begin_case, end_case)

/* Few are named, and a worker that is silent is not named as behind. Without a driver none is; but
 * the reported values are those of the journal. */
TEST(workers_that_lag_are_named)
{
    struct view_worker many[6];
    const struct view_host host = { .name = "n", .workers = many, .worker_count = 6, .why = "" };
    struct core_view view = a_view();
    struct table_facts orphan = facts;

    for (uint32_t i = 0; i < 6; i++)
        many[i] = (struct view_worker){ .slot = i,
                                        .rank = i ? i : NOBODY,
                                        .silent = i < 5,
                                        .behind = i != 1,
                                        .commit_us = TIME_NEVER,
                                        .heard_us = 96 * TIME_S };
    many[5].commit = UINT64_C(3) << 32;
    many[5].commit_us = 10 * TIME_S;
    view.hosts = &host;
    view.host_count = 1;
    view.commits_us = 0;
    CHECK_OK(t, table_status(&view, &facts, false, &out));
    CHECK_HAS(t, buf_text(&out),
              "commits    newest 3.9, 400ms ago\n"
              "silent     n:0 for 4s at commit none, n:1 (rank 1) for 4s at commit none, "
              "n:2 (rank 2) for 4s at commit none, and 2 more\n"
              "behind     n:5 (rank 5) for 1m30s at commit 3.0\n");
    view.commits_us = 12 * TIME_S;
    CHECK_INT(t, commits_rate(&view), !=, TIME_NEVER);
    view.newest = 0; /* no worker says its commits, so none may have been made, or many */
    CHECK_INT(t, commits_rate(&view), ==, TIME_NEVER);
    orphan.orphan = true;
    buf_clear(&out);
    CHECK_OK(t, table_status(&view, &orphan, false, &out));
    CHECK(t, !strstr(buf_text(&out), "commits ") && !strstr(buf_text(&out), "silent "));
    buf_clear(&out);
    CHECK_OK(t, table_status(&view, &orphan, true, &out));
    CHECK_HAS(t, buf_text(&out),
              "\"newest\":null,\"newest_age_s\":null,\"commits_per_s\":null,\"lagging\":[],"
              "\"reported\":[{\"name\":\"loss\",\"value\":0.1,");
}

/* No driver lives: what the job does now is not known, and the table says how to go on. */
TEST(an_orphan_as_tables)
{
    struct core_view view = a_view();
    struct table_facts orphan = facts;

    orphan.orphan = true;
    orphan.silent_us = 200 * TIME_S;
    CHECK_OK(t, table_status(&view, &orphan, false, &out));
    CHECK_HAS(t, buf_text(&out), "job        j1: orphaned\nround      3, size 2, from commit 2.7");
    CHECK_HAS(t, buf_text(&out),
              "driver     none lives on this machine; the last one, of term 2, wrote its last line "
              "3m20s ago\n"
              "to resume  hvd-elastic --resume j1 --state-dir /s/j1\n"
              "to end     hvd-elastic stop --state-dir /s/j1\n"
              "state      /s/j1\n");
    buf_clear(&out);
    CHECK_OK(t, table_status(&view, &orphan, true, &out));
    CHECK_HAS(t, buf_text(&out), "\"state\":\"orphaned\",");
    CHECK_HAS(t, buf_text(&out),
              "\"driver\":{\"pid\":null,\"term\":2,\"for_s\":null,\"silent_s\":200.000,");
    buf_clear(&out);
    CHECK_OK(t, table_hosts(&view, &orphan, false, &out));
    CHECK_HAS(t, buf_text(&out), "no driver of this job lives on this machine; the last one wrote");
    buf_clear(&out);
    CHECK_OK(t, table_hosts(&view, &orphan, true, &out));
    CHECK_HAS(t, buf_text(&out), "},\"orphaned\":true}\n");

    /* in etcd nothing says when the last driver has written */
    orphan.store = "etcd://a/jobs";
    orphan.last = "pid 7 on a";
    orphan.state_dir = orphan.store;
    orphan.silent_us = TIME_NEVER;
    buf_clear(&out);
    CHECK_OK(t, table_status(&view, &orphan, false, &out));
    CHECK_HAS(t, buf_text(&out),
              "was pid 7 on a\nto resume  hvd-elastic --resume j1 --store etcd://a/jobs\n");
    buf_clear(&out);
    CHECK_OK(t, table_status(&view, &orphan, true, &out));
    CHECK_HAS(t, buf_text(&out), "\"silent_s\":null,\"state_dir\":\"etcd://a/jobs\"");
    buf_clear(&out);
    CHECK_OK(t, table_hosts(&view, &orphan, false, &out));
    CHECK_HAS(t, buf_text(&out), "this is what the last one (pid 7 on a) had written down\n");
}

TEST(status_as_a_table)
{
    struct core_view view = a_view();

    CHECK_OK(t, table_status(&view, &facts, false, &out));
    CHECK_TEXT(
        t, buf_text(&out),
        "job        j1: preparing\n"
        "waits for  connections of round 4\n"
        "round      3, size 2, from commit 2.7; 2 resets\n"
        "next       round 4\n"
        "commits    newest 3.9, 400ms ago; 2.08 a second\n"
        "silent     node-a:1 (rank 1) for 8s at commit 3.8\n"
        "reported   loss 0.1, 3s ago at commit 3.8\n"
        "           a\"<b>\x1b[31m NaN, 0s ago at commit none\n" /* client.c shows it cleanly */
        "           inf -Infinity, 1s ago at commit none\n"
        "size       begins with 2 workers, needs at least 1, uses at most 8\n"
        "workers    1 booting, 2 member\n"
        "hosts      3 listed, 2 used, 1 drained, 2 agents\n"
        "discovery  last answer 3s ago; asked for 1s; failed 2 times in a row, last 1s ago: "
        "exit code 3\n"
        "notices    2 of 3 honoured, 1 under way; least lead 30s, least margin never\n"
        "goodput    90.0% of 3m20s of workers' time; not training: recovery 3s, without a "
        "driver 17s\n"
        "driver     pid 77, term 2, running for 1m39s\n"
        "state      /s/j1\n");
    buf_clear(&out);
    view = (struct core_view){
        .waiting_for = "",
        .shortage = {90 * TIME_S, 150 * TIME_S, 0 },
        .discovery = { TIME_NEVER, TIME_NEVER,            TIME_NEVER, 0, "" },
    };
    CHECK_OK(t, table_status(&view, &facts, false, &out));
    CHECK_HAS(
        t, buf_text(&out),
        "job        j1: new\ntoo few    workers for 10s; the job needs at least 1, and fails in "
        "50s without them\n");
    CHECK_HAS(t, buf_text(&out), "round      none yet\n");
    CHECK_HAS(t, buf_text(&out), "workers    none\n");
}

TEST(status_as_json)
{
    struct core_view view = a_view();

    CHECK_OK(t, table_status(&view, &facts, true, &out));
    CHECK_TEXT(
        t, buf_text(&out),
        "{\"job\":\"j1\",\"state\":\"preparing\",\"exit_code\":null,\"waiting_for\":\"connections "
        "of round 4\","
        "\"round\":3,\"next\":4,\"size\":2,\"commit\":\"2.7\",\"floor\":\"2.0\","
        "\"newest\":\"3.9\",\"newest_age_s\":0.400,\"commits_per_s\":2.083,\"lagging\":["
        "{\"worker\":\"node-a:1\",\"incarnation\":2,\"rank\":1,\"heard_s\":8.000,"
        "\"commit\":\"3.8\",\"commit_age_s\":10.000,\"silent\":true,\"behind\":true}],"
        "\"reported\":["
        "{\"name\":\"loss\",\"value\":0.1,\"round\":3,\"commit\":\"3.8\",\"age_s\":3.000},"
        "{\"name\":\"a\\\"<b>\\u001b[31m\",\"value\":\"NaN\",\"round\":3,\"commit\":null,"
        "\"age_s\":0.000},"
        "{\"name\":\"inf\",\"value\":\"-Infinity\",\"round\":3,\"commit\":null,"
        "\"age_s\":1.000}],"
        "\"kept\":0,\"resets\":2,"
        "\"enough\":true,\"short_for_s\":null,\"fails_in_s\":null,\"np\":2,\"min_np\":1,\"max_np\":"
        "8,"
        "\"workers\":{\"launching\":0,\"booting\":1,\"ready\":0,\"member\":2,\"revoked\":0,"
        "\"recovered\":0,\"leaving\":0,\"finished\":0,\"doomed\":0,\"ended\":0},"
        "\"hosts\":{\"listed\":3,\"used\":2,\"draining\":1,\"agents\":2},"
        "\"notices\":{\"ended\":3,\"honoured\":2,\"under_way\":1,\"least_lead_s\":30.000,"
        "\"least_margin_s\":null},"
        "\"discovery\":{\"worked_s\":3.000,\"failed_s\":1.000,\"asked_s\":1.500,\"failures\":2,"
        "\"failure\":\"exit code 3\"},"
        "\"goodput\":{\"part\":0.900,\"training\":{\"worker_s\":180.000,\"s\":90.000},"
        "\"start\":{\"worker_s\":0.000,\"s\":0.000},"
        "\"recovery\":{\"worker_s\":3.000,\"s\":1.500},"
        "\"rebuild\":{\"worker_s\":0.000,\"s\":0.000},"
        "\"switch\":{\"worker_s\":0.000,\"s\":0.000},"
        "\"waiting\":{\"worker_s\":0.000,\"s\":0.000},"
        "\"lost_steps\":{\"worker_s\":0.000,\"s\":0.000},"
        "\"no_driver\":{\"worker_s\":17.000,\"s\":8.500},"
        "\"ending\":{\"worker_s\":0.000,\"s\":0.000}},"
        "\"failures\":[{\"host\":\"node-a\",\"count\":2},{\"host\":\"b\\u001b[31m\",\"count\":7},"
        "{\"host\":\"c\",\"count\":2},{\"host\":\"d\",\"count\":1},{\"host\":\"e\",\"count\":1},"
        "{\"host\":\"f\",\"count\":1},{\"host\":\"\",\"count\":9}],"
        "\"driver\":{\"pid\":77,\"term\":2,\"for_s\":99.500,\"silent_s\":null,\"state_dir\":\"/s/"
        "j1\"}}\n");
}

/* The hosts with most failures are named, and the rest is counted. */
TEST(a_summary)
{
    struct core_view view = a_view();
    struct table_facts all = facts;

    CHECK_OK(t, summary_write(&view, &all, &out));
    CHECK_TEXT(t, buf_text(&out),
               "rounds: 3, the last of 2 workers from commit 2.7; drivers: 2\n"
               "trained for 1m30s: 90.0% of the workers' time\n"
               "lost, in workers' time: recovery 3s, without a driver 17s\n"
               "failures of workers by host: others 9, b\x1b[31m 7, node-a 2, c 2, d 1, e 1, and 1 "
               "more hosts\n"
               "checkpoint: none, as there was no --checkpoint-dir\n"
               "logs: /s/j1/events.log; output of workers: kept only with --output-filename\n");
    buf_clear(&out);
    all.checkpoint_dir = "/c";
    all.output_dir = "/o";
    view = (struct core_view){ .waiting_for = "" };
    CHECK_OK(t, summary_write(&view, &all, &out));
    CHECK_TEXT(t, buf_text(&out),
               "rounds: none\n"
               "trained for 0s: 0.0% of the workers' time\n"
               "lost, in workers' time: none\n"
               "failures of workers by host: none\n"
               "checkpoint: none in /c\n"
               "logs: /s/j1/events.log; output of workers: /o\n");
    buf_clear(&out);
    view.checkpoint.commit = UINT64_C(4) << 32 | 9;
    CHECK_OK(t, summary_write(&view, &all, &out));
    CHECK_HAS(t, buf_text(&out), "checkpoint: commit 4.9 in /c\n");
}

TEST(hosts_as_a_table)
{
    struct core_view view = a_view();

    CHECK_OK(t, table_hosts(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out),
               "discovery  last answer 3s ago; asked for 1s; failed 2 times in a row, last 1s ago: "
               "exit code 3\n"
               "HOST    SLOTS  USED  AGENT  HEARD  WHY NOT MORE\n"
               "node-a  2      2     there  500ms  \n"
               "::1     2      1     there  2s     slot 1: \"x\"\\\x01\xff\xc3\xa9; 20s left\n"
               "c       1      0     none   -      the host is not needed\n"
               "\n"
               "WORKER    NUMBER  RANK  STATE    FOR    HEARD  COMMIT  AGE\n"
               "node-a:0  1       0     member   1m39s  1s     3.9     400ms\n"
               "node-a:1  2       1     member   1m39s  8s     3.8     10s\n"
               "[::1]:0   12      -     booting  1s     -      -       -\n");
}

/* The deadline of a drain is that of the workers that still have to leave. */
TEST(a_drained_host_without_workers_has_no_time_left)
{
    struct core_view view = a_view();
    struct view_host empty = hosts[1];

    empty.worker_count = 0;
    empty.why = "the host is drained";
    view.hosts = &empty;
    view.host_count = 1;
    CHECK_OK(t, table_hosts(&view, &facts, false, &out));
    CHECK_HAS(t, buf_text(&out), "the host is drained\n");
}

TEST(hosts_as_json)
{
    struct core_view view = a_view();

    CHECK_OK(t, table_hosts(&view, &facts, true, &out));
    CHECK_TEXT(
        t, buf_text(&out),
        "{\"job\":\"j1\",\"hosts\":["
        "{\"name\":\"node-a\",\"slots\":2,\"used\":2,\"listed\":true,\"draining\":false,\"drain_"
        "left_s\":null,"
        "\"agent\":\"there\",\"heard_s\":0.500,\"why\":\"\",\"workers\":["
        "{\"slot\":0,\"incarnation\":1,\"rank\":0,\"state\":\"member\",\"trains\":true,"
        "\"for_s\":99.000,\"draining\":false,\"drain_left_s\":null,\"heard_s\":1.000,\"commit\":"
        "\"3.9\",\"commit_age_s\":0.400,"
        "\"silent\":false,\"behind\":false},"
        "{\"slot\":1,\"incarnation\":2,\"rank\":1,\"state\":\"member\",\"trains\":true,"
        "\"for_s\":99.000,\"draining\":true,\"drain_left_s\":11.000,\"heard_s\":8.000,\"commit\":"
        "\"3.8\",\"commit_age_s\":10.000,"
        "\"silent\":true,\"behind\":true}]},"
        "{\"name\":\"::1\",\"slots\":2,\"used\":1,\"listed\":true,\"draining\":true,\"drain_left_"
        "s\":20.000,"
        "\"agent\":\"there\",\"heard_s\":2.000,\"why\":\"slot 1: "
        "\\\"x\\\"\\\\\\u0001\\ufffd\xc3\xa9\",\"workers\":["
        "{\"slot\":0,\"incarnation\":12,\"rank\":null,\"state\":\"booting\",\"trains\":false,"
        "\"for_s\":1.000,\"draining\":true,\"drain_left_s\":20.000,\"heard_s\":null,\"commit\":"
        "null,\"commit_age_s\":null,"
        "\"silent\":false,\"behind\":false}]},"
        "{\"name\":\"c\",\"slots\":1,\"used\":0,\"listed\":true,\"draining\":false,\"drain_left_"
        "s\":null,"
        "\"agent\":\"none\",\"heard_s\":null,\"why\":\"the host is not needed\",\"workers\":[]}],"
        "\"discovery\":{\"worked_s\":3.000,\"failed_s\":1.000,\"asked_s\":1.500,\"failures\":2,"
        "\"failure\":\"exit code 3\"},\"orphaned\":false}\n");
}

/* A token that is revoked has no time left, even if it had no end. */
TEST(the_tokens)
{
    static const struct view_token tokens[] = {
        {.id = "aaaaaaaa",       .host = "",      .left_us = TIME_NEVER },
        { .id = "bbbbbbbb",                     .host = "b",                    .uses = 2, .used = 1, .left_us = 90 * TIME_S },
        { .id = "cccccccc",             .host = "",.left_us = TIME_NEVER, .revoked = true },
        { .id = "dddddddd",                     .host = "",                    .left_us = 90 * TIME_S, .revoked = true },
        { .id = "eeeeeeee", .host = "" },
    };
    struct core_view view = a_view();

    view.tokens = (struct view_tokens){ tokens, ARRAY_SIZE(tokens) };
    CHECK_OK(t, table_tokens(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out),
               "TOKEN     STATE    HOST  HOSTS  OF   LEFT\n"
               "aaaaaaaa  good     any   -      any  always\n"
               "bbbbbbbb  good     b     1      2    1m30s\n"
               "cccccccc  revoked  any   -      any  -\n"
               "dddddddd  revoked  any   -      any  -\n"
               "eeeeeeee  expired  any   -      any  0s\n");
}

TEST(the_blacklist)
{
    struct core_view view = a_view();

    CHECK_OK(t, table_blacklist(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out),
               "HOST[:SLOT]  FAILURES  USABLE IN  LAST FAILURE\n"
               "[::1]:1      2         19s        exit code 1\n"
               "c            1         cleared    no agent\n"
               "d:0          1         now        signal 9\n");
    buf_clear(&out);
    CHECK_OK(t, table_blacklist(&view, &facts, true, &out));
    CHECK_TEXT(t, buf_text(&out),
               "{\"job\":\"j1\",\"blacklist\":["
               "{\"host\":\"::1\",\"slot\":1,\"failures\":2,\"usable\":false,\"left_s\":19.000,"
               "\"reason\":\"exit code 1\"},"
               "{\"host\":\"c\",\"slot\":null,\"failures\":1,\"usable\":false,\"left_s\":null,"
               "\"reason\":\"no agent\"},"
               "{\"host\":\"d\",\"slot\":0,\"failures\":1,\"usable\":true,\"left_s\":0.000,"
               "\"reason\":\"signal 9\"}]}\n");
    buf_clear(&out);
    view.held_count = 0;
    CHECK_OK(t, table_blacklist(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out), "no failure is counted against any host\n");
}

TEST(changes)
{
    const struct view_change unknown = {
        .round = 5, .cause = CAUSE_COUNT, .from = 3, .to = 2, .ended_us = facts.now_us
    };
    struct core_view view = a_view();

    CHECK_OK(t, table_changes(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out),
               "ROUND  CAUSE     SIZE    AGO    PAUSE  DETECT  AGREE   REBUILD  STATE  FIRST STEP\n"
               "1      first     0 -> 4  1m30s  165ms  0s      0s      150ms    0s     12.3ms\n"
               "12     recovery  4 -> 3  10s    1.52s  500ms   2.34ms  1s       999us  0s\n");
    buf_clear(&out);
    CHECK_OK(t, table_changes(&view, &facts, true, &out));
    CHECK_TEXT(
        t, buf_text(&out),
        "{\"job\":\"j1\",\"changes\":["
        "{\"round\":1,\"cause\":\"first\",\"from\":0,\"to\":4,\"ago_s\":90.000,"
        "\"pause_us\":165000,\"detect_us\":0,\"agree_us\":0,\"rebuild_us\":150000,\"state_us\":0,"
        "\"first_step_us\":12345},"
        "{\"round\":12,\"cause\":\"recovery\",\"from\":4,\"to\":3,\"ago_s\":10.000,"
        "\"pause_us\":1523400,\"detect_us\":500000,\"agree_us\":2345,\"rebuild_us\":1000000,"
        "\"state_us\":999,"
        "\"first_step_us\":0}]}\n");
    buf_clear(&out);
    view.changes = &unknown;
    view.change_count = 1;
    CHECK_OK(t, table_changes(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out),
               "ROUND  CAUSE    SIZE    AGO  PAUSE  DETECT  AGREE  REBUILD  STATE  FIRST STEP\n"
               "5      unknown  3 -> 2  0s   -      -       -      -        -      -\n");
    buf_clear(&out);
    view.change_count = 0;
    CHECK_OK(t, table_changes(&view, &facts, false, &out));
    CHECK_TEXT(t, buf_text(&out), "there was no round yet in which all members trained\n");
}

TEST(an_event)
{
    CHECK_OK(t, table_event("1970-01-01T00:00:01.500Z", TRACE_INFO, "round 2", "", false, &out));
    CHECK_OK(t, table_event("1970-01-01T00:00:01.500Z", TRACE_WARNING, "lost", "", false, &out));
    CHECK_OK(t, table_event("1970-01-01T00:00:01.500Z", TRACE_ERROR, "a \"b\"", "", true, &out));
    CHECK_TEXT(t, buf_text(&out),
               "1970-01-01T00:00:01.500Z round 2\n"
               "1970-01-01T00:00:01.500Z warning: lost\n"
               "{\"time\":\"1970-01-01T00:00:01.500Z\",\"severity\":\"error\","
               "\"text\":\"a \\\"b\\\"\"}\n");
}

TEST(an_event_with_facts)
{
    CHECK_OK(t, table_event("1970-01-01T00:00:01.500Z", TRACE_WARNING, "a:1#2: exit code 3",
                            "job=j1\tkind=worker_failed\thost=a\tslot=1", true, &out));
    CHECK_TEXT(t, buf_text(&out),
               "{\"time\":\"1970-01-01T00:00:01.500Z\",\"severity\":\"warning\","
               "\"text\":\"a:1#2: exit code 3\",\"job\":\"j1\",\"kind\":\"worker_failed\","
               "\"host\":\"a\",\"slot\":1}\n");
}

TEST(a_table_that_is_too_long_leaves_nothing)
{
    typedef int table_fn(const struct core_view *, const struct table_facts *, bool, struct buf *);
    table_fn *const all[] = { table_status, table_hosts, table_blacklist, table_changes };
    struct core_view view = a_view();

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        for (size_t max = 0; max < 150; max += 7) {
            buf_init(&out, max);
            CHECK_CODE(t, all[i](&view, &facts, true, &out), HVD_E_LIMIT);
            CHECK_INT(t, out.length, ==, 0);
            CHECK_CODE(t, all[i](&view, &facts, false, &out), HVD_E_LIMIT);
            CHECK_INT(t, out.length, ==, 0);
            buf_release(&out);
        }
    }
}

TEST(json_escapes)
{
    struct json json = { .out = &out };

    json_open(&json, NULL, '[');
    json_text(&json, NULL, "\t\n\x7f \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x82 \xed\xa0\x80");
    json_seconds(&json, NULL, -5);
    json_close(&json, ']');
    CHECK_OK(t, json.rc);
    CHECK_TEXT(t, buf_text(&out),
               "[\"\\u0009\\u000a\\u007f \xe2\x82\xac \xf0\x9f\x98\x80 \\ufffd\\ufffd "
               "\\ufffd\\ufffd\\ufffd\",0.000]");
}

/* The verbs show JSON through text_show: it must not change JSON, which has no \xNN. */
TEST(json_is_left_as_it_is_by_text_show)
{
    struct json json = { .out = &out };
    char text[200];

    json_open(&json, NULL, '[');
    json_text(&json, NULL,
              "\xe2\x80\xaa \xe2\x80\xae \xe2\x81\xa6 \xe2\x81\xa9 \x1b[31m\x7f\xc2\x9b\xff");
    json_close(&json, ']');
    CHECK_OK(t, json.rc);
    CHECK_TEXT(t, buf_text(&out),
               "[\"\\u202a \\u202e \\u2066 \\u2069 \\u001b[31m\\u007f\\ufffd\\ufffd\\ufffd\"]");
    snprintf(text, sizeof(text), "%s", buf_text(&out));
    buf_clear(&out);
    CHECK_OK(t, text_show(&out, text, strlen(text), false));
    CHECK_TEXT(t, buf_text(&out), text);
}
