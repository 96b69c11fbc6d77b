/*
 * lookups.h: names looked up on threads, because the C library waits for the answer.
 *
 * A lookup is made, and in the end freed, by the loop's thread; in between it is the threads'.
 */
#ifndef DRIVER_HOSTS_LOOKUPS_H
#define DRIVER_HOSTS_LOOKUPS_H

#include "base/limits.h"
#include "base/list.h"
#include "driver/hosts/route.h"

#define LOOKUPS_THREADS 4

struct lookup {
    struct list link;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    int code;   /* of getaddrinfo: 0, EAI_... */
    int number; /* errno for EAI_SYSTEM */
    struct route_address addresses[LIMIT_ADDRESSES];
    size_t count;
};

struct lookups;

int lookups_create(struct lookups **ret_lookups, struct hvd_err *err) MUST_CHECK;

/* Never waits: what a thread is still busy with is left to it. */
void lookups_free(struct lookups *lookups);

/* Readable when some are done; and those then. */
int lookups_fd(const struct lookups *lookups);
void lookups_take(struct lookups *lookups, struct list *done);

/* Given on success. HVD_E_LIMIT: LIMIT_HOSTS are waiting, or there is no thread to be had. */
int lookups_add(struct lookups *lookups, struct lookup *lookup) MUST_CHECK;

#endif
