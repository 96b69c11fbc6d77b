/*
 * value_table.h: small values, each under a key: for one round, or for the whole job (round 0).
 * This file decides what a call does to a value. The driver's core keeps such
 * a table for all workers of a job, and libhvd one for a program that runs alone.
 */
#ifndef PROTO_VALUE_TABLE_H
#define PROTO_VALUE_TABLE_H

#include "base/limits.h"
#include "base/vec.h"
#include "proto/msg.h"

struct value_entry {
    uint64_t round; /* 0: of the whole job */
    char *key;      /* owned, as `value` */
    uint8_t *value;
    size_t length;
};

/* Sorted by round and key. A zeroed table is empty. */
struct value_table {
    struct VEC(struct value_entry) entries;
    size_t bytes; /* bytes of all keys and values, counted by value_table_cost */
};

#define VALUE_NUMBER_MAX 24 /* bytes of a decimal number of 64 bits, with its sign and NUL */

/* The result of a call. `value` is valid until the table changes again, or as long as `number`. */
struct value_outcome {
    const char *text; /* why the call has failed; "" */
    struct msg_bytes value;
    char number[VALUE_NUMBER_MAX]; /* of STORE_ADD: the sum */
};

void value_table_release(struct value_table *table);

/* Returns the value; NULL: the key has none. */
const struct value_entry *value_table_find(const struct value_table *table, uint64_t round,
                                           const char *key);
/* Sets a value; HVD_E_LIMIT: the table is full (LIMIT_STORE_BYTES). HVD_E_NOMEM. The table is
 * unchanged on failure. */
int value_table_set(struct value_table *table, uint64_t round, const char *key,
                    struct msg_bytes value) MUST_CHECK;
/* HVD_E_NOTFOUND: the key has no value. */
int value_table_delete(struct value_table *table, uint64_t round, const char *key);
/* Deletes the values of all rounds but these two; those of the job stay. */
void value_table_keep(struct value_table *table, uint64_t round, uint64_t other);

/* Does what the call says. 0, HVD_E_NOTFOUND, HVD_E_MISMATCH, HVD_E_LIMIT, HVD_E_INVAL,
 * HVD_E_NOMEM; a call that fails changes nothing. *ret_outcome is valid in each case. STORE_WAIT
 * does what STORE_GET does. */
int value_table_apply(struct value_table *table, uint64_t round, const struct msg_store *call,
                      struct value_outcome *ret_outcome) MUST_CHECK;

/* true: the call may change a value. */
bool value_table_changes(const struct msg_store *call);

#endif
