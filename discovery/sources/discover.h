/*
 * discover.h: the source from which a job gets its hosts: a fixed list, a file, a script that is
 * run for each answer, a program that goes on running, or a batch system. Each kind of source is a
 * file of this folder with a row in the table of discover.c. The text of a source is read by
 * discovery/parse.h.
 *
 * A text of nothing but blanks is a failure, because a script that fails silently prints nothing.
 * A comment alone is not a failure: it says that there are no hosts now.
 */
#ifndef DISCOVERY_SOURCES_DISCOVER_H
#define DISCOVERY_SOURCES_DISCOVER_H

#include "base/err.h"
#include "discovery/hosts.h"

struct event_base;
struct discoverer;

enum discover_kind {
    DISCOVER_LIST,   /* value is "a:2,b:1" */
    DISCOVER_FILE,   /* value is the path of a file, which is read again for each answer */
    DISCOVER_SCRIPT, /* value is the path of a program; each run prints the hosts of that moment */
    DISCOVER_WATCH,  /* value is the path of a program; it prints a block of hosts, with a blank
                        line at the end, at each change; it is started again when it ends */
    DISCOVER_BATCH,  /* value is "auto", or the batch system of this process: lsf, pbs, sge, cobalt
                      */
    DISCOVER_KINDS
};

/* Returns the option of hvd-elastic, without "--", by which a user chooses a source of this kind.
 */
const char *discover_option(enum discover_kind kind);

/* Reads the hosts that the batch system `system` ("auto": the one of which variables are set) has
 * given to the job of this process. slots_per_line: the slots of a host that a system names without
 * a number. ret_hosts must be initialised. HVD_E_NOTFOUND: this process is in no such job. */
int discover_batch_hosts(const char *system, uint32_t slots_per_line, struct hosts *ret_hosts,
                         struct hvd_err *err) MUST_CHECK;

struct discover_config {
    enum discover_kind kind;
    const char *value; /* the value of the option; borrowed as long as the discoverer lives */
    /* the environment of the source's program; ends in NULL; borrowed; a NULL pointer: the
     * environment of this process */
    const char *const *envp;
    uint32_t slots_per_host; /* the slots of a host that is written without a number */
    int64_t limit_us; /* a run of a script that takes longer is killed with its process group; for
                         DISCOVER_WATCH: the longest wait of a question for the first hosts */
};

struct discover_ops {
    /* The event loop calls these two callbacks, and a callback may free the discoverer. */
    void (*hosts)(void *arg, const struct hosts *hosts); /* `hosts` is valid only in the call */
    void (*failed)(void *arg, const char *why);
};

/* Creates a discoverer, and reports each error that can be found before the first question: a
 * program or file that is missing or cannot be used, a list with a wrong grammar. */
int discover_create(struct event_base *base, const struct discover_config *config,
                    const struct discover_ops *ops, void *arg, struct discoverer **ret_discoverer,
                    struct hvd_err *err) MUST_CHECK;

/* Frees the discoverer, and ends the program of its source. */
void discover_free(struct discoverer *discoverer);

/* Asks for the hosts. Later the event loop calls `hosts` or `failed` of the ops. Two calls while a
 * script runs get one answer. A DISCOVER_WATCH source answers with its newest block or failure;
 * when its program prints a new block, it answers without a call, too. */
void discover_ask(struct discoverer *discoverer);

#endif
