/*
 * test_agent_options.c: the options of hvd-agent: they come on standard input, because a command
 * line would show the key, and every wrong text is refused with its reason.
 */
#include "agent/options.h"

#include "base/limits.h"
#include "base/time.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

#define KEY  "00112233445566778899aabbccddeeff0123456789abcdefABCDEF0123456789"
#define GOOD "job = j\nhost = 127.0.0.2\nkey = " KEY "\ndrivers = 127.0.0.1:4321\n"

struct run {
    struct opt_set set;
    struct agent_options options;
    struct hvd_err err;
};

static int read_text(struct run *run, const char *text)
{
    return agent_options_text(&run->set, text, strlen(text), &run->err);
}

static int read_words(struct run *run, char *first, char *second)
{
    static char name[] = "hvd-agent";
    char *argv[] = { name, first, second, NULL };

    return agent_options_argv(&run->set, second ? 3 : 2, argv, &run->err);
}

static struct run run;

static void begin_case(struct test *t)
{
    run = (struct run){ .err = { 0 } };
    CHECK_OK(t, opt_init(&run.set, agent_option_table, agent_option_count, &run.options));
}

static void end_case(struct test *t)
{
    (void)t;
    opt_release(&run.set);
}
FIXTURE(begin_case, end_case)

TEST(reads_what_the_driver_says)
{
    CHECK_OK(t,
             read_text(&run, GOOD "drivers = [::1]:1\nagent = 18446744073709551615\nbeat = 50ms\n"
                                  "lease = 1s\nmin-np = 2\nmax-np = 2\nstall-warning = never\n"
                                  "driver-grace = never\nlog-level = info,net:debug\n"));
    CHECK_TEXT(t, run.options.host, "127.0.0.2");
    CHECK_INT(t, run.options.drivers.count, ==, 2);
    CHECK_TEXT(t, run.options.drivers.items[1], "[::1]:1");
    CHECK(t, run.options.agent == UINT64_MAX);
    CHECK_INT(t, run.options.beat_us, ==, 50 * TIME_MS);
    CHECK_INT(t, run.options.driver_grace_us, ==, TIME_NEVER);
    CHECK_INT(t, run.options.notice_us, ==, 30 * TIME_S);
    CHECK_TEXT(t, run.options.preemption, "auto");
    CHECK(t, !run.options.log_file);
}

TEST(the_key_is_moved_and_wiped)
{
    uint8_t key[AGENT_KEY_BYTES];

    CHECK_OK(t, read_text(&run, GOOD));
    agent_options_key(&run.options, key);
    CHECK_INT(t, key[0], ==, 0x00);
    CHECK_INT(t, key[1], ==, 0x11);
    CHECK_INT(t, key[15], ==, 0xff);
    CHECK_INT(t, key[24], ==, 0xab);
    CHECK_INT(t, key[31], ==, 0x89);
    for (size_t i = 0; i < strlen(KEY); i++)
        CHECK_INT(t, run.options.key[i], ==, 0);
}

TEST(a_missing_option_is_named)
{
    CHECK_CODE(t, read_text(&run, ""), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text, "job: is missing; hvd-elastic gives this option to each agent");
    CHECK_CODE(t, read_text(&run, "job = j\n"), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text, "host: is missing");
    CHECK_CODE(t, read_text(&run, "job = j\nhost = h\n"), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text, "key: is missing");
    CHECK_CODE(t, read_text(&run, "key = " KEY "\n"), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text, "drivers: is missing");
    CHECK_OK(t, read_text(&run, "drivers = 1.2.3.4:5\n"));
}

TEST(a_bad_text_is_refused_with_the_reason)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"job = a/b\n",               "job: \"a/b\": cannot be part of a path"  },
        { "job = .x\n",               "a dot at the beginning"                  },
        { "host = \"a\\nb\"\n",       "host: \"a\\x0ab\": cannot be"            },
        { "key = 00\n",               "key: must be 64 hexadecimal digits"      },
        { "drivers = a:1\n",          "drivers: \"a\": not a numeric address"   },
        { "drivers = 1.2.3.4\n",      "drivers: \"1.2.3.4\": write address:port"},
        { "min-np = 3\nmax-np = 2\n", "min-np: 3 is more than max-np"           },
        { "beat = 10s\n",             "beat: is not shorter than lease"         },
        { "lease = 0\n",              "lease"                                   },
        { "max-np = 131073\n",        "max-np"                                  },
        { "drivrs = 1\n",             "did you mean \"drivers\"?"               },
        { "stdin = true\n",           "stdin"                                   },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK_OK(t, read_text(&run, GOOD));
        CHECK(t, read_text(&run, cases[i].text));
        CHECK(t, run.err.code == HVD_E_INVAL || run.err.code == HVD_E_LIMIT);
        CHECK_HAS(t, run.err.text, cases[i].says);
        end_case(t);
        begin_case(t);
    }
}

TEST(a_key_is_never_shown)
{
    CHECK_CODE(t, read_text(&run, GOOD "key = g" KEY "\n"), HVD_E_INVAL);
    CHECK(t, !strstr(run.err.text, "0011"));
}

TEST(names_and_lists_have_limits)
{
    char text[1024];
    int length;

    length = snprintf(text, sizeof(text), GOOD "job = %0*d\n", LIMIT_JOB_NAME_BYTES + 1, 1);
    CHECK_INT(t, length, <, sizeof(text));
    CHECK_CODE(t, read_text(&run, text), HVD_E_LIMIT);
    CHECK_HAS(t, run.err.text, "longer than 128 bytes");
    CHECK_OK(t, read_text(&run, GOOD));
    for (int i = 0; i < LIMIT_ADDRESSES - 1; i++) {
        int rc;

        snprintf(text, sizeof(text), "drivers = 1.2.3.4:%d\n", i + 1);
        rc = read_text(&run, text);
        CHECK_OK(t, rc);
    }
}

TEST(the_command_line_is_for_few_words)
{
    static char from_stdin[] = "--stdin";
    static char key[] = "--key=" KEY;
    static char stray[] = "stray";
    static char healthy[] = "--healthy";

    CHECK_OK(t, read_words(&run, healthy, NULL));
    CHECK(t, run.options.healthy && !run.options.from_stdin);
    CHECK_OK(t, read_words(&run, from_stdin, NULL));
    CHECK(t, run.options.from_stdin && !run.options.foreground);
    CHECK_CODE(t, read_words(&run, from_stdin, stray), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text, "\"stray\": unknown");
    CHECK_CODE(t, read_words(&run, key, NULL), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text,
              "--key: is not allowed on the command line, which every user can read");
    CHECK(t, !strstr(run.err.text, "0011"));
}
