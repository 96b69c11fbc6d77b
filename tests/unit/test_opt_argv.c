/*
 * test_opt_argv.c: options on a command line: spellings, opposites, ranges, where the command
 * begins, and errors that name culprit and remedy.
 */
#include "tests/lib/fixture.h"
#include "tests/lib/opt_sample.h"

static struct sample_run own;
static struct opt_set set;

static void end_case(struct test *t)
{
    (void)t;
    sample_release(&own);
    opt_release(&set);
}
FIXTURE(NULL, end_case)

TEST(reads_words_as_users_write_them)
{
    static const char *const spellings[] = { "-np 4",       "--np 4",       "--np=4",
                                             "-np=4",       "--num-proc 4", "-num-proc=4",
                                             "--num-pro 4", "-nu 4",        "--np 3 --np 4" };

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        CHECK_OK(t, sample_init(&own));
        CHECK_OK(t, sample_argv(&own, spellings[i]));
        CHECK_INT(t, own.config.np, ==, 4);
        sample_release(&own);
    }
    CHECK_OK(t, sample_init(&own));
    CHECK_OK(t, sample_argv(&own, "-H a:2,b:2 -vxA -xB -min-np 2 cmd"));
    CHECK_TEXT(t, own.config.hosts, "a:2,b:2");
    CHECK(t, own.config.verbose);
    CHECK_INT(t, own.config.env.count, ==, 2);
    CHECK_INT(t, own.config.min_np, ==, 2);
    CHECK_INT(t, own.rest, ==, 7);
    CHECK_OK(t, sample_argv(&own, "-Hc:1"));
    CHECK_TEXT(t, own.config.hosts, "c:1");
}

/* torchrun's names have underscores. */
TEST(underscores_are_dashes_in_names)
{
    CHECK_OK(t, sample_init(&own));
    CHECK_OK(t, sample_argv(
                    &own, "--min_np 3 --max-num_proc=5 --no_stall_check -H a_b:1 cmd --min_np=9"));
    CHECK_INT(t, own.config.min_np, ==, 3);
    CHECK_INT(t, own.config.max_np, ==, 5);
    CHECK(t, !own.config.stall_check);
    CHECK_TEXT(t, own.config.hosts, "a_b:1");
    CHECK_INT(t, own.rest, ==, 7);
    /* a value that is no name of an option stays as it is */
    CHECK_OK(t, sample_argv(&own, "-H --not_one:2"));
    CHECK_TEXT(t, own.config.hosts, "--not_one:2");
    CHECK_CODE(t, sample_argv(&own, "--not_one"), HVD_E_INVAL);
    CHECK_TEXT(t, own.err.text, "\"--not_one\": unknown option; see --help");
}

TEST(flags_have_an_opposite)
{
    CHECK_OK(t, sample_init(&own));
    CHECK_OK(t, sample_argv(&own, "--no-stall-check -v"));
    CHECK(t, !own.config.stall_check && own.config.verbose);
    CHECK_OK(t, sample_argv(&own, "-stall-check --no-verb"));
    CHECK(t, own.config.stall_check && !own.config.verbose);
    CHECK_OK(t, sample_argv(&own, "-h"));
    CHECK(t, own.config.help);
    CHECK_CODE(t, sample_argv(&own, "--no-help"), HVD_E_INVAL);
    CHECK_TEXT(t, own.err.text, "\"--no-help\": unknown option; did you mean --help?");
}

TEST(ends_where_the_command_begins)
{
    static const struct {
        const char *words;
        int rest;
    } cases[] = {
        {"",                1},
        { "cmd",            1},
        { "--",             2},
        { "-- -v",          2},
        { "-v cmd -np 3",   2},
        { "-v -- -np 3",    3},
        { "-v -",           2},
        { "-v  --verbose",  2},
        { "-np 4 cmd --np", 3},
    };

    CHECK_OK(t, sample_init(&own));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK_OK(t, sample_argv(&own, cases[i].words));
        CHECK_INT(t, own.rest, ==, cases[i].rest);
    }
    CHECK_OK(t, opt_argv(&own.set, 0, (char *[]){ NULL }, &own.rest, NULL));
    CHECK_INT(t, own.rest, ==, 0);
    CHECK_CODE(t, sample_argv(&own, "--oops"), HVD_E_INVAL);
    CHECK_INT(t, own.rest, ==, 0);
}

TEST(ranges_take_two_words)
{
    static const char *const spellings[] = {
        "--blacklist-cooldown-range 2m 1h cmd",
        "--blacklist-cooldown-range=2m 1h cmd",
        "-blacklist-cool 2m,1h cmd",
        "--blacklist-cooldown-range=2m,1h cmd",
    };

    CHECK_OK(t, sample_init(&own));
    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        own.config.cooldown = (struct opt_range){ 0, 0 };
        CHECK_OK(t, sample_argv(&own, spellings[i]));
        CHECK_INT(t, own.config.cooldown.low_us, ==, 2 * TIME_MIN);
        CHECK_INT(t, own.config.cooldown.high_us, ==, TIME_HOUR);
    }
    CHECK_INT(t, own.rest, ==, 2);
}

struct wrong_words {
    const char *words;
    int code;
    const char *says;
};

#define WRONG(words_, code_, says_) \
    {                               \
        words_, code_, says_        \
    }

static const struct wrong_words wrong_words[] = {
    WRONG("--min-npp 3", HVD_E_INVAL, "\"--min-npp\": unknown option; did you mean --min-np?"),
    WRONG("--min-npp=3", HVD_E_INVAL, "\"--min-npp=3\": unknown option; did you mean --min-np?"),
    WRONG("-np4", HVD_E_INVAL, "\"-np4\": unknown option; did you mean --np?"),
    WRONG("-vebose", HVD_E_INVAL, "\"-vebose\": unknown option; did you mean --verbose?"),
    WRONG("--no-stal-chek", HVD_E_INVAL,
          "\"--no-stal-chek\": unknown option; did you mean --no-stall-check?"),
    WRONG("--frobnicate", HVD_E_INVAL, "\"--frobnicate\": unknown option; see --help"),
    WRONG("--no-frobnication", HVD_E_INVAL, "\"--no-frobnication\": unknown option; see --help"),
    WRONG("-\x01\xff=x", HVD_E_INVAL, "\"-\\x01\\xff=x\": unknown option; see --help"),
    WRONG("-vq", HVD_E_INVAL, "\"-vq\": unknown option \"-q\"; see --help"),
    WRONG("--=3", HVD_E_INVAL, "\"--=3\": unknown option; see --help"),
    WRONG("-:", HVD_E_INVAL, "\"-:\": unknown option; see --help"),
    WRONG("--m 3", HVD_E_INVAL,
          "\"--m\": may mean --min-np, --min-num-proc, --max-np, --max-num-proc, --mpi-args; write "
          "the whole name of the option"),
    WRONG("-ma=3", HVD_E_INVAL,
          "\"-ma=3\": may mean --max-np, --max-num-proc; write the whole name of the option"),
    WRONG("--np", HVD_E_INVAL, "--np: N is missing; write --np N"),
    WRONG("--num-proc", HVD_E_INVAL, "--np: N is missing; write --np N"),
    WRONG("-v -H", HVD_E_INVAL, "--hosts: HOST:SLOTS,... is missing; write --hosts HOST:SLOTS,..."),
    WRONG("--verbose=1", HVD_E_INVAL,
          "\"--verbose=1\": takes no value; write --verbose or --no-verbose"),
    WRONG("--no-verbose=1", HVD_E_INVAL,
          "\"--no-verbose=1\": takes no value; write --verbose or --no-verbose"),
    WRONG("--help=np", HVD_E_INVAL, "\"--help=np\": takes no value; write --help"),
    WRONG("--blacklist 10", HVD_E_INVAL,
          "--blacklist-cooldown-range: this option takes two values; write "
          "--blacklist-cooldown-range LOW "
          "HIGH"),
    WRONG("--blacklist 10 --np 3", HVD_E_INVAL,
          "--blacklist-cooldown-range: \"--np\": not a duration; write seconds or a unit: 90, "
          "1.5s, 250ms, 10m, 1h30m"),
    WRONG(
        "--blacklist 10 "
        "100000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "00000000",
        HVD_E_INVAL,
        "--blacklist-cooldown-range: \"10 100000000000000000000000000000000000000000000\"...: must "
        "be two durations, such as \"10s 10m\""),
    WRONG("-a", HVD_E_UNSUPPORTED,
          "--autotune: not supported here: there is nothing to tune; leave it out"),
    WRONG("--no-tune", HVD_E_UNSUPPORTED,
          "--no-autotune: not supported here: there is nothing to tune; leave it out"),
    WRONG("--autotune=yes", HVD_E_UNSUPPORTED,
          "--autotune: not supported here: there is nothing to tune; leave it out"),
};

TEST(errors_name_culprit_and_remedy)
{
    CHECK_OK(t, sample_init(&own));
    for (size_t i = 0; i < ARRAY_SIZE(wrong_words); i++) {
        CHECK_CODE(t, sample_argv(&own, wrong_words[i].words), wrong_words[i].code);
        CHECK_TEXT(t, own.err.text, wrong_words[i].says);
    }
}

/* Many options have this beginning: the list of the possible options is cut. */
TEST(many_meanings_are_cut)
{
    static const struct opt table[] = {
        OPT(struct sample, np, .name = "worker-number-wanted-at-first", .arg = "N", .group = "g",
            .help = "h"),
        OPT(struct sample, min_np, .name = "worker-number-wanted-at-least", .arg = "N",
            .group = "g", .help = "h"),
        OPT(struct sample, max_np, .name = "worker-number-wanted-at-most",
            .alias = "worker-number-wanted-not-above", .arg = "N", .group = "g", .help = "h"),
        OPT(struct sample, seed, .name = "worker-number-wanted-for-chance", .arg = "N",
            .group = "g", .help = "h"),
        OPT(struct sample, verbose, .name = "worker-number-shown-now-and-then", .group = "g",
            .help = "h"),
        OPT(struct sample, stall_check, .name = "worker-number-checked-now-and-then", .group = "g",
            .help = "h"),
    };
    char word[] = "--worker";
    char *words[] = { word, word, NULL };
    struct sample config;
    struct hvd_err err;
    int rest;

    CHECK_OK(t, opt_init(&set, table, ARRAY_SIZE(table), &config));
    CHECK_CODE(t, opt_argv(&set, 2, words, &rest, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "\"--worker\": may mean --worker-number-wanted-at-first, "
               "--worker-number-wanted-at-least, --worker-number-wanted-at-most, "
               "--worker-number-wanted-not-above, --worker-number-wanted-for-chance, ...; write "
               "the whole name of the option");
}
