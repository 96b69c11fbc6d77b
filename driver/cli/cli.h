/*
 * cli.h: hvd-elastic as the operator's tool for a running job: one verb makes one request to the
 * driver and gives one exit code.
 */
#ifndef DRIVER_CLI_CLI_H
#define DRIVER_CLI_CLI_H

#include "driver/control/tables.h"

/* True: `word`, the first word of the command line, is a verb. A training program that has the name
 * of a verb is started as "hvd-elastic [options] -- status". */
bool cli_is_verb(const char *word);

/* Returns the index in argv of a verb that comes after options of verbs, as in "--job x status"; 0:
 * there is none. */
int cli_verb_behind_options(int argc, char **argv);

/* Appends the usage lines of all verbs: those that ask the driver of a job, then those that ask
 * none. Returns 0, HVD_E_NOMEM or HVD_E_LIMIT. */
int cli_append_usage(struct buf *out) MUST_CHECK;

struct etcd_store_config;

/* The place at which a verb looks for a job that has no driver. */
struct cli_place {
    const char *folder; /* the job's folder; NULL: the job is known only by its store in etcd */
    const char *job;    /* the job's name; NULL: the folder has the job's name */
    bool ended_too;     /* true: a job that has ended is no error */
    /* the store of --store; NULL: the files of the folder say where the store is */
    const struct etcd_store_config *store;
};

/* Makes the view of a job that has no driver; see driver/orphan.h. */
typedef int cli_orphan_fn(const struct cli_place *place, struct core_view *ret_view,
                          struct table_facts *ret_facts, struct hvd_err *err);

/* Runs the verb argv[1]. Returns the exit code of docs/cli.md. `orphan` makes the view for verbs
 * that also answer for a job without a driver; NULL: only a driver answers. */
int cli_main(int argc, char **argv, cli_orphan_fn *orphan);

#endif
