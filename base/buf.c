/*
 * buf.c: a growing array of bytes with a cap, always NUL-terminated. Called by all code that builds
 * texts or frames. A function that fails leaves the buffer unchanged. Frames may hold keys, so
 * memory is wiped before it is freed, also when a buffer grows.
 */
#include "base/buf.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/panic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY 64

void buf_init(struct buf *buf, size_t max)
{
    ASSERT(max < SIZE_MAX / 2);
    *buf = (struct buf){ .max = max };
}

/* Wipes and frees the bytes. The empty buffer keeps its `max`, so it can be used again. */
void buf_release(struct buf *buf)
{
    if (!buf)
        return;
    if (buf->data)
        explicit_bzero(buf->data, buf->capacity);
    mem_free(buf->data);
    *buf = (struct buf){ .max = buf->max };
}

void buf_clear(struct buf *buf)
{
    buf->length = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

/* Makes room for `more` bytes and a NUL behind them. HVD_E_LIMIT: the buffer would exceed its
 * `max`; HVD_E_NOMEM: no memory is left. */
int buf_reserve(struct buf *buf, size_t more)
{
    size_t capacity = buf->capacity ? buf->capacity : FIRST_CAPACITY;
    size_t needed;
    char *data;

    if (more > buf->max - buf->length)
        return HVD_E_LIMIT;
    needed = buf->length + more + 1;
    if (needed <= buf->capacity)
        return 0;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > buf->max + 1)
        capacity = buf->max + 1;
    /* mem_resize could free the old block, whose bytes may be a key, before it is wiped */
    data = mem_alloc(capacity);
    if (!data)
        return HVD_E_NOMEM;
    if (buf->data) {
        memcpy(data, buf->data, buf->length);
        explicit_bzero(buf->data, buf->capacity);
        mem_free(buf->data);
    }
    buf->data = data;
    buf->capacity = capacity;
    buf->data[buf->length] = '\0';
    return 0;
}

/* Appends bytes; the buffer always ends in a NUL that `length` does not count. */
int buf_append(struct buf *buf, const void *bytes, size_t length)
{
    int rc = buf_reserve(buf, length);

    if (rc)
        return rc;
    if (length)
        memcpy(buf->data + buf->length, bytes, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
    return 0;
}

/* Appends a text without its NUL, as buf_append does. */
int buf_append_text(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

/* Appends a formatted text. The first vsnprintf only measures it. */
int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_list again;
    int length;
    int rc = HVD_E_INVAL;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0)
        rc = buf_reserve(buf, (size_t)length);
    if (!rc) {
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
    return rc;
}

/* Removes the first `length` bytes; the rest, with its NUL, moves to the front. */
void buf_consume(struct buf *buf, size_t length)
{
    ASSERT(length <= buf->length);
    if (length == 0)
        return;
    memmove(buf->data, buf->data + length, buf->length - length + 1);
    buf->length -= length;
}

/* Returns the bytes as a text; "" while no byte was ever appended, because `data` is NULL then. */
const char *buf_text(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}
