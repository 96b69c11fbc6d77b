/*
 * etcd_txn.h: a transaction of etcd as JSON: comparisons, what is done if all hold, and what is
 * read if one fails. Private to this folder.
 *
 *     etcd_txn_begin(&txn, base);
 *     etcd_txn_compare(&txn, "owner", "MOD", revision);
 *     etcd_txn_put(&txn, "facts", value, 0);
 *     etcd_txn_else(&txn);
 *     etcd_txn_get(&txn, "owner");
 *     rc = etcd_txn_run(&txn, etcd, &held, &answer, &err);
 *
 * A function that finds no memory returns nothing: struct etcd_txn keeps the error, and
 * etcd_txn_run reports it.
 */
#ifndef DRIVER_STORE_ETCD_TXN_H
#define DRIVER_STORE_ETCD_TXN_H

#include "driver/store/etcd_call.h"

struct etcd_txn {
    const char *base; /* the text with which all keys of the job begin, borrowed */
    struct buf text;
    struct buf key;
    /* which part is being written; 0: the comparisons; 1: what is done if all hold; 2: if one
     * fails */
    int part;
    bool more; /* the present part has an entry, so the next one needs a comma before it */
    int rc;    /* the first failure; after it nothing is written */
};

void etcd_txn_begin(struct etcd_txn *txn, const char *base);

/* Adds a comparison of a key with `number`. `target` "MOD": the revision of the key's last change
 * (0: there is no such key); "VERSION": how often the key was written (0: there is no such key). */
void etcd_txn_compare(struct etcd_txn *txn, const char *key, const char *target, int64_t number);
void etcd_txn_put(struct etcd_txn *txn, const char *key, struct span value, int64_t lease);
/* Deletes the key; `all`: every key that begins with the text `key`. */
void etcd_txn_delete(struct etcd_txn *txn, const char *key, bool all);
/* Deletes all keys from `key` on, up to the end of the keys that begin with `folder`. */
void etcd_txn_delete_from(struct etcd_txn *txn, const char *key, const char *folder);
/* Deletes all keys that begin with `folder`, up to the one before `key`. */
void etcd_txn_delete_before(struct etcd_txn *txn, const char *key, const char *folder);
void etcd_txn_get(struct etcd_txn *txn, const char *key);
void etcd_txn_else(struct etcd_txn *txn);

/* Runs the transaction and releases it. *ret_held: all comparisons held. */
int etcd_txn_run(struct etcd_txn *txn, struct etcd *etcd, bool *ret_held, json_t **ret_answer,
                 struct hvd_err *err) MUST_CHECK;

/* Reads the keys from `from` on that begin with `folder`, at most `limit` of them, in their order.
 */
int etcd_range(struct etcd *etcd, const char *base, const char *folder, const char *from,
               size_t limit, json_t **ret_answer, struct hvd_err *err) MUST_CHECK;

#endif
