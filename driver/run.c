#include "driver/run.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/core/core.h"
#include "driver/hosts/reach.h"
#include "driver/invocation.h"
#include "driver/io/alarms.h"
#include "driver/io/body.h"
#include "driver/job_folder.h"
#include "driver/option_table.h"
#include "os/clock.h"
#include "os/stderr_log.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    struct driver_options options;
    struct invocation before; /* of a job that is resumed by its name */
    struct job_folder folder;
    struct job_env env;
    struct core_config core;
    struct discover_config discover;
    struct launch_config launch;
    struct output_config output;
    char **ssh_args; /* ends in NULL */
    char agent[LIMIT_PATH_BYTES];
    char cwd[LIMIT_PATH_BYTES];
    char *const *command; /* ends in NULL */
    char *const *envp;
};

static const char program[] = "hvd-elastic";

static int complain(int status, const struct hvd_err *err)
{
    fprintf(stderr, "%s: %s\n", program, err->text);
    return status;
}

/* ---- what is to be run ----------------------------------------------------------------------- */

/* --resume JOB alone is the command that the job was started with. */
static int recall(struct run *run, struct hvd_err *err)
{
    const char *options_path = "the options that the job was started with";
    char *folder;
    int rc;

    rc = job_folder_path(run->options.state_dir, run->options.resume, &folder, err);
    if (rc)
        return rc;
    rc = invocation_load(folder, &run->before, err);
    mem_free(folder);
    if (!rc)
        rc = options_load(&run->options, options_path, run->before.options,
                          strlen(run->before.options), err);
    if (!rc && chdir(run->before.cwd))
        rc = err_set(err, HVD_E_NOTFOUND, "%s, where the job was started: %s", run->before.cwd,
                     strerror(errno));
    run->command = run->before.argv;
    run->envp = run->before.envp;
    return rc;
}

static int remember(struct run *run, struct hvd_err *err)
{
    struct invocation invocation = { .cwd = run->cwd,
                                     .argv = (char **)(uintptr_t)run->command,
                                     .envp = (char **)(uintptr_t)run->envp };
    struct buf options;
    int rc;

    while (run->command[invocation.argc])
        invocation.argc++;
    buf_init(&options, LIMIT_CONFIG_TEXT_BYTES);
    rc = options_save(&run->options, &options);
    if (rc)
        err_set(err, rc, "no memory for the options");
    invocation.options = buf_text(&options);
    if (!rc)
        rc = invocation_save(run->folder.path, &invocation, err);
    buf_release(&options);
    return rc;
}

static int find_command(struct run *run, struct hvd_err *err)
{
    run->command = run->options.command;
    if (!*run->command && run->options.resume)
        return recall(run, err);
    if (!*run->command)
        return err_set(err, HVD_E_INVAL, "no command; say what to run, \"%s -np 4 ./train\"",
                       program);
    return 0;
}

/* ---- what it runs with ----------------------------------------------------------------------- */

/* Beside us when installed, in the folder beside ours when just built, or in the PATH. */
static void find_agent(struct run *run)
{
    static const char *const places[] = { "hvd-agent", "../agent/hvd-agent" };
    char self[LIMIT_PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 32);
    char *slash;

    snprintf(run->agent, sizeof(run->agent), "hvd-agent");
    if (length <= 0)
        return;
    self[length] = 0;
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
        char path[LIMIT_PATH_BYTES + 32];

        slash[1] = 0;
        snprintf(path, sizeof(path), "%s%s", self, places[i]);
        if (access(path, X_OK) == 0 && realpath(path, self)) {
            snprintf(run->agent, sizeof(run->agent), "%s", self);
            return;
        }
    }
}

/* "-o A=b" is two words. */
static int split_ssh_args(struct run *run, struct hvd_err *err)
{
    const struct opt_list *list = &run->options.ssh_args;
    size_t words = 1;
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        words += strlen(list->items[i]) / 2 + 1;
    run->ssh_args = mem_zalloc_array(words, sizeof(char *));
    for (size_t i = 0; i < list->count && run->ssh_args; i++) {
        struct span rest = { list->items[i], strlen(list->items[i]) };
        struct span word;

        while (span_next(&rest, ' ', &word)) {
            if (!word.length)
                continue;
            run->ssh_args[count] = mem_strndup(word.at, word.length);
            if (!run->ssh_args[count++])
                return err_set(err, HVD_E_NOMEM, "no memory for --ssh-args");
        }
    }
    return run->ssh_args ? 0 : err_set(err, HVD_E_NOMEM, "no memory for --ssh-args");
}

/* What is as it always is goes without saying, so that --env may say it too. */
static int name_collectives(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    char fusion[24];
    int rc = 0;

    snprintf(fusion, sizeof(fusion), "%" PRIu64, options->fusion_threshold_mb);
    if (options->cpu_operations)
        rc = job_env_put(&run->env, "HVD_CPU_OPERATIONS",
                         options_operations[options->cpu_operations], err);
    if (!rc && options->fixed_order)
        rc = job_env_put(&run->env, "HVD_FIXED_ORDER", "1", err);
    if (!rc && options->fusion_threshold_mb != OPTIONS_FUSION_MB)
        rc = job_env_put(&run->env, "HVD_FUSION_THRESHOLD_MB", fusion, err);
    return rc;
}

static int name_gpus(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    char timeout[TIME_TEXT_MAX];
    int rc = 0;

    if (options->gpu_operations)
        rc = job_env_put(&run->env, "HVD_GPU_OPERATIONS",
                         options_gpu_operations[options->gpu_operations], err);
    if (!rc && options->gpu_timeout_us != OPTIONS_GPU_TIMEOUT_US)
        rc = job_env_put(&run->env, "HVD_GPU_TIMEOUT",
                         time_format(options->gpu_timeout_us, timeout), err);
    if (!rc && options->commit_to)
        rc = job_env_put(&run->env, "HVD_COMMIT_TO", options_commit_to[options->commit_to], err);
    return rc;
}

/* Workers write it, wherever they are. Whether a file that is there is this job's they know by the
 * time at which the job began, which a driver that takes over still knows. */
static int name_timeline(struct run *run, struct hvd_err *err)
{
    const char *name = run->options.timeline;
    char path[2 * LIMIT_PATH_BYTES];
    char began[32];
    int rc;

    if (!name)
        return 0;
    if (strlen(name) >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT, "--timeline-filename is longer than LIMIT_PATH_BYTES (%d)",
                       LIMIT_PATH_BYTES);
    snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : run->cwd,
             name[0] == '/' ? "" : "/", name);
    snprintf(began, sizeof(began), "%" PRId64, run->folder.facts.created_wall_us);
    rc = job_env_put(&run->env, "HVD_TIMELINE", path, err);
    return rc ? rc : job_env_put(&run->env, "HVD_TIMELINE_BEGAN", began, err);
}

static int configure(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    uint64_t seed = (uint64_t)clock_wall_us() ^ (uint64_t)getpid();
    int rc = options_to_core(options, run->folder.facts.job, seed, &run->core, err);

    find_agent(run);
    if (!rc)
        rc = split_ssh_args(run, err);
    run->launch = (struct launch_config){
        .agent_path = options->agent_path,
        .local_path = run->agent,
        .ssh_port = options->ssh_port,
        .ssh_identity_file = options->ssh_identity_file,
        .ssh_args = (const char *const *)run->ssh_args,
        .limit_us = options->agent_timeout_us / 10 * 9, /* ssh's own words come before the core's */
        .parallel = (uint32_t)options->launch_parallel,
    };
    run->output = (struct output_config){ .folder = options->output_dir,
                                          .timestamps = options->prefix_timestamp,
                                          .out_fd = STDOUT_FILENO,
                                          .err_fd = STDERR_FILENO };
    if (!rc)
        rc = job_env_init(&run->env, run->command, run->cwd, run->envp, options->env.items,
                          options->env.count, err);
    if (!rc)
        rc = name_collectives(run, err);
    if (!rc)
        rc = name_gpus(run, err);
    if (!rc)
        rc = name_timeline(run, err);
    return rc;
}

/* Many agents are many descriptors. */
static void raise_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static int status_of(const struct body_end *end)
{
    switch (end->code) {
    case CORE_FINISHED: return RUN_FINISHED;
    case CORE_TOO_FEW: return RUN_TOO_FEW;
    case CORE_STOPPED: return 128 + (end->signal ? end->signal : SIGTERM);
    case CORE_REPLACED: return end->signal ? 128 + end->signal : RUN_REPLACED;
    default: return RUN_FAILED;
    }
}

static int summarise(const struct run *run, const struct body_end *end, int64_t began_us)
{
    char text[TIME_TEXT_MAX];
    int64_t ran_us = (clock_now_us() - began_us) / TIME_MS * TIME_MS;
    int status = status_of(end);

    fprintf(stderr, "%s: job %s: %s after %s (exit code %d)\n", program, run->folder.facts.job,
            end->text, time_format(ran_us, text), status);
    return status;
}

/* This driver cannot go on; the job can. */
static int broken(const struct run *run, const struct body_end *end, const struct hvd_err *err)
{
    char text[TIME_TEXT_MAX];

    if (!end->begun && !run->folder.resumed)
        return complain(RUN_BROKEN, err);
    fprintf(stderr,
            "%s: %s\n%s: job %s trains on without a driver for %s; take it over with: %s "
            "--resume %s%s%s\n",
            program, err->text, program, run->folder.facts.job,
            time_format(run->core.driver_grace_us, text), program, run->folder.facts.job,
            run->options.state_dir ? " --state-dir " : "",
            run->options.state_dir ? run->options.state_dir : "");
    return RUN_BROKEN;
}

static int drive(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    const struct body_config config = {
        .core = &run->core,
        .facts = &run->folder.facts,
        .file = run->folder.file,
        .folder = run->folder.path,
        .resumed = run->folder.resumed,
        .discover = &run->discover,
        .launch = &run->launch,
        .output = &run->output,
        .env = &run->env,
        .network_interface = options->network_interface,
        .port = (uint16_t)options->port,
        .stall_warning_us = options->stall_warning_us,
        .stall_shutdown_us = options->stall_shutdown_us,
        .agent_log_level = options->verbose ? "debug" : NULL,
    };
    int64_t began_us = clock_now_us();
    struct body_end end;
    int rc;

    log_info(JOB, "job %s %s, its state is in %s", run->folder.facts.job,
             run->folder.resumed ? "is taken over" : "begins", run->folder.path);
    run->folder.file = NULL; /* given */
    rc = body_run(&config, &end, err);
    return rc ? broken(run, &end, err) : summarise(run, &end, began_us);
}

static int open_folder(struct run *run, struct hvd_err *err)
{
    const struct driver_options *options = &run->options;
    const struct job_folder_wish wish = { .state_dir = options->state_dir,
                                          .job = options->job,
                                          .resume = options->resume,
                                          .takeover = options->takeover };
    int rc = job_folder_open(&wish, &run->folder, err);

    if (!rc && !getcwd(run->cwd, sizeof(run->cwd)))
        rc = err_set(err, HVD_E_NOTFOUND, "the current folder: %s", strerror(errno));
    return rc;
}

/* A job that is driven, has ended, or was never there is for the user to decide about; a folder
 * that cannot be used is broken. */
static int folder_status(int code)
{
    bool usage =
        code == HVD_E_NOTFOUND || code == HVD_E_EXISTS || code == HVD_E_STATE || code == HVD_E_BUSY;

    return usage ? RUN_USAGE : RUN_BROKEN;
}

static void no_hosts(void *arg, const struct hosts *hosts)
{
    (void)arg;
    (void)hosts;
}

static void no_failure(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

static void no_answer(void *arg, const char *host, const struct reach_answer *answer,
                      const char *why)
{
    (void)arg;
    (void)host;
    (void)answer;
    (void)why;
}

static int check_discovery(struct run *run, struct event_base *base, struct hvd_err *err)
{
    static const struct discover_ops ops = { no_hosts, no_failure };
    struct discoverer *discoverer;
    int rc;

    options_to_discover(&run->options, &run->discover);
    rc = discover_create(base, &run->discover, &ops, NULL, &discoverer, err);
    if (!rc)
        discover_free(discoverer);
    return rc;
}

static int check_interface(const struct run *run, struct event_base *base, struct hvd_err *err)
{
    struct reach *reach;
    int rc = reach_create(base, run->options.network_interface, no_answer, NULL, &reach, err);

    if (!rc)
        reach_free(reach);
    return rc;
}

/* What cannot work is said before anything is made for the job. */
static int check_places(struct run *run, struct hvd_err *err)
{
    struct event_base *base = alarms_base_create();
    int rc;

    if (!base)
        return err_set(err, HVD_E_NOMEM, "no memory for the loop");
    rc = check_discovery(run, base, err);
    if (!rc)
        rc = check_interface(run, base, err);
    if (!rc && run->options.output_dir)
        rc = output_check(run->options.output_dir, err);
    alarms_base_free(base);
    return rc;
}

static int run_job(struct run *run)
{
    struct hvd_err err;
    int rc = find_command(run, &err);

    if (!rc)
        rc = check_places(run, &err);
    if (rc)
        return complain(rc == HVD_E_NOMEM ? RUN_BROKEN : RUN_USAGE, &err);
    rc = open_folder(run, &err);
    if (rc)
        return complain(folder_status(rc), &err);
    if (configure(run, &err))
        return complain(RUN_USAGE, &err);
    if (remember(run, &err))
        return complain(RUN_BROKEN, &err);
    return drive(run, &err);
}

static void release(struct run *run)
{
    for (size_t i = 0; run->ssh_args && run->ssh_args[i]; i++)
        mem_free(run->ssh_args[i]);
    mem_free(run->ssh_args);
    job_env_release(&run->env);
    job_folder_release(&run->folder);
    invocation_release(&run->before);
    options_release(&run->options);
}

int run_main(int argc, char **argv, char **envp)
{
    struct run *run = mem_zalloc(sizeof(*run));
    struct hvd_err err;
    int status;
    int rc = run ? options_init(&run->options) : HVD_E_NOMEM;

    if (rc) {
        mem_free(run);
        err_set(&err, rc, "no memory");
        return complain(RUN_BROKEN, &err);
    }
    run->folder.lock_fd = -1;
    run->envp = envp;
    signal(SIGPIPE, SIG_IGN);
    raise_limits();
    if (options_read(&run->options, argc, argv, envp, &err))
        status = options_complain(&err);
    else if (!options_answer(&run->options, &status)) {
        stderr_log_stamp(run->options.log_timestamps);
        status = run_job(run);
    }
    release(run);
    mem_free(run);
    return status;
}
