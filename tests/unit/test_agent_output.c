/*
 * test_agent_output.c: agent/core and the output of workers: the output is passed on in chunks and,
 * without a driver, kept up to a limit, in which the newest lines win.
 */
#include "base/limits.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/fault.h"
#include "tests/lib/fixture.h"

#include <string.h>

#define LAUNCHED "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\n"
#define MANY     260 /* workers that together would keep more than an agent may */

static struct script s;
static char much[LIMIT_OUTPUT_KEPT_BYTES + 1];

static int begin(void)
{
    int rc = script_init(&s);

    if (!rc)
        rc = script_serve(&s);
    return rc ? rc : script_run(&s, 7, 2);
}

/* Returns the bytes of the OUTPUT at that place of the last step. */
static struct msg_bytes said(size_t at)
{
    const struct msg *msg = at < s.list.count ? s.list.items[at].msg : NULL;

    return msg && msg->type == MSG_OUTPUT ? msg->u.output.data : (struct msg_bytes){ NULL, 0 };
}

static bool says(size_t at, const char *text)
{
    struct msg_bytes data = said(at);

    return data.length == strlen(text) && memcmp(data.at, text, data.length) == 0;
}

static bool starts(size_t at, const char *text)
{
    struct msg_bytes data = said(at);

    return data.length > strlen(text) && memcmp(data.at, text, strlen(text)) == 0;
}

static void end_case(struct test *t)
{
    (void)t;
    fault_arm(FAULT_ALLOC, 0);
    script_release(&s);
}
FIXTURE(NULL, end_case)

TEST(output_is_passed_on)
{
    CHECK_OK(t, begin());
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, "hello", 5),
               "driver: OUTPUT term=1 incarnation=7 stream=1 data=5\n");
    CHECK(t, says(0, "hello"));
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, "", 0), "");
    CHECK_TEXT(t, script_output(&s, 8, STREAM_STDOUT, "hello", 1), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "output of 8, forgotten");
}

TEST(much_output_goes_in_chunks)
{
    CHECK_OK(t, begin());
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, much, LIMIT_OUTPUT_CHUNK_BYTES + 1),
               "driver: OUTPUT term=1 incarnation=7 data=65536\n"
               "driver: OUTPUT term=1 incarnation=7 data=1\n");
}

TEST(output_without_a_driver_goes_to_the_next_driver)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, "hello", 5), "");
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, " world", 6), "");
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, "42", 2), "");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "HELLO_AGENT");
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, "43", 2), ""); /* not before the welcome */
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }),
               LAUNCHED "driver: OUTPUT term=1 incarnation=7 data=4\n"
                        "driver: OUTPUT term=1 incarnation=7 stream=1 data=11\n");
    CHECK(t, says(1, "4243"));
    CHECK(t, says(2, "hello world"));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), LAUNCHED); /* once */
}

TEST(the_newest_output_is_kept)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, "hello", 5), "");
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, much, LIMIT_OUTPUT_KEPT_BYTES - 3), "");
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, much, LIMIT_OUTPUT_KEPT_BYTES + 1), "");
    CHECK_TEXT(t, script_return(&s, 1),
               LAUNCHED
               "driver: OUTPUT term=1 incarnation=7 data=65536 dropped_bytes=2\n"
               "driver: OUTPUT term=1 incarnation=7 stream=1 data=65536 dropped_bytes=1\n");
    CHECK(t, starts(1, "llo"));
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, "hello", 5),
               "driver: OUTPUT term=1 incarnation=7 data=5\n");
}

TEST(last_words_come_before_the_end)
{
    static const char end[] =
        "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 value=1 witness=2\n";

    CHECK_OK(t, begin());
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, "no such", 7), "");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 1, WITNESS_PIDFD), "");
    /* of a child process, for example */
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, " file", 5), "");
    CHECK_HAS(t, script_return(&s, 1),
              "driver: OUTPUT term=1 incarnation=7 stream=1 data=12\ndriver: EXITED");
    CHECK(t, says(0, "no such file"));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), end);
}

TEST_FLAGS(dropped_output_is_counted, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, script_lose(&s));
    fault_arm(FAULT_ALLOC, 1);
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDOUT, "hello", 5), "");
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, "hello", 5), "");
    fault_arm(FAULT_ALLOC, 1);
    /* the earlier bytes are dropped, too */
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, much, 100), "");
    fault_arm(FAULT_ALLOC, 0);
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, "4", 1), "");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 1, WITNESS_PIDFD), "");
    CHECK_HAS(t, script_return(&s, 1),
              "driver: OUTPUT term=1 incarnation=7 dropped_bytes=5\n"
              "driver: OUTPUT term=1 incarnation=7 stream=1 data=1 dropped_bytes=105\n"
              "driver: EXITED");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_output(&s, 7, STREAM_STDERR, "late", 4), ""); /* freed with the agent */
}

TEST_FLAGS(the_kept_output_has_a_limit, TEST_NO_TORTURE)
{
    uint64_t kept = 0;
    uint64_t dropped = 0;

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_OK(t, script_run(&s, i + 1, i));
    CHECK_OK(t, script_lose(&s));
    for (uint32_t i = 0; i < MANY * STREAM_COUNT; i++)
        CHECK_TEXT(t, script_output(&s, i / STREAM_COUNT + 1, i % STREAM_COUNT, much, sizeof(much)),
                   "");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    script_step(&s, &(struct agent_event){ .kind = AGENT_DRIVER_UP });
    script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 });
    for (size_t i = 0; i < s.list.count; i++) {
        if (s.list.items[i].msg->type != MSG_OUTPUT)
            continue;
        kept += s.list.items[i].msg->u.output.data.length;
        dropped += s.list.items[i].msg->u.output.dropped_bytes;
    }
    CHECK_INT(t, kept, ==, LIMIT_OUTPUT_ALL_KEPT_BYTES);
    CHECK_INT(t, kept + dropped, ==, MANY * STREAM_COUNT * sizeof(much));
}
