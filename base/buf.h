/*
 * buf.h: a growable run of bytes with a hard maximum. It always ends in a NUL that is not counted,
 * so that text built in it can be printed.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/base.h"

struct buf {
    char *data; /* NULL until the first byte */
    size_t length;
    size_t capacity;
    size_t max;
};

void buf_init(struct buf *buf, size_t max);
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf); /* forgets the bytes, keeps the memory */

/* Each returns 0, HVD_E_NOMEM, or HVD_E_LIMIT past max; buf_printf also HVD_E_INVAL for what cannot
 * be formatted. On failure buf is as it was. What is appended must not lie in buf itself. */
int buf_reserve(struct buf *buf, size_t more) MUST_CHECK;
int buf_append(struct buf *buf, const void *bytes, size_t length) MUST_CHECK;
int buf_append_text(struct buf *buf, const char *text) MUST_CHECK;
int buf_printf(struct buf *buf, const char *format, ...) MUST_CHECK PRINTF_LIKE(2, 3);

/* Drops the first bytes: they were consumed. */
void buf_consume(struct buf *buf, size_t length);

/* The text so far; "" when there is none. Borrowed until the next change. */
const char *buf_text(const struct buf *buf);

#endif
