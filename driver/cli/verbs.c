/*
 * verbs.c: the table of verbs, the table of their options, and functions with which several verbs
 * read their words. cli.c runs a verb of this table; driver/options.c asks for the verb that is
 * nearest to a mistyped command. A verb without a row here does not exist.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/text.h"

#include <string.h>

#define USAGE_COLUMNS 70 /* a line of the usage has at most so many columns before " [--help]" */

const struct cli_verb *const cli_verbs[CLI_VERBS] = {
    &cli_status,      &cli_hosts, &cli_changes,    &cli_events, &cli_drain,   &cli_undrain,
    &cli_blacklist,   &cli_rekey, &cli_checkpoint, &cli_stop,   &cli_jobs,    &cli_prune,
    &cli_checkpoints, &cli_token, &cli_top,        &cli_page,   &cli_autopsy,
};

const struct cli_verb *cli_find_verb(const char *name)
{
    for (size_t i = 0; i < CLI_VERBS; i++)
        if (!strcmp(cli_verbs[i]->name, name))
            return cli_verbs[i];
    return NULL;
}

/* Writes two forms, as the help describes them. A line that would be too long goes on in the next
 * one. */
int cli_append_usage(struct buf *out)
{
    int rc = 0;

    for (int form = 0; form < 2; form++) {
        const char *separator = "       hvd-elastic ";
        size_t column = 0;

        for (size_t i = 0; !rc && i < CLI_VERBS; i++) {
            const char *name = cli_verbs[i]->name;
            size_t before = out->length;

            if ((form == 0) != !cli_verbs[i]->run)
                continue;
            if (column + strlen(" | ") + strlen(name) > USAGE_COLUMNS) {
                rc = buf_append_text(out, "\n");
                separator = "                   | ";
                column = 0;
                before++;
            }
            if (!rc)
                rc = buf_printf(out, "%s%s", separator, name);
            column += out->length - before;
            separator = " | ";
        }
        if (!rc)
            rc = buf_append_text(out, form == 0 ? " [--help]\n" : " [--help]");
    }
    return rc;
}

/* Returns what the user has probably meant by a word: for a word of another program (`others`) the
 * verb or option that does the same here, and for a mistyped word the verb with the nearest name.
 * NULL: there is none. A word that begins with another letter than that verb counts as the name of
 * a program: "train" is not "drain", and "true" is not "prune". */
const char *cli_nearest_verb(const char *word)
{
    /* words of other programs, and the verb or option that does the same here */
    static const char *const others[][2] = {
        {"cancel",  "stop"    },
        { "kill",   "stop"    },
        { "list",   "jobs"    },
        { "ls",     "jobs"    },
        { "ps",     "jobs"    },
        { "logs",   "events"  },
        { "log",    "events"  },
        { "nodes",  "hosts"   },
        { "resume", "--resume"},
        { "info",   "status"  },
    };
    const char *names[CLI_VERBS], *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (!strcmp(others[i][0], word))
            return others[i][1];
    for (size_t i = 0; i < CLI_VERBS; i++)
        names[i] = cli_verbs[i]->name;
    /* A word with a slash is the path of a program, and never a mistyped verb. */
    nearest = strchr(word, '/') ? NULL : text_nearest(word, names, CLI_VERBS);
    return nearest && nearest[0] == word[0] ? nearest : NULL;
}

const char *cli_next_word(struct cli_request *request)
{
    return request->words_read < request->word_count ? request->words[request->words_read++] : NULL;
}

void cli_add_arg(struct cli_request *request, const char *text)
{
    ASSERT(request->ask.args.count < ARRAY_SIZE(request->args));
    request->args[request->ask.args.count++] = text;
}

/* Takes the next word, HOST or HOST:SLOT, as an argument of the request. The driver checks the
 * word. */
int cli_read_slot(struct cli_request *request, struct hvd_err *err)
{
    const char *slot = cli_next_word(request);

    if (!slot)
        return err_set(err, HVD_E_INVAL, "%s: the host is missing; write HOST or HOST:SLOT",
                       request->verb->name);
    cli_add_arg(request, slot);
    return 0;
}

/* For verbs that have no words of their own: --wait asks the driver for an answer that goes on to
 * the end of the work. */
int cli_read_wait(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    request->ask.follow = request->options.wait;
    return 0;
}

#define ROW(field, ...)                                             \
    OPT(struct cli_options, field, .group = "Options of the verbs", \
        .flags = OPT_NO_ENV | OPT_ARGV_ONLY | OPT_NEVER, __VA_ARGS__)

/* Options that, like those of a driver, may also come from the environment (HVD_STORE). */
#define STORE_ROW(field, word, value, text)                                  \
    OPT(struct cli_options, field, .name = (word), .arg = (value), .min = 1, \
        .group = "Options of the verbs", .help = (text))

/* clang-format off */
const struct opt cli_option_table[] = {
    OPT(struct cli_options, job, .name = "job", .arg = "NAME", .min = 1, .group = "Options of the verbs",
        .help = "the job; the same as its name after the other words. Default: the only job whose "
                "driver is alive"),
    OPT(struct cli_options, state_dir, .name = "state-dir", .arg = "DIR", .min = 1,
        .group = "Options of the verbs", .help = "the job's state directory, if the job was started with one"),
    ROW(json, .name = "json", .help = "print one line of JSON; events: one line for each event"),
    ROW(follow, .name = "follow", .key = 'f', .help = "events: also print the events that follow; status, hosts, changes, blacklist: "
                "again each second, until Ctrl-C"),
    ROW(lines, .name = "lines", .key = 'n', .arg = "N", .preset = "4096",
        .max = LIMIT_EVENTS_KEPT, .help = "events: print the newest N"),
    ROW(deadline_us, .name = "deadline", .arg = "TIME", .preset = "never",
        .help = "drain: a worker that has not left within TIME is killed"),
    ROW(retain, .name = "retain", .arg = "TIME|N", .min = 1,
        .help = "prune: which ended jobs stay: those of the last TIME, \"30d\", or the newest N. Default: "
                "the newest 100 of the last 30 days"),
    ROW(lifetime_us, .name = "lifetime", .arg = "TIME", .preset = "never",
        .help = "token create: hosts may join with the token for TIME"),
    ROW(uses, .name = "uses", .arg = "N", .preset = "0", .max = LIMIT_HOSTS,
        .help = "token create: N hosts may join with the token; 0: any number"),
    ROW(host, .name = "host", .arg = "NAME", .min = 1,
        .help = "token create: only the host of this name may join with the token"),
    ROW(file, .name = "file", .arg = "FILE", .min = 1,
        .help = "token create: the token is the one in FILE; it is not printed"),
    OPT(struct cli_options, wait, .name = "wait", .preset = "true", .flags = OPT_NO_ENV,
        .group = "Options of the verbs", .help = "stop: wait until the driver has ended; rekey: until no old key is accepted; "
                "checkpoint: until it is complete"),
    OPT(struct cli_options, checkpoint, .name = "checkpoint", .preset = "true", .flags = OPT_NO_ENV,
        .group = "Options of the verbs", .help = "stop: of a job with --checkpoint-dir: write a checkpoint before the end"),
    STORE_ROW(store, "store", "URL", "status, hosts, stop: of a job that has no driver: its store in etcd"),
    STORE_ROW(store_ca, "store-ca", "FILE", "the certificate authorities that sign etcd's certificates"),
    STORE_ROW(store_cert, "store-cert", "FILE", "the certificate by which etcd knows this command"),
    STORE_ROW(store_key, "store-key", "FILE", "the key of that certificate"),
    STORE_ROW(store_user, "store-user", "NAME", "the user by which etcd knows this command"),
    STORE_ROW(store_password_file, "store-password-file", "FILE", "a file with the password of that user"),
    OPT(struct cli_options, store_insecure, .name = "store-insecure", .group = "Options of the verbs",
        .help = "talk to etcd on other machines without TLS"),
    ROW(help, .name = "help", .key = 'h', .help = "show this help, and end"),
};
/* clang-format on */

const size_t cli_option_count = ARRAY_SIZE(cli_option_table);
