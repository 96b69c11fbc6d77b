/*
 * test_metrics.c: the metrics of a job as text: exact lines, both formats, no sample twice, hostile
 * names; and the heads of HTTP requests.
 */
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/control/http_head.h"
#include "driver/control/metrics.h"
#include "tests/lib/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct view_worker workers[] = {
    {.incarnation = 1,         .state = WORKER_MEMBER},
    { .incarnation = 2, .state = WORKER_BOOTING,         .silent = true },
};
static const struct view_host hosts[] = {
    {.name = "a",
     .slots = 4,
     .listed = true,
     .agent = AGENT_THERE,
     .why = "",
     .workers = workers,
     .worker_count = 2 },
    { .name = "b", .slots = 2, .listed = true, .draining = true, .why = ""},
};
static const struct view_held held[] = {
    {.host = "a",  .failures = 2, .left_us = 19 * TIME_S, .reason = "x"},
    { .host = "b", .failures = 1, .left_us = TIME_NEVER,  .reason = "x"},
    { .host = "c", .failures = 1, .left_us = 0,           .reason = "x"},
};
/* A quote, a backslash, a newline, an escape of terminals, and bytes that are no UTF-8. */
static const struct view_failures failures[] = {
    {"a",                           2},
    { "b\"} 1\n\\\x1b[31m\xff\xc3", 7},
    { "\xc3\xa9",                   1},
    { "",                           9},
};
static const struct table_facts facts = {
    .job = "j\"1\nhvd_elastic_round 77",
    .state_dir = "/s",
    .np = 2,
    .min_np = 1,
    .max_np = 8,
    .now_us = 100 * TIME_S,
    .started_us = 500 * TIME_MS,
};
/* The core lets no such name as the last one in; the metrics do not rely on that. */
static struct view_report reports[] = {
    {.name = "loss", .value = 0.1,      .at_us = 98 * TIME_S },
    { .name = "nan",             .value = NAN                },
    { .name = "inf",             .value = INFINITY },
    { .name = "minus",             .value = -INFINITY              },
    { .name = "tiny",             .value = 4.9406564584124654e-324  },
    { .name = "a\"} 1\n\x1b[31m<b>",             .value = -3},
};
static struct buf out;

static struct core_view a_view(void)
{
    struct core_view view = {
        .job = JOB_RUNNING,
        .term = 2,
        .round = 3,
        .member_count = 2,
        .newest = UINT64_C(3) << 32 | 7,
        .newest_us = 98500 * TIME_MS,
        .commits = 25,
        .commits_us = 10 * TIME_S,
        .resets = 2,
        .shortage = {TIME_NEVER,                             TIME_NEVER,               0 },
        .hosts = hosts,
        .host_count = ARRAY_SIZE(hosts),
        .held = held,
        .held_count = ARRAY_SIZE(held),
        .notices = { .ended = 3,                                     .honoured = 2,                                                   .under_way = 1 },
        .goodput = { .failures = failures,                        .failure_count = ARRAY_SIZE(failures)},
        .checkpoint = { .commit = 1,.made_us = 90 * TIME_S,      .written = 4, .failed = 1 },
        .reports = { reports,                                       ARRAY_SIZE(reports)                                             },
        .waiting_for = "",
    };

    view.goodput.sums[GOODPUT_TRAINING] = (struct goodput_part){ 90 * TIME_S, 180 * TIME_S };
    view.goodput.sums[GOODPUT_RECOVERY] = (struct goodput_part){ 1500 * TIME_MS, 20 * TIME_S };
    view.pauses[CAUSE_RECOVERY][PAUSE_WHOLE].counts[1] = 2;
    view.pauses[CAUSE_RECOVERY][PAUSE_WHOLE].counts[PAUSE_BOUNDS] = 1;
    view.pauses[CAUSE_RECOVERY][PAUSE_WHOLE].sum_us = 700 * TIME_S + 12;
    return view;
}

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

TEST(the_older_format)
{
    struct core_view view = a_view();

    CHECK_OK(t, metrics_write(&view, &facts, false, &out));
    CHECK_HAS(t, buf_text(&out),
              "# HELP hvd_elastic_rounds_total Rounds that have begun in the life of the job.\n"
              "# TYPE hvd_elastic_rounds_total counter\n"
              "hvd_elastic_rounds_total 3\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_world_size 2\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_newest_commit_age_seconds 1.500000\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_commits_per_second 2.500000\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_workers_lagging{how=\"silent\"} 1\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_workers_lagging{how=\"behind\"} 0\n");
    CHECK_HAS(t, buf_text(&out),
              "\nhvd_elastic_reported{name=\"loss\"} 0.1\n"
              "hvd_elastic_reported{name=\"nan\"} NaN\n"
              "hvd_elastic_reported{name=\"inf\"} +Inf\n"
              "hvd_elastic_reported{name=\"minus\"} -Inf\n"
              "hvd_elastic_reported{name=\"tiny\"} 4.94066e-324\n"
              "hvd_elastic_reported{name=\"a\\\"} 1\xef\xbf\xbd\xef\xbf\xbd[31m<b>\"} -3\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_reported_age_seconds{name=\"loss\"} 2.000000\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_job_state{state=\"running\"} 1\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_driver_up_seconds 99.500000\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_workers{state=\"booting\"} 1\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_hosts{state=\"drained\"} 1\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_slots 6\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_blacklist{state=\"cooling\"} 1\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_notices_total{result=\"missed\"} 1\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_checkpoint_age_seconds 10.000000\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_time_seconds{use=\"recovery\"} 1.500000\n");
    CHECK_HAS(t, buf_text(&out), "\nhvd_elastic_goodput_ratio 0.900000\n");
    CHECK_HAS(t, buf_text(&out),
              "\nhvd_elastic_pause_seconds_bucket{cause=\"recovery\",le=\"0.005\"} 0\n"
              "hvd_elastic_pause_seconds_bucket{cause=\"recovery\",le=\"0.025\"} 2\n");
    CHECK_HAS(t, buf_text(&out),
              "hvd_elastic_pause_seconds_bucket{cause=\"recovery\",le=\"600.0\"} 2\n"
              "hvd_elastic_pause_seconds_bucket{cause=\"recovery\",le=\"+Inf\"} 3\n"
              "hvd_elastic_pause_seconds_sum{cause=\"recovery\"} 700.000012\n"
              "hvd_elastic_pause_seconds_count{cause=\"recovery\"} 3\n");
    CHECK(t, !strstr(buf_text(&out), "# UNIT") && !strstr(buf_text(&out), "# EOF"));
}

TEST(openmetrics)
{
    struct core_view view = a_view();

    CHECK_OK(t, metrics_write(&view, &facts, true, &out));
    CHECK_HAS(t, buf_text(&out), "# TYPE hvd_elastic_rounds counter\nhvd_elastic_rounds_total 3\n");
    CHECK_HAS(t, buf_text(&out), "# UNIT hvd_elastic_pause_seconds seconds\n");
    CHECK_TEXT(t, buf_text(&out) + out.length - 7, "\n# EOF\n");
}

/* The name of a job or host cannot end the label in which it stands, begin a new line, or send
 * escape sequences to a terminal (for example to change its colour). */
TEST(hostile_names)
{
    struct core_view view = a_view();

    for (int format = 0; format < 2; format++) {
        buf_clear(&out);
        CHECK_OK(t, metrics_write(&view, &facts, format, &out));
        CHECK(t, text_is_clean(buf_text(&out), out.length));
        CHECK_HAS(t, buf_text(&out),
                  "job_info{job_name=\"j\\\"1\xef\xbf\xbdhvd_elastic_round 77\",");
        CHECK_HAS(
            t, buf_text(&out),
            "failures_total{host=\"b\\\"} 1\xef\xbf\xbd\\\\\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf"
            "\xbd\"} 7\n");
        CHECK_HAS(t, buf_text(&out), "failures_total{host=\"\xc3\xa9\"} 1\n");
        CHECK_HAS(t, buf_text(&out), "failures_total{host=\"\"} 9\n");
    }
}

/* Tools do not notice a sample that comes twice, and Prometheus drops the whole scrape. */
TEST_FLAGS(no_sample_comes_twice, TEST_NO_TORTURE)
{
    static struct span samples[1024];
    struct core_view view = a_view();
    struct span rest, line;
    size_t count = 0;

    CHECK_OK(t, metrics_write(&view, &facts, false, &out));
    rest = (struct span){ buf_text(&out), out.length };
    while (span_next(&rest, '\n', &line)) {
        if (!line.length || *line.at == '#')
            continue;
        while (line.at[line.length - 1] != ' ')
            line.length--;
        for (size_t i = 0; i < count; i++)
            CHECK(t, samples[i].length != line.length ||
                         memcmp(samples[i].at, line.at, line.length) != 0);
        CHECK(t, count < ARRAY_SIZE(samples));
        samples[count++] = line;
    }
    CHECK_INT(t, count, >, 200);
}

TEST(without_room_nothing_is_left)
{
    struct core_view view = a_view();

    for (size_t max = 0; max < 9000; max += 501) {
        buf_release(&out);
        buf_init(&out, max);
        CHECK_CODE(t, metrics_write(&view, &facts, true, &out), HVD_E_LIMIT);
        CHECK_INT(t, out.length, ==, 0);
    }
}

/* ---- heads of requests ---------------------------------------------------------------------- */

static int status(const char *text, struct http_head *ret_head)
{
    return http_head_read(text, strlen(text), false, ret_head);
}

TEST(heads)
{
    struct http_head head = { .path = "" };

    CHECK_INT(t, status("GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n", &head), ==, 200);
    CHECK_TEXT(t, head.path, "/metrics");
    CHECK(t, !head.openmetrics && !head.only_head);
    CHECK_INT(t,
              status("HEAD / HTTP/1.0\nACCEPT: text/plain, Application/OpenMetrics-Text;q=0.1\n\n",
                     &head),
              ==, 200);
    CHECK(t, head.openmetrics && head.only_head);
    CHECK_INT(t, status("", &head), ==, 0);
    CHECK_INT(t, status("GET / HTTP/1.1\r\nA: b\r\n", &head), ==, 0);
    CHECK_INT(t, status("\r\n\r\n", &head), ==, 400);
    CHECK_INT(t, status("GET metrics HTTP/1.1\r\n\r\n", &head), ==, 400);
    CHECK_INT(t, status("GET /\r\n\r\n", &head), ==, 400);
    CHECK_INT(t, status("POST / HTTP/1.1\r\n\r\n", &head), ==, 405);
    CHECK_INT(t, status("GET / HTTP/2\r\n\r\n", &head), ==, 505);
    CHECK_INT(t, http_head_read("GET /\0 HTTP/1.1\r\n\r\n", 19, false, &head), ==, 400);
    CHECK_INT(
        t,
        status("GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1"
               "\r\n\r\n",
               &head),
        ==, 404);
}

TEST(token_and_host_of_a_head)
{
    struct http_head head = { .path = "" };
    char text[2 * HTTP_HOST_MAX];

    CHECK_INT(t, status("GET /live?a=b&token=c1 HTTP/1.1\r\nhost:  x:1 \r\n\r\n", &head), ==, 200);
    CHECK_TEXT(t, head.path, "/live");
    CHECK_TEXT(t, head.token, "c1");
    CHECK_TEXT(t, head.host, "x:1");
    CHECK_INT(t, status("GET /?token=&tokens=d HTTP/1.1\r\nHosts: y\r\n\r\n", &head), ==, 200);
    CHECK_TEXT(t, head.token, "");
    CHECK_TEXT(t, head.host, "");
    CHECK_INT(t, status("GET / HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n", &head), ==, 400);
    snprintf(text, sizeof(text), "GET /?token=%080d HTTP/1.1\r\nHost: %0300d\r\n\r\n", 1, 1);
    CHECK_INT(t, status(text, &head), ==, 200);
    CHECK_TEXT(t, head.token, "");
    CHECK_TEXT(t, head.host, "");
}

TEST(hosts_that_are_plain)
{
    static const char *const plain[] = { "localhost",  "LOCALHOST:9470", "127.0.0.1",
                                         "10.0.0.7:1", "[::1]:9470",     "[fe80::1]" };
    static const char *const others[] = {
        "",    "localhost.evil", "127.0.0.1.evil:80", "evil:9470", "[::1", "[::1]x", "[localhost]",
        "::1", "1.2.3",          "[127.0.0.1]",       ":9470",     "[]"
    };

    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        CHECK(t, http_host_is_plain(plain[i]));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        CHECK(t, !http_host_is_plain(others[i]));
}

TEST(a_head_that_is_too_long)
{
    static char text[LIMIT_WEB_HEAD_BYTES + 8];
    struct http_head head;

    memset(text, 'a', sizeof(text));
    CHECK_INT(t, http_head_read(text, LIMIT_WEB_HEAD_BYTES - 1, false, &head), ==, 0);
    CHECK_INT(t, http_head_read(text, LIMIT_WEB_HEAD_BYTES, false, &head), ==, 431);
    text[sizeof(text) - 2] = text[sizeof(text) - 1] = '\n';
    CHECK_INT(t, http_head_read(text, sizeof(text), false, &head), ==, 431);
}
