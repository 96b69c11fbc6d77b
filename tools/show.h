/*
 * show.h: what hvd-hosts prints: hosts with the ranks they would get, what changed, and what is
 * held against whom. Everything goes to standard output; names from outside are shown clean.
 */
#ifndef TOOLS_SHOW_H
#define TOOLS_SHOW_H

#include "discovery/diff.h"
#include "tools/book.h"

void show_change(const char *source, const struct diff *diff);

/* The answer to --fail and --clear: what holds for the host or slot now. */
void show_key(const struct book *book, const char *host, uint32_t slot);

/* A NULL book holds nothing back. Fails only when the history cannot be read. */
int show_hosts(struct book *book, bool history, const struct hosts *hosts, struct hvd_err *err);

/* All that the book holds against anyone. */
int show_book(struct book *book, bool history, struct hvd_err *err);

#endif
