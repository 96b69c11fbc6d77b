/*
 * options.c: reads the command line of the simulator: how many worlds, from which seed, with which
 * planted bug, and writes the line that repeats a world.
 */
#include "tests/sim/options.h"

#include "base/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORLDS     1000
#define WORLDS_MAX UINT64_C(1000000000000)
#define FAULTS     200
#define FAULTS_MAX 10000
#define WRONG      2 /* the exit code after a wrong command line */

static const char *const bug_names[BUG_COUNT] = {
    [BUG_NONE] = "none",
    [BUG_STALE_EXIT] = "stale-exit",
    [BUG_LOST_NOTIFICATION] = "lost-notification",
    [BUG_WRONG_ROOT] = "wrong-root",
    [BUG_LAUNCH_ON_BARRED] = "launch-on-barred",
    [BUG_VISIBLE_BEFORE_DURABLE] = "visible-before-durable",
    [BUG_LIE_BELIEVED] = "lie-believed",
    [BUG_EARLY_MANIFEST] = "early-manifest",
    [BUG_MIXED_COMMITS] = "mixed-commits",
    [BUG_FORGOTTEN_HOLDER] = "forgotten-holder",
    [BUG_ETCD_UNFENCED] = "etcd-unfenced",
    [BUG_ETCD_VISIBLE] = "etcd-visible",
    [BUG_ETCD_LEASE_FROM_ANSWER] = "etcd-lease-from-answer",
    [BUG_ETCD_UNSURE_FAILED] = "etcd-unsure-failed",
    [BUG_ETCD_UNSURE_DONE] = "etcd-unsure-done",
    [BUG_ETCD_EARLY_CLAIM] = "etcd-early-claim",
    [BUG_ETCD_REPLAY_FORGETS] = "etcd-replay-forgets",
};

/* Prints the usage to stdout after --help, to stderr after a mistake. */
static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: ./dev sim [WORLDS] [options]\n"
        "Random worlds, one for each seed; the first violation ends it, and is told. Exit 1: there "
        "was one.\n\n"
        "  WORLDS        how many (%d)\n"
        "  --seed S      the first of their seeds (1)\n"
        "  --faults N    in each world, up to %d (%d)\n"
        "  --jobs J      processes, up to %d (one for each processor)\n"
        "  --oom         memory is out at random moments, too\n"
        "  --etcd        the store of each driver is etcd (without it: of one world in five)\n"
        "  --replay      each world twice, and each driver's core twice: they must do the same\n"
        "  --keep-going  says what is violated, and goes on\n"
        "  --verbose     one world: its story; more: which ended with a reason\n"
        "  --bug KIND    with a bug that must be found:",
        WORLDS, FAULTS_MAX, FAULTS, SIM_JOBS_MAX);
    for (int i = BUG_NONE + 1; i < BUG_COUNT; i++)
        fprintf(to, "%s%s", i % 4 == 1 ? "\n                " : ", ", bug_names[i]);
    fprintf(to, "\n");
}

static bool read_number(const char *text, uint64_t min, uint64_t max, const char *what,
                        uint64_t *ret_value)
{
    struct span span = { text, strlen(text) };
    struct hvd_err err = { .code = 0 };

    if (!text_parse_u64(span, min, max, what, ret_value, &err))
        return true;
    fprintf(stderr, "sim: %s\n", err.text);
    return false;
}

static bool read_small(const char *text, unsigned min, unsigned max, const char *what,
                       unsigned *ret_value)
{
    uint64_t value;

    if (!read_number(text, min, max, what, &value))
        return false;
    *ret_value = (unsigned)value;
    return true;
}

static bool read_bug(const char *text, enum world_bug *ret_bug)
{
    for (int i = 0; i < BUG_COUNT; i++) {
        if (strcmp(bug_names[i], text) == 0) {
            *ret_bug = (enum world_bug)i;
            return true;
        }
    }
    fprintf(stderr, "sim: --bug %s: there is no such kind; those there are stand below\n", text);
    return false;
}

static bool read_option(int option, struct sim_options *options)
{
    switch (option) {
    case 'w': return read_number(optarg, 1, WORLDS_MAX, "--worlds", &options->worlds);
    case 's': return read_number(optarg, 0, UINT64_MAX, "--seed", &options->seed);
    case 'j': return read_small(optarg, 1, SIM_JOBS_MAX, "--jobs", &options->jobs);
    case 'f': return read_small(optarg, 0, FAULTS_MAX, "--faults", &options->faults);
    case 'b': return read_bug(optarg, &options->bug);
    case 'v': options->verbose = true; return true;
    case 'o': options->oom = true; return true;
    case 'e': options->etcd = true; return true;
    case 'k': options->keep = true; return true;
    case 'r': options->replay = true; return true;
    default: return false; /* getopt has printed the error */
    }
}

static bool read_rest(int argc, char **argv, struct sim_options *options)
{
    if (optind < argc &&
        !read_number(argv[optind++], 1, WORLDS_MAX, "the number of worlds", &options->worlds))
        return false;
    if (optind == argc)
        return true;
    fprintf(stderr, "sim: \"%s\": nothing may follow the number of worlds but options\n",
            argv[optind]);
    return false;
}

int sim_options_read(int argc, char **argv, struct sim_options *ret_options)
{
    static const struct option table[] = {
        {"worlds",      required_argument, NULL, 'w'},
        { "seed",       required_argument, NULL, 's'},
        { "jobs",       required_argument, NULL, 'j'},
        { "faults",     required_argument, NULL, 'f'},
        { "bug",        required_argument, NULL, 'b'},
        { "verbose",    no_argument,       NULL, 'v'},
        { "replay",     no_argument,       NULL, 'r'},
        { "oom",        no_argument,       NULL, 'o'},
        { "etcd",       no_argument,       NULL, 'e'},
        { "keep-going", no_argument,       NULL, 'k'},
        { "help",       no_argument,       NULL, 'h'},
        { NULL,         0,                 NULL, 0  },
    };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int option;

    *ret_options = (struct sim_options){ .worlds = WORLDS, .seed = 1, .faults = FAULTS };
    ret_options->jobs = processors < 1              ? 1
                        : processors > SIM_JOBS_MAX ? SIM_JOBS_MAX
                                                    : (unsigned)processors;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (!read_option(option, ret_options))
            goto wrong;
    }
    if (!read_rest(argc, argv, ret_options))
        goto wrong;
    if (ret_options->jobs > ret_options->worlds)
        ret_options->jobs = (unsigned)ret_options->worlds;
    return -1;
wrong:
    usage(stderr);
    return WRONG;
}

void sim_options_again(const struct sim_options *options, uint64_t seed, char *line, size_t size)
{
    snprintf(line, size, "./dev sim 1 --seed %" PRIu64 " --faults %u%s%s%s%s%s --verbose", seed,
             options->faults, options->etcd ? " --etcd" : "", options->oom ? " --oom" : "",
             options->replay ? " --replay" : "", options->bug ? " --bug " : "",
             options->bug ? bug_names[options->bug] : "");
}
