/*
 * invocation.h: how a driver was started: the current folder, the options, the command of the
 * workers, and the environment. All this is kept in the file "command" in the job's folder, so that
 * --resume JOB can start the next driver in the same way.
 */
#ifndef DRIVER_INVOCATION_H
#define DRIVER_INVOCATION_H

#include "base/buf.h"
#include "base/err.h"

struct invocation {
    char *text; /* the bytes of the file; the other fields point into this text */
    const char *cwd;
    const char *options; /* the options as lines of a config file */
    char **argv;         /* argv and envp end in NULL */
    int argc;
    char **envp;
};

/* Appends the bytes that invocation_save would write, for a store that is not the job's folder
 * (etcd). */
int invocation_encode(const struct invocation *invocation, struct buf *out,
                      struct hvd_err *err) MUST_CHECK;
/* Reads bytes that invocation_encode has made. `from` names their origin in errors. HVD_E_CORRUPT:
 * no driver has written these bytes. */
int invocation_decode(const char *from, const struct buf *bytes, struct invocation *ret_invocation,
                      struct hvd_err *err) MUST_CHECK;
#define INVOCATION_BYTES_MAX (8 * 1024 * 1024)

/* Writes the file "command" in the job's folder. After a failure the former file is unchanged. */
int invocation_save(const char *folder, const struct invocation *invocation,
                    struct hvd_err *err) MUST_CHECK;

/* Reads the file "command" in the job's folder. HVD_E_NOTFOUND, HVD_E_CORRUPT or HVD_E_IO; the
 * error names the file. */
int invocation_load(const char *folder, struct invocation *ret_invocation,
                    struct hvd_err *err) MUST_CHECK;
void invocation_release(struct invocation *invocation);

#endif
