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
 * Memory that is out is remembered, and reported by etcd_txn_run.
 */
#ifndef DRIVER_STORE_ETCD_TXN_H
#define DRIVER_STORE_ETCD_TXN_H

#include "driver/store/etcd_call.h"

struct etcd_txn {
    const char *base; /* the beginning of all keys, borrowed */
    struct buf text;
    struct buf key;
    int part;  /* 0: the comparisons, 1: if they hold, 2: otherwise */
    bool more; /* the part has an entry already */
    int rc;
};

void etcd_txn_begin(struct etcd_txn *txn, const char *base);

/* target: "MOD" for the revision of the key's last change, 0: there is no such key. "VERSION": 0
 * holds if there is no such key. */
void etcd_txn_compare(struct etcd_txn *txn, const char *key, const char *target, int64_t number);
void etcd_txn_put(struct etcd_txn *txn, const char *key, struct span value, int64_t lease);
/* all: every key that begins so */
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
