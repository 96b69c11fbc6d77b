/*
 * test_opt_config.c: options in a file and in variables: shapes of lines, quotes, limits, and the
 * place of an error.
 */
#include "base/limits.h"
#include "tests/lib/fixture.h"
#include "tests/lib/opt_sample.h"

#include <string.h>

static struct sample_run run;

static void begin(struct test *t)
{
    CHECK_OK(t, sample_init(&run));
}

static void end(struct test *t)
{
    (void)t;
    sample_release(&run);
}
FIXTURE(begin, end)

TEST(reads_lines_of_every_shape)
{
    CHECK_OK(t, sample_config(&run, "\xef\xbb\xbf# a job\r\n"
                                    "\r\n"
                                    "np=4\r\n"
                                    "\t min-num-proc  =  2   # at least\r\n"
                                    "label = a#b c\t# no comment before the blank\n"
                                    "env=A=1\n"
                                    "env = \"B=# \"# quoted\n"
                                    "   #np = 5\n"
                                    "stall-check = off"));
    CHECK_INT(t, run.config.np, ==, 4);
    CHECK_INT(t, run.config.min_np, ==, 2);
    CHECK_TEXT(t, run.config.label, "a#b c");
    CHECK_INT(t, run.config.env.count, ==, 2);
    CHECK_TEXT(t, run.config.env.items[0], "A=1");
    CHECK_TEXT(t, run.config.env.items[1], "B=# ");
    CHECK(t, !run.config.stall_check);
    CHECK_OK(t, sample_config(&run, ""));
    CHECK_OK(t, opt_config(&run.set, "none", NULL, 0, NULL));
    CHECK_OK(t, sample_config(&run, "np = 5\nnp = 6\n"));
    CHECK_INT(t, run.config.np, ==, 6);
}

TEST(reads_escapes_in_quotes)
{
    CHECK_OK(t, sample_config(&run, "label = \" \\\"a\\\"\\\\\\n\\t\\x01\\xfF \xc3\xa4\""));
    CHECK_TEXT(t, run.config.label, " \"a\"\\\n\t\x01\xff \xc3\xa4");
    CHECK_OK(t, sample_config(&run, "label = \"\""));
    CHECK_TEXT(t, run.config.label, "");
    CHECK_OK(t, sample_config(&run, "label = a\\n\"b\""));
    CHECK_TEXT(t, run.config.label, "a\\n\"b\"");
}

struct wrong_text {
    const char *text;
    int code;
    const char *says;
};

#define WRONG(text_, says_)       \
    {                             \
        text_, HVD_E_INVAL, says_ \
    }

static const struct wrong_text wrong_texts[] = {
    WRONG("\n\nnp: 4\n", "job.conf:3: \"np: 4\": no \"=\"; write name = value"),
    WRONG("[job]\n", "job.conf:1: \"[job]\": no \"=\"; write name = value"),
    WRONG("min_np = 4", "job.conf:1: \"min_np\": unknown option; did you mean \"min-np\"?"),
    WRONG("frobnicate = 4", "job.conf:1: \"frobnicate\": unknown option; see --help"),
    WRONG("= 4", "job.conf:1: \"\": unknown option; see --help"),
    WRONG("np = 4\nmin-np =\n", "job.conf:2: min-np: no value; write \"\" for an empty one"),
    WRONG("np = # 4", "job.conf:1: np: no value; write \"\" for an empty one"),
    WRONG("np = 4x # four", "job.conf:1: np: \"4x\": N must be a whole number"),
    WRONG("min-num-proc = \"\"", "job.conf:1: min-np: N is missing"),
    WRONG("label = \"abc", "job.conf:1: label: the closing quote is missing; add it"),
    WRONG("label = \"abc\\\"", "job.conf:1: label: the closing quote is missing; add it"),
    WRONG(
        "label = \"abc\" d",
        "job.conf:1: label: \" d\": only a comment may follow the closing quote; begin it with #"),
    WRONG("label = \"a\\q\"", "job.conf:1: label: \"q\\x22\": unknown escape; after a backslash "
                              "write \\, \", n, t or xNN"),
    WRONG("label = \"a\\",
          "job.conf:1: label: \"\": unknown escape; after a backslash write \\, \", n, t or xNN"),
    WRONG("label = \"\\x0g\"", "job.conf:1: label: \"x0g\\x22\": unknown escape; after a backslash "
                               "write \\, \", n, t or xNN"),
    WRONG("label = \"\\xg0\"", "job.conf:1: label: \"xg0\\x22\": unknown escape; after a backslash "
                               "write \\, \", n, t or xNN"),
    WRONG("label = \"\\x00\"", "job.conf:1: label: \"x00\\x22\": unknown escape; after a backslash "
                               "write \\, \", n, t or xNN"),
    WRONG("label = \"\\x1",
          "job.conf:1: label: \"x1\": unknown escape; after a backslash write \\, \", n, t or xNN"),
    WRONG(
        "np = 4\n\x7f\x45LF\x01",
        "job.conf:2: \"\\x7fELF\\x01\": not UTF-8 text without control characters; write \\xNN in "
        "quotes"),
    WRONG("label = a\rb", "job.conf:1: \"label = a\\x0db\": not UTF-8 text without control "
                          "characters; write \\xNN in quotes"),
    WRONG("help = true",
          "job.conf:1: help: this option is allowed only on the command line, as --help"),
    WRONG("config-file = a", "job.conf:1: config-file: this option is allowed only on the command "
                             "line, as --config-file"),
};

TEST(errors_name_place_and_remedy)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrong_texts); i++) {
        CHECK_CODE(t, sample_config(&run, wrong_texts[i].text), wrong_texts[i].code);
        CHECK_TEXT(t, run.err.text, wrong_texts[i].says);
    }
    CHECK_CODE(t, opt_config(&run.set, "a", "np = 4\n\0np = 5", 14, &run.err), HVD_E_INVAL);
    CHECK_HAS(t, run.err.text, "a:2: \"\\x00np = 5\": not UTF-8");
    CHECK_CODE(t, opt_config(&run.set, "a", "np", 2, NULL), HVD_E_INVAL);
    CHECK_INT(t, run.config.np, ==, 0);
}

TEST(foreign_paths_do_no_harm)
{
    static char long_path[5000];

    CHECK_CODE(t, opt_config(&run.set, "a\nb", "np", 2, &run.err), HVD_E_INVAL);
    CHECK_TEXT(t, run.err.text, "\"a\\x0ab\":1: \"np\": no \"=\"; write name = value");
    CHECK_OK(t, opt_config(&run.set, "a\nb\xff", "np=3", 4, &run.err));
    memset(long_path, 'x', sizeof(long_path) - 1);
    CHECK_OK(t, opt_config(&run.set, long_path, "min-np=2", 8, &run.err));
    CHECK_OK(t, opt_show_config(&run.set, true, &run.out));
    CHECK_HAS(t, buf_text(&run.out), "\nnp = 3 # \"a\\x0ab\\xff\":1\n");
    CHECK_HAS(t, buf_text(&run.out),
              "\nmin-np = 2 # \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"...:1\n");
}

TEST(holds_texts_to_the_limits)
{
    static char text[LIMIT_CONFIG_TEXT_BYTES + 1];
    size_t size = sizeof(text);

    memset(text, '#', size);
    CHECK_CODE(t, opt_config(&run.set, "big", text, size, &run.err), HVD_E_LIMIT);
    CHECK_TEXT(t, run.err.text, "big: the file is longer than 262144 bytes; shorten it");
    CHECK_CODE(t, opt_config(&run.set, "big", text, size - 1, &run.err), HVD_E_LIMIT);
    CHECK_TEXT(t, run.err.text, "big:1: the line is longer than 73728 bytes; shorten it");
    for (size_t i = LIMIT_CONFIG_LINE_BYTES; i < size; i += LIMIT_CONFIG_LINE_BYTES + 1)
        text[i] = '\n';
    CHECK_OK(t, opt_config(&run.set, "big", text, size - 1, &run.err));
}

TEST(reads_variables_of_the_table_only)
{
    CHECK_OK(t, sample_env(&run, "PATH=/bin|HVD_RANK=x|HVD_NP=3|HVD_NP=x|HVD_NPP=4|HVD_MIN_NP|"
                                 "hvd_max_np=2|HVD_STALL_CHECK=no|HVD_HELP=1"));
    CHECK_INT(t, run.config.np, ==, 3);
    CHECK_INT(t, run.config.min_np, ==, 1);
    CHECK_INT(t, run.config.max_np, ==, 0);
    CHECK(t, !run.config.stall_check && !run.config.help);
    CHECK_OK(t, sample_env(&run, ""));
    CHECK_INT(t, run.config.np, ==, 3);
}

TEST(an_alias_gives_way_to_the_name)
{
    CHECK_OK(t, sample_env(&run, "HVD_NUM_PROC=3"));
    CHECK_INT(t, run.config.np, ==, 3);
    CHECK_OK(t, sample_env(&run, "HVD_NUM_PROC=x|HVD_NP=4"));
    CHECK_INT(t, run.config.np, ==, 4);
}

TEST(variables_split_into_lists)
{
    static const struct {
        const char *variable;
        size_t count;
        const char *last;
    } cases[] = {
        {"HVD_ENV=A",             1, "A"    },
        { "HVD_ENV= A , B,,C ,",  3, "C"    },
        { "HVD_ENV=A=1,2\n",      1, "A=1,2"},
        { "HVD_ENV=\nA\r\nB=1,2", 2, "B=1,2"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK_OK(t, sample_env(&run, cases[i].variable));
        CHECK_INT(t, run.config.env.count, ==, cases[i].count);
        CHECK_TEXT(t, run.config.env.items[cases[i].count - 1], cases[i].last);
    }
    CHECK_OK(t, sample_env(&run, "HVD_ENV="));
    CHECK_INT(t, run.config.env.count, ==, 0);
    CHECK_INT(t, opt_source(&run.set, "env"), ==, OPT_ENVIRONMENT);
}

TEST(errors_name_the_variable)
{
    CHECK_CODE(t, sample_env(&run, "HVD_LOG_LEVEL=loud"), HVD_E_INVAL);
    CHECK_TEXT(t, run.err.text, "HVD_LOG_LEVEL: \"loud\": must be one of error, warning, info");
    CHECK_CODE(t, sample_env(&run, "HVD_NUM_PROC="), HVD_E_INVAL);
    CHECK_TEXT(t, run.err.text, "HVD_NUM_PROC: N is missing");
    CHECK_CODE(t, sample_env(&run, "HVD_CONFIG_FILE=x"), HVD_E_INVAL);
    CHECK_TEXT(
        t, run.err.text,
        "HVD_CONFIG_FILE: this option is allowed only on the command line, as --config-file");
}
