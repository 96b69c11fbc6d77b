/*
 * book.h: a blacklist together with the store behind it: what is told to one is durable in the
 * other before it is shown.
 */
#ifndef TOOLS_BOOK_H
#define TOOLS_BOOK_H

#include "blacklist/blacklist.h"
#include "blacklist/store.h"

struct book {
    struct blacklist list;
    struct blacklist_store *store;
    struct rng rng;
    int64_t now_us; /* one moment for everything that is done with it */
    int64_t wall_us;
};

int book_open(struct book *book, const char *path, const struct policy *policy,
              struct hvd_err *err);
void book_close(struct book *book);

/* A failure that no worker was charged with. */
int book_fail(struct book *book, const char *host, uint32_t slot, const char *reason,
              struct hvd_err *err);

/* The slot, or the host with all its slots. 0 also when nothing was held against it. */
int book_clear(struct book *book, const char *host, uint32_t slot, struct hvd_err *err);

#endif
