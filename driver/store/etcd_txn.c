/*
 * etcd_txn.c: writes the JSON of transactions and ranges. etcd_store.c calls it. Keys and values
 * are in base64, and numbers of 64 bits are texts, as the gateway wants them.
 */
#include "driver/store/etcd_txn.h"

#include "base/limits.h"
#include "driver/store/etcd_text.h"

#include <inttypes.h>
#include <string.h>

#define KEY_MAX     1024
#define REQUEST_MAX (4 * 1024 * 1024) /* etcd itself refuses a request of half that size */

/* Begins the JSON of a transaction with its list of comparisons. `base` is the beginning of all its
 * keys. */
void etcd_txn_begin(struct etcd_txn *txn, const char *base)
{
    *txn = (struct etcd_txn){ .base = base };
    buf_init(&txn->text, REQUEST_MAX);
    buf_init(&txn->key, KEY_MAX);
    txn->rc = buf_append_text(&txn->text, "{\"compare\":[");
}

/* Appends JSON text, unless an earlier call has failed (txn->rc). */
static void txn_text(struct etcd_txn *txn, const char *text)
{
    if (!txn->rc)
        txn->rc = buf_append_text(&txn->text, text);
}

/* Appends ,"name":"number": the gateway wants a number of 64 bits as a text. */
static void txn_number(struct etcd_txn *txn, const char *name, int64_t number)
{
    if (!txn->rc)
        txn->rc = buf_printf(&txn->text, ",\"%s\":\"%" PRId64 "\"", name, number);
}

/* Appends "name":"..." with the key in base64. `next`: instead of the key, the first key after all
 * keys that begin with it; its last byte is one higher. */
static void txn_key(struct etcd_txn *txn, const char *name, const char *key, bool next)
{
    buf_clear(&txn->key);
    if (!txn->rc)
        txn->rc = buf_printf(&txn->key, "%s%s", txn->base, key);
    if (!txn->rc && next)
        txn->key.data[txn->key.length - 1]++;
    if (!txn->rc)
        txn->rc = buf_printf(&txn->text, "\"%s\":\"", name);
    if (!txn->rc)
        txn->rc = etcd_base64(&txn->text, txn->key.data, txn->key.length);
    txn_text(txn, "\"");
}

/* Begins an entry in part 0 (a comparison) or 1 (an operation). The first operation ends the list
 * of comparisons and begins that of operations. An operation after etcd_txn_else stays in part
 * 2. */
static void txn_entry(struct etcd_txn *txn, int part, const char *operation)
{
    if (txn->part < part) {
        txn_text(txn, "],\"success\":[");
        txn->part = 1;
        txn->more = false;
    }
    txn_text(txn, txn->more ? ",{" : "{");
    txn_text(txn, operation);
    txn->more = true;
}

/* Adds a comparison: the operations are carried out only if the key's number is `number`. `target`
 * "MOD": the revision of the key's last change; "VERSION": how often it was written; 0: no such
 * key. */
void etcd_txn_compare(struct etcd_txn *txn, const char *key, const char *target, int64_t number)
{
    txn_entry(txn, 0, "\"result\":\"EQUAL\",\"target\":\"");
    txn_text(txn, target);
    txn_text(txn, "\",");
    txn_key(txn, "key", key, false /* this key */);
    /* strcmp is 0 for "MOD": each target has its own name for the number. */
    txn_number(txn, strcmp(target, "MOD") ? "version" : "mod_revision", number);
    txn_text(txn, "}");
}

/* Adds: the key gets this value. `lease`: the key is deleted when that lease ends; 0: it stays. */
void etcd_txn_put(struct etcd_txn *txn, const char *key, struct span value, int64_t lease)
{
    txn_entry(txn, 1, "\"request_put\":{");
    txn_key(txn, "key", key, false /* this key */);
    txn_text(txn, ",\"value\":\"");
    if (!txn->rc)
        txn->rc = etcd_base64(&txn->text, value.at, value.length);
    txn_text(txn, "\"");
    if (lease)
        txn_number(txn, "lease", lease);
    txn_text(txn, "}}");
}

/* Adds: the key is deleted; with `all` every key that begins with it. */
void etcd_txn_delete(struct etcd_txn *txn, const char *key, bool all)
{
    txn_entry(txn, 1, "\"request_delete_range\":{");
    txn_key(txn, "key", key, false /* this key */);
    if (all) {
        txn_text(txn, ",");
        txn_key(txn, "range_end", key, true /* behind all these keys */);
    }
    txn_text(txn, "}}");
}

/* Adds: all keys of the folder from `key` on are deleted. */
void etcd_txn_delete_from(struct etcd_txn *txn, const char *key, const char *folder)
{
    txn_entry(txn, 1, "\"request_delete_range\":{");
    txn_key(txn, "key", key, false /* this key */);
    txn_text(txn, ",");
    txn_key(txn, "range_end", folder, true /* behind all these keys */);
    txn_text(txn, "}}");
}

/* Adds: all keys of the folder before `key` are deleted. */
void etcd_txn_delete_before(struct etcd_txn *txn, const char *key, const char *folder)
{
    txn_entry(txn, 1, "\"request_delete_range\":{");
    txn_key(txn, "key", folder, false /* this key */);
    txn_text(txn, ",");
    txn_key(txn, "range_end", key, false /* this key */);
    txn_text(txn, "}}");
}

/* Adds: the key is read. Its value is in the answer, by the index of this operation
 * (etcd_txn_kvs). */
void etcd_txn_get(struct etcd_txn *txn, const char *key)
{
    txn_entry(txn, 1, "\"request_range\":{");
    txn_key(txn, "key", key, false /* this key */);
    txn_text(txn, "}}");
}

/* The operations that follow are carried out if a comparison does not hold. */
void etcd_txn_else(struct etcd_txn *txn)
{
    txn_text(txn, txn->part ? "],\"failure\":[" : "],\"success\":[],\"failure\":[");
    txn->part = 2;
    txn->more = false;
}

/* Completes the transaction, sends it to etcd and frees it. Its text may hold the key of the job,
 * which buf_release overwrites. *ret_held: all comparisons held. */
int etcd_txn_run(struct etcd_txn *txn, struct etcd *etcd, bool *ret_held, json_t **ret_answer,
                 struct hvd_err *err)
{
    int rc;

    txn_text(txn, "]}");
    rc = txn->rc
             ? err_set(
                   err, txn->rc,
                   "the text of a transaction of etcd cannot be made: %s; free memory on this host",
                   err_text(txn->rc))
             : etcd_call(etcd, "kv/txn", &txn->text, ret_answer, err);
    buf_release(&txn->text);
    buf_release(&txn->key);
    if (!rc)
        *ret_held = json_is_true(json_object_get(*ret_answer, "succeeded"));
    return rc;
}

/* Reads at most `limit` keys of the folder in their order, from the key `from` on, with their
 * values. */
int etcd_range(struct etcd *etcd, const char *base, const char *folder, const char *from,
               size_t limit, json_t **ret_answer, struct hvd_err *err)
{
    struct etcd_txn txn = { .base = base };
    int rc;

    buf_init(&txn.text, REQUEST_MAX);
    buf_init(&txn.key, KEY_MAX);
    txn_text(&txn, "{");
    txn_key(&txn, "key", from, false /* this key */);
    txn_text(&txn, ",");
    txn_key(&txn, "range_end", folder, true /* behind all these keys */);
    txn_number(&txn, "limit", (int64_t)limit);
    txn_text(&txn, "}");
    rc = txn.rc
             ? err_set(err, txn.rc,
                       "the text of a request to etcd cannot be made: %s; free memory on this host",
                       err_text(txn.rc))
             : etcd_call(etcd, "kv/range", &txn.text, ret_answer, err);
    buf_release(&txn.text);
    buf_release(&txn.key);
    return rc;
}
