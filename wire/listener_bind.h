/*
 * listener_bind.h: a socket that listens, and the file that names it.
 */
#ifndef WIRE_LISTENER_BIND_H
#define WIRE_LISTENER_BIND_H

#include "base/err.h"
#include "wire/address.h"

#include <sys/types.h>

struct bound {
    int fd;       /* -1 */
    int folder;   /* of the file; -1 */
    char *file;   /* its name in the folder; NULL: there is none */
    dev_t device; /* of the file that is ours: another's is not removed */
    ino_t inode;
};

#define BOUND_NONE         \
    (struct bound)         \
    {                      \
        -1, -1, NULL, 0, 0 \
    }

/* ret_bound is untouched on failure. */
int bound_tcp(const struct address *address, struct bound *ret_bound,
              struct hvd_err *err) MUST_CHECK;
int bound_unix(const char *name, struct bound *ret_bound, struct hvd_err *err) MUST_CHECK;
void bound_release(struct bound *bound);

#endif
