/*
 * names.h: from a name to a small number, in constant time: the index under which the owner keeps
 * the named thing. It never decides an order; whoever iterates goes over its own array.
 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include "base/base.h"

#define NAMES_NONE UINT32_MAX

struct names {
    struct names_slot *slots; /* open addressing; a power of two of them */
    size_t capacity;
    size_t count;
};

void names_init(struct names *names);
void names_release(struct names *names);

/* The number under which key was put, or NAMES_NONE. */
uint32_t names_find(const struct names *names, const char *key, size_t length);

/* key is borrowed until it is released or replaced. 0, HVD_E_NOMEM, HVD_E_EXISTS. */
int names_put(struct names *names, const char *key, size_t length, uint32_t number) MUST_CHECK;

#endif
