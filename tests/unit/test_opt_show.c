/*
 * test_opt_show.c: options as help and as a configuration: 80 columns, the origin of each value,
 * and a print that reads back to the same values.
 */
#include "base/rng.h"
#include "base/text.h"
#include "tests/lib/fixture.h"
#include "tests/lib/opt_sample.h"

#include <stdio.h>
#include <string.h>

static struct sample_run run, again;
static struct opt_set set; /* the values of the second table of options */
static struct secret_options {
    char *url;
} secret;

static void begin(struct test *t)
{
    CHECK_OK(t, sample_init(&run));
    CHECK_OK(t, sample_init(&again));
    set = (struct opt_set){ .table = NULL };
}

static void end(struct test *t)
{
    (void)t;
    sample_release(&run);
    sample_release(&again);
    opt_release(&set);
}
FIXTURE(begin, end)

TEST(help_shows_groups_defaults_and_bounds)
{
    CHECK_OK(t,
             opt_show_help(&run.set, "sample [options] [--] command...",
                           "Runs a command on every host, for as long as it takes, and longer if "
                           "need be.\n\nEnds with 0.",
                           &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "usage: sample [options] [--] command...\n"
               "\n"
               "Runs a command on every host, for as long as it takes, and longer if need be.\n"
               "\n"
               "Ends with 0.\n"
               "\n"
               "general:\n"
               "  -h, --help                  show this and exit\n"
               "      --config-file FILE      read options from FILE too\n"
               "  -v, --[no-]verbose          say more (default: false)\n"
               "      --log-level LEVEL       what to say (error, warning, info; default:\n"
               "                              warning)\n"
               "\n"
               "job:\n"
               "      --np, --num-proc N      workers to start with (1 to 65536)\n"
               "      --min-np, --min-num-proc N\n"
               "                              workers without which the job waits (1 or more;\n"
               "                              default: 1)\n"
               "      --max-np, --max-num-proc N\n"
               "                              workers beyond which no more are started, however\n"
               "                              many slots there are\n"
               "      --start-timeout TIME    how long to wait for the first workers (1s to 1d;\n"
               "                              default: 10m)\n"
               "      --grace TIME            how long agents wait for a driver (a duration, or\n"
               "                              never; default: never)\n"
               "      --label TEXT            its name among users\n"
               "      --[no-]stall-check      watch for workers that hang (default: true)\n"
               "\n"
               "hosts:\n"
               "  -H, --hosts HOST:SLOTS,...  the hosts of a job that does not look for any\n"
               "      --blacklist-cooldown-range LOW HIGH\n"
               "                              how long a host that failed is left alone, the\n"
               "                              first time and at most (1s to 1h; default: 10 600)\n"
               "  -x, --env NAME[=VALUE]      a variable to pass on\n"
               "\n"
               "for tests only:\n"
               "      --test-seed N           where chance begins (default: 7)\n");
}

TEST(help_fits_80_columns)
{
    struct span rest;
    struct span line;

    CHECK_OK(t, opt_show_help(&run.set, "x",
                              "One_word_that_fills_a_line_all_by_itself_"
                              "and_is_not_broken_although_it_does_not_fit_into_80_columns",
                              &run.out));
    CHECK_HAS(t, buf_text(&run.out), "\n\nOne_word");
    buf_clear(&run.out);
    CHECK_OK(t, opt_show_help(&run.set, "x",
                              "a b c d e f g h i j k l m n o p q r s t u v w x y z "
                              "a b c d e f g h i j k l m n o p q r s t u v w x y z",
                              &run.out));
    rest = (struct span){ run.out.data, run.out.length };
    while (span_next(&rest, '\n', &line)) {
        CHECK_INT(t, line.length, <=, 80);
        CHECK(t, line.length == 0 || line.at[line.length - 1] != ' ');
    }
}

struct bounded {
    int64_t plain_us;
    int64_t least_us;
    int64_t most_us;
    int64_t either_us;
    uint64_t most;
    unsigned word;
};

static const char *const bounded_words[] = { "one", "2", "THREE", NULL };

TEST(help_tells_the_bounds_of_every_kind)
{
    static const struct opt table[] = {
        OPT(struct bounded, plain_us, .name = "plain", .arg = "T", .group = "g",
            .help = "A  time."),
        OPT(struct bounded, least_us, .name = "least", .arg = "T", .min = TIME_S, .group = "g",
            .help = "a"),
        OPT(struct bounded, most_us, .name = "most", .arg = "T", .max = TIME_S, .group = "g",
            .help = "b"),
        OPT(struct bounded, either_us, .name = "either", .arg = "T", .max = TIME_S,
            .flags = OPT_NEVER, .group = "g", .help = "c"),
        OPT(struct bounded, most, .name = "number", .arg = "N", .max = 3, .group = "g",
            .help = "d"),
        OPT(struct bounded, word, .name = "word", .arg = "W", .choices = bounded_words,
            .preset = "three", .group = "g", .help = "e"),
    };
    static struct bounded config;

    CHECK_OK(t, opt_init(&set, table, ARRAY_SIZE(table), &config));
    CHECK_INT(t, config.word, ==, 2);
    CHECK_OK(t, opt_show_help(&set, "u", "a", &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "usage: u\n\na\n\ng:\n"
               "      --plain T               A time.\n"
               "      --least T               a (1s to 3650d)\n"
               "      --most T                b (0s to 1s)\n"
               "      --either T              c (0s to 1s, or never)\n"
               "      --number N              d (0 to 3)\n"
               "      --word W                e (one, 2, THREE; default: three)\n");
}

TEST(print_tells_where_each_value_is_from)
{
    CHECK_OK(t, sample_argv(&run, "-np 4 -x A -x B=1,2 --no-stall-check --test-seed 8"));
    CHECK_OK(t, sample_env(&run, "HVD_NUM_PROC=3|HVD_MIN_NUM_PROC=2|HVD_LOG_LEVEL=INFO"));
    CHECK_OK(t, sample_config(&run, "\nmin-np = 7\nlabel = \"a \\\\ b\\x01\\t\\n\"\ngrace = 90\n"));
    CHECK_OK(t, opt_show_config(&run.set, true, &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "# general\n"
               "verbose = false # default\n"
               "log-level = info # HVD_LOG_LEVEL\n"
               "\n"
               "# job\n"
               "np = 4 # command line, not HVD_NUM_PROC\n"
               "min-np = 2 # HVD_MIN_NUM_PROC, not job.conf:2\n"
               "# max-np = # unset\n"
               "start-timeout = 10m # default\n"
               "grace = 1m30s # job.conf:4\n"
               "label = \"a \\\\ b\\x01\\t\\n\" # job.conf:3\n"
               "stall-check = false # command line\n"
               "\n"
               "# hosts\n"
               "# hosts = # unset\n"
               "blacklist-cooldown-range = 10s 10m # default\n"
               "env = A # command line\n"
               "env = B=1,2 # command line\n"
               "\n"
               "# for tests only\n"
               "test-seed = 8 # command line\n");
}

TEST(notes_say_which_value_counts)
{
    static const struct opt_given given[] = {
        {"grace",  "20s",      "THEIR_GRACE", NULL}, /* replaces the value */
        { "np",    "4",        "THEIR_NP",    NULL}, /* has the same value */
        { "label", "mine",     "THEIR_LABEL", NULL},
        { "env",   "SECRET=1", "THEIR_ENV",   NULL},
    };

    CHECK_OK(t, sample_argv(&run, "-np 4 -x A"));
    CHECK_OK(t, opt_take(&run.set, OPT_FOREIGN, given, ARRAY_SIZE(given), &run.err));
    CHECK_OK(t, sample_config(&run, "label = \"\"\nmin-np = 7\nenv = SECRET=2"));
    CHECK_OK(t, sample_env(&run, "HVD_NP=4|HVD_MIN_NP=2"));
    CHECK_OK(t, opt_show_notes(&run.set, &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "--min-np: 2 of HVD_MIN_NP counts, not 7 of job.conf:2\n"
               "--label: \"\" of job.conf:1 counts, not mine of THEIR_LABEL\n"
               "--env: the value of the command line counts, not that of job.conf:3\n");
    CHECK(t, opt_source(&run.set, "grace") == OPT_FOREIGN);
}

/* Notes go to the log. */
TEST(notes_leave_secrets_out)
{
    static const struct opt table[] = {
        OPT(struct secret_options, url, .name = "url", .arg = "URL", .flags = OPT_SECRET,
            .group = "g", .help = "h"),
    };
    static const struct opt_given given[][1] = { { { "url", "k3y", "job.conf:1", NULL } },
                                                 { { "url", "pa55", "HVD_URL", NULL } } };

    secret.url = NULL;
    CHECK_OK(t, opt_init(&set, table, ARRAY_SIZE(table), &secret));
    CHECK_OK(t, opt_take(&set, OPT_FILE, given[0], 1, &run.err));
    CHECK_OK(t, opt_take(&set, OPT_ENVIRONMENT, given[1], 1, &run.err));
    CHECK_OK(t, opt_show_notes(&set, &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "--url: the value of HVD_URL counts, not that of job.conf:1\n");
    CHECK_TEXT(t, secret.url, "pa55");
}

TEST(notes_name_what_changes_nothing)
{
    static const struct opt table[] = {
        OPT_ACCEPT(.name = "tune", .group = "g", .help = "it happens by itself"),
        OPT_ACCEPT(.name = "samples", .arg = "N", .group = "g", .help = "there are none"),
        OPT_ACCEPT(.name = "never-given", .arg = "N", .group = "g", .help = "h"),
    };
    static const struct opt_given given[] = {
        {"samples", "5", "THEIR_SAMPLES", NULL}
    };
    static char program[] = "x";
    static char word[] = "--no-tune";
    char *const argv[] = { program, word, NULL };

    CHECK_OK(t, opt_init(&set, table, ARRAY_SIZE(table), &run.rest));
    CHECK_OK(t, opt_argv(&set, 2, argv, &run.rest, &run.err));
    CHECK_OK(t, opt_take(&set, OPT_FOREIGN, given, 1, &run.err));
    CHECK_OK(t, opt_show_notes(&set, &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "--tune: changes nothing: it happens by itself\n"
               "THEIR_SAMPLES: changes nothing: there are none\n");
    buf_clear(&run.out);
    CHECK_OK(t, opt_show_config(&set, true, &run.out));
    CHECK_TEXT(t, buf_text(&run.out), "");
    CHECK_OK(t, opt_show_help(&set, "u", "a", &run.out));
    CHECK_HAS(t, buf_text(&run.out), "      --[no-]tune             it happens by itself\n");
    CHECK_HAS(t, buf_text(&run.out), "      --samples N             there are none\n");
}

TEST(print_can_leave_the_origins_out)
{
    CHECK_OK(t, sample_argv(&run, "--env= --label="));
    CHECK_OK(t, opt_show_config(&run.set, false, &run.out));
    CHECK_HAS(t, buf_text(&run.out), "# max-np =\n");
    CHECK_HAS(t, buf_text(&run.out), "\nmin-np = 1\n");
    CHECK_HAS(t, buf_text(&run.out), "\nenv = \"\"\n");
    CHECK_HAS(t, buf_text(&run.out), "\nlabel = \"\"\n");
}

/* Fills text with random bytes; bytes with a meaning in the config file come more often. */
static const char *random_text(struct rng *rng, char *text, size_t size)
{
    static const char special[] = "\"\\# =,\n\t\r\x01\x7f\xc3\xa4\xff";
    size_t length = rng_below(rng, size);

    for (size_t i = 0; i < length; i++) {
        if (rng_below(rng, 2))
            text[i] = special[rng_below(rng, sizeof(special) - 1)];
        else
            text[i] = (char)(1 + rng_below(rng, 255));
    }
    text[length] = '\0';
    return text;
}

/* Reads a command line of random options, each with a valid value. */
static int read_random(struct rng *rng)
{
    static const char *const numbers[] = { "np", "min-np", "max-np", "test-seed" };
    static const char *const times[] = { "start-timeout", "grace" };
    static const char *const texts[] = { "label", "env", "env" };
    static char words[12][128];
    char *argv[13] = { words[0] };
    char text[40];
    int argc = 1;

    snprintf(words[0], sizeof(words[0]), "sample");
    while (argc < 12) {
        char *word = words[argc];
        size_t size = sizeof(words[0]);

        argv[argc++] = word;
        switch (rng_below(rng, 6)) {
        case 0:
            snprintf(word, size, "--%s=%d", numbers[rng_below(rng, 4)],
                     1 + (int)rng_below(rng, 65536));
            break;
        case 1:
            snprintf(word, size, "--%s=%dms", times[rng_below(rng, 2)],
                     1000 + (int)rng_below(rng, 86399000));
            break;
        case 2:
            snprintf(word, size, "--blacklist-cooldown-range=%d,%ds", 1 + (int)rng_below(rng, 1800),
                     1801 + (int)rng_below(rng, 1799));
            break;
        case 3: snprintf(word, size, "--%sverbose", rng_below(rng, 2) ? "no-" : ""); break;
        case 4: snprintf(word, size, "--log-level=%s", sample_levels[rng_below(rng, 3)]); break;
        default:
            snprintf(word, size, "--%s=%s", texts[rng_below(rng, 3)],
                     random_text(rng, text, sizeof(text)));
        }
    }
    return opt_argv(&run.set, argc, argv, &run.rest, &run.err);
}

TEST_FLAGS(print_and_read_are_inverse, TEST_NO_TORTURE)
{
    struct rng rng;

    for (uint64_t seed = 0; seed < 500; seed++) {
        rng_seed(&rng, seed);
        CHECK_OK(t, read_random(&rng));
        /* Prints, reads the print into new options, and prints again: both prints are equal, with
         * or without origins. */
        CHECK_OK(t, opt_show_config(&run.set, seed % 2, &run.out));
        CHECK_OK(t, sample_config(&again, buf_text(&run.out)));
        buf_clear(&run.out);
        CHECK_OK(t, opt_show_config(&run.set, false, &run.out));
        CHECK_OK(t, opt_show_config(&again.set, false, &again.out));
        CHECK_TEXT(t, buf_text(&again.out), buf_text(&run.out));
        end(t);
        begin(t);
    }
}

TEST(origins_settle_after_one_reading)
{
    CHECK_OK(t, sample_argv(&run, "-np 4 -x A -x B"));
    CHECK_OK(t, opt_show_config(&run.set, true, &run.out));
    CHECK_OK(t, sample_config(&again, buf_text(&run.out)));
    CHECK_OK(t, opt_show_config(&again.set, true, &again.out));
    CHECK_HAS(t, buf_text(&again.out), "\nnp = 4 # job.conf:6\n");
    sample_release(&run);
    CHECK_OK(t, sample_init(&run));
    CHECK_OK(t, sample_config(&run, buf_text(&again.out)));
    CHECK_OK(t, opt_show_config(&run.set, true, &run.out));
    CHECK_TEXT(t, buf_text(&run.out), buf_text(&again.out));
}

TEST(names_are_listed_for_the_docs)
{
    CHECK_OK(t, opt_show_names(&run.set, &run.out));
    CHECK_TEXT(t, buf_text(&run.out),
               "help\tgeneral\t\n"
               "config-file\tgeneral\t\n"
               "verbose\tgeneral\tfalse\n"
               "log-level\tgeneral\twarning\n"
               "np\tjob\t\n"
               "min-np\tjob\t1\n"
               "max-np\tjob\t\n"
               "start-timeout\tjob\t10m\n"
               "grace\tjob\tnever\n"
               "label\tjob\t\n"
               "stall-check\tjob\ttrue\n"
               "hosts\thosts\t\n"
               "blacklist-cooldown-range\thosts\t10 600\n"
               "env\thosts\t\n"
               "test-seed\tfor tests only\t7\n");
}

static int show(int what, struct buf *out)
{
    if (what == 0)
        return opt_show_help(&run.set, "usage", "about", out);
    return what == 1 ? opt_show_config(&run.set, true, out) : opt_show_names(&run.set, out);
}

TEST_FLAGS(a_full_buffer_is_left_as_it_was, TEST_NO_TORTURE)
{
    struct buf small;

    buf_init(&small, 0);
    CHECK_OK(t, sample_argv(&run, "-np 4 -x A -x B --label #"));
    for (int what = 0; what < 3; what++) {
        buf_clear(&run.out);
        CHECK_OK(t, show(what, &run.out));
        for (size_t room = 0; room < run.out.length; room++) {
            buf_release(&small);
            buf_init(&small, 3 + room);
            CHECK_OK(t, buf_append_text(&small, "so:"));
            CHECK_CODE(t, show(what, &small), HVD_E_LIMIT);
            CHECK_TEXT(t, buf_text(&small), "so:");
        }
    }
    buf_release(&small);
}

static int stop_at_np(void *arg, const struct opt *row)
{
    (*(int *)arg)++;
    return strcmp(row->name, "np") ? 0 : 42;
}

TEST(a_visit_can_end_early)
{
    int visited = 0;

    CHECK_INT(t, opt_show_each(&run.set, stop_at_np, &visited), ==, 42);
    CHECK_INT(t, visited, ==, 5);
}
