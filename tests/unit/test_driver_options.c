#include "base/limits.h"
#include "base/log.h"
#include "base/opt_show.h"
#include "base/time.h"
#include "driver/journal/job_file.h"
#include "driver/option_table.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 40

static struct driver_options options;
static struct hvd_err err;
static char *no_variables[] = { NULL };

/* Words between single blanks; the program's name goes without saying. */
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

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

/* Without a sink the log wants nothing. */
static const struct log_sink sink = { swallow, no_time, NULL };

static void reads_what_the_reference_reads(struct test *t)
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
    CHECK_TEXT(t, options.network_interface, "eth0");
    CHECK_TEXT(t, options.command[0], "python");
    CHECK_TEXT(t, options.command[1], "t.py");
    CHECK(t, !options.command[2]);
    CHECK(t, log_wants(LOG_NET, LOG_DEBUG));
out:
    log_open(NULL);
    options_release(&options);
}

static void each_name_has_its_other_ones(struct test *t)
{
    CHECK_OK(t, read_words("--num-proc 3 --min-num-proc 2 --max-num-proc 5 --network-interface e0 "
                           "--prefix-output-with-timestamp --stall-check-warning-time-seconds 7 "
                           "--stall-check-shutdown-time-seconds 9 --ssh-port 2222 "
                           "--ssh-identity-file k -hostfile h --log-hide-timestamp -- x"));
    CHECK_INT(t, options.np, ==, 3);
    CHECK_INT(t, options.min_np, ==, 2);
    CHECK_INT(t, options.max_np, ==, 5);
    CHECK_TEXT(t, options.network_interface, "e0");
    CHECK(t, options.prefix_timestamp && !options.log_timestamps);
    CHECK_INT(t, options.stall_warning_us, ==, 7 * TIME_S);
    CHECK_INT(t, options.stall_shutdown_us, ==, 9 * TIME_S);
    CHECK_INT(t, options.ssh_port, ==, 2222);
    CHECK_TEXT(t, options.ssh_identity_file, "k");
    CHECK_TEXT(t, options.hostfile, "h");
    CHECK_OK(t, read_words("-H a:2 -np 2 --no-log-hide-timestamp --log-with-timestamp x"));
    CHECK(t, options.log_timestamps);
    CHECK_TEXT(t, options.hosts, "a:2");
    CHECK_OK(t, read_words("--hosts a:2 -np 2 --log-without-timestamp x"));
    CHECK(t, !options.log_timestamps);
    CHECK_OK(t, read_words("-np 2 --no-log-with-timestamp x"));
    CHECK(t, !options.log_timestamps);
out:
    options_release(&options);
}

static void flags_that_only_ask(struct test *t)
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
out:
    options_release(&options);
}

static void defaults_follow_from_what_was_said(struct test *t)
{
    struct core_config wanted;
    struct core_config core;
    struct discover_config hosts;

    core_config_init(&wanted);
    CHECK_OK(t, read_words("-np 4 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.min_np, ==, 4);
    CHECK_INT(t, core.max_np, ==, LIMIT_WORKERS);
    CHECK_INT(t, core.reset_limit, ==, CORE_NO_RESET_LIMIT);
    CHECK_INT(t, core.beat_us, ==, wanted.beat_us);
    CHECK_INT(t, core.lease_us, ==, wanted.lease_us);
    CHECK_INT(t, core.driver_grace_us, ==, wanted.driver_grace_us);
    CHECK_INT(t, core.discovery_us, ==, wanted.discovery_us);
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
    CHECK_TEXT(t, hosts.source, "localhost:4");
    CHECK_INT(t, hosts.limit_us, ==, TIME_MIN);
    CHECK_OK(t, read_words("--min-np 2 x"));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 2);
    options_to_discover(&options, &hosts);
    CHECK_TEXT(t, hosts.source, "localhost:2");
out:
    options_release(&options);
}

static void never_is_long(struct test *t)
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
out:
    options_release(&options);
}

static void hosts_come_from_the_highest_place(struct test *t)
{
    static char file[] = "HVD_HOSTFILE=hosts.txt";
    char *envp[] = { file, NULL };
    struct discover_config hosts;

    CHECK_OK(t, read_with("-np 1 --slots-per-host 3 --discovery-timeout 5s x", envp));
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_FILE);
    CHECK_TEXT(t, hosts.source, "hosts.txt");
    CHECK_INT(t, hosts.slots_per_host, ==, 3);
    CHECK_INT(t, hosts.limit_us, ==, 5 * TIME_S);
    CHECK_OK(t, read_with("-np 1 --discovery-watch ./w x", envp));
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_WATCH);
    CHECK_OK(t, read_with("-np 1 --host-discovery-script ./d x", envp));
    options_to_discover(&options, &hosts);
    CHECK_INT(t, hosts.kind, ==, DISCOVER_SCRIPT);
    CHECK_TEXT(t, hosts.source, "./d");
    CHECK_CODE(t, read_with("-np 1 --discovery-watch ./w -H a:1 x", envp), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "--hosts and --discovery-watch: hosts come from one place; leave one out");
out:
    options_release(&options);
}

static void collectives_have_their_options(struct test *t)
{
    static char fusion[] = "HVD_FUSION_THRESHOLD_MB=7";
    char *envp[] = { fusion, NULL };

    CHECK_OK(t, read_words("-np 1 x"));
    CHECK_TEXT(t, options_operations[options.cpu_operations], "auto");
    CHECK(t, !options.fixed_order);
    CHECK_INT(t, options.fusion_threshold_mb, ==, OPTIONS_FUSION_MB);
    CHECK_OK(t, read_with("-np 1 --cpu-operations TCP --fixed-order x", envp));
    CHECK_TEXT(t, options_operations[options.cpu_operations], "tcp");
    CHECK(t, options.fixed_order);
    CHECK_INT(t, options.fusion_threshold_mb, ==, 7);
    CHECK_OK(t, read_words("-np 1 --cpu-operations gloo --fusion-threshold-mb 0 x"));
    CHECK_TEXT(t, options_operations[options.cpu_operations], "gloo");
    CHECK_INT(t, options.fusion_threshold_mb, ==, 0);
    CHECK_TEXT(t, options_commit_to[options.commit_to], "both");
    CHECK_OK(t, read_words("-np 1 --commit-to device x"));
    CHECK_TEXT(t, options_commit_to[options.commit_to], "device");
out:
    options_release(&options);
}

static void gpus_have_their_options(struct test *t)
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
out:
    options_release(&options);
}

struct wrong {
    const char *words;
    const char *says;
};

#define WRONG(words_, says_) \
    {                        \
        words_, says_        \
    }

static void says_what_is_wrong(struct test *t)
{
    static const struct wrong wrongs[] = {
        WRONG("", "no command: write what a worker is to run after the options"),
        WRONG("-np 4", "no command: "),
        WRONG("-np 4 --", "no command: "),
        WRONG("x", "-np: how many workers the job starts with is not said; give -np or --min-np"),
        WRONG("statsu", "statsu: did you mean status?"),
        WRONG("-H a:2 drian n7", "drian: did you mean drain?"),
        WRONG("./train", "-np: how many workers"),
        WRONG("-np 0 x", "--np: \"0\": N must be"),
        WRONG("-np 4 --min-np 5 x", "--min-np: 5 is more than -np, 4"),
        WRONG("-np 4 --max-np 3 x", "-np: 4 is more than --max-np, 3"),
        WRONG("-np 1 --lease 1s x", "--lease: it must be at least twice as long as --beat"),
        WRONG("-np 1 --elastic-timeout 0 x", "--elastic-timeout: \"0\": must be "),
        WRONG("-np 1 --elastic-timeout soon x", "--elastic-timeout: \"soon\": not a duration"),
        WRONG("-np 1 --job ../x y", "--job: \"../x\": use only letters, digits"),
        WRONG("--resume .x", "--resume: \".x\": use only letters, digits"),
        WRONG("--resume a --job b", "--job b: --resume names another, a"),
        WRONG("-np 1 --env A=1 --env 1A x", "--env \"1A\": not a variable"),
        WRONG("-np 1 --env =1 x", "--env \"=1\": not a variable"),
        WRONG("-np 1 --network-interfaces a,b x", "--network-interface a,b: only one"),
        WRONG("-np 1 --log-level loud x", "--log-level: \"loud\": no such log level"),
        WRONG("-np 1 --log-with-timestamp --log-without-timestamp x", "leave one out"),
        WRONG("-np 1 --blacklist-cooldown-range 10 5 x", "must not be longer than the second"),
        WRONG("-np 1 --cpu-operations mpi x", "--cpu-operations: \"mpi\""),
        WRONG("-np 1 --commit-to disk x", "--commit-to: \"disk\""),
        WRONG("-np 1 --fusion-threshold-mb 4097 x", "--fusion-threshold-mb: \"4097\""),
        WRONG("-np 1 --config-file /no/such/file x", "/no/such/file: cannot open"),
        WRONG("-np 1 --min-npp 2 x", "did you mean --min-np?"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++) {
        CHECK(t, read_words(wrongs[i].words));
        CHECK_HAS(t, err.text, wrongs[i].says);
    }
out:
    options_release(&options);
}

static void refuses_with_a_reason(struct test *t)
{
    static const char *const refused[] = {
        "--mpi",
        "--jsrun",
        "--mpi-args=-x",
        "--binding-args=-b",
        "--mpi-threads-disable",
        "--no-mpi-threads-disable",
        "--disable-cache",
        "--cycle-time-ms 3",
        "--cache-capacity 9",
        "--hierarchical-allreduce",
        "--no-hierarchical-allreduce",
        "--hierarchical-allgather",
        "--torus-allreduce",
        "--autotune",
        "--no-autotune",
        "--autotune-log-file f",
        "--autotune-warmup-samples 1",
        "--autotune-steps-per-sample 1",
        "--autotune-bayes-opt-max-samples 1",
        "--autotune-gaussian-process-noise 1",
        "--timeline-mark-cycles",
        "--tcp",
        "--num-nccl-streams 2",
        "--thread-affinity 1",
        "--gloo-timeout-seconds 3",
    };
    char words[128];

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        snprintf(words, sizeof(words), "-np 1 %s x", refused[i]);
        CHECK_CODE(t, read_words(words), HVD_E_UNSUPPORTED);
        CHECK_HAS(t, err.text, "not supported here: ");
    }
out:
    options_release(&options);
}

static void levels_have_names_from_elsewhere(struct test *t)
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
out:
    log_open(NULL);
    options_release(&options);
}

/* A worker has these in its environment, and may start a job of its own. */
static void a_job_can_be_started_in_a_worker(struct test *t)
{
    static char job[] = "HVD_JOB=outer";
    static char host[] = "HVD_HOST=h";
    static char size[] = "HVD_SIZE=3";
    char *envp[] = { job, host, size, NULL };

    CHECK_OK(t, read_with("-np 1 x", envp));
    CHECK(t, !options.job && !options.hosts);
out:
    options_release(&options);
}

static void a_resume_takes_what_was_saved(struct test *t)
{
    struct core_config core;
    struct buf saved;

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
    CHECK_TEXT(t, options.hosts, "a:4");
    CHECK_CODE(t, options_load(&options, "job.conf", "np = x", 6, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "job.conf:1: np: ");
out:
    buf_release(&saved);
    options_release(&options);
}

static void a_config_file_is_read(struct test *t)
{
    static const char text[] = "np = 3\nelastic-timeout = 20\nhosts = \"a:3\"\n";
    struct core_config core;
    char path[256];
    char words[512];
    FILE *file = NULL;

    snprintf(path, sizeof(path), "%s/job.conf", test_dir(t));
    file = fopen(path, "w");
    CHECK(t, file && fputs(text, file) >= 0 && !fclose(file));
    file = NULL;
    snprintf(words, sizeof(words), "--config-file %s --elastic-timeout 30s x", path);
    CHECK_OK(t, read_words(words));
    CHECK_OK(t, to_core(&core));
    CHECK_INT(t, core.np, ==, 3);
    CHECK_INT(t, core.elastic_timeout_us, ==, 30 * TIME_S);
    /* it stands above what was saved */
    CHECK_OK(t, options_load(&options, "saved", "np = 9\nport = 77\n", 17, &err));
    CHECK_INT(t, options.np, ==, 3);
    CHECK_INT(t, options.port, ==, 77);
out:
    if (file)
        fclose(file);
    options_release(&options);
}

static void answers_what_is_asked(struct test *t)
{
    static const struct wrong asked[] = {
        WRONG("--help", "usage: hvd-elastic [options]"),
        WRONG("--version", "hvd-elastic " HVD_VERSION_TEXT),
        WRONG("-cb", "TLS 1.3"),
        WRONG("--list-options", "min-np\tJob\t"),
        WRONG("-np 3 --print-config", "np = 3 # command line"),
    };
    char path[256];
    char text[8192];
    int saved = -1;
    int status;

    snprintf(path, sizeof(path), "%s/out", test_dir(t));
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        FILE *file;
        size_t length;
        bool answered;

        CHECK_OK(t, read_words(asked[i].words));
        fflush(stdout);
        saved = dup(STDOUT_FILENO);
        CHECK(t, saved >= 0 && freopen(path, "w", stdout));
        answered = options_answer(&options, &status);
        fflush(stdout);
        dup2(saved, STDOUT_FILENO);
        close(saved);
        CHECK(t, answered);
        CHECK_INT(t, status, ==, 0);
        file = fopen(path, "r");
        CHECK(t, file);
        length = fread(text, 1, sizeof(text) - 1, file);
        text[length] = '\0';
        fclose(file);
        CHECK_HAS(t, text, asked[i].says);
    }
    CHECK_OK(t, read_words("-np 1 x"));
    CHECK(t, !options_answer(&options, &status));
out:
    options_release(&options);
}

TESTS(CASE(reads_what_the_reference_reads), CASE(each_name_has_its_other_ones),
      CASE(flags_that_only_ask), CASE(defaults_follow_from_what_was_said), CASE(never_is_long),
      CASE(hosts_come_from_the_highest_place), CASE(collectives_have_their_options),
      CASE(gpus_have_their_options), CASE(says_what_is_wrong), CASE(refuses_with_a_reason),
      CASE(levels_have_names_from_elsewhere), CASE(a_job_can_be_started_in_a_worker),
      CASE(a_resume_takes_what_was_saved), CASE(a_config_file_is_read),
      CASE_FLAGS(answers_what_is_asked, TEST_NO_TORTURE))
