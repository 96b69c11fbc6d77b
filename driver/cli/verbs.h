/*
 * verbs.h: what a verb is, the table of all verbs, and the one table of their options.
 *
 * Each verb is one file (status.c, drain.c ...) with one struct cli_verb, and one row in verbs.c.
 */
#ifndef DRIVER_CLI_VERBS_H
#define DRIVER_CLI_VERBS_H

#include "base/limits.h"
#include "base/opt.h"
#include "base/time.h"
#include "driver/cli/cli.h"
#include "proto/msg.h"

#define CLI_WORDS_MAX 3 /* the most words of a command line behind the verb */

/* How long a verb waits for the first part of an answer. */
#define ANSWER_TIMEOUT_US (30 * TIME_S)

struct cli_options {
    char *job, *state_dir;
    bool json, follow;
    uint64_t lines;
    int64_t deadline_us;
    char *retain, *file, *host;
    uint64_t uses;
    int64_t lifetime_us;
    bool wait, checkpoint;
    char *store, *store_ca, *store_cert, *store_key, *store_user, *store_password_file;
    bool store_insecure;
    bool help;
};

struct cli_request; /* defined below */

typedef int cli_table_fn(const struct core_view *view, const struct table_facts *facts, bool json,
                         struct buf *out);

struct cli_verb {
    const char *name;
    const char *words; /* the verb's arguments, as the usage line shows them */
    const char *about; /* the verb's description for --help */
    /* Moves the verb's own words and options into request->ask. NULL: the verb has none. */
    int (*read)(struct cli_request *request, struct hvd_err *err);
    /* Called when the driver has carried the request out. NULL: nothing more is to be done. */
    void (*done)(struct cli_request *request);
    /* Carries the verb out for verbs that ask no driver. NULL: the verb is a request to the driver
     * of one job. */
    int (*run)(const struct cli_request *request, struct hvd_err *err);
    /* Answers for a job that has no driver. HVD_E_NOTFOUND: no answer is possible without a driver.
     * NULL: only a driver answers, or orphan_table. */
    int (*answer_offline)(const struct cli_request *request, const struct cli_place *place,
                          struct hvd_err *err);
    /* Makes the answer for a job without a driver, from its journal. NULL: see answer_offline. */
    cli_table_fn *orphan_table;
    /* Adds to that view what is in the job's folder (NULL: none is here). NULL: nothing is added.
     */
    int (*complete)(const char *folder, const struct table_facts *facts, struct core_view *view,
                    struct hvd_err *err);
    /* Carries the verb out for verbs that make requests of another kind to the driver.
     * HVD_E_NOTFOUND: no driver lives; answer_offline is then called if it is set. NULL: the
     * request is request->ask. */
    int (*live)(struct cli_request *request, const char *folder, struct hvd_err *err);
    bool repeats;   /* true: with --follow the request is repeated until Ctrl-C */
    bool ended_too; /* true: orphan_table also shows a job that has ended, before the error */
    /* True: the verb ends the driver, so the connection may close before the answer's last part. */
    bool ends_driver;
    /* With --wait: the error text for a connection that closes before the answer's last part. NULL:
     * an answer that goes on ends when the connection closes. */
    const char *unfinished;
};

/* One run of a verb. */
struct cli_request {
    const struct cli_verb *verb;
    cli_orphan_fn *orphan; /* NULL: only a driver answers */
    struct cli_options options;
    struct opt_set set;
    const char *words[CLI_WORDS_MAX]; /* the words without the verb and the options */
    size_t word_count;
    size_t words_read; /* how many of `words` cli_next_word has returned */
    const char *job;   /* the job's name; NULL: the user's only job whose driver is alive */
    struct msg_ask ask;
    const char *args[4]; /* the memory of ask.args */
    char number[32];
    char time[TIME_TEXT_MAX];
    /* For token create: the id and key that the driver gets, and the digits that are printed when
     * the driver has them. */
    char token[LIMIT_TOKEN_TEXT_BYTES + 1];
    char digits[LIMIT_TOKEN_TEXT_BYTES + 1];
};

extern const struct cli_verb cli_status, cli_hosts, cli_changes, cli_events;
extern const struct cli_verb cli_drain, cli_undrain, cli_blacklist, cli_rekey, cli_stop;
extern const struct cli_verb cli_jobs, cli_prune, cli_checkpoint, cli_checkpoints, cli_token,
    cli_top, cli_page, cli_autopsy;

#define CLI_VERBS 17
extern const struct cli_verb *const cli_verbs[CLI_VERBS];

/* Returns the verb with this name; NULL: there is none. */
const struct cli_verb *cli_find_verb(const char *name);

/* Returns the verb, or the option, that is probably meant by a mistyped word or by a verb of other
 * programs. NULL: there is none. */
const char *cli_nearest_verb(const char *word);

/* For the `read` functions of verbs. cli_next_word returns the next word of the command line, or
 * NULL; cli_add_arg appends an argument to the request; cli_read_slot appends the next word, HOST
 * or HOST:SLOT. */
const char *cli_next_word(struct cli_request *request);
void cli_add_arg(struct cli_request *request, const char *text);
int cli_read_slot(struct cli_request *request, struct hvd_err *err);
/* The `read` function of verbs that wait for the end of their answer with --wait. */
int cli_read_wait(struct cli_request *request, struct hvd_err *err);

extern const struct opt cli_option_table[];
extern const size_t cli_option_count;

#endif
