#include "driver/ask.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/opt_show.h"
#include "base/time.h"
#include "driver/ask_find.h"
#include "driver/ask_log.h"
#include "driver/ask_options.h"
#include "driver/ask_talk.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What it exits with: docs/cli.md. */
enum { ASK_DONE = 0, ASK_REFUSED = 1, ASK_USAGE = 2, ASK_BROKEN = 4, ASK_INTERRUPTED = 130 };

#define PATIENCE_US (30 * TIME_S)
#define WORDS_MAX   3

struct asking {
    const struct ask_verb *verb;
    struct ask_options options;
    struct opt_set set;
    const char *words[WORDS_MAX + 1]; /* that are no options, without the verb */
    size_t word_count;
    struct msg_ask ask;
    const char *args[2];
    char number[32];
    char time[TIME_TEXT_MAX];
};

static const struct ask_verb *find_verb(const char *word)
{
    for (size_t i = 0; i < ASK_VERBS; i++)
        if (!strcmp(ask_verbs[i].name, word))
            return &ask_verbs[i];
    return NULL;
}

bool ask_is_verb(const char *word)
{
    return find_verb(word) != NULL;
}

/* ---- the command line --------------------------------------------------------------------------
 */

/* Words and options may stand in any order: after each word the options begin anew. */
static int read_words(struct asking *asking, int argc, char **argv, struct hvd_err *err)
{
    int at = 1; /* the verb, as opt_argv passes over the first word */

    while (at < argc) {
        int rest = 0;
        int rc = opt_argv(&asking->set, argc - at, argv + at, &rest, err);

        if (rc)
            return rc;
        at += rest;
        if (at >= argc)
            break;
        if (asking->word_count == WORDS_MAX)
            return err_set(err, HVD_E_INVAL, "%s: too many words", argv[at]);
        asking->words[asking->word_count++] = argv[at];
    }
    return 0;
}

static const char *next_word(struct asking *asking, size_t *at)
{
    return *at < asking->word_count ? asking->words[(*at)++] : NULL;
}

static int read_seat(struct asking *asking, size_t *at, struct hvd_err *err)
{
    const char *seat = next_word(asking, at);

    if (!seat)
        return err_set(err, HVD_E_INVAL, "%s: which host; write HOST or HOST:SLOT",
                       asking->verb->name);
    asking->args[asking->ask.args.count++] = seat;
    return 0;
}

/* What is asked of the driver; the word that is left names the job. */
static int understand(struct asking *asking, struct hvd_err *err)
{
    const struct ask_options *options = &asking->options;
    const char *verb = asking->verb->name;
    const char *job;
    size_t at = 0;
    int rc = 0;

    asking->ask = (struct msg_ask){ .verb = verb, .json = options->json };
    asking->ask.args.items = asking->args;
    if (!strcmp(verb, "drain") || !strcmp(verb, "undrain")) {
        rc = read_seat(asking, &at, err);
    } else if (!strcmp(verb, "blacklist") && asking->word_count &&
               !strcmp(asking->words[0], "clear")) {
        at++;
        asking->ask.verb = "clear";
        rc = read_seat(asking, &at, err);
    } else if (!strcmp(verb, "events")) {
        snprintf(asking->number, sizeof(asking->number), "%" PRIu64, options->lines);
        asking->args[asking->ask.args.count++] = asking->number;
        asking->ask.follow = options->follow;
    } else if (!strcmp(verb, "stop")) {
        asking->ask.follow = options->wait;
    }
    if (!rc && !strcmp(verb, "drain"))
        asking->args[asking->ask.args.count++] = time_format(options->deadline_us, asking->time);
    job = next_word(asking, &at);
    if (!rc && at < asking->word_count)
        rc = err_set(err, HVD_E_INVAL, "%s: what is that? see 'hvd-elastic %s --help'",
                     asking->words[at], verb);
    if (!rc && job && options->job && opt_source(&asking->set, "job") == OPT_COMMAND_LINE &&
        strcmp(job, options->job) != 0)
        rc = err_set(err, HVD_E_INVAL, "%s: --job names another, %s; leave one of them out", job,
                     options->job);
    asking->words[0] = job ? job : options->job;
    return rc;
}

static int show_help(const struct asking *asking)
{
    char usage[128];
    struct buf out;
    int rc;

    snprintf(usage, sizeof(usage), "hvd-elastic %s %s[JOB] [options]", asking->verb->name,
             asking->verb->words);
    buf_init(&out, LIMIT_CONFIG_TEXT_BYTES);
    rc = opt_show_help(&asking->set, usage, asking->verb->about, &out);
    fputs(buf_text(&out), stdout);
    buf_release(&out);
    return rc || fflush(stdout) || ferror(stdout) ? ASK_BROKEN : ASK_DONE;
}

/* ---- the question ------------------------------------------------------------------------------
 */

static int complain(const struct asking *asking, int status, const struct hvd_err *err)
{
    fflush(stdout); /* so that the two keep their order where they go to the same place */
    fprintf(stderr, "hvd-elastic: %s\n", err->text);
    if (status == ASK_USAGE)
        fprintf(stderr, "Try 'hvd-elastic %s --help'.\n", asking->verb->name);
    return status;
}

static int status_of(int code)
{
    switch (code) {
    case HVD_E_INVAL: return ASK_USAGE;
    case HVD_E_NOTFOUND:
    case HVD_E_EXISTS:
    case HVD_E_BUSY:
    case HVD_E_DENIED: return ASK_REFUSED;
    default: return ASK_BROKEN;
    }
}

static int judge(const struct asking *asking, const struct ask_outcome *outcome,
                 const struct hvd_err *err)
{
    bool stopping = !strcmp(asking->ask.verb, "stop");

    if (outcome->deaf)
        return ASK_DONE; /* "| head" has seen enough */
    if (outcome->interrupted)
        return asking->ask.follow ? ASK_DONE : ASK_INTERRUPTED;
    if (outcome->code)
        return asking->options.json ? ASK_REFUSED : complain(asking, ASK_REFUSED, err);
    if (outcome->answered || (outcome->begun && stopping))
        return ASK_DONE;
    if (asking->ask.follow && !stopping) {
        fprintf(stderr, "hvd-elastic: the driver has ended\n");
        return ASK_DONE;
    }
    return complain(asking, ASK_BROKEN, err);
}

static int talk(struct asking *asking, const char *folder)
{
    bool endless = asking->ask.follow && !strcmp(asking->ask.verb, "events");
    struct ask_outcome outcome;
    struct hvd_err err = { .text = "" };
    char *name;
    int fd;
    int rc = ask_socket(folder, &name, &fd, &err);

    if (rc)
        return complain(asking, ASK_BROKEN, &err);
    rc = ask_talk(name, &asking->ask, endless ? TIME_NEVER : PATIENCE_US, &outcome, &err);
    mem_free(name);
    if (fd >= 0)
        close(fd);
    if (rc == HVD_E_NOTFOUND && !strcmp(asking->ask.verb, "events") && !endless &&
        !ask_log(folder, asking->options.lines, asking->options.json, &err))
        return ASK_DONE;
    if (rc == HVD_E_NOTFOUND)
        rc = ask_no_driver(folder, &err);
    return rc ? complain(asking, status_of(rc), &err) : judge(asking, &outcome, &err);
}

static int ask(struct asking *asking)
{
    struct hvd_err err;
    char *folder;
    int status;
    int rc = ask_find(asking->options.state_dir, asking->words[0], &folder, &err);

    if (rc)
        return complain(asking, status_of(rc), &err);
    status = talk(asking, folder);
    mem_free(folder);
    return status;
}

int ask_main(int argc, char **argv)
{
    struct asking asking = { .verb = find_verb(argv[1]) };
    struct hvd_err err;
    int status;
    int rc = opt_init(&asking.set, ask_option_table, ask_option_count, &asking.options);

    if (rc) {
        err_set(&err, rc, "%s", err_text(rc));
        return complain(&asking, ASK_BROKEN, &err);
    }
    signal(SIGPIPE, SIG_IGN);
    rc = read_words(&asking, argc, argv, &err);
    if (!rc && !asking.options.help)
        rc = opt_env(&asking.set, environ, &err);
    if (!rc && !asking.options.help)
        rc = understand(&asking, &err);
    if (rc)
        status = complain(&asking, ASK_USAGE, &err);
    else if (asking.options.help)
        status = show_help(&asking);
    else
        status = ask(&asking);
    opt_release(&asking.set);
    return status;
}
