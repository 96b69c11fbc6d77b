/*
 * page.h: writing an HTML page that needs nothing from elsewhere, light or dark as its reader likes
 * it. What fails first is kept.
 */
#ifndef TESTS_CHAOS_PAGE_H
#define TESTS_CHAOS_PAGE_H

#include "base/buf.h"
#include "base/err.h"

struct page {
    struct buf out;
    int rc;
};

/* Up to where its text begins. */
void page_open(struct page *page, const char *title);

/* Ends it and writes it there in one piece. The page is released either way. */
int page_close(struct page *page, const char *path, struct hvd_err *err) MUST_CHECK;

/* As it is. Its arguments are numbers and words of ours. */
PRINTF_LIKE(2, 3) void page_put(struct page *page, const char *format, ...);

/* Foreign text: what has a meaning in HTML is escaped, what cannot be shown is a "?". */
void page_text(struct page *page, const char *text);

/* Bytes to a file: a reader finds all of them, or the file that was there before. */
int page_save(const char *path, const struct buf *bytes, struct hvd_err *err) MUST_CHECK;

#endif
