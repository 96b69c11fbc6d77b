/*
 * invocation.h: how a driver was started, kept in the job's folder, so that --resume JOB can start
 * its successor the same way: the current folder, the options, what workers run, and the
 * environment.
 */
#ifndef DRIVER_INVOCATION_H
#define DRIVER_INVOCATION_H

#include "base/err.h"

struct invocation {
    char *text; /* what the others point into */
    const char *cwd;
    const char *options; /* lines of a config file */
    char **argv;         /* both end in NULL */
    int argc;
    char **envp;
};

/* Replaces what is kept there, whole or not at all. */
int invocation_save(const char *folder, const struct invocation *invocation,
                    struct hvd_err *err) MUST_CHECK;

/* HVD_E_NOTFOUND, HVD_E_CORRUPT, HVD_E_IO, naming the file. */
int invocation_load(const char *folder, struct invocation *ret_invocation,
                    struct hvd_err *err) MUST_CHECK;
void invocation_release(struct invocation *invocation);

#endif
