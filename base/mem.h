/*
 * mem.h: every allocation of the floors below the programs goes through here.
 *
 * The operations can be swapped, so that a test counts blocks or fails the k-th allocation. They
 * are swapped only while no other thread is running; blocks are freed by the operations in force.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

struct mem_ops {
    void *(*alloc)(void *arg, size_t bytes);
    void *(*resize)(void *arg, void *block, size_t bytes);
    void (*free)(void *arg, void *block);
    void *arg;
};

/* Swaps the operations in; NULL brings libc's back. The struct is copied. */
void mem_set_ops(const struct mem_ops *ops);

/* Each returns NULL when memory is out. Zero bytes give a block that must be freed too. */
void *mem_alloc(size_t bytes) MUST_CHECK;
void *mem_zalloc(size_t bytes) MUST_CHECK;
void *mem_resize(void *block, size_t bytes) MUST_CHECK;

/* count x size with the overflow checked. */
void *mem_zalloc_array(size_t count, size_t size) MUST_CHECK;

/* A NUL-terminated copy of the first length bytes of text; of none, text may be NULL. */
char *mem_strndup(const char *text, size_t length) MUST_CHECK;
char *mem_strdup(const char *text) MUST_CHECK;

void mem_free(void *block); /* NULL is fine */

#endif
