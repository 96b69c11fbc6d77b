/*
 * test_driver_options.c: the options of hvd-elastic: Horovod's names and this project's own names,
 * defaults that follow from other options, configuration files, and each refusal with its text.
 */
#include "base/limits.h"
#include "base/log.h"
#include "base/opt_show.h"
#include "base/time.h"
#include "driver/cli/verbs.h"
#include "driver/options.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 40

static struct driver_options options;
static struct hvd_err err;
static char *no_variables[] = { NULL };

/* read_words cuts a text of words between single blanks into an argument vector; the program's name
 * is added. */
static char word_text[1024];
static char *word_at[WORDS_MAX + 1];

static int split(const char *words)
{
    int count = 0;
    char *rest = word_text;

    snprintf(word_text, sizeof(word_text), "hvd-elastic %s", words);
    while (rest && *rest && count < WORDS_MAX)
        word_at[count++] = strsep(&rest, " ");
    word_at[count] = NULL;
    return count;
}

MUST_CHECK static int read_with(const char *words, char *const *envp)
{
    int count = split(words);
    int rc;

    options_release(&options);
    err = (struct hvd_err){ 0 };
    rc = options_init(&options);
    return rc ? rc : options_read(&options, count, word_at, envp, &err);
}

MUST_CHECK static int read_words(const char *words)
{
    return read_with(words, no_variables);
}

MUST_CHECK static int to_core(struct core_config *config)
{
    return options_to_core(&options, "j1", 7, config, &err);
}

static void swallow(void *arg, const char *line, size_t length)
{
    (void)arg;
    (void)line;
    (void)length;
}

static int64_t no_time(void)
{
    return 0;
}

/* Without a sink the log has no level that it wants. */
static const struct log_sink sink = { swallow, no_time, NULL };

static struct buf saved;
static FILE *file;

static void end_case(struct test *t)
{
    (void)t;
    log_open(NULL);
    buf_release(&saved);
    if (file)
        fclose(file);
    file = NULL;
    options_release(&options);
}
FIXTURE(NULL, end_case)

/* A command line in Horovod's words is read, and each value arrives in the options or in the
 * configuration of the core. */
TEST(reads_the_options_of_horovod)
{
    struct core_config core;

    log_open(&sink);
    CHECK_OK(t, read_words("-np 4 --min-np 2 --max-np 8 --slots-per-host 2 --elastic-timeout 600 "
                           "--start-timeout 30 --reset-limit 3 --blacklist-cooldown-range 10 100 "
                           "--host-discovery-script ./d.sh --output-filename out "
                           "--timeline-filename t.json -prefix-timestamp "
                           "--verbose -p 22 -i key --network-interfaces eth0 --gloo python t.py"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 4);
    CHECK_INT(t, core.min_np, ==, 2);
    CHECK_INT(t, core.max_np, ==, 8);
    CHECK_INT(t, core.reset_limit, ==, 3);
    CHECK_INT(t, core.elastic_timeout_us, ==, 10 * TIME_MIN);
    CHECK_INT(t, core.start_timeout_us, ==, 30 * TIME_S);
    CHECK_INT(t, core.blacklist.lower_us, ==, 10 * TIME_S);
    CHECK_INT(t, core.blacklist.upper_us, ==, 100 * TIME_S);
    CHECK_INT(t, core.seed, ==, 7);
    CHECK_TEXT(t, core.job, "j1");
    CHECK_INT(t, options.slots_per_host, ==, 2);
    CHECK_TEXT(t, options.output_dir, "out");
    CHECK_TEXT(t, options.timeline, "t.json");
    CHECK(t, options.prefix_timestamp);
    CHECK_INT(t, options.ssh_port, ==, 22);
    CHECK_TEXT(t, options.ssh_identity_file, "key");
    CHECK_TEXT(t, buf_text(&options.interfaces), "eth0");
    CHECK_TEXT(t, options.command[0], "python");
    CHECK_TEXT(t, options.command[1], "t.py");
    CHECK(t, !options.command[2]);
    CHECK(t, log_wants(LOG_NET, LOG_DEBUG));
}

/* Each option is given by its second name, and arrives under the same field. */
TEST(each_option_has_its_other_names)
{
    CHECK_OK(t, read_words("--num-proc 3 --min-num-proc 2 --max-num-proc 5 --network-interface e0 "
                           "--prefix-output-with-timestamp --stall-check-warning-time-seconds 7 "
                           "--stall-check-shutdown-time-seconds 9 --ssh-port 2222 "
                           "--ssh-identity-file k -hostfile h --log-hide-timestamp -- x"));
    CHECK_INT(t, options.np, ==, 3);
    CHECK_INT(t, options.min_np, ==, 2);
    CHECK_INT(t, options.max_np, ==, 5);
    CHECK_TEXT(t, buf_text(&options.interfaces), "e0");
    CHECK(t, options.prefix_timestamp && !options.log_timestamps);
    CHECK_INT(t, options.stall_warning_us, ==, 7 * TIME_S);
    CHECK_INT(t, options.stall_shutdown_us, ==, 9 * TIME_S);
    CHECK_INT(t, options.ssh_port, ==, 2222);
    CHECK_TEXT(t, options.ssh_identity_file, "k");
    CHECK_TEXT(t, options.hosts_from[DISCOVER_FILE], "h");
    CHECK_OK(t, read_words("-H a:2 -np 2 --no-log-hide-timestamp --log-with-timestamp x"));
    CHECK(t, options.log_timestamps);
    CHECK_TEXT(t, options.hosts_from[DISCOVER_LIST], "a:2");
    CHECK_OK(t, read_words("--hosts a:2 -np 2 --log-without-timestamp x"));
    CHECK(t, !options.log_timestamps);
    CHECK_OK(t, read_words("-np 2 --no-log-with-timestamp x"));
    CHECK(t, !options.log_timestamps);
}

TEST(flags_that_only_ask)
{
    CHECK_OK(t, read_words("-v"));
    CHECK(t, options.version);
    CHECK_OK(t, read_words("-cb"));
    CHECK(t, options.check_build);
    CHECK_OK(t, read_words("--check-build"));
    CHECK(t, options.check_build);
    CHECK_OK(t, read_words("-h"));
    CHECK(t, options.help);
    CHECK_OK(t, read_words("--list-options"));
    CHECK(t, options.list_options);
    CHECK_OK(t, read_words("--print-config"));
    CHECK(t, options.print_config);
}

/* With -np alone all other values are the defaults of core_config_init, and the hosts are N slots
 * of localhost. With --min-np alone -np gets its value. */
TEST(defaults_follow_from_what_was_said)
{
    struct core_config wanted;
    struct core_config core;
    struct discover_config hosts;

    core_config_init(&wanted);
    CHECK_OK(t, read_words("-np 4 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.min_np, ==, 4);
    CHECK_INT(t, core.max_np, ==, 4);
    CHECK_INT(t, core.reset_limit, ==, CORE_NO_RESET_LIMIT);
    CHECK_INT(t, core.beat_us, ==, wanted.beat_us);
    CHECK_INT(t, core.lease_us, ==, wanted.lease_us);
    CHECK_INT(t, core.driver_grace_us, ==, wanted.driver_grace_us);
    CHECK_INT(t, core.discovery.pause_us, ==, wanted.discovery.pause_us);
    CHECK_INT(t, core.elastic_timeout_us, ==, wanted.elastic_timeout_us);
    CHECK_INT(t, core.agent_start_us, ==, wanted.agent_start_us);
    CHECK_INT(t, core.start_timeout_us, ==, wanted.start_timeout_us);
    CHECK_INT(t, core.gather_us, ==, wanted.gather_us);
    CHECK_INT(t, core.prepare_us, ==, wanted.prepare_us);
    CHECK_INT(t, core.stall_us, ==, wanted.stall_us);
    CHECK_INT(t, core.kill_grace_us, ==, wanted.kill_grace_us);
    CHECK_INT(t, core.blacklist.lower_us, ==, wanted.blacklist.lower_us);
    CHECK_INT(t, core.blacklist.upper_us, ==, wanted.blacklist.upper_us);
    CHECK_INT(t, core.blacklist.forever, ==, wanted.blacklist.forever);
    CHECK_INT(t, core.blacklist.scope, ==, wanted.blacklist.scope);
    CHECK_INT(t, core.blacklist.restarts_max, ==, wanted.blacklist.restarts_max);
    CHECK_INT(t, core.blacklist.restarts_window_us, ==, wanted.blacklist.restarts_window_us);
    CHECK_INT(t, core.blacklist.decay_us, ==, wanted.blacklist.decay_us);
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_LIST);
    CHECK_TEXT(t, hosts.value, "localhost:4");
    CHECK_INT(t, hosts.limit_us, ==, TIME_MIN);
    CHECK_OK(t, read_words("--min-np 2 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 2);
    options_to_discover(&options, &hosts);
    CHECK_TEXT(t, hosts.value, "localhost:2");
}

TEST(unlimited_is_the_most_that_there_may_be)
{
    struct core_config core;

    buf_init(&saved, 1 << 16);
    CHECK_OK(t, read_words("-np 2 --max-np unlimited x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.max_np, ==, LIMIT_WORKERS);
    CHECK_OK(t, options_save(&options, &saved));
    CHECK_HAS(t, buf_text(&saved), "max-np = unlimited\n");
    CHECK_OK(t, read_words("--min-np 2 --max-np 3 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 2);
    CHECK_INT(t, core.max_np, ==, 3);
}

TEST(failures_without_progress_are_limited)
{
    static const struct {
        const char *words;
        uint32_t slot, job;
    } cases[] = {
        {"-np 1 x",                                                   3,          10        },
        { "-np 1 --progress-restarts 5 x",                            5,          10        },
        { "-np 1 --progress-restarts 50 x",                           50,         50        },
        { "-np 1 --progress-restarts 50 --progress-restarts-job 4 x", 50,         4         },
        { "-np 1 --progress-restarts unlimited x",                    UINT32_MAX, UINT32_MAX},
        { "-np 1 --progress-restarts-job unlimited x",                3,          UINT32_MAX},
    };
    struct core_config core;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK_OK(t, read_words(cases[i].words));
        CHECK_OK(t, to_core(&core));
        CHECK_INT(t, core.progress_restarts, ==, cases[i].slot);
        CHECK_INT(t, core.progress_restarts_job, ==, cases[i].job);
    }
}

TEST(a_list_of_hosts_says_how_many_workers)
{
    struct core_config core;

    buf_init(&saved, 1 << 16);
    CHECK_OK(t, read_words("-H a:2,b:2 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 4);
    CHECK_INT(t, core.min_np, ==, 4);
    CHECK_INT(t, core.max_np, ==, 4);
    CHECK_OK(t, options_save(&options, &saved));
    CHECK_HAS(t, buf_text(&saved), "np = 4\n");
    CHECK_OK(t, read_words("-H a,b --slots-per-host 3 --max-np 5 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 5);
    CHECK_OK(t, read_words("-H a:4 --min-np 2 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 2);
}

TEST(never_is_long)
{
    struct core_config core;

    CHECK_OK(t, read_words("-np 1 --elastic-timeout never --start-timeout never --driver-grace "
                           "never --stall-warning 0 --stall-shutdown 0 --blacklist-decay never x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.elastic_timeout_us, ==, LIMIT_DURATION_US);
    CHECK_INT(t, core.start_timeout_us, ==, LIMIT_DURATION_US);
    CHECK_INT(t, core.driver_grace_us, ==, LIMIT_DURATION_US);
    CHECK_INT(t, core.stall_us, ==, LIMIT_DURATION_US);
    CHECK(t, core.blacklist.decay_us == TIME_NEVER);
    CHECK(t, options.stall_warning_us == TIME_NEVER);
    CHECK_OK(t, read_words("-np 1 --no-stall-check --stall-warning 3s x"));
    CHECK(t, options.stall_warning_us == TIME_NEVER && options.stall_shutdown_us == TIME_NEVER);
}

/* For each kind of hosts there is an option (opt_source panics when the table has no such option).
 * All but a list, a file and a batch system need -np (words + 6 is without it). */
TEST(every_source_of_hosts_has_its_option)
{
    for (int i = 0; i < DISCOVER_KINDS; i++) {
        const char *name = discover_option((enum discover_kind)i);
        struct discover_config hosts;
        char words[200];

        CHECK(t, name);
        snprintf(words, sizeof(words), "-np 1 --%s there x", name);
        CHECK_OK(t, read_words(words));
        options_to_discover(&options, &hosts);
        CHECK_INT(t, hosts.kind, ==, i);
        CHECK_TEXT(t, hosts.value, "there");
        CHECK(t, opt_source(&options.set, name) == OPT_COMMAND_LINE);
        CHECK(t, i == DISCOVER_LIST || i == DISCOVER_FILE || i == DISCOVER_BATCH ||
                     (read_words(words + 6) && strstr(err.text, "missing; the hosts of --")));
    }
}

/* Hosts come from the environment, or from an option of the command line, which wins; two options
 * at once are refused. */
TEST(hosts_come_from_the_highest_place)
{
    static char place[] = "HVD_HOSTFILE=hosts.txt";
    char *envp[] = { place, NULL };
    struct discover_config hosts;

    CHECK_OK(t, read_with("-np 1 --slots-per-host 3 --discovery-timeout 5s x", envp));
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_FILE);
    CHECK_TEXT(t, hosts.value, "hosts.txt");
    CHECK_INT(t, hosts.slots_per_host, ==, 3);
    CHECK_INT(t, hosts.limit_us, ==, 5 * TIME_S);
    CHECK_OK(t, read_with("-np 1 --discovery-watch ./w x", envp));
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_WATCH);
    CHECK_OK(t, read_with("-np 1 --host-discovery-script ./d x", envp));
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_SCRIPT);
    CHECK_TEXT(t, hosts.value, "./d");
    CHECK_CODE(t, read_with("-np 1 --discovery-watch ./w -H a:1 x", envp), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "--hosts of the command line and --discovery-watch of the command line: hosts come "
               "from one source; leave one option out");
}

/* Options that are saved have all the same origin when they are loaded. */
TEST(one_source_of_hosts_counts_and_is_saved)
{
    static char listed[] = "HVD_HOSTFILE=hosts.txt", script[] = "HVD_HOST_DISCOVERY_SCRIPT=./d";
    char *two[] = { listed, NULL }, *three[] = { listed, script, NULL };

    buf_init(&saved, LIMIT_CONFIG_TEXT_BYTES);
    CHECK_CODE(t, read_with("-np 1 x", three), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "--hostfile of HVD_HOSTFILE and --host-discovery-script of "
               "HVD_HOST_DISCOVERY_SCRIPT: hosts come from one source; leave one option out");
    CHECK_OK(t, read_with("-np 1 -H a:2 x", three)); /* a higher origin decides */
    CHECK_TEXT(t, buf_text(&options.host_notes),
               "hosts come from --hosts of the command line, not from --hostfile of HVD_HOSTFILE\n"
               "hosts come from --hosts of the command line, not from --host-discovery-script of "
               "HVD_HOST_DISCOVERY_SCRIPT\n");
    CHECK(t, !options.hosts_from[DISCOVER_FILE] && !options.hosts_from[DISCOVER_SCRIPT]);
    CHECK_OK(t, options_save(&options, &saved));
    CHECK_OK(t, read_with("--resume j", two)); /* the environment wins over what was saved */
    CHECK_OK(t, options_load(&options, "saved", buf_text(&saved), saved.length, &err));
    CHECK_HAS(t, buf_text(&options.host_notes),
              "hosts come from --hostfile of HVD_HOSTFILE, not from --hosts of saved:");
    CHECK_TEXT(t, options.hosts_from[DISCOVER_FILE], "hosts.txt");
}

TEST(numbers_of_workers_name_their_origin)
{
    static char np[] = "HVD_NP=4", max[] = "HVD_MAX_NP=3", min[] = "HVD_MIN_NP=5";
    char *nps[] = { np, NULL }, *maxes[] = { max, NULL }, *mins[] = { min, max, NULL };

    CHECK_CODE(t, read_with("--max-np 3 x", nps), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "-np: 4 of HVD_NP is more than --max-np, 3 of the command line; lower -np, or raise "
               "--max-np");
    CHECK_CODE(t, read_with("-np 4 x", maxes), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "-np: 4 of the command line is more than --max-np, 3 of HVD_MAX_NP; ");
    CHECK_CODE(t, read_with("x", mins), HVD_E_INVAL);
    CHECK_HAS(t, err.text,
              "--min-np: 5 of HVD_MIN_NP is more than --max-np, 3 of HVD_MAX_NP; lower --min-np");
    CHECK_CODE(t, read_with("-np 4 x", mins), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--min-np: 5 of HVD_MIN_NP is more than -np, 4 of the command line; ");
}

TEST(a_size_has_a_suffix)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"1048576",    UINT64_C(1) << 20},
        { "1024K",     UINT64_C(1) << 20},
        { "3MiB",      UINT64_C(3) << 20},
        { "2G",        UINT64_C(2) << 30},
        { "1T",        UINT64_C(1) << 40},
        { "unlimited", UINT64_MAX       },
    };
    static const char *const wrong[] = { "1M1",
                                         "x",
                                         "M",
                                         "-1M",
                                         "1KB",
                                         "1000K",
                                         "0",
                                         "1025T",
                                         "99999999999999999999G",
                                         "18446744073709551615T",
                                         "MiB" };
    char words[64];

    CHECK_OK(t, read_words("-np 1 x"));
    CHECK_INT(t, options.output_limit, ==, UINT64_C(1) << 30);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        snprintf(words, sizeof(words), "-np 1 --output-limit %s x", sizes[i].text);
        CHECK_OK(t, read_words(words));
        CHECK(t, options.output_limit == sizes[i].bytes);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        snprintf(words, sizeof(words), "-np 1 --output-limit %s x", wrong[i]);
        CHECK(t, read_words(words) != 0);
        CHECK_HAS(t, err.text, "output-limit");
    }
    CHECK_CODE(t, read_words("-np 1 --output-limit 1000K x"), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "must be 1M to 1024T, or unlimited");
}

TEST(collectives_have_their_options)
{
    static char fusion[] = "HVD_FUSION_THRESHOLD_MB=7";
    char *envp[] = { fusion, NULL };

    CHECK_OK(t, read_words("-np 1 x"));
    CHECK_TEXT(t, options_operations[options.cpu_operations], "auto");
    CHECK_TEXT(t, options_data_security[options.data_security], "auto");
    CHECK(t, !options.fixed_order && !options.torch_env);
    CHECK_INT(t, options.fusion_threshold_mb, ==, OPTIONS_FUSION_MB);
    CHECK_OK(t, read_with("-np 1 --cpu-operations TCP --fixed-order --torch-env x", envp));
    CHECK_TEXT(t, options_operations[options.cpu_operations], "tcp");
    CHECK(t, options.fixed_order && options.torch_env);
    CHECK_INT(t, options.fusion_threshold_mb, ==, 7);
    CHECK_OK(t, read_words("-np 1 --cpu-operations gloo --fusion-threshold-mb 0 x"));
    CHECK_TEXT(t, options_operations[options.cpu_operations], "gloo");
    CHECK_INT(t, options.fusion_threshold_mb, ==, 0);
    CHECK_TEXT(t, options_commit_to[options.commit_to], "both");
    CHECK_OK(t, read_words("-np 1 --commit-to device x"));
    CHECK_TEXT(t, options_commit_to[options.commit_to], "device");
}

TEST(gpus_have_their_options)
{
    static char timeout[] = "HVD_GPU_TIMEOUT=1m";
    char *envp[] = { timeout, NULL };

    CHECK_OK(t, read_words("-np 1 x"));
    CHECK_TEXT(t, options_gpu_operations[options.gpu_operations], "auto");
    CHECK_INT(t, options.gpu_timeout_us, ==, OPTIONS_GPU_TIMEOUT_US);
    CHECK_OK(t, read_with("-np 1 --gpu-operations nccl x", envp));
    CHECK_TEXT(t, options_gpu_operations[options.gpu_operations], "nccl");
    CHECK_INT(t, options.gpu_timeout_us, ==, TIME_MIN);
    CHECK_OK(t, read_words("-np 1 --gpu-operations cpu --gpu-timeout 500ms x"));
    CHECK_TEXT(t, options_gpu_operations[options.gpu_operations], "cpu");
    CHECK_INT(t, options.gpu_timeout_us, ==, 500 * TIME_MS);
}

struct wrong {
    const char *words;
    const char *says;
};

#define WRONG(words_, says_) \
    {                        \
        words_, says_        \
    }

TEST(says_what_is_wrong)
{
    static const struct wrong wrongs[] = {
        WRONG("", "the command is missing: write what each worker runs after the options"),
        WRONG("-np 4", "the command is missing: "),
        WRONG("-np 4 --", "the command is missing: "),
        WRONG("x", "-np: missing; say with -np or --min-np how many workers the job starts with"),
        WRONG("statsu", "statsu: did you mean status?"),
        WRONG("-H a:2 drian n7", "drian: did you mean drain?"),
        WRONG("./train", "-np: missing"),
        WRONG("-np 0 x", "--np: \"0\": N must be"),
        WRONG("-np 4 --min-np 5 x", "--min-np: 5 of the command line is more than -np, 4"),
        WRONG("-np 4 --max-np 3 x", "-np: 4 of the command line is more than --max-np, 3"),
        WRONG("--host-discovery-script ./d x",
              "-np: missing; the hosts of --host-discovery-script may change, so they do not say"),
        WRONG("--discovery-watch ./d x", "-np: missing; the hosts of --discovery-watch may"),
        WRONG("-np 4 --max-np all x", "--max-np: \"all\": N must be a whole number"),
        WRONG("-np 4 --progress-restarts 0 x", "--progress-restarts: \"0\": N must be"),
        WRONG("-np 4 -H localhost:2 x",
              "-np: 4 is more than the slots of --hosts, 2; lower -np, or list more hosts or "
              "slots, \"a:4\""),
        WRONG("--min-np 4 -H localhost:2 x",
              "--min-np: 4 is more than the slots of --hosts, 2; lower --min-np, or list more"),
        WRONG("--min-np 3 --max-np 8 -H a,b x", "--min-np: 3 is more than the slots of --hosts, 2"),
        WRONG("--hostfile /no/such/file x", "/no/such/file"),
        WRONG("-np unlimited x", "--np: \"unlimited\": N must be"),
        WRONG("-np 1 --lease 1s x", "--lease: must be at least twice as long as --beat"),
        WRONG("-np 1 --elastic-timeout 0 x", "--elastic-timeout: \"0\": must be "),
        WRONG("-np 1 --elastic-timeout soon x", "--elastic-timeout: \"soon\": not a duration"),
        WRONG("-np 1 --job ../x y", "--job: \"../x\": use only letters, digits"),
        WRONG("--stop now -np 1 x", "--stop: name the job with --resume JOB"),
        WRONG("--resume .x", "--resume: \".x\": use only letters, digits"),
        WRONG("--resume .x --job b", "--resume: \".x\": use only letters, digits"),
        WRONG("--resume a --job b", "--job b: --resume names another job, a"),
        WRONG("-np 1 --env A=1 --env 1A x", "--env \"1A\": not a variable"),
        WRONG("-np 1 --env =1 x", "--env \"=1\": not a variable"),
        WRONG("-np 1 --network-interfaces a,,b x",
              "--network-interface a,,b: not a list of network interfaces; write eth0,eth1 or "
              "^lo,docker0"),
        WRONG("-np 1 --network-interfaces ^ x", "--network-interface ^: not a list"),
        WRONG("-np 1 --network-interfaces a, x", "--network-interface a,: not a list"),
        WRONG("-np 1 --network-interfaces a,^b x", "--network-interface a,^b: not a list"),
        WRONG("-np 1 --network-interface a --network-interface ^b x",
              "--network-interface ^b: another list is a; name only interfaces to use"),
        WRONG("-np 1 --network-interface ^a --network-interface b x", "another list is ^a"),
        WRONG("-np 1 --thread-affinity 1,,2 x", "--thread-affinity: a core is missing"),
        WRONG("-np 1 --thread-affinity 1024 x", "--thread-affinity: \"1024\": a core must be"),
        WRONG("-np 1 --ssh-host-key-checking ask x", "--ssh-host-key-checking: \"ask\""),
        WRONG("-np 1 -x 1A=2 x", "letters, digits and _, and does not begin with a digit"),
        WRONG("-np 1 --log-level loud x", "--log-level: \"loud\": unknown log level"),
        WRONG("-np 1 --log-with-timestamp --log-without-timestamp x", "leave one out"),
        WRONG("-np 1 --blacklist-cooldown-range 10 5 x", "must not be longer than the second"),
        WRONG("-np 1 --cpu-operations mpi x", "--cpu-operations: \"mpi\""),
        WRONG("-np 1 --data-security tls x", "--data-security: \"tls\""),
        WRONG("-np 1 --cpu-operations gloo --data-security encrypted x", "--cpu-operations gloo"),
        WRONG("-np 1 --cpu-operations gloo --data-security authenticated x",
              "leave one of the two"),
        WRONG("-np 1 --commit-to disk x", "--commit-to: \"disk\""),
        WRONG("-np 1 --fusion-threshold-mb 4097 x", "--fusion-threshold-mb: \"4097\""),
        WRONG("-np 1 --config-file /no/such/file x", "/no/such/file: cannot open"),
        WRONG("-np 1 --min-npp 2 x", "did you mean --min-np?"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++) {
        CHECK(t, read_words(wrongs[i].words));
        CHECK_HAS(t, err.text, wrongs[i].says);
    }
}

TEST(refuses_with_a_reason)
{
    static const char *const refused[] = {
        "--mpi",
        "--jsrun",
        "--mpi-args=-x",
        "--binding-args=-b",
        "--mpi-threads-disable",
        "--disable-cache",
        "--cycle-time-ms 3",
        "--cache-capacity 9",
        "--no-hierarchical-allreduce",
        "--torus-allreduce",
        "--timeline-mark-cycles",
        "--tcp",
        "--num-nccl-streams 2",
        "--gloo-timeout-seconds 3",
        "--host a",
        "--machinefile f",
        "--oversubscribe",
        "--tag-output",
    };
    char words[128];

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        snprintf(words, sizeof(words), "-np 1 %s x", refused[i]);
        CHECK_CODE(t, read_words(words), HVD_E_UNSUPPORTED);
        CHECK_HAS(t, err.text, "not supported here: ");
    }
}

/* Words that are near to a verb and begin with another letter are programs. */
TEST(a_program_is_not_taken_for_a_verb)
{
    CHECK(t, !cli_nearest_verb("true"));
    CHECK(t, !cli_nearest_verb("train"));
    CHECK_TEXT(t, cli_nearest_verb("statsu"), "status");
}

TEST(the_interval_of_checkpoints_is_a_time_or_a_number_of_commits)
{
    static const char *const refused[] = { "0",   "99ms", "0c",          "c",      "-5c",
                                           "5cc", "1e3c", "9999999999c", "11years" };
    struct core_config config;
    char words[128];
    int rc;

    CHECK_OK(t, read_words("-np 1 --checkpoint-dir d x"));
    CHECK_OK(t, options_to_core(&options, "j", 1, &config, &err));
    CHECK_INT(t, config.checkpoint_us, ==, 5 * TIME_MIN);
    CHECK_INT(t, config.checkpoint_commits, ==, 0);
    CHECK_OK(t, read_words("-np 1 --checkpoint-dir d --checkpoint-interval 100c x"));
    CHECK_OK(t, options_to_core(&options, "j", 1, &config, &err));
    CHECK_INT(t, config.checkpoint_us, ==, 0);
    CHECK_INT(t, config.checkpoint_commits, ==, 100);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        snprintf(words, sizeof(words), "-np 1 --checkpoint-interval=%s x", refused[i]);
        rc = read_words(words);
        if (rc == HVD_E_NOMEM)
            CHECK_OK(t, rc);
        CHECK(t, rc != 0);
        CHECK_HAS(t, err.text, "--checkpoint-interval");
    }
}

TEST(checkpoints_are_in_one_place)
{
    CHECK_OK(t, read_words("-np 1 --checkpoint-command /bin/store x"));
    CHECK_TEXT(t, options.checkpoint_command, "/bin/store");
    CHECK_CODE(t, read_words("-np 1 --checkpoint-dir d --checkpoint-command /bin/store x"),
               HVD_E_INVAL);
    CHECK_HAS(t, err.text, "leave one of the two");
}

TEST(refuses_a_store_that_cannot_be)
{
    static const char *const refused[] = {
        "--standby j",
        "--store http://h",
        "--store etcd://u:p@h",
        "--store etcd://10.0.0.1",
        "--store etcd://127.0.0.1 --store-ca f",
        "--store etcds://h --store-password-file f",
        "--standby j --resume j --store etcds://h",
    };
    char words[128];

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        snprintf(words, sizeof(words), "-np 1 %s x", refused[i]);
        CHECK_CODE(t, read_words(words), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "--st");
    }
    CHECK_OK(t, read_words("-np 1 --store etcd://10.0.0.1 --store-insecure x"));
    CHECK_OK(t, read_words("--store etcds://me@h1,h2/p --store-password-file f --standby j"));
}

/* These options ask for what this program does anyhow, so they are accepted. */
TEST(takes_options_that_ask_for_the_default)
{
    CHECK_OK(t, read_words("-np 1 --autotune --autotune-warmup-samples 5 --no-torus-allreduce "
                           "--autotune-steps-per-sample 20 --autotune-bayes-opt-max-samples 40 "
                           "--autotune-gaussian-process-noise 0.75 --hierarchical-allreduce "
                           "--no-hierarchical-allgather --no-mpi-threads-disable "
                           "--no-timeline-mark-cycles --allow-run-as-root --gloo x"));
    buf_init(&saved, LIMIT_CONFIG_TEXT_BYTES);
    CHECK_OK(t, opt_show_notes(&options.set, &saved));
    CHECK_HAS(t, buf_text(&saved), "--autotune: changes nothing: each round measures");
    CHECK_HAS(t, buf_text(&saved), "--autotune-warmup-samples: changes nothing: no measurement");
    CHECK_HAS(t, buf_text(&saved),
              "--autotune-steps-per-sample: changes nothing: each measurement");
    CHECK_HAS(t, buf_text(&saved), "--hierarchical-allgather: changes nothing: ");
    CHECK_OK(t, read_words("-np 1 --no-autotune x"));
}

TEST(interfaces_are_joined)
{
    static char variable[] = "HVD_NETWORK_INTERFACE=^lo,docker0";
    static char more[] = "HVD_ENV=A=1,B";
    static char empty[] = "HVD_ENV= , ";
    char *envp[] = { variable, more, NULL };

    CHECK_OK(t, read_words("-np 1 --network-interfaces eth0,eth1 --network-interface ib0 x"));
    CHECK_TEXT(t, buf_text(&options.interfaces), "eth0,eth1,ib0");
    CHECK_OK(t, read_words("-np 1 --network-interfaces ^lo,docker0 --network-interface ^eth0 x"));
    CHECK_TEXT(t, buf_text(&options.interfaces), "^lo,docker0,eth0");
    CHECK_OK(t, read_with("-np 1 x", envp));
    CHECK_TEXT(t, buf_text(&options.interfaces), "^lo,docker0");
    CHECK_INT(t, options.env.count, ==, 2);
    envp[1] = empty;
    CHECK_CODE(t, read_with("-np 1 x", envp), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "HVD_ENV: NAME[=VALUE] must not be empty");
}

TEST(ssh_and_threads_have_their_options)
{
    CHECK_OK(t, read_words("-np 1 x"));
    CHECK_INT(t, options.ssh_host_keys, ==, 0);
    CHECK(t, !options.thread_affinity);
    CHECK_OK(t, read_words("-np 1 --ssh-host-key-checking accept-new --thread-affinity 0,8 x"));
    CHECK_TEXT(t, options_host_keys[options.ssh_host_keys], "accept-new");
    CHECK_TEXT(t, options.thread_affinity, "0,8");
}

TEST(levels_have_names_from_elsewhere)
{
    log_open(&sink);
    CHECK_OK(t, read_words("-np 1 --log-level TRACE x"));
    CHECK(t, log_wants(LOG_NET, LOG_DEBUG));
    CHECK_OK(t, read_words("-np 1 --log-level FATAL x"));
    CHECK(t, !log_wants(LOG_NET, LOG_WARNING));
    CHECK_OK(t, read_words("-np 1 --verbose --log-level Warning,NET:debug x"));
    CHECK(t, log_wants(LOG_NET, LOG_DEBUG) && !log_wants(LOG_JOB, LOG_INFO));
    CHECK_OK(t, read_words("-np 1 x"));
    CHECK(t, log_wants(LOG_NET, LOG_INFO) && !log_wants(LOG_JOB, LOG_DEBUG));
}

/* A worker's environment has these variables, and a worker may start a job of its own. */
TEST(a_job_can_be_started_in_a_worker)
{
    static char job[] = "HVD_JOB=outer";
    static char host[] = "HVD_HOST=h";
    static char size[] = "HVD_SIZE=3";
    char *envp[] = { job, host, size, NULL };

    CHECK_OK(t, read_with("-np 1 x", envp));
    CHECK(t, !options.job && !options.hosts_from[DISCOVER_LIST]);
}

/* The options of a job are saved and loaded by --resume: options of the new command line win, and a
 * wrong saved file is refused. */
TEST(a_resume_takes_what_was_saved)
{
    struct core_config core;

    buf_init(&saved, LIMIT_CONFIG_TEXT_BYTES);
    CHECK_OK(t, read_words("-np 4 --min-np 2 --env A=1 --env B --ssh-args -v --reset-limit 0 "
                           "--stall-shutdown 0 --driver-grace 1h -H a:4 x"));
    CHECK_OK(t, options_save(&options, &saved));
    CHECK_OK(t, read_words("--resume j1 --min-np 3"));
    CHECK_TEXT(t, options.resume, "j1");
    CHECK(t, !options.command[0]);
    CHECK_OK(t, options_load(&options, "job.conf", buf_text(&saved), saved.length, &err));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 4);
    CHECK_INT(t, core.min_np, ==, 3);
    CHECK_INT(t, core.reset_limit, ==, 0);
    CHECK_INT(t, core.stall_us, ==, LIMIT_DURATION_US);
    CHECK_INT(t, core.driver_grace_us, ==, TIME_HOUR);
    CHECK_INT(t, options.env.count, ==, 2);
    CHECK_TEXT(t, options.hosts_from[DISCOVER_LIST], "a:4");
    CHECK_CODE(t, options_load(&options, "job.conf", "np = x", 6, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "job.conf:1: np: ");
}

TEST(a_config_file_is_read)
{
    static const char text[] = "np = 3\nelastic-timeout = 20\nhosts = \"a:3\"\n";
    struct core_config core;
    char path[256];
    char words[512];

    snprintf(path, sizeof(path), "%s/job.conf", test_dir(t));
    file = fopen(path, "w");
    CHECK(t, file && fputs(text, file) >= 0 && !fclose(file));
    file = NULL;
    snprintf(words, sizeof(words), "--config-file %s --elastic-timeout 30s x", path);
    CHECK_OK(t, read_words(words));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 3);
    CHECK_INT(t, core.elastic_timeout_us, ==, 30 * TIME_S);
    /* the new command line wins over the saved options */
    CHECK_OK(t, options_load(&options, "saved", "np = 9\nport = 77\n", 17, &err));
    CHECK_INT(t, options.np, ==, 3);
    CHECK_INT(t, options.port, ==, 77);
}

/* Options that only ask for a text (--help, --version ...) print this text on stdout, with status
 * 0. Other command lines print nothing. */
TEST_FLAGS(answers_what_is_asked, TEST_NO_TORTURE)
{
    static const struct wrong asked[] = {
        WRONG("--help", "usage: hvd-elastic [options]"),
        WRONG("--version", "hvd-elastic " HVD_VERSION_TEXT),
        WRONG("-cb", "TLS 1.3"),
        WRONG("-cb", "\nFrameworks:\n  [X] C, C++, CUDA: libhvd\n"
                     "  [X] PyTorch: the Python package hvd_elastic\n  [ ] TensorFlow"),
        WRONG("-cb", "\nControllers:\n  [X] agents, by fork and by ssh"),
        WRONG("-cb", "\nCarriers of collectives:\n  [X] shared memory"),
        WRONG("-cb", "] NCCL"),
        WRONG("--list-options", "min-np\tJob\t"),
        WRONG("-np 3 --print-config", "np = 3 # command line"),
    };
    char path[256];
    char text[8192];
    int output = -1;
    int status;

    snprintf(path, sizeof(path), "%s/out", test_dir(t));
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        size_t length;
        bool answered;

        CHECK_OK(t, read_words(asked[i].words));
        fflush(stdout);
        output = dup(STDOUT_FILENO);
        CHECK(t, output >= 0 && freopen(path, "w", stdout));
        answered = options_answer(&options, &status);
        fflush(stdout);
        dup2(output, STDOUT_FILENO);
        close(output);
        CHECK(t, answered);
        CHECK_INT(t, status, ==, 0);
        file = fopen(path, "r");
        CHECK(t, file);
        length = fread(text, 1, sizeof(text) - 1, file);
        text[length] = '\0';
        fclose(file);
        file = NULL;
        CHECK_HAS(t, text, asked[i].says);
    }
    CHECK_OK(t, read_words("-np 1 x"));
    CHECK(t, !options_answer(&options, &status));
}
