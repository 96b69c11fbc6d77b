/*
 * run.c: the driver's program from the command line to the exit code: options, the job's folder,
 * the settings of the driver's parts, the event loop, and the last line on standard error. main.c
 * calls run_main. Nothing is made for a job before everything that can be checked has been checked.
 */
#include "driver/run.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/opt_show.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/checkpoints.h"
#include "driver/control/textfile.h"
#include "driver/control/web.h"
#include "driver/core/core.h"
#include "driver/front/front.h"
#include "driver/front/front_link.h"
#include "driver/invocation.h"
#include "driver/io/event_url.h"
#include "driver/io/farewell.h"
#include "driver/io/loop.h"
#include "driver/job_folder.h"
#include "driver/journal/job_path.h"
#include "driver/journal/job_private.h"
#include "driver/launch/route.h"
#include "driver/options.h"
#include "driver/secret_env.h"
#include "driver/standby.h"
#include "os/clock.h"
#include "os/log_time.h"
#include "os/secrets.h"
#include "os/stderr_log.h"
#include "wire/token.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct run {
    struct driver_options options;
    struct front_order order; /* what this driver was told by its parent process */
    struct invocation before; /* for --resume without a command: how the job was started */
    struct job_folder folder;
    struct etcd_store_config store; /* the store in etcd, if has_store */
    bool has_store;
    /* the job's folder as an absolute path, for --resume and --standby; NULL: options.state_dir
     * says it */
    char *state_dir;
    struct job_env env;
    struct core_config core;
    struct discover_config discover;
    struct event_hook_config on_event;
    struct address metrics;     /* the value of --metrics, if this option is given */
    struct address page;        /* the value of --page, if this option is given */
    char token[TOKEN_TEXT_MAX]; /* the token in --token-file; "": none */
    struct launch_config launch;
    struct output_config output;
    char **ssh_args, **launcher;         /* words, and a NULL at the end; launcher is NULL: ssh */
    char agent[LIMIT_PATH_BYTES];        /* the path of this machine's hvd-agent */
    char journal[LIMIT_PATH_BYTES + 16]; /* the path of job.db */
    char cwd[LIMIT_PATH_BYTES];
    struct run_checkpoints checkpoints;
    char *const *command; /* the words of the workers' command, and a NULL at the end */
    char *const *envp;
    /* the environment of a resumed job: the saved one, with the secret variables of this process;
     * NULL: the job is not resumed */
    char **whole_envp;
    const char **script_envp; /* the discovery script's environment; NULL: that of this process */
};

static const char program[] = "hvd-elastic";

/* Prints the error as the last line of the program, and returns the exit code `status`. */
static int run_complain(int status, const struct hvd_err *err)
{
    fprintf(stderr, "%s: %s\n", program, err->text);
    return status;
}

/* A driver cannot go on. `runs`: its job does, and its parent starts the next driver, or gives up.
 */
static int run_break_down(bool runs, const struct hvd_err *err)
{
    if (!runs)
        return run_complain(RUN_BROKEN, err);
    log_error(JOB, "the driver cannot go on: %s", err->text);
    return RUN_BROKEN;
}

/* Reads how the job was started: from its folder, or from the store in etcd. */
static int find_invocation(struct run *run, const char *job, struct hvd_err *err)
{
    struct buf bytes;
    int rc;

    if (!run->has_store) {
        /* No other user may have written the command in the folder, because it will be run. */
        rc = job_private_check(run->state_dir, false /* do not make the folder */, err);
        if (!rc)
            rc = invocation_load(run->state_dir, &run->before, err);
        if (rc == HVD_E_NOTFOUND)
            err_set(err, rc,
                    "%s: there is no job to resume; give the name and the --state-dir that the job "
                    "was started with",
                    run->state_dir);
        return rc;
    }
    buf_init(&bytes, INVOCATION_BYTES_MAX);
    rc = standby_command(&run->store, job, &bytes, err);
    if (!rc)
        rc = invocation_decode(run->store.url, &bytes, &run->before, err);
    buf_release(&bytes);
    return rc;
}

/* Handles "--resume JOB" and "--standby JOB" without a command: loads the command, options and
 * environment with which the job was started, and enters the folder in which it was started. The
 * state directory is that of this command line, because the saved one may be missing on this
 * machine. run_main frees `whole_envp` and `script_envp`. */
static int load_invocation(struct run *run, const char *job, struct hvd_err *err)
{
    static const char *const names[] = { "HOME", "XDG_STATE_HOME" };
    const char *options_path = "the options that the job was started with";
    int rc = job_path_folder(run->options.state_dir, job, &run->state_dir, err);

    if (!rc)
        rc = find_invocation(run, job, err);
    if (!rc)
        rc = options_load(&run->options, options_path, run->before.options,
                          strlen(run->before.options), err);
    run->command = run->before.argv;
    /* With --stop the job is only ended, and no program is started: the job's current folder and
     * its secret variables are not needed. */
    if (!rc && run->options.stop) {
        /* The names of the folders in which agents of this machine are found depend on these
         * variables (os/state_home.h). They get the values of the job's start, because root, or a
         * user with another environment, may end the job. */
        for (size_t i = 0; i < ARRAY_SIZE(names) && !rc; i++) {
            size_t length = strlen(names[i]);
            const char *value = NULL;

            for (char *const *entry = run->before.envp; *entry && !value; entry++)
                if (!strncmp(*entry, names[i], length) && (*entry)[length] == '=')
                    value = *entry + length + 1;
            rc = value ? setenv(names[i], value, 1) : unsetenv(names[i]);
        }
        return rc ? err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM)) : 0;
    }
    if (!rc && chdir(run->before.cwd))
        rc = err_set(err, HVD_E_NOTFOUND,
                     "%s: the folder in which the job was started cannot be entered: %s; make the "
                     "folder again, or let this user enter it",
                     run->before.cwd, strerror(errno));
    /* The values of --env-secret were not saved. They come from the environment of this process. */
    if (!rc)
        rc = secret_env_check(&run->options.env_secret, run->envp, err);
    if (!rc)
        rc = secret_env_merge(&run->options.env_secret, run->before.envp, run->envp,
                              &run->whole_envp, err);
    if (!rc)
        rc = job_env_follow(run->whole_envp, run->envp, &run->script_envp, err);
    run->envp = run->whole_envp;
    return rc;
}

/* Saves the command, the options and the environment for --resume and --standby: in the job's
 * folder, and also in etcd if the job's store is there. secret_env_merge with NULL only removes the
 * variables of --env-secret. The cast drops a const: the words of the command are only read. */
static int save_invocation(struct run *run, struct hvd_err *err)
{
    struct invocation invocation = { .cwd = run->cwd, .argv = (char **)(uintptr_t)run->command };
    struct buf options, bytes;
    int rc = secret_env_merge(&run->options.env_secret, run->envp, NULL, &invocation.envp, err);

    if (rc)
        return rc;
    while (run->command[invocation.argc])
        invocation.argc++;
    buf_init(&options, LIMIT_CONFIG_TEXT_BYTES);
    rc = options_save(&run->options, &options);
    if (rc)
        err_set(err, rc,
                rc == HVD_E_LIMIT ? "the options of the job are longer than %d bytes "
                                    "(LIMIT_CONFIG_TEXT_BYTES); shorten them"
                                  : "no memory for the options of the job (at most %d bytes); "
                                    "free memory on this host",
                LIMIT_CONFIG_TEXT_BYTES);
    invocation.options = buf_text(&options);
    if (!rc)
        rc = invocation_save(run->folder.path, &invocation, err);
    buf_init(&bytes, INVOCATION_BYTES_MAX);
    if (!rc && run->has_store)
        rc = invocation_encode(&invocation, &bytes, err);
    if (!rc && run->has_store) {
        rc = etcd_store_save_command(run->folder.store,
                                     (struct span){ buf_text(&bytes), bytes.length }, err);
        /* etcd then keeps the command of the former driver. */
        if (rc == HVD_E_FULL && run->folder.resumed) {
            log_warning(JOB, "the command of the job cannot be kept anew: %s", err->text);
            rc = 0;
        }
    }
    buf_release(&bytes);
    buf_release(&options);
    mem_free(invocation.envp);
    return rc;
}

/* Splits the texts of --ssh-args or --launcher at blanks: "-o A=b" has two words, and a text of n
 * bytes at most n / 2 + 1. *ret_words: the words, and a NULL after them; the caller frees them,
 * also after a failure. */
static int split_words(char *const *texts, size_t count, char ***ret_words, struct hvd_err *err)
{
    static const char no_memory[] =
        "no memory for the words of --ssh-args and --launcher; free memory on this host";
    size_t room = 1, used = 0;
    char **words;

    for (size_t i = 0; i < count; i++)
        room += strlen(texts[i]) / 2 + 1;
    *ret_words = words = mem_zalloc_array(room, sizeof(char *));
    for (size_t i = 0; i < count && words; i++) {
        struct span rest = { texts[i], strlen(texts[i]) };
        struct span word;

        while (span_next(&rest, ' ', &word)) {
            if (!word.length)
                continue;
            words[used] = mem_strndup(word.at, word.length);
            if (!words[used++])
                return err_set(err, HVD_E_NOMEM, "%s", no_memory);
        }
    }
    return words ? 0 : err_set(err, HVD_E_NOMEM, "%s", no_memory);
}

static void free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        mem_free(words[i]);
    mem_free(words);
}

/* Makes run->env, the command and the environment of the workers. The variables of --env come after
 * those of -x, so they count if both have a name. A variable of -x that does not exist is left out,
 * as mpirun does. */
static int make_environment(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    size_t most = options->exports.count + options->env.count + options->env_secret.count;
    char **items;
    size_t count = 0;
    int rc;

    if (options->stop) /* a driver that only ends its job launches no worker */
        return job_env_init(&run->env, run->command, run->cwd, run->envp,
                            NULL /* no items of --env, -x and --env-secret */, 0, err);
    items = mem_zalloc_array(most + 1, sizeof(*items));
    if (!items)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the environment of workers; free memory on this host");
    for (size_t i = 0; i < options->exports.count; i++) {
        char *item = options->exports.items[i];
        bool found = strchr(item, '=') != NULL;

        for (char *const *entry = run->envp; *entry && !found; entry++)
            found = !strncmp(*entry, item, strlen(item)) && (*entry)[strlen(item)] == '=';
        if (found)
            items[count++] = item;
        else
            log_warning(JOB, "-x %s: there is no such variable here; workers start without it",
                        item);
    }
    for (size_t i = 0; i < options->env.count; i++)
        items[count++] = options->env.items[i];
    for (size_t i = 0; i < options->env_secret.count; i++)
        items[count++] = options->env_secret.items[i];
    rc = job_env_init(&run->env, run->command, run->cwd, run->envp, items, count, err);
    mem_free(items);
    return rc;
}

/* Sets `variable` of the workers to the absolute form of `path`, the value of `option`. A relative
 * path begins in the driver's current folder. */
static int put_path(struct run *run, const char *option, const char *path, const char *variable,
                    struct hvd_err *err)
{
    char text[2 * LIMIT_PATH_BYTES];

    if (strlen(path) >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the path is longer than %d bytes (LIMIT_PATH_BYTES); name a shorter "
                       "one",
                       option, LIMIT_PATH_BYTES);
    snprintf(text, sizeof(text), "%s%s%s", *path == '/' ? "" : run->cwd, *path == '/' ? "" : "/",
             path);
    return job_env_put(&run->env, variable, text, err);
}

/* Sets the variables by which libhvd in each worker gets options of the job. An option with its
 * default value sets no variable, so that --env may set it. The default of an option with a choice
 * of words is the first word, number 0. */
static int set_worker_variables(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    char text[TIME_TEXT_MAX];
    int rc = 0;

    if (options->cpu_operations)
        rc = job_env_put(&run->env, "HVD_CPU_OPERATIONS",
                         options_operations[options->cpu_operations], err);
    if (!rc && options->data_security)
        rc = job_env_put(&run->env, "HVD_DATA_SECURITY",
                         options_data_security[options->data_security], err);
    if (!rc && options->fixed_order)
        rc = job_env_put(&run->env, "HVD_FIXED_ORDER", "1", err);
    if (!rc && options->torch_env)
        rc = job_env_put(&run->env, "HVD_TORCH_ENV", "1", err);
    if (!rc && options->fusion_threshold_mb != OPTIONS_FUSION_MB) {
        snprintf(text, sizeof(text), "%" PRIu64, options->fusion_threshold_mb);
        rc = job_env_put(&run->env, "HVD_FUSION_THRESHOLD_MB", text, err);
    }
    if (!rc && options->gpu_operations)
        rc = job_env_put(&run->env, "HVD_GPU_OPERATIONS",
                         options_gpu_operations[options->gpu_operations], err);
    if (!rc && options->gpu_timeout_us != OPTIONS_GPU_TIMEOUT_US)
        rc = job_env_put(&run->env, "HVD_GPU_TIMEOUT", time_format(options->gpu_timeout_us, text),
                         err);
    if (!rc && options->disable_nvtx_ranges)
        rc = job_env_put(&run->env, "HVD_DISABLE_NVTX_RANGES", "1", err);
    if (!rc && options->thread_affinity)
        rc = job_env_put(&run->env, "HVD_THREAD_AFFINITY", options->thread_affinity, err);
    if (!rc && options->commit_to)
        rc = job_env_put(&run->env, "HVD_COMMIT_TO", options_commit_to[options->commit_to], err);
    if (!rc && options->autotune_log_file)
        rc = put_path(run, "--autotune-log-file", options->autotune_log_file,
                      "HVD_AUTOTUNE_LOG_FILE", err);
    /* The time at which the job began tells a worker whether an existing timeline belongs to this
     * job, also when the program turns its timeline on. */
    snprintf(text, sizeof(text), "%" PRId64, run->folder.facts.created_wall_us);
    if (!rc)
        rc = job_env_put(&run->env, "HVD_TIMELINE_BEGAN", text, err);
    if (rc || !options->timeline)
        return rc;
    return put_path(run, "--timeline-filename", options->timeline, "HVD_TIMELINE", err);
}

/* Sets the settings of the core, the launcher, the output and the workers from the options. `self`,
 * the path of this program, shows where hvd-agent is. */
static int configure(struct run *run, struct hvd_err *err)
{
    static const char *const places[] = { "hvd-agent", "../agent/hvd-agent" };
    const struct driver_options *options = &run->options;
    char self[LIMIT_PATH_BYTES], path[LIMIT_PATH_BYTES + 32];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 32);
    const char *slash;
    bool found = false;
    uint64_t seed = (uint64_t)clock_wall_us() ^ (uint64_t)getpid();
    int rc = options_to_core(options, run->folder.facts.job, seed, &run->core, err);

    /* Finds hvd-agent: beside hvd-elastic if it is installed, in the folder beside that of
     * hvd-elastic if it was just built, or in the PATH. */
    self[length > 0 ? length : 0] = 0;
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && !found && i < ARRAY_SIZE(places); i++) {
        snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - self), self, places[i]);
        found = access(path, X_OK) == 0 && realpath(path, run->agent);
    }
    if (!found)
        snprintf(run->agent, sizeof(run->agent), "hvd-agent");
    run->launch.local_path = run->agent;
    snprintf(run->journal, sizeof(run->journal), "%s/job.db", run->folder.path);
    run->core.journal = run->has_store ? run->store.url : run->journal;
    /* This limit is 9/10 of the core's limit for the same start, so that the error of ssh comes
     * first. */
    run->launch.limit_us = options->agent_timeout_us / 10 * 9;
    run->launch.parallel = (uint32_t)options->launch_parallel;
    run->output = (struct output_config){ .folder = options->stop ? NULL : options->output_dir,
                                          .limit_bytes = options->output_limit,
                                          .timestamps = options->prefix_timestamp,
                                          .out_fd = STDOUT_FILENO,
                                          .err_fd = STDERR_FILENO };
    if (!rc)
        rc = make_environment(run, err);
    return rc ? rc : set_worker_variables(run, err);
}

/* Returns the exit code for the end of a job. `code`: an enum core_exit; `signal`: the signal that
 * asked for the end; 0: no signal is known. */
static int exit_status(int code, int signal)
{
    switch (code) {
    case CORE_FINISHED: return RUN_FINISHED;
    case CORE_TOO_FEW: return RUN_TOO_FEW;
    case CORE_STOPPED: return 128 + (signal ? signal : SIGTERM);
    case CORE_REPLACED: return signal ? 128 + signal : RUN_REPLACED;
    default: return RUN_FAILED;
    }
}

/* Runs the event loop until the job has ended, and prints the last line on standard error. Returns
 * the exit code. end.begun: this driver has become the driver of the job, so agents may run. */
static int drive_job(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    const struct loop_config config = {
        .core = &run->core,
        .facts = &run->folder.facts,
        .store = run->folder.store,
        .folder = run->folder.path,
        .resumed = run->folder.resumed,
        .stop = options->stop != OPTIONS_STOP_NO,
        .stop_now = options->stop == OPTIONS_STOP_NOW,
        .discover = &run->discover,
        .launch = &run->launch,
        .output = &run->output,
        .env = &run->env,
        .catalog = run->checkpoints.catalog,
        .order = &run->order,
        .network_interfaces = options->interfaces.length ? buf_text(&options->interfaces) : NULL,
        .port = (uint16_t)options->port,
        .listen = options->listen,
        .metrics = options->metrics ? &run->metrics : NULL,
        .metrics_textfile = options->metrics_textfile,
        .page = options->page ? &run->page : NULL,
        .page_control = options->page_control,
        .on_event = &run->on_event,
        .token = *run->token ? run->token : NULL,
        .stall_warning_us = options->stall_warning_us,
        .stall_shutdown_us = options->stall_shutdown_us,
        .preemption = strcmp(options->preemption, "auto") != 0 ? options->preemption : NULL,
        .agent_log_level = options->verbose ? "debug" : NULL,
    };
    const char *job = run->folder.facts.job;
    const char *state_dir = options->state_dir;
    char text[TIME_TEXT_MAX];
    int64_t began_us = clock_now_us(), ran_us;
    struct span rest, line;
    struct loop_end end;
    int status;

    job_folder_say_begin(&run->folder, run->order.former || options->takeover || options->stop);
    run->folder.store = NULL; /* loop_run takes the store over */
    if (!loop_run(&config, &end, err)) {
        status = exit_status(end.code, end.signal);
        if (options->stop && end.code != CORE_REPLACED)
            status = RUN_FINISHED;
        ran_us = clock_now_us() - began_us;
        rest = (struct span){ buf_text(&end.summary), end.summary.length };
        while (span_next(&rest, '\n', &line))
            if (line.length)
                log_info(JOB, "%.*s", (int)line.length, line.at);
        buf_release(&end.summary);
        fprintf(stderr, "%s: job %s: %s (after %s, exit code %d)\n", program, job, end.text,
                time_brief(ran_us, text), status);
        farewell_start(end.farewell);
        farewell_free(end.farewell);
        return status;
    }
    buf_release(&end.summary);
    /* This driver cannot go on, but the agents may run on without a driver. The parent process
     * (order.restarts) starts the next driver; without one the user is told how to. */
    if ((!end.begun && !run->folder.resumed) || run->order.restarts)
        return run_break_down(end.begun || run->folder.resumed, err);
    fprintf(stderr,
            "%s: %s\n%s: job %s trains on without a driver for %s; take it over with: %s "
            "--resume %s%s%s\n",
            program, err->text, program, job, time_format(run->core.driver_grace_us, text), program,
            job, state_dir ? " --state-dir " : "", state_dir ? state_dir : "");
    return RUN_BROKEN;
}

/* Logs which options, variables and keys have no effect, and which value counts of an option that
 * was given twice. */
static void report_options(const struct driver_options *options)
{
    struct buf notes;
    struct span rest;
    struct span line;

    if (options->unused_variables.length)
        log_warning(JOB, "variables without effect in hvd-elastic: %s; see docs/from-horovod.md",
                    buf_text(&options->unused_variables));
    if (options->unused_keys.length)
        log_warning(JOB,
                    "keys of --config-file without effect in hvd-elastic: %s; see "
                    "docs/from-horovod.md",
                    buf_text(&options->unused_keys));
    buf_init(&notes, LIMIT_CONFIG_TEXT_BYTES);
    if (buf_append(&notes, options->host_notes.data, options->host_notes.length) ||
        opt_show_notes(&options->set, &notes))
        log_warning(JOB, "no memory to report options that were given twice; see --print-config");
    rest = (struct span){ buf_text(&notes), notes.length };
    while (span_next(&rest, '\n', &line))
        if (line.length)
            log_info(JOB, "%.*s", (int)line.length, line.at);
    buf_release(&notes);
}

/* Prints why the folder of the job cannot be taken; `rc` is the code of job_folder_open. Returns
 * the exit code. RUN_USAGE: the job has a driver, has ended or does not exist, so the user must
 * decide. A driver that follows another one of the same parent (order.job) has no user to ask:
 * RUN_REPLACED, or the exit code of the job that has ended. RUN_BROKEN: the folder cannot be used.
 */
static int no_folder(const struct run *run, int rc, const struct hvd_err *err)
{
    const struct job_facts *facts = &run->folder.facts;
    int status;

    if (rc != HVD_E_NOTFOUND && rc != HVD_E_EXISTS && rc != HVD_E_STATE && rc != HVD_E_BUSY)
        return run_break_down(run->order.job, err);
    if (!run->order.job)
        return run_complain(RUN_USAGE, err);
    if (rc != HVD_E_STATE)
        return run_complain(RUN_REPLACED, err);
    /* The previous driver has recorded the end of the job, and then died: this driver only says how
     * the job ended. */
    status = exit_status(facts->code, run->order.signal);
    fprintf(stderr, "%s: job %s: %s (exit code %d)\n", program, run->order.job, facts->text,
            status);
    return status;
}

/* Checks the addresses of --metrics and --page, the file of --metrics-textfile, and --on-event-url.
 * A driver that takes a job over (not `first`) does not look at folders and files: one that is
 * gone, or hangs, must not keep it from that. */
static int check_shown(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    bool first = !run->order.job && !options->resume && !options->standby;
    int rc = event_url_check(&run->on_event, first, err);

    if (!rc && options->metrics)
        rc = web_place("--metrics", options->metrics, &run->metrics, err);
    if (!rc && options->metrics_textfile)
        rc = textfile_check(options->metrics_textfile, first, err);
    if (!rc && options->page_control && !options->page)
        rc = err_set(err, HVD_E_INVAL, "--page-control: there is no page; give --page too");
    if (!rc && options->page)
        rc = web_place("--page", options->page, &run->page, err);
    return rc;
}

/* Checks that the source of hosts, the interfaces, the launcher, the key of ssh and the output
 * folder can be used, and sets their settings. The discoverer is made only for the checks of its
 * source of hosts: it is freed without a question. */
static int check_means(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    static const struct discover_ops never_called = { NULL, NULL }; /* no event loop runs here */
    struct event_base *base;
    struct discoverer *discoverer;
    struct token token;
    int rc = split_words(options->ssh_args.items, options->ssh_args.count, &run->ssh_args, err);

    if (!rc && strcmp(options->launcher, "ssh") != 0)
        rc = split_words(&options->launcher, 1, &run->launcher, err);
    if (rc)
        return rc;
    run->launch = (struct launch_config){
        .agent_path = options->agent_path,
        .launcher = (const char *const *)run->launcher,
        .ssh_port = options->ssh_port,
        .ssh_identity_file = options->ssh_identity_file,
        .ssh_host_keys = options->ssh_host_keys ? options_host_keys[options->ssh_host_keys] : NULL,
        .ssh_args = (const char *const *)run->ssh_args,
    };
    options_to_discover(options, &run->discover);
    run->discover.envp = run->script_envp;
    run->on_event = (struct event_hook_config){ .command = options->on_event,
                                                .url = options->on_event_url,
                                                .header_file = options->on_event_url_header_file,
                                                .ca_file = options->on_event_url_ca,
                                                .filter = options->event_filter,
                                                .limit_us = options->on_event_timeout_us,
                                                .envp = run->script_envp };
    /* With --stop the driver only ends its job: it goes on if the launcher or the key of ssh is
     * gone. */
    if (options->stop) {
        if (launch_check(&run->launch, NULL))
            run->launch = (struct launch_config){ .agent_path = options->agent_path };
        return 0;
    }
    base = event_base_new();
    if (!base)
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the driver's event loop; free memory on this host");

    if (!rc)
        rc = discover_create(base, &run->discover, &never_called, NULL, &discoverer, err);
    if (!rc)
        discover_free(discoverer);
    if (base)
        event_base_free(base);
    /* A driver that takes a job over finds the token in the journal, so its file may be gone. */
    if (!rc && options->token_file) {
        rc = token_read(options->token_file, &token, err);
        if (!rc)
            token_write(&token, run->token);
        rc = rc && !options->resume && !options->standby ? err_prefix(err, rc, "--token-file") : 0;
        explicit_bzero(&token, sizeof(token));
    }
    if (!rc)
        rc = check_shown(run, err);
    if (!rc && options->interfaces.length)
        rc = route_check_interfaces(buf_text(&options->interfaces), err);
    if (!rc)
        rc = launch_check(&run->launch, err);
    if (!rc && options->output_dir)
        rc = output_check(options->output_dir, err);
    return rc;
}

/* Takes the folder of the job, and the job in etcd if its store is there. A driver that follows
 * another driver of the same parent (`former` is their job) never takes the job over from a driver
 * that lives. */
static int run_take_folder(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    const char *former = run->order.job;
    struct job_folder_wish wish = {
        .state_dir = run->state_dir ? run->state_dir : options->state_dir,
        .job = options->job,
        .resume = former            ? former
                  : options->resume ? options->resume
                                    : options->standby,
        .takeover = !former && (options->takeover || options->standby),
    };
    int rc;

    /* load_invocation may have added --store to the options. */
    run->has_store = options_to_store(options, &run->store);
    run->store.takeover = run->store.takeover && !former;
    wish.store = run->has_store ? &run->store : NULL;
    rc = job_folder_open(&wish, &run->folder, err);
    if (!rc && !getcwd(run->cwd, sizeof(run->cwd)))
        rc = err_set(err, HVD_E_NOTFOUND,
                     "the current folder cannot be found: %s; change to another folder",
                     strerror(errno));
    return rc;
}

/* Sets how lines of the log look. */
static void set_log_style(const struct driver_options *options)
{
    log_time_set((enum log_time)options->log_time);
    stderr_log_set(&(struct stderr_log_style){
        .stamps = options->log_timestamps,
        .colours = (enum stderr_colours)options->colours,
    });
}

/* Called by front_run in the driver's process, after the options were read: loads what --resume
 * needs, checks everything, takes the folder and drives the job. Returns the exit code. */
static int run_job(void *arg, const struct front_order *order)
{
    struct run *run = arg;
    const struct driver_options *options = &run->options;
    const char *resume = options->resume ? options->resume : options->standby;
    struct front_msg taken = { .kind = FRONT_TAKEN };
    struct hvd_err err;
    int rc = 0;

    run->order = *order;
    /* The options have the URL, which may hold a secret. Programs that the driver starts inherit
     * its environment: agents of this machine, and so workers. */
    (void)unsetenv("HVD_ON_EVENT_URL");
    if (order->former)
        log_warning(JOB, "%s; a new driver takes the job over (pid %d)", order->former,
                    (int)getpid());
    run->command = options->command;
    run->has_store = options_to_store(options, &run->store);
    if (!*run->command && resume)
        rc = load_invocation(run, resume, &err);
    else if (*run->command)
        rc = secret_env_check(&options->env_secret, run->envp, &err);
    else
        rc = err_set(&err, HVD_E_INVAL,
                     "the command is missing; say what to run, \"%s -np 4 ./train\"", program);
    if (!rc)
        rc = check_means(run, &err);
    set_log_style(options); /* again, because load_invocation may have added options */
    if (rc)
        return run_complain(rc == HVD_E_NOMEM ? RUN_BROKEN : RUN_USAGE, &err);
    if (!order->job)
        report_options(options);
    rc = run_take_folder(run, &err);
    /* Another standby has taken the job over, the job has ended, or etcd cannot be used now. */
    if ((rc == HVD_E_EXISTS || rc == HVD_E_TIMEOUT || rc == HVD_E_STATE || rc == HVD_E_FULL) &&
        options->standby && !order->job) {
        log_info(JOB, "standby for job %s: %s; this standby waits again", options->standby,
                 err.text);
        return RUN_STANDBY;
    }
    if (rc)
        return no_folder(run, rc, &err);
    if (configure(run, &err))
        return run_complain(RUN_USAGE, &err);
    if (options->stop != OPTIONS_STOP_NOW)
        rc = run_checkpoints_open(options, &run->folder.facts,
                                  run->folder.resumed ? run->folder.store : NULL, run->cwd,
                                  &run->checkpoints, &run->core, &err);
    if (rc)
        return run_complain(rc == HVD_E_NOMEM || rc == HVD_E_IO ? RUN_BROKEN : RUN_USAGE, &err);
    if (!options->stop && save_invocation(run, &err))
        return run_complain(RUN_BROKEN, &err);
    taken.grace_us = run->core.driver_grace_us;
    taken.begun = run->folder.resumed;
    snprintf(taken.job, sizeof(taken.job), "%s", run->folder.facts.job);
    front_link_send(order->link, &taken);
    return drive_job(run, &err);
}

/* Called for --standby, before there is a driver's process: waits until the job has no driver
 * (true), or has ended or cannot be waited for (false; *ret_status is the exit code). */
static bool await_job(struct run *run, int *ret_status)
{
    const char *job = run->options.standby;
    struct job_facts facts = { .ended = false };
    struct hvd_err err;
    bool ended = false;
    int rc;

    run->has_store = options_to_store(&run->options, &run->store);
    rc = standby_wait(&run->store, job, &ended, &facts, &err);
    explicit_bzero(facts.key, sizeof(facts.key));
    if (!rc && !ended) {
        log_warning(JOB,
                    "standby for job %s: the job has no driver, so this process takes the job over",
                    job);
        return true;
    }
    *ret_status = rc ? run_complain(RUN_BROKEN, &err) : RUN_FINISHED;
    if (ended)
        fprintf(stderr, "%s: job %s has ended: %s; nothing is left to stand by for\n", program, job,
                facts.text);
    return false;
}

/* The program of a driver: reads the options, answers those that only show something, or runs the
 * job in a child process (driver/front). Returns the exit code, both in the parent and in the
 * child. */
int run_main(int argc, char **argv, char **envp)
{
    struct run *run = mem_zalloc(sizeof(*run));
    struct front_config front;
    struct rlimit files;
    struct hvd_err err;
    int status;
    int rc = run ? options_init(&run->options) : HVD_E_NOMEM;

    if (rc) {
        mem_free(run);
        err_set(&err, rc, "no memory for the options of hvd-elastic; free memory on this host");
        return run_complain(RUN_BROKEN, &err);
    }
    run->folder.lock_fd = -1;
    run->envp = envp;
    secrets_seal();
    signal(SIGPIPE, SIG_IGN);
    /* The limit on open files is raised, because each connected agent needs a descriptor. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (options_read(&run->options, argc, argv, envp, &err)) {
        status = options_complain(&err);
    } else if (!options_answer(&run->options, &status)) {
        set_log_style(&run->options);
        front = (struct front_config){ .restart = run->options.restart && !run->options.stop,
                                       .detach = run->options.detach,
                                       .state_dir = run->options.state_dir };
        if (!run->options.standby || await_job(run, &status))
            status = front_run(&front, run_job, run);
        /* Another standby has taken the job over first. The parent starts its program again from
         * the beginning, and forgets what it knew of the job. In the driver's process
         * (order.restarts) the status only tells the parent. */
        if (status == RUN_STANDBY && !run->order.restarts)
            (void)execv("/proc/self/exe", argv);
    }
    free_words(run->ssh_args);
    free_words(run->launcher);
    mem_free(run->script_envp);
    mem_free(run->whole_envp);
    mem_free(run->state_dir);
    job_env_release(&run->env);
    run_checkpoints_close(&run->checkpoints);
    job_folder_release(&run->folder);
    invocation_release(&run->before);
    options_release(&run->options);
    mem_free(run);
    return status;
}
