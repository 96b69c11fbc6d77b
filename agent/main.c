/*
 * main.c: hvd-agent, the process on each host that starts, watches and ends a job's workers. Reads
 * the options, goes into the background (start.c), and runs the event loop (io/loop.c). Invariant:
 * the host's key is never on the command line, in the environment or in the supervisor's memory.
 */
#include "agent/healthy.h"
#include "agent/io/ask_agent.h"
#include "agent/io/key_word.h"
#include "agent/io/loop.h"
#include "agent/join/join.h"
#include "agent/log_file.h"
#include "agent/notice/notice.h"
#include "agent/options.h"
#include "agent/processes/agent_socket.h"
#include "agent/start.h"
#include "agent/storage_env.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "os/file.h"
#include "os/secrets.h"
#include "os/stderr_log.h"
#include "state/remote/remote.h"

#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_USAGE       2
#define PRIORITY         (-10)       /* nice value of the agent: before the workers, if allowed */
#define SIGNAL_CODES     128         /* an exit status above this stands for a signal */
#define LAST_WORDS_BYTES (16 * 1024) /* how much of the agent's standard error is logged */
#define REDIAL_FIRST     (50 * TIME_MS) /* pause between the loss of a driver and the first dial */
#define TRIES            500            /* attempts to take the host over from an agent that ends */
#define RETRY_MS         10             /* the time between two such attempts */

struct program {
    struct agent_options options;
    char job_id[KEY_JOB_MAX];    /* made from the key; used if the options give no `job_id` */
    char key_word[KEY_WORD_MAX]; /* the key as text, for an agent that runs already */
    struct start start;          /* the pipes for the report of the start and for the key */
    struct log_file log;
    bool supervised; /* the agent runs below a supervisor: without --foreground */
};

/* Makes this process the host's agent. If another agent of the job runs on this host, this process
 * gives the driver's addresses and the key to that agent instead: then *ret_loop stays NULL and
 * *ret_pid is the other agent's pid. HVD_E_LOST of one attempt means that the other agent has just
 * begun, is ending or has ended: then this process waits a moment and tries again. */
static int main_take_host(struct event_base *base, struct agent_loop_config *config,
                          const char *key_word, struct agent_loop **ret_loop, int64_t *ret_pid,
                          struct hvd_err *err)
{
    const char *words[LIMIT_ADDRESSES + 2] = { config->job_id, key_word };
    const struct msg_texts said = { words, config->drivers.count + 2 };
    int rc = HVD_E_LOST;

    ASSERT(config->drivers.count <= LIMIT_ADDRESSES);
    for (size_t i = 0; i < config->drivers.count; i++)
        words[i + 2] = config->drivers.items[i];
    for (int i = 0; rc == HVD_E_LOST && i < TRIES; i++) {
        *ret_pid = getpid();
        /* a wait without descriptors: no event tells that the other agent listens or has ended */
        if (i > 0)
            poll(NULL, 0, RETRY_MS);
        rc = agent_socket_take(config->core.job, config->core.host, config->socket, err);
        /* only of a new agent: a running one must hear where its driver is in any case */
        if (!rc)
            rc = notice_check(config->preemption, err);
        if (!rc)
            rc = agent_loop_create(base, config, ret_loop, err);
        else if (rc == HVD_E_BUSY)
            rc = ask_agent_driver(base, config->socket->name, &said, ret_pid, err);
    }
    return rc;
}

/* Makes this process the host's agent and runs its event loop. Reports success to the process that
 * waits for the start when this process is the host's agent, or when another agent, which runs here
 * already, has taken the driver's addresses and the key (then there is no loop to run). */
static int main_serve(struct program *program, struct event_base *base, struct tls *tls)
{
    const struct agent_options *options = &program->options;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    struct agent_socket socket = { .fd = -1 };
    struct agent_loop_config config = {
        .core = {
            .job = options->job,
            .host = options->host,
            .agent = options->agent,
            .cores = cores > 0 && cores < UINT32_MAX ? (uint32_t)cores : 1,
            .memory_bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0,
            .min_np = (uint32_t)options->min_np,
            .max_np = (uint32_t)options->max_np,
            .beat_us = options->beat_us,
            .lease_us = options->lease_us,
            .driver_grace_us = options->driver_grace_us,
            .redial_first_us = options->redial_us > REDIAL_FIRST ? REDIAL_FIRST : options->redial_us,
            .redial_us = options->redial_us,
            .kill_grace_us = options->kill_grace_us,
            .stall_warning_us = options->stall.warning_us,
            .stall_shutdown_us = options->stall.shutdown_us,
        },
        .drivers = { (const char *const *)options->drivers.items, options->drivers.count },
        .address = options->address,
        .tls = tls,
        .job_id = options->job_id ? options->job_id : program->job_id,
        .epoch = options->epoch,
        .socket = &socket,
        .env = (const char *const *)environ,
        .notice_us = notice_grace(options->preemption, options->notice_us),
        .warning_us = notice_warning(options->preemption, options->notice_us),
        .preemption = options->preemption,
        .supervisor = program->supervised ? getppid() : 0,
    };
    struct agent_loop *loop = NULL;
    struct hvd_err err = { 0 };
    int64_t pid = 0;
    int rc = main_take_host(base, &config, program->key_word, &loop, &pid, &err);

    explicit_bzero(program->key_word, sizeof(program->key_word));
    if (rc) {
        start_failed(&program->start, &err);
        agent_socket_release(&socket);
        return rc;
    }
    if (loop)
        log_info(AGENT, "the agent is ready for job %s on host %s, as start %" PRIu64,
                 config.core.job, config.core.host, config.core.agent);
    if (!start_succeeded(&program->start, pid))
        log_info(AGENT, "the process that has started this agent is gone, so the agent ends");
    else if (loop)
        rc = agent_loop_run(loop);
    agent_loop_free(loop);
    agent_socket_release(&socket);
    return rc;
}

/* libevent's messages go to the log and not to standard error. The supervisor reads standard error
 * when the agent has ended, and takes each line there as a message of a crash. */
static void main_on_event_log(int severity, const char *text)
{
    (void)severity;
    log_debug(NET, "libevent: %s", text);
}

/* Runs the whole agent, in its own process. Returns the exit status of that process. */
static int main_run_agent(void *arg)
{
    struct program *program = arg;
    uint8_t key[AGENT_KEY_BYTES];
    struct hvd_err err = { 0 };
    struct tls *tls = NULL;
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    uint64_t *number = &program->options.agent;
    int rc = 0;

    /* The timers are precise, because leases and heartbeats are in milliseconds. */
    if (config && !event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER))
        base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    if (!base)
        rc = err_set(&err, HVD_E_NOMEM,
                     "no memory for the agent's event loop; free memory on this host");
    event_set_log_callback(main_on_event_log);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (program->supervised)
        log_file_open(&program->log, program->options.log_file, program->options.job,
                      program->options.host);
    /* heartbeats must not wait for busy workers; without the right to this the priority stays */
    setpriority(PRIO_PROCESS, 0, PRIORITY);

    /* Draws the random number of this start, unless the options gave one. 0 stands for "none
     * given", so a 0 is drawn again. */
    while (!rc && *number == 0) {
        if (getrandom(number, sizeof(*number), 0) != (ssize_t)sizeof(*number))
            rc = err_set(
                &err, HVD_E_IO,
                "the kernel gives no random bytes; allow the call getrandom in this container");
    }
    if (!rc && start_take_key(&program->start, key, sizeof(key)))
        rc = err_set(
            &err, HVD_E_IO,
            "the agent cannot read the host's key from the pipe of the process that started it; "
            "start the agent again");
    if (!rc)
        rc = tls_create(program->options.host, key, &tls, &err);
    if (!rc && key_job(key, program->job_id))
        rc = err_set(&err, HVD_E_NOMEM,
                     "no memory for the name of the job's key; free memory on this host");
    if (!rc)
        key_word_write(program->options.epoch, key, program->key_word);
    explicit_bzero(key, sizeof(key));

    if (rc)
        start_failed(&program->start, &err);
    else
        rc = main_serve(program, base, tls);
    tls_free(tls);
    if (base)
        event_base_free(base);
    libevent_global_shutdown();
    if (program->supervised)
        log_file_close(&program->log);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs in the supervisor when all processes of the agent have ended: logs the signal that killed
 * the agent, and what the agent wrote on standard error (`last_words`). */
static void main_agent_ended(void *arg, int code, int last_words)
{
    struct program *program = arg;
    char text[LAST_WORDS_BYTES], signal[TEXT_SIGNAL_MAX];
    struct span rest = { text, 0 };
    struct span line;
    ssize_t got = pread(last_words, text, sizeof(text), 0);
    struct agent_socket socket = { .fd = -1 };

    /* A killed agent has left the file of its socket. To take the socket over and to release it
     * removes the file. If another agent has the host by now, the take fails, and the file stays.
     */
    if (!agent_socket_take(program->options.job, program->options.host, &socket, NULL))
        agent_socket_release(&socket);
    log_file_open(&program->log, program->options.log_file, program->options.job,
                  program->options.host);
    if (code > SIGNAL_CODES)
        log_error(AGENT,
                  "the agent was killed by %s; its supervisor ends the processes of its workers",
                  text_signal(code - SIGNAL_CODES, signal));
    rest.length = got > 0 ? (size_t)got : 0;
    while (span_next(&rest, '\n', &line)) {
        if (line.length)
            log_error(AGENT, "the agent wrote on standard error before its end: %.*s",
                      (int)line.length, line.at);
    }
    log_file_close(&program->log);
}

/* the agent's process runs main_run_agent; its supervisor calls main_agent_ended afterwards */
static const struct start_ops start_ops = { main_run_agent, main_agent_ended };

/* Joins a job for this host (--join): checks the options, reads the token, and stays in join_run
 * until the job is over. `more` is the text of the options that each agent of this host gets.
 * Returns the exit status. The log level is "info" unless the command line names another. */
static int main_join(const struct agent_options *options, const struct opt_set *set)
{
    char machine[LIMIT_HOST_NAME_BYTES + 1] = "";
    const char *level = options->log_level;
    struct token token;
    struct hvd_err err;
    struct buf more;
    int status = EXIT_USAGE;
    int rc;

    buf_init(&more, LIMIT_CONFIG_TEXT_BYTES);
    gethostname(machine, sizeof(machine) - 1);
    rc = agent_options_join(options, machine, &err);
    if (!rc && (rc = token_read(options->token_file, &token, &err)))
        err_prefix(&err, rc, "--token-file");
    if (!rc)
        rc =
            log_set_levels(opt_source(set, "log-level") == OPT_COMMAND_LINE ? level : "info", &err);
    if (!rc && (rc = agent_options_pass_on(set, &more)))
        err_set(&err, rc, "%s", err_text(rc));
    if (rc) {
        fprintf(stderr, "hvd-agent: %s\n", err.text);
    } else {
        const struct join_config config = { .places = options->join,
                                            .token = &token,
                                            .name = options->name ? options->name : machine,
                                            .slots = (uint32_t)options->slots,
                                            .address_given = options->address != NULL,
                                            .timeout_us = options->join_timeout_us,
                                            .notice_us = notice_grace(options->preemption,
                                                                      options->notice_us),
                                            .more = buf_text(&more) };

        stderr_log_open();
        status = join_run(&config);
    }
    explicit_bzero(&token, sizeof(token));
    buf_release(&more);
    return status;
}

/* Reads the options, then runs the agent: in the background below a supervisor, or with
 * --foreground in this process. */
int main(int argc, char **argv)
{
    struct program program = { .log.fd = -1 };
    const struct opt_program answers = {
        .name = "hvd-agent",
        .usage = "hvd-agent --stdin < OPTIONS\n   or: hvd-agent --join HOST:PORT --token-file FILE "
                 "[options]\n   or: hvd-agent --healthy",
        .about =
            "Starts, watches and ends the workers of a job on this host. hvd-elastic starts "
            "hvd-agent, and writes its options to standard input, as lines of \"name = value\".",
        .general = &program.options.general,
        .storage_exit = EXIT_FAILURE,
    };
    uint8_t key[AGENT_KEY_BYTES];
    struct hvd_err err = { 0 };
    struct opt_set set;
    int status = EXIT_USAGE;
    int rc;

    file_hold_standard();
    secrets_seal();
    remote_storage_add();
    program.start = (struct start){ .report = -1, .secret = -1 }; /* no pipes yet */
    if (opt_init(&set, agent_option_table, agent_option_count, &program.options)) {
        fprintf(stderr, "hvd-agent: no memory for the options; free memory on this host\n");
        return EXIT_FAILURE;
    }
    if (agent_options_argv(&set, argc, argv, &err))
        goto complain;
    /* --help or a similar option was answered: the program ends */
    if (opt_answer(&answers, &set, &status))
        goto out;
    if (program.options.healthy || program.options.join) {
        status = program.options.healthy ? healthy_run() : main_join(&program.options, &set);
        goto out;
    }
    if (!program.options.from_stdin) {
        err_set(
            &err, HVD_E_INVAL,
            "the options of an agent are read from standard input; give --stdin, and see --help");
        goto complain;
    }
    if (agent_options_stdin(&set, &err) || log_set_levels(program.options.log_level, &err) ||
        storage_env_take(&program.options.storage_env, &err))
        goto complain;

    /* The key is moved from the options into a pipe, because the supervisor's memory must not hold
     * the key. */
    status = EXIT_FAILURE;
    agent_options_key(&program.options, key);
    rc = start_keep_key(&program.start, key, sizeof(key), &err);
    explicit_bzero(key, sizeof(key));
    if (rc)
        goto complain;
    program.supervised = !program.options.foreground;
    if (program.supervised) {
        status = start_in_background(&program.start, &start_ops, &program);
    } else {
        stderr_log_open();
        status = main_run_agent(&program);
    }
    goto out;
complain:
    fprintf(stderr, "hvd-agent: %s\n", err.text);
out:
    opt_release(&set);
    return status;
}
