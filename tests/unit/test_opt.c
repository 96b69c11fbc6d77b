/*
 * test_opt.c: base/opt: values come from several sources (file, environment, command line ...), of
 * which the higher source wins; numbers, flags, times and lists stay within bounds; a failure
 * changes no value.
 */
#include "base/limits.h"
#include "base/opt_stage.h"
#include "base/opt_value.h"
#include "tests/lib/fault.h"
#include "tests/lib/fixture.h"
#include "tests/lib/opt_sample.h"

#include <stdio.h>
#include <string.h>

#define SPAN(text) ((struct span){ text, strlen(text) })

static struct sample_run run;
static struct opt_set set; /* the values of the second table of options */
static struct sample config;

static void begin(struct test *t)
{
    CHECK_OK(t, sample_init(&run));
}

static void end(struct test *t)
{
    (void)t;
    sample_release(&run);
    opt_release(&set);
}
FIXTURE(begin, end)

TEST(defaults_fill_the_config)
{
    CHECK(t, !run.config.verbose && run.config.stall_check);
    CHECK_INT(t, run.config.np, ==, 0);
    CHECK_INT(t, run.config.min_np, ==, 1);
    CHECK_INT(t, run.config.start_timeout_us, ==, 10 * TIME_MIN);
    CHECK_INT(t, run.config.grace_us, ==, TIME_NEVER);
    CHECK_INT(t, run.config.cooldown.low_us, ==, 10 * TIME_S);
    CHECK_INT(t, run.config.cooldown.high_us, ==, 600 * TIME_S);
    CHECK(t, !run.config.hosts && !run.config.env.items);
    CHECK_INT(t, run.config.level, ==, SAMPLE_WARNING);
    CHECK_INT(t, opt_source(&run.set, "np"), ==, OPT_UNSET);
    CHECK_INT(t, opt_source(&run.set, "min-np"), ==, OPT_DEFAULT);
    CHECK_INT(t, opt_source(&run.set, "verbose"), ==, OPT_DEFAULT);
}

TEST(texts_and_lists_have_defaults_too)
{
    static const struct opt table[] = {
        OPT(struct sample, label, .name = "label", .arg = "TEXT", .preset = "a job", .group = "g",
            .help = "h"),
        OPT(struct sample, env, .name = "env", .arg = "NAME", .min = 1, .preset = "PATH",
            .group = "g", .help = "h"),
    };

    CHECK_OK(t, opt_init(&set, table, ARRAY_SIZE(table), &config));
    CHECK_TEXT(t, config.label, "a job");
    CHECK_INT(t, config.env.count, ==, 1);
    CHECK_OK(t, opt_config(&set, "c", "env = HOME", 10, NULL));
    CHECK_INT(t, config.env.count, ==, 1);
    CHECK_TEXT(t, config.env.items[0], "HOME");
    /* shorter than the minimum */
    CHECK_CODE(t, opt_config(&set, "c", "env = \"\"", 8, NULL), HVD_E_INVAL);
    CHECK_TEXT(t, config.env.items[0], "HOME");
}

TEST(a_variable_that_means_something_else_is_passed_over)
{
    static const struct opt table[] = {
        OPT(struct sample, label, .name = "label", .alias = "tag", .arg = "TEXT",
            .flags = OPT_NO_ENV, .group = "g", .help = "h"),
    };
    static char name[] = "HVD_LABEL=theirs";
    static char alias[] = "HVD_TAG=theirs";

    CHECK_OK(t, opt_init(&set, table, ARRAY_SIZE(table), &config));
    CHECK_OK(t, opt_env(&set, (char *[]){ name, alias, NULL }, NULL));
    CHECK(t, !config.label);
    CHECK_OK(t, opt_config(&set, "c", "label = ours", 12, NULL));
    CHECK_TEXT(t, config.label, "ours");
}

TEST(releases_options_that_were_never_set)
{
    opt_release(NULL);
    opt_release(&set);
    CHECK_OK(t, sample_argv(&run, "-H a:1 -x A -x B --label c"));
    opt_release(&run.set);
    CHECK(t, !run.config.hosts && !run.config.env.items && !run.config.label);
}

/* Each source sets np. order says in which order the sources are read: 1 the file, 2 the
 * environment, 3 the command line. */
static int read_in_order(const char *order)
{
    int rc = 0;

    for (; !rc && *order; order++) {
        if (*order == '1')
            rc = sample_config(&run, "np = 1\nenv = F1\nenv = F2\nlabel = file");
        else if (*order == '2')
            rc = sample_env(&run, "HVD_NP=2|HVD_ENV=E1,E2,E3|HVD_LABEL=variable");
        else
            rc = sample_argv(&run, "-np 3 -x C1");
    }
    return rc;
}

TEST(the_highest_source_wins_in_any_order)
{
    static const char *const orders[] = { "123", "132", "213", "231", "312", "321", "3123" };

    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        CHECK_OK(t, read_in_order(orders[i]));
        CHECK_INT(t, run.config.np, ==, 3);
        CHECK_INT(t, opt_source(&run.set, "num-proc"), ==, OPT_COMMAND_LINE);
        CHECK_INT(t, run.config.env.count, ==, 1);
        CHECK_TEXT(t, run.config.env.items[0], "C1");
        CHECK_TEXT(t, run.config.label, "variable");
        CHECK_INT(t, opt_source(&run.set, "label"), ==, OPT_ENVIRONMENT);
        sample_release(&run);
        CHECK_OK(t, sample_init(&run));
    }
    CHECK_OK(t, read_in_order("21"));
    CHECK_INT(t, run.config.np, ==, 2);
    CHECK_INT(t, run.config.env.count, ==, 3);
    CHECK_OK(t, read_in_order("2"));
    CHECK_INT(t, run.config.env.count, ==, 3);
}

TEST(a_value_has_an_origin_and_may_be_forgotten)
{
    CHECK_TEXT(t, opt_origin(&run.set, "np"), "no source");
    CHECK_TEXT(t, opt_origin(&run.set, "min-np"), "the default");
    CHECK_OK(t, read_in_order("123"));
    CHECK_TEXT(t, opt_origin(&run.set, "np"), "the command line");
    CHECK_TEXT(t, opt_origin(&run.set, "label"), "HVD_LABEL");
    opt_forget(&run.set, "np");
    opt_forget(&run.set, "label");
    opt_forget(&run.set, "env"); /* a list */
    CHECK(t, !run.config.np && !run.config.label && !run.config.env.count);
    CHECK_INT(t, opt_source(&run.set, "label"), ==, OPT_UNSET);
    CHECK_TEXT(t, opt_origin(&run.set, "env"), "no source");
    CHECK_OK(t, sample_config(&run, "label = file")); /* the lowest source counts again */
    CHECK_TEXT(t, run.config.label, "file");
    opt_forget(&run.set, "label");
    opt_forget(&run.set, "label");
}

TEST(a_failing_source_changes_nothing)
{
    CHECK_OK(t, sample_argv(&run, "-x A --label old"));
    CHECK_CODE(t, sample_argv(&run, "-np 3 --label new -x B --min-np x"), HVD_E_INVAL);
    CHECK_CODE(t, sample_env(&run, "HVD_NP=3|HVD_TEST_SEED=x"), HVD_E_INVAL);
    CHECK_CODE(t, sample_config(&run, "np = 3\nlabel = new\nmin-np = x\n"), HVD_E_INVAL);
    CHECK_INT(t, run.config.np, ==, 0);
    CHECK_INT(t, opt_source(&run.set, "np"), ==, OPT_UNSET);
    CHECK_TEXT(t, run.config.label, "old");
    CHECK_INT(t, run.config.env.count, ==, 1);
}

static int read_source(int source)
{
    if (source == 0)
        return sample_config(&run, "np = 3\nenv = B\nenv = C\nlabel = new\n");
    if (source == 1)
        return sample_env(&run, "HVD_NP=4|HVD_ENV=D,E,F|HVD_LABEL=newer");
    return sample_argv(&run, "-np 5 -x G -x H --blacklist 1 2 --label newest");
}

/* Each allocation fails once, for each source: the configuration is then as before, until the read
 * succeeds. */
TEST_FLAGS(memory_that_runs_out_changes_nothing, TEST_NO_TORTURE)
{
    struct buf before;
    int rc;

    buf_init(&before, LIMIT_CONFIG_TEXT_BYTES);
    CHECK_OK(t, sample_config(&run, "env = A\nlabel = old\n"));
    for (int source = 0; source < 3; source++) {
        uint64_t k = 0;

        buf_clear(&before);
        CHECK_OK(t, opt_show_config(&run.set, true, &before));
        do {
            fault_arm(FAULT_ALLOC, ++k);
            rc = read_source(source);
            fault_arm(FAULT_ALLOC, 0);
            buf_clear(&run.out);
            CHECK_OK(t, opt_show_config(&run.set, true, &run.out));
            CHECK(t, (rc == 0) == !!strcmp(buf_text(&run.out), buf_text(&before)));
            CHECK(t, !rc || test_has_text(run.err.text, "out of memory"));
        } while (rc == HVD_E_NOMEM);
        CHECK_OK(t, rc);
        CHECK_INT(t, k, >, 5);
    }
    buf_release(&before);
}

TEST_FLAGS(a_failing_start_leaves_the_config_alone, TEST_NO_TORTURE)
{
    union {
        struct sample config;
        unsigned char bytes[sizeof(struct sample)];
    } now, before;
    uint64_t k = 0;
    int rc;

    memset(before.bytes, 0x5a, sizeof(before.bytes));
    do {
        now = before;
        fault_arm(FAULT_ALLOC, ++k);
        rc = opt_init(&set, sample_table, ARRAY_SIZE(sample_table), &now.config);
        fault_arm(FAULT_ALLOC, 0);
        CHECK(t, (rc == 0) == !!memcmp(now.bytes, before.bytes, sizeof(now.bytes)));
        opt_release(&set);
    } while (rc == HVD_E_NOMEM);
    CHECK_OK(t, rc);
    CHECK_INT(t, k, >, 2);
}

TEST(reads_flags)
{
    static const char *const yes[] = { "true", "yes", "on", "1" };
    static const char *const no[] = { "false", "no", "off", "0" };
    char text[64];

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        snprintf(text, sizeof(text), "verbose = %s\nstall-check = %s", yes[i], no[i]);
        CHECK_OK(t, sample_config(&run, text));
        CHECK(t, run.config.verbose && !run.config.stall_check);
        snprintf(text, sizeof(text), "verbose = %s\nstall-check = %s", no[i], yes[i]);
        CHECK_OK(t, sample_config(&run, text));
        CHECK(t, !run.config.verbose && run.config.stall_check);
    }
    CHECK_CODE(t, sample_config(&run, "verbose = maybe"), HVD_E_INVAL);
    CHECK_TEXT(t, run.err.text, "job.conf:1: verbose: \"maybe\": must be true or false");
}

struct bad_case {
    const char *words;
    int code;
    const char *says;
};

static void check_bad(struct test *t, const struct bad_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_CODE(t, sample_argv(&run, cases[i].words), cases[i].code);
        CHECK_TEXT(t, run.err.text, cases[i].says);
        CHECK_INT(t, run.err.code, ==, cases[i].code);
    }
}

TEST(reads_numbers_within_bounds)
{
    static const struct bad_case bad[] = {
        {"--np 0",       HVD_E_LIMIT, "--np: \"0\": N must be between 1 and 65536"    },
        { "--np 65537",  HVD_E_LIMIT, "--np: \"65537\": N must be between 1 and 65536"},
        { "--np four",   HVD_E_INVAL, "--np: \"four\": N must be a whole number"      },
        { "--np=",       HVD_E_INVAL, "--np: N is missing"                            },
        { "--max-np -1", HVD_E_INVAL, "--max-np: \"-1\": N must be a whole number"    },
    };

    CHECK_OK(t, sample_argv(&run, "--np 65536 --max-np 18446744073709551615"));
    CHECK_INT(t, run.config.np, ==, 65536);
    CHECK(t, run.config.max_np == UINT64_MAX);
    check_bad(t, bad, ARRAY_SIZE(bad));
}

TEST(reads_durations_within_bounds)
{
    static const struct bad_case bad[] = {
        {"--start-timeout 5ms",    HVD_E_LIMIT, "--start-timeout: \"5ms\": must be 1s to 1d"},
        { "--start-timeout 25h",   HVD_E_LIMIT, "--start-timeout: \"25h\": must be 1s to 1d"},
        { "--start-timeout never", HVD_E_LIMIT,
         "--start-timeout: \"never\": this time may not be \"never\"; write a duration"     },
        { "--grace soon",          HVD_E_INVAL,
         "--grace: \"soon\": not a duration; write seconds or a unit: 90, 1.5s, 250ms, 10m, "
          "1h30m"                                                                           },
    };

    CHECK_OK(t, sample_argv(&run, "--start-timeout 90 --grace 0"));
    CHECK_INT(t, run.config.start_timeout_us, ==, 90 * TIME_S);
    CHECK_INT(t, run.config.grace_us, ==, 0);
    CHECK_OK(t, sample_argv(&run, "--start-timeout 24h --grace never"));
    CHECK_INT(t, run.config.start_timeout_us, ==, TIME_DAY);
    CHECK_INT(t, run.config.grace_us, ==, TIME_NEVER);
    check_bad(t, bad, ARRAY_SIZE(bad));
}

TEST(reads_ranges_in_every_spelling)
{
    static const char *const spellings[] = { "2m,1h",   "\"2m,1h\"", "2m 1h",       "120 3600",
                                             "2m , 1h", "2m,\t1h",   "\" 2m  1h \"" };
    char text[64];

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        snprintf(text, sizeof(text), "blacklist-cooldown-range = %s", spellings[i]);
        run.config.cooldown = (struct opt_range){ 0, 0 };
        CHECK_OK(t, sample_config(&run, text));
        CHECK_INT(t, run.config.cooldown.low_us, ==, 2 * TIME_MIN);
        CHECK_INT(t, run.config.cooldown.high_us, ==, TIME_HOUR);
    }
}

TEST(refuses_malformed_ranges)
{
    static const char *const malformed[] = {
        "10",
        ",10",
        "10,",
        "1000000000000000000000000000000000000000000000000,1",
        "1,1000000000000000000000000000000000000000000000000",
    };
    char text[128];

    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        snprintf(text, sizeof(text), "HVD_BLACKLIST_COOLDOWN_RANGE=%s", malformed[i]);
        CHECK_CODE(t, sample_env(&run, text), HVD_E_INVAL);
        CHECK_HAS(t, run.err.text, "must be two durations, such as \"10s 10m\"");
    }
    CHECK_CODE(t, sample_env(&run, "HVD_BLACKLIST_COOLDOWN_RANGE=10,1"), HVD_E_INVAL);
    CHECK_TEXT(
        t, run.err.text,
        "HVD_BLACKLIST_COOLDOWN_RANGE: \"10,1\": the first duration must not be longer than the "
        "second");
    CHECK_CODE(t, sample_env(&run, "HVD_BLACKLIST_COOLDOWN_RANGE=0,1"), HVD_E_LIMIT);
    CHECK_CODE(t, sample_env(&run, "HVD_BLACKLIST_COOLDOWN_RANGE=1,2h"), HVD_E_LIMIT);
    CHECK_CODE(t, sample_env(&run, "HVD_BLACKLIST_COOLDOWN_RANGE=1,never"), HVD_E_LIMIT);
    CHECK_CODE(t, sample_env(&run, "HVD_BLACKLIST_COOLDOWN_RANGE=1,2,3"), HVD_E_INVAL);
    CHECK_INT(t, run.config.cooldown.low_us, ==, 10 * TIME_S);
}

TEST(reads_choices_in_any_case)
{
    static const struct bad_case bad[] = {
        {"--log-level loud", HVD_E_INVAL,
         "--log-level: \"loud\": must be one of error, warning, info"},
    };

    CHECK_OK(t, sample_argv(&run, "--log-level INFO"));
    CHECK_INT(t, run.config.level, ==, SAMPLE_INFO);
    CHECK_OK(t, sample_argv(&run, "--log-level error"));
    CHECK_INT(t, run.config.level, ==, SAMPLE_ERROR);
    check_bad(t, bad, ARRAY_SIZE(bad));
}

TEST(copies_texts)
{
    CHECK_OK(t, sample_argv(&run, "--label one --label two"));
    CHECK_TEXT(t, run.config.label, "two");
    CHECK_OK(t, sample_argv(&run, "--label="));
    CHECK_TEXT(t, run.config.label, "");
    CHECK_CODE(t, sample_argv(&run, "--hosts="), HVD_E_INVAL);
    CHECK_TEXT(t, run.err.text, "--hosts: HOST:SLOTS,... must not be empty");
}

TEST(holds_texts_to_the_limit)
{
    static char variable[sizeof("HVD_LABEL=") + LIMIT_OPTION_TEXT_BYTES + 1];
    char *const envp[] = { variable, NULL };
    size_t size = sizeof(variable);

    memset(variable, 'x', size);
    memcpy(variable, "HVD_LABEL=", strlen("HVD_LABEL="));
    variable[size - 1] = '\0';
    CHECK_CODE(t, opt_env(&run.set, envp, &run.err), HVD_E_LIMIT);
    CHECK_HAS(t, run.err.text, "longer than 16384 bytes");
    CHECK(t, !run.config.label);
    variable[size - 2] = '\0';
    CHECK_OK(t, opt_env(&run.set, envp, &run.err));
    CHECK_INT(t, strlen(run.config.label), ==, LIMIT_OPTION_TEXT_BYTES);
}

TEST(lists_grow_by_mention_and_can_be_emptied)
{
    CHECK_OK(t, sample_argv(&run, "-x A -x B=1,2 --env C"));
    CHECK_INT(t, run.config.env.count, ==, 3);
    CHECK_TEXT(t, run.config.env.items[1], "B=1,2");
    CHECK_OK(t, sample_argv(&run, "-x A --env= -x D"));
    CHECK_INT(t, run.config.env.count, ==, 1);
    CHECK_TEXT(t, run.config.env.items[0], "D");
    CHECK_OK(t, sample_argv(&run, "--env="));
    CHECK_INT(t, run.config.env.count, ==, 0);
    CHECK_INT(t, opt_source(&run.set, "env"), ==, OPT_COMMAND_LINE);
}

/* Not tortured (torture lets each allocation fail in turn): a thousand items fail in the same way
 * as three, but would take far more runs. */
TEST_FLAGS(holds_lists_to_the_limit, TEST_NO_TORTURE)
{
    static char variable[64 + 2 * LIMIT_OPTION_ITEMS + 2];
    char *const envp[] = { variable, NULL };
    size_t used = (size_t)snprintf(variable, sizeof(variable), "HVD_ENV=");

    for (int i = 0; i <= LIMIT_OPTION_ITEMS; i++)
        used += (size_t)snprintf(variable + used, sizeof(variable) - used, "x,");
    CHECK_CODE(t, opt_env(&run.set, envp, &run.err), HVD_E_LIMIT);
    CHECK_TEXT(t, run.err.text,
               "HVD_ENV: the option is given more than 1024 times; give it fewer times");
    CHECK_INT(t, opt_source(&run.set, "env"), ==, OPT_UNSET);
}

TEST(refused_options_say_why_in_every_source)
{
    CHECK_CODE(t, sample_argv(&run, "--mpi-args=x"), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, run.err.text,
               "--mpi-args: not supported here: there is no MPI here; give options to the command "
               "itself");
    CHECK_CODE(t, sample_config(&run, "tune = yes"), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, run.err.text, "job.conf:1: autotune: not supported here: there is nothing");
    CHECK_CODE(t, sample_env(&run, "HVD_TUNE=1"), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, run.err.text, "HVD_TUNE: not supported here: there is nothing");
}

struct mixed {
    struct opt_list pairs;
    uint64_t np;
};

static const struct opt mixed_table[] = {
    OPT_REFUSE(.name = "deep", .flags = OPT_OFF_HOLDS, .help = "it is flat; leave it out"),
    OPT_REFUSE(.name = "flat", .flags = OPT_ON_HOLDS, .help = "it cannot be deep"),
    OPT(struct mixed, pairs, .name = "pair", .arg = "NAME VALUE", .min = 1, .flags = OPT_TWO_WORDS,
        .group = "g", .help = "h"),
    OPT(struct mixed, np, .name = "np", .arg = "N", .min = 1, .group = "g", .help = "h"),
};

static struct mixed mixed;

MUST_CHECK static int mixed_argv(const char *first, const char *second, const char *third)
{
    char words[4][64];
    char *argv[5] = { words[0] };
    const char *given[] = { "mixed", first, second, third };
    int count = 0;

    for (; count < 4 && given[count]; count++) {
        snprintf(words[count], sizeof(words[count]), "%s", given[count]);
        argv[count] = words[count];
    }
    argv[count] = NULL;
    return opt_argv(&set, count, argv, &run.rest, &run.err);
}

TEST(a_request_for_the_only_value_is_not_refused)
{
    CHECK_OK(t, opt_init(&set, mixed_table, ARRAY_SIZE(mixed_table), &mixed));
    CHECK_OK(t, mixed_argv("--no-deep", "--flat", NULL));
    CHECK_OK(t, opt_config(&set, "f", "deep = no\nflat = on\n", 20, &run.err));
    CHECK_CODE(t, mixed_argv("--deep", NULL, NULL), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, run.err.text, "--deep: not supported here: it is flat; leave it out");
    CHECK_CODE(t, mixed_argv("--no-flat", NULL, NULL), HVD_E_UNSUPPORTED);
    CHECK_CODE(t, mixed_argv("--deep=3", NULL, NULL), HVD_E_UNSUPPORTED);
}

TEST(an_item_of_two_words_takes_both)
{
    CHECK_OK(t, opt_init(&set, mixed_table, ARRAY_SIZE(mixed_table), &mixed));
    CHECK_OK(t, mixed_argv("-pair", "a,b", "c d"));
    CHECK_INT(t, run.rest, ==, 4);
    CHECK_TEXT(t, mixed.pairs.items[0], "a,b c d");
    CHECK_TEXT(t, opt_place(&set, "--pair"), "--pair");
    CHECK_OK(t, mixed_argv("--pair=a b", "-pair", "x y"));
    CHECK_INT(t, mixed.pairs.count, ==, 2);
    CHECK_TEXT(t, mixed.pairs.items[1], "x y");
    CHECK_CODE(t, mixed_argv("-pair", "a", NULL), HVD_E_INVAL);
    CHECK_TEXT(t, run.err.text, "--pair: this option takes two values; write --pair NAME VALUE");
    CHECK_INT(t, mixed.pairs.count, ==, 2);
}

/* Another reader gives several values in one call: all values count, or, after one refusal, none. A
 * later lower source does not replace them. */
TEST(takes_the_values_of_another_reader_whole)
{
    static const struct opt_given right[] = {
        {"np",    "4",   "THEIR_NP",   NULL},
        { "pair", "a b", "THEIR_PAIR", NULL}
    };
    static const struct opt_given wrong[] = {
        {"pair", "c d", "their.yaml:1", "pair"  },
        { "np",  "0",   "their.yaml:2", "number"}
    };
    CHECK_OK(t, opt_init(&set, mixed_table, ARRAY_SIZE(mixed_table), &mixed));
    CHECK_OK(t, opt_take(&set, OPT_FOREIGN, right, 2, &run.err));
    CHECK_INT(t, mixed.np, ==, 4);
    CHECK(t, opt_source(&set, "np") == OPT_FOREIGN);
    CHECK_TEXT(t, opt_place(&set, "--np"), "THEIR_NP");
    CHECK_CODE(t, opt_take(&set, OPT_FILE, wrong, 2, &run.err), HVD_E_LIMIT);
    CHECK_HAS(t, run.err.text, "their.yaml:2: number: \"0\": N must be between 1");
    CHECK_TEXT(t, mixed.pairs.items[0], "a b");
    /* an equal source replaces, a lower one does not */
    CHECK_OK(t, opt_take(&set, OPT_ENVIRONMENT, right, 1, &run.err));
    CHECK_OK(t, opt_config(&set, "f", "np = 7", 6, &run.err));
    CHECK_INT(t, mixed.np, ==, 4);
    CHECK_TEXT(t, opt_find(&set, "np")->name, "np");
    CHECK(t, !opt_find(&set, "mp"));
}

TEST(finds_names_and_guesses_slips)
{
    char big[OPT_NAME_MAX + 2] = "";

    CHECK_TEXT(t, opt_stage_find(&run.set, SPAN("num-proc"))->name, "np");
    CHECK(t, !opt_stage_find(&run.set, SPAN("num-pro")));
    CHECK_TEXT(t, opt_stage_nearest(&run.set, SPAN("min_np")), "min-np");
    CHECK_TEXT(t, opt_stage_nearest(&run.set, SPAN("max-num-pro")), "max-num-proc");
    CHECK(t, !opt_stage_nearest(&run.set, SPAN("something-else")));
    CHECK(t, !opt_stage_nearest(&run.set, SPAN("mpi-arg")));
    memset(big, 'x', OPT_NAME_MAX + 1);
    CHECK(t, !opt_stage_nearest(&run.set, SPAN(big)));
}

struct wrong_table {
    struct opt rows[2];
    const char *says;
};

static const char *const one_choice[] = { "a", NULL };

#define WRONG(says_, ...)       \
    {                           \
        { __VA_ARGS__ }, says_, \
    }
#define FLAG(...)   OPT(struct sample, verbose, .group = "g", .help = "h", __VA_ARGS__)
#define NUMBER(...) OPT(struct sample, np, .name = "np", .group = "g", .help = "h", __VA_ARGS__)

/* One row for each way in which a table of options can contradict itself. */
static const struct wrong_table wrong_tables[] = {
    WRONG("option \"?\": not a name", FLAG(.name = NULL)),
    WRONG("option \"x\": not a name", FLAG(.name = "x")),
    WRONG("not a name", FLAG(.name = "Big")),
    WRONG("not a name", FLAG(.name = "9a")),
    WRONG("not a name", FLAG(.name = "a_b")),
    WRONG("not a name", FLAG(.name = "no-thing")),
    WRONG("not a name", FLAG(.name = "a-name-longer-than-any-option-may-have-it")),
    WRONG("the alias is not a name", FLAG(.name = "ok", .alias = "-a")),
    WRONG("the alias is the name", FLAG(.name = "ok", .alias = "ok")),
    WRONG("the key is not a letter", FLAG(.name = "ok", .key = ':')),
    WRONG("no help or no group", OPT(struct sample, verbose, .name = "ok", .help = "h")),
    WRONG("no help or no group", OPT(struct sample, verbose, .name = "ok", .group = "g")),
    WRONG("no word for its value", NUMBER(.min = 1)),
    WRONG("min is above max", NUMBER(.arg = "N", .min = 2, .max = 1)),
    WRONG("choices and kind differ", NUMBER(.arg = "N", .choices = one_choice)),
    WRONG("option \"np\": \"2\": N must be between 0 and 1",
          NUMBER(.arg = "N", .max = 1, .preset = "2")),
    WRONG("accepted, but with a default",
          OPT_ACCEPT(.name = "aa", .group = "g", .help = "h", .preset = "1")),
    WRONG("holds, not refused", FLAG(.name = "ok", .flags = OPT_OFF_HOLDS)),
    WRONG("two words, but no list", NUMBER(.arg = "N", .flags = OPT_TWO_WORDS)),
    WRONG("refused, but with a default", OPT_REFUSE(.name = "aa", .help = "h", .preset = "1")),
    WRONG("option \"aa\": a name or key used twice", FLAG(.name = "aa"), FLAG(.name = "aa")),
    WRONG("used twice", FLAG(.name = "aa", .key = 'k'), FLAG(.name = "bb", .key = 'k')),
    WRONG("used twice", FLAG(.name = "aa", .alias = "bb"), FLAG(.name = "bb")),
    WRONG("used twice", FLAG(.name = "aa"), FLAG(.name = "bb", .alias = "aa")),
    WRONG("used twice", FLAG(.name = "aa", .alias = "c2"), FLAG(.name = "bb", .alias = "c2")),
};

static void init_wrong(const struct wrong_table *table)
{

    if (!opt_init(&set, table->rows, table->rows[1].name ? 2 : 1, &config))
        opt_release(&set);
}

TEST_FLAGS(a_table_that_contradicts_itself_panics, TEST_NO_TORTURE)
{
    const struct opt *label;

    label = opt_stage_find(&run.set, SPAN("label"));
    for (size_t i = 0; i < ARRAY_SIZE(wrong_tables); i++)
        CHECK_PANICS(t, wrong_tables[i].says, init_wrong(&wrong_tables[i]));
    CHECK_PANICS(t, "row", opt_source(&run.set, "no such"));
    CHECK_PANICS(t, "has no plain text", CHECK(t, opt_value_write(label, NULL, &run.out)));
}
