/*
 * discover.h: where hosts come from: a fixed list, a file, a script that is run, or one that goes
 * on running. What it says goes through discovery/parse.h.
 *
 * Nothing but blanks is a failure: so looks a script that failed without a word. A comment is not:
 * there is no host now. What a program says on its standard error is logged once per change.
 */
#ifndef DRIVER_HOSTS_DISCOVER_H
#define DRIVER_HOSTS_DISCOVER_H

#include "base/err.h"
#include "discovery/hosts.h"

struct event_base;
struct discoverer;

enum discover_kind {
    DISCOVER_LIST,   /* source is "a:2,b:1" */
    DISCOVER_FILE,   /* source is a file's path, read anew each time */
    DISCOVER_SCRIPT, /* source is a command's path; each run prints the hosts there are now */
    DISCOVER_WATCH   /* source is a command's path; prints a block, ended by a blank line, when they
                        change; started again when it ends */
};

struct discover_config {
    enum discover_kind kind;
    const char *source; /* borrowed as long as the discoverer lives */
    uint32_t slots_per_host;
    int64_t limit_us; /* a run that takes longer is ended, with its whole process group */
};

struct discover_ops {
    /* Each from the loop; the discoverer may be freed in there. */
    void (*hosts)(void *arg, const struct hosts *hosts); /* borrowed */
    void (*failed)(void *arg, const char *why);
};

/* Checks what can be checked: a script that is missing or not executable, a list that is none. */
int discover_create(struct event_base *base, const struct discover_config *config,
                    const struct discover_ops *ops, void *arg, struct discoverer **ret_discoverer,
                    struct hvd_err *err) MUST_CHECK;
void discover_free(struct discoverer *discoverer); /* nothing of it runs on */

/* Answered by one of the ops, later, from the loop. While one runs its answer serves for both. A
 * watch answers with its newest block, or its failure; it calls by itself when a block comes. */
void discover_ask(struct discoverer *discoverer);

#endif
