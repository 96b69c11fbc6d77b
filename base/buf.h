/*
 * buf.h: a growable array of bytes with a hard maximum. A NUL that is not counted always follows
 * the bytes, so that text in a buffer can be printed.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/base.h"

struct buf {
    char *data; /* the bytes; NULL until the first byte */
    size_t length;
    size_t capacity;
    size_t max;
};

void buf_init(struct buf *buf, size_t max);
void buf_release(struct buf *buf); /* wipes the memory, as frames may hold keys */
void buf_clear(struct buf *buf);   /* sets the length to 0, keeps the memory */

/* Each function returns 0, HVD_E_NOMEM, or HVD_E_LIMIT past max; buf_printf also HVD_E_INVAL for
 * arguments that cannot be formatted. On failure buf is unchanged. The appended bytes must not lie
 * in buf itself. */
int buf_reserve(struct buf *buf, size_t more) MUST_CHECK;
int buf_append(struct buf *buf, const void *bytes, size_t length) MUST_CHECK;
int buf_append_text(struct buf *buf, const char *text) MUST_CHECK;
int buf_printf(struct buf *buf, const char *format, ...) MUST_CHECK PRINTF_LIKE(2, 3);

/* Drops the first `length` bytes, because the caller has consumed them. */
void buf_consume(struct buf *buf, size_t length);

/* Returns the text so far; "" when buf is empty. Borrowed until the next change. */
const char *buf_text(const struct buf *buf);

#endif
