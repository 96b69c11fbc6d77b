/*
 * cli.c: one run of a verb, from the command line to the exit code that docs/cli.md promises.
 * main.c calls cli_main when the first word is a verb. Everything special about a verb is in its
 * row of the table in verbs.c; this file treats all verbs alike, so a new verb changes nothing
 * here.
 */
#include "driver/cli/cli.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/opt_show.h"
#include "driver/cli/client.h"
#include "driver/cli/find_job.h"
#include "driver/cli/orphans.h"
#include "driver/cli/verbs.h"
#include "driver/store/etcd_store.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The exit codes of docs/cli.md. */
enum { CLI_DONE = 0, CLI_REFUSED = 1, CLI_USAGE = 2, CLI_BROKEN = 4, CLI_INTERRUPTED = 130 };

#define FOLLOW_S 1 /* the seconds between two answers with --follow */
/* The sequence by which a terminal moves its cursor to the top left, and clears the screen. */
#define CLEAR_SCREEN "\x1b[H\x1b[2J"

bool cli_is_verb(const char *word)
{
    return cli_find_verb(word) != NULL;
}

/* Returns the index of a verb behind options that a verb may have, "--job x status". 0: there is no
 * verb, or a word before it is no such option. */
int cli_verb_behind_options(int argc, char **argv)
{
    struct cli_options options = { .job = NULL };
    struct opt_set set;
    int at = 0, read = 0;

    if (argc < 2 || argv[1][0] != '-' ||
        opt_init(&set, cli_option_table, cli_option_count, &options))
        return 0;
    /* opt_argv fails at an option that no verb has: the command line is then that of a job. "--"
     * says that the next word is the command of a job. */
    if (!opt_argv(&set, argc, argv, &read, NULL) && read < argc && cli_is_verb(argv[read]) &&
        strcmp(argv[read - 1], "--") != 0)
        at = read;
    opt_release(&set);
    return at;
}

/* ---- the command line ----------------------------------------------------------------------- */

/* Makes the request of a verb from the words and options of the command line and from the
 * environment. */
static int cli_read_request(struct cli_request *request, int argc, char **argv, struct hvd_err *err)
{
    const struct cli_options *options = &request->options;
    const struct cli_verb *verb = request->verb;
    int at = 1;   /* the index of the verb: opt_argv skips the first word as the program's name */
    int read = 0; /* how many words opt_argv has read before the next word that is no option */
    int rc;

    /* Words and options may be mixed: opt_argv reads options up to the next word, and the next call
     * goes on behind that word. */
    for (; at < argc; request->words[request->word_count++] = argv[at]) {
        rc = opt_argv(&request->set, argc - at, argv + at, &read, err);
        if (rc)
            return rc;
        at += read;
        if (at >= argc)
            break;
        if (request->word_count == CLI_WORDS_MAX)
            return err_set(err, HVD_E_INVAL, "%s: one word too many; see --help", argv[at]);
    }
    if (options->help) /* --help works even if other options are wrong */
        return 0;
    rc = opt_env(&request->set, environ, err);

    /* The verb takes its own words (verb->read). One word that remains names the job. */
    request->ask = (struct msg_ask){ .verb = verb->name, .json = options->json };
    request->ask.args.items = request->args;
    if (!rc && verb->read)
        rc = verb->read(request, err);
    if (rc)
        return rc;
    if (!verb->run)
        request->job = cli_next_word(request);
    if (request->words_read < request->word_count)
        return err_set(err, HVD_E_INVAL, "%s: one word too many; see 'hvd-elastic %s --help'",
                       request->words[request->words_read], verb->name);
    /* The word and --job must not name different jobs, but only --job on the command line counts
     * here: HVD_JOB may name another job, because in a worker it names the worker's own job. */
    if (request->job && options->job && opt_source(&request->set, "job") == OPT_COMMAND_LINE &&
        strcmp(request->job, options->job) != 0)
        return err_set(err, HVD_E_INVAL,
                       "%s: --job names another job, %s; leave one of the two out", request->job,
                       options->job);
    if (!request->job)
        request->job = options->job;
    if (options->follow && !verb->repeats && verb != &cli_events)
        return err_set(err, HVD_E_INVAL,
                       "%s: --follow is for events, status, hosts, changes and blacklist; leave it "
                       "out",
                       verb->name);
    return 0;
}

/* ---- the request ---------------------------------------------------------------------------- */

/* Prints the error. Returns the exit code `status`. */
static int cli_complain(const struct cli_request *request, int status, const struct hvd_err *err)
{
    fflush(stdout); /* flushed first, so that the output comes before the error */
    fprintf(stderr, "hvd-elastic: %s\n", err->text);
    if (status == CLI_USAGE)
        fprintf(stderr, "Try 'hvd-elastic %s --help'.\n", request->verb->name);
    return status;
}

/* Returns the exit code for an error code: of the search for the job, of the connection to its
 * driver, or of a verb that asks no driver. */
static int cli_exit_code_of(int code)
{
    switch (code) {
    case HVD_E_INVAL: return CLI_USAGE;
    case HVD_E_NOTFOUND:
    case HVD_E_EXISTS:
    case HVD_E_BUSY:
    case HVD_E_STATE:
    case HVD_E_DENIED: return CLI_REFUSED;
    default: return CLI_BROKEN;
    }
}

/* Called when no driver of the job listens on this machine. Answers without a driver, by the verb's
 * answer_offline or by a table made from the job's journal (orphan_table); else prints that the job
 * has ended, or why there is no driver. `folder` NULL: the job has no folder here, and `err`
 * already says why. Returns the exit code. */
static int cli_answer_offline(struct cli_request *request, const char *folder, struct hvd_err *err)
{
    const struct cli_options *options = &request->options;
    const struct etcd_store_config store = { .url = options->store,
                                             .ca_file = options->store_ca,
                                             .cert_file = options->store_cert,
                                             .key_file = options->store_key,
                                             .user = options->store_user,
                                             .password_file = options->store_password_file,
                                             .insecure = options->store_insecure,
                                             .lease_us = 2 * TIME_S };
    /* The table answers the request of the verb's own name, and not "clear" of "blacklist". */
    cli_table_fn *table =
        strcmp(request->ask.verb, request->verb->name) != 0 ? NULL : request->verb->orphan_table;
    const struct cli_place place = { .folder = folder,
                                     .job = request->job,
                                     .store = options->store ? &store : NULL,
                                     .ended_too = table && request->verb->ended_too };
    struct table_facts facts;
    struct core_view view;
    struct buf out;
    int rc = HVD_E_NOTFOUND;

    /* An answer that goes on (ask.follow) needs a driver. But for a verb that ends the driver,
     * ask.follow only means that the verb waits for the end. */
    if (request->verb->answer_offline && (!request->ask.follow || request->verb->ends_driver)) {
        rc = request->verb->answer_offline(request, &place, err);
    } else if (request->orphan) {
        /* the journal has what the last driver knew */
        core_view_init(&view);
        buf_init(&out, LIMIT_ANSWER_BYTES);
        rc = request->orphan(&place, &view, &facts, err);
        if (!rc && table && request->verb->complete)
            rc = request->verb->complete(folder, &facts, &view, err);
        if (!rc && !table) {
            rc = HVD_E_NOTFOUND;
        } else if (!rc) {
            rc = table(&view, &facts, request->options.json, &out);
            if (!rc)
                rc = client_print(buf_text(&out), out.length);
            if (rc)
                err_set(err, rc, "%s", err_text(rc));
            else if (facts.ended)
                rc = err_set(err, HVD_E_STATE, "job %s has ended: %s", facts.job, facts.ended);
        }
        buf_release(&out);
        core_view_release(&view);
    }
    if (!rc)
        return CLI_DONE;
    if (rc == HVD_E_NOTFOUND && folder)
        rc = cli_no_driver(folder, err);
    return cli_complain(request, cli_exit_code_of(rc), err);
}

/* Sends the request to the job's driver, or answers it without a driver if none listens. Returns
 * the exit code. `endless`: the answer goes on until the driver ends (--follow). `unfinished`: the
 * verb's error text for a connection that closes before the end of the answer; NULL: the verb has
 * none. */
static int cli_ask_driver(struct cli_request *request, const char *folder)
{
    const char *unfinished = request->verb->unfinished;
    bool ends_driver = request->verb->ends_driver;
    bool endless = request->ask.follow && !ends_driver && !unfinished;
    struct client_outcome outcome;
    struct hvd_err err = { .text = "" };
    int rc = client_ask(folder, &request->ask, endless ? TIME_NEVER : ANSWER_TIMEOUT_US, &outcome,
                        NULL, &err);

    if (!rc) { /* the connection to the driver was made */
        if (outcome.reader_gone)
            return CLI_DONE; /* the reader of the output has ended, as "| head" does */
        if (outcome.interrupted)
            return request->ask.follow && !unfinished ? CLI_DONE : CLI_INTERRUPTED;
        /* client_ask has put the text of a refusal into `err`, although rc is 0. */
        if (outcome.code) /* with --json the refusal was printed as the answer */
            return request->options.json ? CLI_REFUSED : cli_complain(request, CLI_REFUSED, &err);
        if (outcome.answered || (outcome.begun && ends_driver)) {
            if (request->verb->done)
                request->verb->done(request);
            return CLI_DONE;
        }
        /* The connection has closed before the end of the answer. If no part of the answer has
         * come, client_on_closed has set `err`. */
        if (outcome.begun)
            err_set(&err, HVD_E_LOST, "%s",
                    unfinished ? unfinished
                               : "the driver has ended before the answer was complete; ask again");
        if (!endless)
            return cli_complain(request, CLI_BROKEN, &err);
        fprintf(stderr, "hvd-elastic: the driver has ended\n");
        return CLI_DONE;
    }
    /* No process listens on the socket, so the job has no driver now. */
    return rc == HVD_E_NOTFOUND ? cli_answer_offline(request, folder, &err)
                                : cli_complain(request, cli_exit_code_of(rc), &err);
}

/* For --follow: repeats the request every FOLLOW_S until Ctrl-C, the end of the driver, or the end
 * of the program that reads the output. On a terminal each answer takes the place of the answer
 * before. `status`: the exit code of the first request. SIGINT is blocked while it is waited for,
 * and again has its usual effect during the request. */
static int cli_follow(struct cli_request *request, const char *folder, int status)
{
    const char *between = request->options.json ? "" : isatty(STDOUT_FILENO) ? CLEAR_SCREEN : "\n";
    const struct timespec pause = { .tv_sec = FOLLOW_S };
    sigset_t interrupt, before;
    int signal;

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    while (status == CLI_DONE) {
        sigprocmask(SIG_BLOCK, &interrupt, &before);
        signal = sigtimedwait(&interrupt, NULL, &pause);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (signal == SIGINT)
            break;
        fputs(between, stdout);
        status = fflush(stdout) || ferror(stdout) ? CLI_BROKEN : cli_ask_driver(request, folder);
        if (status == CLI_BROKEN && ferror(stdout))
            return CLI_DONE; /* the reader has ended, as "| head" does */
        if (status == CLI_REFUSED || status == CLI_INTERRUPTED)
            return CLI_DONE; /* the job has ended, as standard error says, or Ctrl-C */
    }
    return status;
}

/* Runs the verb argv[1], and returns the exit code of docs/cli.md. In this order: --help; a verb
 * that asks no driver (run); a job that is only in etcd; a verb with an answer that is drawn again
 * and again (live); else one request to the driver, repeated with --follow. */
int cli_main(int argc, char **argv, cli_orphan_fn *orphan)
{
    struct cli_request request = { .verb = cli_find_verb(argv[1]), .orphan = orphan };
    struct hvd_err err;
    struct buf help;
    char usage[128];
    char *folder = NULL;
    int status;
    int rc = opt_init(&request.set, cli_option_table, cli_option_count, &request.options);

    if (rc) {
        err_set(&err, rc, "%s", err_text(rc));
        return cli_complain(&request, CLI_BROKEN, &err);
    }
    signal(SIGPIPE, SIG_IGN);
    rc = cli_read_request(&request, argc, argv, &err);
    if (rc) {
        status = cli_complain(&request, CLI_USAGE, &err);
    } else if (request.options.help) {
        snprintf(usage, sizeof(usage), "hvd-elastic %s %s[JOB] [options]", request.verb->name,
                 request.verb->words);
        buf_init(&help, LIMIT_CONFIG_TEXT_BYTES);
        rc = opt_show_help(&request.set, usage, request.verb->about, &help);
        fputs(buf_text(&help), stdout);
        buf_release(&help);
        status = rc || fflush(stdout) || ferror(stdout) ? CLI_BROKEN : CLI_DONE;
    } else if (request.verb->run) {
        rc = request.verb->run(&request, &err);
        status = rc ? cli_complain(&request, cli_exit_code_of(rc), &err)
                 : fflush(stdout) || ferror(stdout) ? CLI_BROKEN
                                                    : CLI_DONE;
    } else if ((rc = orphans_find_job(&request, &folder, &err)) == HVD_E_NOTFOUND &&
               request.options.store && request.job) {
        status = cli_answer_offline(&request, NULL, &err);
    } else if (rc) {
        status = cli_complain(&request, cli_exit_code_of(rc), &err);
    } else if (request.verb->live) {
        rc = request.verb->live(&request, folder, &err);
        if (rc == HVD_E_NOTFOUND && request.verb->answer_offline)
            status = cli_answer_offline(&request, folder, &err);
        else
            status = rc ? cli_complain(&request, cli_exit_code_of(rc), &err) : CLI_DONE;
        mem_free(folder);
    } else {
        status = cli_ask_driver(&request, folder);
        if (request.options.follow && request.verb->repeats)
            status = cli_follow(&request, folder, status);
        mem_free(folder);
    }
    opt_release(&request.set);
    return status;
}
