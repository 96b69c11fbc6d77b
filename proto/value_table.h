/*
 * value_table.h: small values, each under a key: each value is for one round, or for the whole job
 * (round 0). This file decides what a call does to a value. The driver's core keeps such a table
 * for all workers of a job, and libhvd one for a program that runs alone.
 */
#ifndef PROTO_VALUE_TABLE_H
#define PROTO_VALUE_TABLE_H

#include "base/limits.h"
#include "base/vec.h"
#include "proto/msg.h"

struct value_entry {
    uint64_t round; /* the round of the value; 0: the value is for the whole job */
    char *key;      /* memory of the entry, as `value` is */
    uint8_t *value;
    size_t length;
};

/* Sorted by round and key. A zeroed table is empty. */
struct value_table {
    struct VEC(struct value_entry) entries;
    size_t bytes; /* bytes of all keys and values, counted by value_table_cost */
};

#define VALUE_NUMBER_MAX 24 /* bytes of a decimal number of 64 bits, with its sign and NUL */

/* The result of a call. `value` points into the table or to `number`, so it is valid until the
 * table changes, or as long as the struct. */
struct value_outcome {
    const char *text; /* why the call has failed; "": it has not failed, or the code says enough */
    struct msg_bytes value;
    char number[VALUE_NUMBER_MAX]; /* after a STORE_ADD: the sum as text */
};

void value_table_release(struct value_table *table);

/* Returns the value of the key in this round (0: of the job); NULL: the key has none. */
const struct value_entry *value_table_find(const struct value_table *table, uint64_t round,
                                           const char *key);
/* Sets the value of a key in this round (0: in the job). Fails with HVD_E_LIMIT (the table is full:
 * LIMIT_STORE_BYTES) or HVD_E_NOMEM; the table is then unchanged. */
int value_table_set(struct value_table *table, uint64_t round, const char *key,
                    struct msg_bytes value) MUST_CHECK;
/* Deletes the value of the key. HVD_E_NOTFOUND: the key has no value. */
int value_table_delete(struct value_table *table, uint64_t round, const char *key);
/* Deletes the values of all rounds but `round` and `other`; the values of the job stay. */
void value_table_keep(struct value_table *table, uint64_t round, uint64_t other);

/* Does what a STORE of a worker says. Returns 0, HVD_E_NOTFOUND, HVD_E_MISMATCH, HVD_E_LIMIT,
 * HVD_E_INVAL, HVD_E_NOMEM; a call that fails changes nothing. *ret_outcome is valid in each case.
 * STORE_WAIT does what STORE_GET does. */
int value_table_apply(struct value_table *table, uint64_t round, const struct msg_store *call,
                      struct value_outcome *ret_outcome) MUST_CHECK;

/* true: the call may change a value. */
bool value_table_changes(const struct msg_store *call);

#endif
