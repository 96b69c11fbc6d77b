/*
 * verbs.h: what a verb is, the table of all verbs, and the one table of their options.
 *
 * Each verb is one file (status.c, drain.c ...) with one struct cli_verb, and one row in verbs.c.
 */
#ifndef DRIVER_CLI_VERBS_H
#define DRIVER_CLI_VERBS_H

#include "base/opt.h"
#include "base/time.h"
#include "driver/cli/cli.h"
#include "proto/msg.h"

#define CLI_WORDS_MAX 3

struct cli_options {
    char *job;
    char *state_dir;
    bool json;
    bool follow;
    uint64_t lines;
    int64_t deadline_us;
    char *retain;
    bool wait;
    bool checkpoint;
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
    /* Carries the verb out without a job and without a driver. NULL: the verb is for one job. */
    int (*run)(const struct cli_request *request, struct hvd_err *err);
    /* Answers for a job that has no driver, by its folder. HVD_E_NOTFOUND: there is no answer
     * without a driver. NULL: only a driver answers. */
    int (*answer_offline)(const struct cli_request *request, const char *folder,
                          struct hvd_err *err);
    /* Makes the answer for a job that has no driver from what its journal says. NULL: see
     * answer_offline. */
    cli_table_fn *orphan_table;
    /* true: the verb ends the driver, so the connection may close before the last part of the
     * answer. */
    bool ends_driver;
    /* The error text for a connection that closes before the last part of an answer with --wait.
     * NULL: an answer that is followed goes on until the connection closes. */
    const char *unfinished;
};

/* One run of a verb. */
struct cli_request {
    const struct cli_verb *verb;
    cli_orphan_fn *orphan; /* NULL: only a driver answers */
    struct cli_options options;
    struct opt_set set;
    const char *words[CLI_WORDS_MAX]; /* the command line without the verb and without options */
    size_t word_count;
    size_t words_read;
    const char *job; /* NULL: the user's only job whose driver is alive */
    struct msg_ask ask;
    const char *args[2]; /* the memory of ask.args */
    char number[32];
    char time[TIME_TEXT_MAX];
};

extern const struct cli_verb cli_status, cli_hosts, cli_changes, cli_events;
extern const struct cli_verb cli_drain, cli_undrain, cli_blacklist, cli_rekey, cli_stop;
extern const struct cli_verb cli_jobs, cli_prune, cli_checkpoint, cli_checkpoints;

#define CLI_VERBS 13
extern const struct cli_verb *const cli_verbs[CLI_VERBS];

/* Returns NULL when no verb has this name. */
const struct cli_verb *cli_find_verb(const char *name);

/* Returns the verb whose name is nearest to a mistyped word. NULL: no name is near. */
const char *cli_nearest_verb(const char *word);

/* The `read` functions of verbs use these functions. cli_next_word returns the next word of the
 * command line, or NULL. cli_add_arg appends an argument to the request. cli_read_slot does both
 * for a word HOST or HOST:SLOT. */
const char *cli_next_word(struct cli_request *request);
void cli_add_arg(struct cli_request *request, const char *text);
int cli_read_slot(struct cli_request *request, struct hvd_err *err); /* HOST or HOST:SLOT */
/* The `read` function of verbs whose answer --wait follows to its end. */
int cli_read_wait(struct cli_request *request, struct hvd_err *err);

extern const struct opt cli_option_table[];
extern const size_t cli_option_count;

#endif
