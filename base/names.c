/*
 * names.c: a hash table from names to numbers, with open addressing. Called by tables that are
 * searched by name. Keys are borrowed: the owner of a name keeps the name in memory until
 * names_release. Invariant: at least one slot is free.
 */
#include "base/names.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/panic.h"

#include <string.h>

#define FIRST_CAPACITY 16

struct names_slot {
    const char *key; /* NULL: the slot is free */
    size_t length;
    uint64_t hash;
    uint32_t number;
};

/* Returns the hash of a name (FNV-1a). The names come from the operator's own script, so the hash
 * need not resist an attacker who chooses names. */
static uint64_t hash_of(const char *key, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
    return hash;
}

void names_init(struct names *names)
{
    *names = (struct names){ .slots = NULL };
}

void names_release(struct names *names)
{
    if (!names)
        return;
    mem_free(names->slots);
    names_init(names);
}

/* Returns the slot of the key, or the free slot where the key belongs. At least one slot is
 * free. */
static struct names_slot *slot_for(struct names_slot *slots, size_t capacity, uint64_t hash,
                                   const char *key, size_t length)
{
    size_t i = (size_t)hash & (capacity - 1);

    while (slots[i].key && !(slots[i].hash == hash && slots[i].length == length &&
                             (length == 0 || !memcmp(slots[i].key, key, length))))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

/* Returns the number that was put with this name; NAMES_NONE: the name is not there. */
uint32_t names_find(const struct names *names, const char *key, size_t length)
{
    const struct names_slot *slot;

    if (names->count == 0)
        return NAMES_NONE;
    slot = slot_for(names->slots, names->capacity, hash_of(key, length), key, length);
    return slot->key ? slot->number : NAMES_NONE;
}

/* Adds a name with its number. The name is borrowed, not copied. HVD_E_EXISTS: the name is there
 * already. */
int names_put(struct names *names, const char *key, size_t length, uint32_t number)
{
    struct names_slot *slot;
    uint64_t hash;

    ASSERT(key && number != NAMES_NONE);
    if (names_find(names, key, length) != NAMES_NONE)
        return HVD_E_EXISTS;
    /* At least half of the slots stay free, so a search is short and always ends. */
    if (names->count * 2 >= names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
        struct names_slot *slots = mem_zalloc_array(capacity, sizeof(*slots));

        if (!slots)
            return HVD_E_NOMEM;
        for (size_t i = 0; i < names->capacity; i++) {
            const struct names_slot *old = &names->slots[i];

            if (old->key)
                *slot_for(slots, capacity, old->hash, old->key, old->length) = *old;
        }
        mem_free(names->slots);
        names->slots = slots;
        names->capacity = capacity;
    }
    hash = hash_of(key, length);
    slot = slot_for(names->slots, names->capacity, hash, key, length);
    *slot = (struct names_slot){ .key = key, .length = length, .hash = hash, .number = number };
    names->count++;
    return 0;
}
