/*
 * mem.h: the memory allocation of all floors below the programs.
 *
 * The operations can be replaced, so that a test counts blocks or makes the k-th allocation fail.
 * A test replaces the operations only while no other thread is running; a block is freed by the
 * operations that are set at that time.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

struct mem_ops {
    void *(*alloc)(void *arg, size_t bytes);
    void *(*resize)(void *arg, void *block, size_t bytes);
    void (*free)(void *arg, void *block);
    void *arg;
    void *(*zalloc)(void *arg, size_t bytes); /* returns zeroed bytes; NULL: alloc, then memset */
};

/* Replaces the operations; NULL sets those of libc. The struct is copied. */
void mem_set_ops(const struct mem_ops *ops);

/* Each function returns NULL when no memory is left. For zero bytes each returns a block that must
 * be freed, too. */
void *mem_alloc(size_t bytes) MUST_CHECK;
void *mem_zalloc(size_t bytes) MUST_CHECK;
void *mem_resize(void *block, size_t bytes) MUST_CHECK;

/* Allocates count * size zeroed bytes; NULL also when the product overflows. */
void *mem_zalloc_array(size_t count, size_t size) MUST_CHECK;

/* mem_strndup and mem_strdup return a NUL-terminated copy. mem_strndup copies the first length
 * bytes of text; text may be NULL when length is 0. */
char *mem_strndup(const char *text, size_t length) MUST_CHECK;
char *mem_strdup(const char *text) MUST_CHECK;

void mem_free(void *block); /* block may be NULL */

#endif
