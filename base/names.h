/*
 * names.h: a hash table from a name to a small number: the index under which the owner keeps the
 * named thing. A look-up takes constant time. The table has no order; a caller that iterates uses
 * its own array.
 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include "base/base.h"

#define NAMES_NONE UINT32_MAX

struct names {
    struct names_slot *slots; /* open addressing; the number of slots is a power of two */
    size_t capacity;
    size_t count;
};

void names_init(struct names *names);
void names_release(struct names *names);

/* Returns the number under which key was put, or NAMES_NONE. */
uint32_t names_find(const struct names *names, const char *key, size_t length);

/* Adds a key. key is borrowed until names_release. 0, HVD_E_NOMEM, or HVD_E_EXISTS: the key is
 * there already. */
int names_put(struct names *names, const char *key, size_t length, uint32_t number) MUST_CHECK;

#endif
