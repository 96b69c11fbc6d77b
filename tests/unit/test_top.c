/*
 * test_top.c: the picture of "hvd-elastic top": golden pictures of small screens, and the promise
 * that each picture of each size has exactly the lines and columns that were asked for.
 */
#include "driver/control/top.h"

#include "base/time.h"
#include "os/log_time.h"
#include "tests/lib/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct view_worker members[] = {
    {.incarnation = 1,  .slot = 0, .rank = 0, .state = WORKER_MEMBER},
    { .incarnation = 2, .slot = 1, .rank = 1, .state = WORKER_MEMBER},
};
static const struct view_worker booting[] = {
    {.incarnation = 3, .slot = 0, .rank = UINT32_MAX, .state = WORKER_BOOTING},
};
static const struct view_host hosts[] = {
    {.name = "node-a",
     .slots = 2,
     .listed = true,
     .agent = AGENT_THERE,
     .why = "",
     .workers = members,
     .worker_count = 2},
    { .name = "node-b",
     .slots = 1,
     .listed = true,
     .draining = true,
     .drain_us = TIME_NEVER,
     .agent = AGENT_THERE,
     .why = "a \x1b[31mred\xff\xe6\x97\xa5 \xc3\xa9",
     .workers = booting,
     .worker_count = 1 },
};
static const struct view_change changes[] = {
    {.round = 1,  .cause = CAUSE_FIRST, .from = 0, .to = 4, .ended_us = 0, .pause_us = TIME_S},
    { .round = 2,
     .cause = CAUSE_RECOVERY,
     .from = 4,
     .to = 2,
     .ended_us = 50 * TIME_S,
     .pause_us = 20 * TIME_MS                                                                },
};
static const struct table_facts facts = {
    .job = "night",
    .pid = 77,
    .np = 4,
    .min_np = 2,
    .max_np = 8,
    .now_us = 100 * TIME_S,
    .started_us = 0,
};
static struct core_view view;
static struct events *events;
static struct buf out;

static void begin_case(struct test *t)
{
    (void)t;
    buf_init(&out, 1 << 20);
    events = NULL;
    view = (struct core_view){
        .job = JOB_RUNNING,
        .term = 2,
        .round = 2,
        .commit = UINT64_C(2) << 32 | 7,
        .member_count = 2,
        .resets = 1,
        .shortage = {TIME_NEVER, TIME_NEVER, 0},
        .hosts = hosts,
        .host_count = ARRAY_SIZE(hosts),
        .changes = changes,
        .change_count = ARRAY_SIZE(changes),
        .waiting_for = ""
    };
}

static void end_case(struct test *t)
{
    (void)t;
    events_free(events);
    buf_release(&out);
}
FIXTURE(begin_case, end_case)

/* Returns the picture of this size. */
static const char *picture(struct test *t, uint32_t columns, uint32_t lines, enum top_pane pane,
                           uint32_t from)
{
    const struct top_screen screen = {
        .columns = columns, .lines = lines, .pane = pane, .from = from, .ascii = true
    };

    buf_clear(&out);
    CHECK_OK(t, top_draw(&view, &facts, events, &screen, &out));
    return buf_text(&out);
}

/* The columns of a line of UTF-8 whose characters all have the width 1. */
static size_t columns_of(const char *line, size_t length)
{
    size_t columns = 0;

    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)line[i] & 0xc0) != 0x80;
    return columns;
}

static void add_events(struct test *t, unsigned count)
{
    struct hvd_err err;
    char text[64];

    CHECK_OK(t, events_create(NULL, "j1", &events, &err));
    for (unsigned i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "event %u.", i);
        events_add(events, TRACE_INFO, NULL, text);
    }
}

TEST(a_picture_of_all)
{
    CHECK_TEXT(t, picture(t, 62, 14, TOP_ALL, 0),
               "job night: running    driver pid 77, term 2, up 1m40s         \n"
               "round 2: size 2 of 2 to 8, from commit 2.7, 1 resets          \n"
               "size     @@@@@@@@@@@@@@===============  4 at most, 1m40s      \n"
               "pauses                 =                longest 20ms          \n"
               "                                                              \n"
               "HOST    SLOTS  AGENT     WORKERS             WHY NOT MORE     \n"
               "node-b      1  there     1 booting           a ?[31mred?? \xc3\xa9   \n"
               "node-a      2  there     2 member                             \n"
               "                                                              \n"
               " ROUND  CAUSE     SIZE          AGO    PAUSE    AGREE  REBUILD\n"
               "     2  recovery  4 -> 2        50s     20ms       0s       0s\n"
               "     1  first     0 -> 4      1m40s       1s       0s       0s\n"
               "                                                              \n"
               "                                                              \n");
}

static struct view_point falling[] = {
    {0,            8,   0},
    { 25 * TIME_S, 4,   0},
    { 50 * TIME_S, NAN, 0},
    { 75 * TIME_S, 1,   0},
    { 99 * TIME_S, 1,   0},
};
static struct view_point extreme[] = {
    {0,            -1.7e308, 0},
    { 50 * TIME_S, 1.7e308,  0}
};
/* The core lets no such name as the second one in; the picture does not rely on that. */
static struct view_report values[] = {
    {"train/loss",  1,       2, 0, 99 * TIME_S, falling,     ARRAY_SIZE(falling)},
    { "\x1b[31m\n", NAN,     2, 0, 50 * TIME_S, falling,     3                  },
    { "wide",       1.7e308, 2, 0, 50 * TIME_S, extreme,     2                  },
    { "same",       0.25,    2, 0, 40 * TIME_S, falling + 1, 1                  },
};

TEST(values_of_the_program_are_drawn_over_time)
{
    view.reports.items = values;
    view.reports.count = ARRAY_SIZE(values);
    CHECK_HAS(t, picture(t, 62, 14, TOP_ALL, 0),
              "pauses                 =                longest 20ms          \n"
              "train/los@@@@@@@=======       ........  1, 1s ago             \n"
              "?[31m?   @@@@@@@.......                 NaN, 50s ago          \n"
              "wide     ..............@@@@@@@@@@@@@@@  1.7e+308, 50s ago     \n"
              "... and 1 more values: hvd-elastic status has all             \n");
    CHECK(t, !strstr(picture(t, 32, 14, TOP_ALL, 0), "wide"));
}

TEST(a_screen_of_any_size_is_filled_and_never_exceeded)
{
    struct view_host many[60];

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = hosts[i % 2];
    add_events(t, 500);
    view.reports.items = values;
    view.reports.count = ARRAY_SIZE(values);
    view.waiting_for = "a very long sentence of more characters than a narrow terminal can show";
    view.hosts = many;
    view.host_count = ARRAY_SIZE(many);
    view.next = 3;
    view.notices.ended = 1;
    for (uint32_t columns = TOP_COLUMNS_MIN; columns <= TOP_COLUMNS_MAX; columns += 37)
        for (uint32_t lines = TOP_LINES_MIN; lines <= 40; lines++)
            for (int pane = 0; pane < TOP_PANE_COUNT; pane++) {
                const char *line = picture(t, columns, lines, (enum top_pane)pane, lines);
                uint32_t count = 0;

                for (const char *end; (end = strchr(line, '\n')); line = end + 1, count++)
                    CHECK_INT(t, columns_of(line, (size_t)(end - line)), ==, columns);
                CHECK_INT(t, count, ==, lines);
                CHECK_TEXT(t, line, "");
            }
}

TEST(workers_that_lag_are_named)
{
    struct view_worker frozen[2] = { members[0], members[1] };
    struct view_host two[2] = { hosts[1], hosts[0] };

    two[0].draining = false;
    two[0].why = "";
    two[0].worker_count = 0;
    frozen[0].silent = true;
    frozen[0].heard_us = 80 * TIME_S;
    frozen[1].behind = true;
    frozen[1].commit = UINT64_C(2) << 32 | 1;
    frozen[1].commit_us = 70 * TIME_S;
    two[1].workers = frozen;
    view.hosts = two;
    view.newest = UINT64_C(2) << 32 | 9;
    view.newest_us = 98 * TIME_S;
    view.commits = 300;
    view.commits_us = 20 * TIME_S;
    CHECK_HAS(t, picture(t, 62, 14, TOP_HOSTS, 0),
              "round 2: size 2 of 2 to 8, from commit 2.7, 1 resets          \n"
              "commits: newest 2.9, 2s ago; 15.0 a second                    \n"
              "silent: node-a:0 (rank 0) for 20s at commit none              \n"
              "behind: node-a:1 (rank 1) for 30s at commit 2.1               \n");
    CHECK_HAS(t, buf_text(&out),
              "node-a      2  there     2 member                             \n"
              "node-b      1  there ");
}

TEST(hostile_texts_cannot_leave_their_place)
{
    const char *shown = picture(t, 120, 20, TOP_HOSTS, 0);

    CHECK_HAS(t, shown,
              "node-b      1  there     1 booting           a ?[31mred??"
              " \xc3\xa9");
    CHECK(t, !strchr(shown, '\x1b'));
}

TEST(hosts_that_need_a_look_come_first)
{
    const char *shown = picture(t, 120, 20, TOP_HOSTS, 0);

    CHECK(t, strstr(shown, "node-b") < strstr(shown, "node-a"));
    shown = picture(t, 120, 20, TOP_HOSTS, 1);
    CHECK(t, !strstr(shown, "node-b"));
    CHECK_HAS(t, shown, "node-a      2  there     2 member");
}

TEST(events_scroll_back_to_older_ones)
{
    const char *shown;

    add_events(t, 50);
    shown = picture(t, 80, 10, TOP_EVENTS, 0);
    CHECK_HAS(t, shown, "event 49.");
    shown = picture(t, 80, 10, TOP_EVENTS, 10);
    CHECK(t, !strstr(shown, "event 40."));
    CHECK_HAS(t, shown, "event 39.");
    shown = picture(t, 80, 10, TOP_EVENTS, 1000);
    CHECK_HAS(t, shown, "event 0.");
}

TEST(a_list_that_is_cut_says_so)
{
    struct view_host many[60];

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = hosts[0];
    view.hosts = many;
    view.host_count = ARRAY_SIZE(many);
    CHECK_HAS(t, picture(t, 80, 23, TOP_ALL, 0), "\n... and ");
}

TEST(a_job_that_is_new_or_an_orphan_has_a_picture)
{
    struct table_facts orphan = facts;
    const struct top_screen screen = { .columns = 60, .lines = 6, .ascii = true };

    view = (struct core_view){
        .waiting_for = "workers", .shortage = {TIME_NEVER, TIME_NEVER, 0}
    };
    CHECK_HAS(t, picture(t, 60, 6, TOP_ALL, 0), "round: none yet; the job begins with 4 workers");
    CHECK_HAS(t, picture(t, 60, 6, TOP_ALL, 0), "waits for workers");
    orphan.orphan = true;
    buf_clear(&out);
    CHECK_OK(t, top_draw(&view, &orphan, NULL, &screen, &out));
    CHECK_HAS(t, buf_text(&out), "job night: orphaned");
}

TEST(wrong_arguments_are_refused_by_name)
{
    static const char *const wrong[][TOP_ARGS] = {
        {"19",  "24",  "all",  "0",  "utf8"},
        { "80", "2",   "all",  "0",  "utf8"},
        { "80", "301", "all",  "0",  "utf8"},
        { "80", "24",  "\x1b", "0",  "utf8"},
        { "80", "24",  "all",  "-1", "utf8"},
        { "x",  "24",  "all",  "0",  "utf8"},
    };
    static const char *const right[TOP_ARGS] = { "80", "24", "events", "3", "utf8" };
    struct top_screen screen;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK(t, top_screen_parse(wrong[i], &screen, &err) != 0);
    CHECK_OK(t, top_screen_parse(right, &screen, &err));
    CHECK_INT(t, screen.columns, ==, 80);
    CHECK_INT(t, screen.lines, ==, 24);
    CHECK_INT(t, screen.pane, ==, TOP_EVENTS);
    CHECK_INT(t, screen.from, ==, 3);
    CHECK(t, !screen.ascii);
}

TEST(bars_of_a_terminal_with_utf8)
{
    const struct top_screen screen = { .columns = 80, .lines = 10 };

    CHECK_OK(t, top_draw(&view, &facts, NULL, &screen, &out));
    CHECK_HAS(t, buf_text(&out), "size     \u2588");
    CHECK_HAS(t, buf_text(&out), "\u2584");
}
