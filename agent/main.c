/* hvd-agent: the process on each host that starts, watches and ends a job's workers. */
#include "agent/io/agent_socket.h"
#include "agent/io/ask_agent.h"
#include "agent/io/body.h"
#include "agent/log_file.h"
#include "agent/options.h"
#include "agent/start.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/opt_show.h"
#include "base/text.h"
#include "os/file.h"
#include "os/stderr_log.h"
#include "wire/tls.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_USAGE       2
#define PRIORITY         (-10)
#define SIGNAL_CODES     128 /* an exit status above this stands for a signal */
#define LAST_WORDS_BYTES (16 * 1024)
#define TRIES            100 /* of taking the socket over from an agent that ends */

static const char usage_text[] = "hvd-agent --stdin < OPTIONS";
static const char about_text[] =
    "Starts, watches and ends the workers of a job on this host. hvd-elastic starts it; what it is "
    "to do comes by standard input, as lines of \"name = value\".";

struct program {
    struct agent_options options;
    struct start start;
    struct log_file log;
    bool kept; /* by a keeper, which is our parent */
};

/* ---- the machine ----------------------------------------------------------------------------- */

static uint32_t count_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores > 0 && cores < UINT32_MAX ? (uint32_t)cores : 1;
}

static uint64_t count_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long bytes = sysconf(_SC_PAGESIZE);

    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

static int draw_number(uint64_t *number, struct hvd_err *err)
{
    while (*number == 0) {
        if (getrandom(number, sizeof(*number), 0) != (ssize_t)sizeof(*number))
            return err_set(err, HVD_E_IO, "this machine has no random numbers");
    }
    return 0;
}

/* ---- the agent ------------------------------------------------------------------------------- */

static struct body_config configure(const struct program *program, struct tls *tls)
{
    const struct agent_options *options = &program->options;

    return (struct body_config){
        .mind = {
            .job = options->job,
            .host = options->host,
            .agent = options->agent,
            .cores = count_cores(),
            .memory_bytes = count_memory(),
            .min_np = (uint32_t)options->min_np,
            .max_np = (uint32_t)options->max_np,
            .beat_us = options->beat_us,
            .lease_us = options->lease_us,
            .driver_grace_us = options->driver_grace_us,
            .redial_us = options->redial_us,
            .kill_grace_us = options->kill_grace_us,
            .stall_warning_us = options->stall_warning_us,
            .stall_shutdown_us = options->stall_shutdown_us,
        },
        .drivers = { (const char *const *)options->drivers.items, options->drivers.count },
        .tls = tls,
        .env = (const char *const *)environ,
        .notice_us = options->notice_us,
        .keeper = program->kept ? getppid() : 0,
    };
}

/* This host's agent, or word to the one that is there. 0 with no body: that one knows. */
static int become_the_agent(struct event_base *base, const struct body_config *config,
                            struct body **ret_body, int64_t *ret_pid, struct hvd_err *err)
{
    const char *words[LIMIT_ADDRESSES + 1];
    const struct msg_texts said = { words, config->drivers.count + 1 };
    char key[TLS_NAME_MAX];
    char name[AGENT_SOCKET_MAX];
    int rc = tls_name(config->tls, key) ? HVD_E_NOMEM : HVD_E_LOST;

    ASSERT(config->drivers.count <= LIMIT_ADDRESSES);
    words[0] = key;
    for (size_t i = 0; i < config->drivers.count; i++)
        words[i + 1] = config->drivers.items[i];
    agent_socket_name(config->mind.job, config->mind.host, name);
    for (int i = 0; rc == HVD_E_LOST && i < TRIES; i++) {
        *ret_pid = getpid();
        rc = body_create(base, config, ret_body, err);
        if (rc == HVD_E_BUSY)
            rc = ask_agent_driver(base, name, &said, ret_pid, err);
    }
    return rc;
}

static int serve(struct program *program, struct event_base *base, struct tls *tls)
{
    struct body_config config = configure(program, tls);
    struct body *body = NULL;
    struct hvd_err err = { 0 };
    int64_t pid = 0;
    int rc = become_the_agent(base, &config, &body, &pid, &err);

    if (rc) {
        start_failed(&program->start, &err);
        return rc;
    }
    if (body)
        log_info(AGENT, "job %s, host %s: here, as start %" PRIu64, config.mind.job,
                 config.mind.host, config.mind.agent);
    if (!start_succeeded(&program->start, pid))
        log_info(AGENT, "whoever wanted it is gone: it ends");
    else if (body)
        rc = body_run(body);
    body_free(body);
    return rc;
}

static struct event_base *make_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config && !event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER))
        base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    return base;
}

static int make_tls(struct program *program, struct tls **ret_tls, struct hvd_err *err)
{
    uint8_t key[AGENT_KEY_BYTES];
    int rc = start_take_key(&program->start, key, sizeof(key));

    if (rc)
        err_set(err, rc, "the key is lost");
    else
        rc = tls_create(program->options.job, key, ret_tls, err);
    explicit_bzero(key, sizeof(key));
    return rc;
}

/* Not to standard error, where only last words belong. */
static void on_event_log(int severity, const char *text)
{
    (void)severity;
    log_debug(NET, "libevent: %s", text);
}

/* In the process that is the agent from here on. */
static int run_agent(void *arg)
{
    struct program *program = arg;
    struct hvd_err err = { 0 };
    struct tls *tls = NULL;
    struct event_base *base = make_base();
    int rc = base ? 0 : err_set(&err, HVD_E_NOMEM, "no memory for the loop");

    event_set_log_callback(on_event_log);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (program->kept)
        log_file_open(&program->log, program->options.log_file, program->options.job,
                      program->options.host);
    setpriority(PRIO_PROCESS, 0, PRIORITY); /* where it may: else it is as good as the others */
    if (!rc)
        rc = draw_number(&program->options.agent, &err);
    if (!rc)
        rc = make_tls(program, &tls, &err);
    if (rc)
        start_failed(&program->start, &err);
    else
        rc = serve(program, base, tls);
    tls_free(tls);
    if (base)
        event_base_free(base);
    libevent_global_shutdown();
    if (program->kept)
        log_file_close(&program->log);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* In its keeper, when nothing of it is left. */
static void agent_ended(void *arg, int code, int last_words)
{
    struct program *program = arg;
    char text[LAST_WORDS_BYTES];
    struct span rest = { text, 0 };
    struct span line;
    ssize_t got = pread(last_words, text, sizeof(text), 0);

    log_file_open(&program->log, program->options.log_file, program->options.job,
                  program->options.host);
    if (code > SIGNAL_CODES)
        log_error(AGENT, "killed by signal %d; what was left of its workers is ended",
                  code - SIGNAL_CODES);
    rest.length = got > 0 ? (size_t)got : 0;
    while (span_next(&rest, '\n', &line)) {
        if (line.length)
            log_error(AGENT, "its last words: %.*s", (int)line.length, line.at);
    }
    log_file_close(&program->log);
}

/* ---- the command line ------------------------------------------------------------------------ */

static int complain(const struct hvd_err *err, int status)
{
    fprintf(stderr, "hvd-agent: %s\n", err->text);
    return status;
}

/* --help and its like: true when it was asked for, and has been answered. */
static bool answer(const struct opt_set *set, const struct agent_options *options, int *ret_status)
{
    struct buf out;
    int rc = 0;

    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    if (options->help)
        rc = opt_show_help(set, usage_text, about_text, &out);
    else if (options->version)
        rc = buf_printf(&out, "hvd-agent %s\n", HVD_VERSION_TEXT);
    else if (options->list_options)
        rc = opt_show_names(set, &out);
    else
        return false;
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    *ret_status = rc || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
    return true;
}

static int start(struct program *program)
{
    static const struct start_ops ops = { run_agent, agent_ended };
    struct hvd_err err = { 0 };
    uint8_t key[AGENT_KEY_BYTES];
    int rc;

    agent_options_key(&program->options, key);
    rc = start_keep_key(&program->start, key, sizeof(key), &err);
    explicit_bzero(key, sizeof(key));
    if (rc)
        return complain(&err, EXIT_FAILURE);
    if (!program->options.foreground) {
        program->kept = true;
        return start_in_background(&program->start, &ops, program);
    }
    stderr_log_open();
    return run_agent(program);
}

static int run(struct opt_set *set, struct program *program, int argc, char **argv)
{
    struct hvd_err err = { 0 };
    int status;

    if (agent_options_argv(set, argc, argv, &err))
        return complain(&err, EXIT_USAGE);
    if (answer(set, &program->options, &status))
        return status;
    if (!program->options.from_stdin)
        err_set(&err, HVD_E_INVAL, "what to do comes by standard input; give --stdin, see --help");
    else if (!agent_options_stdin(set, &err) && !log_set_levels(program->options.log_level, &err))
        return start(program);
    return complain(&err, EXIT_USAGE);
}

int main(int argc, char **argv)
{
    struct program program = { .kept = false };
    struct opt_set set;
    int status;

    file_hold_standard();
    program.start = (struct start){ .report = -1, .secret = -1 };
    program.log.fd = -1;
    if (opt_init(&set, agent_option_table, agent_option_count, &program.options)) {
        fprintf(stderr, "hvd-agent: out of memory\n");
        return EXIT_FAILURE;
    }
    status = run(&set, &program, argc, argv);
    opt_release(&set);
    return status;
}
