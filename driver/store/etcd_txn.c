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

void etcd_txn_begin(struct etcd_txn *txn, const char *base)
{
    *txn = (struct etcd_txn){ .base = base };
    buf_init(&txn->text, REQUEST_MAX);
    buf_init(&txn->key, KEY_MAX);
    txn->rc = buf_append_text(&txn->text, "{\"compare\":[");
}

static void txn_text(struct etcd_txn *txn, const char *text)
{
    if (!txn->rc)
        txn->rc = buf_append_text(&txn->text, text);
}

static void txn_number(struct etcd_txn *txn, const char *name, int64_t number)
{
    if (!txn->rc)
        txn->rc = buf_printf(&txn->text, ",\"%s\":\"%" PRId64 "\"", name, number);
}

/* Writes "name":"..." with the key in base64. next: the first key after all that begin so. */
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

/* Begins an entry in a part: the comparisons end with the first operation. */
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

void etcd_txn_compare(struct etcd_txn *txn, const char *key, const char *target, int64_t number)
{
    txn_entry(txn, 0, "\"result\":\"EQUAL\",\"target\":\"");
    txn_text(txn, target);
    txn_text(txn, "\",");
    txn_key(txn, "key", key, false);
    txn_number(txn, strcmp(target, "MOD") ? "version" : "mod_revision", number);
    txn_text(txn, "}");
}

void etcd_txn_put(struct etcd_txn *txn, const char *key, struct span value, int64_t lease)
{
    txn_entry(txn, 1, "\"request_put\":{");
    txn_key(txn, "key", key, false);
    txn_text(txn, ",\"value\":\"");
    if (!txn->rc)
        txn->rc = etcd_base64(&txn->text, value.at, value.length);
    txn_text(txn, "\"");
    if (lease)
        txn_number(txn, "lease", lease);
    txn_text(txn, "}}");
}

void etcd_txn_delete(struct etcd_txn *txn, const char *key, bool all)
{
    txn_entry(txn, 1, "\"request_delete_range\":{");
    txn_key(txn, "key", key, false);
    if (all) {
        txn_text(txn, ",");
        txn_key(txn, "range_end", key, true);
    }
    txn_text(txn, "}}");
}

void etcd_txn_delete_from(struct etcd_txn *txn, const char *key, const char *folder)
{
    txn_entry(txn, 1, "\"request_delete_range\":{");
    txn_key(txn, "key", key, false);
    txn_text(txn, ",");
    txn_key(txn, "range_end", folder, true);
    txn_text(txn, "}}");
}

void etcd_txn_delete_before(struct etcd_txn *txn, const char *key, const char *folder)
{
    txn_entry(txn, 1, "\"request_delete_range\":{");
    txn_key(txn, "key", folder, false);
    txn_text(txn, ",");
    txn_key(txn, "range_end", key, false);
    txn_text(txn, "}}");
}

void etcd_txn_get(struct etcd_txn *txn, const char *key)
{
    txn_entry(txn, 1, "\"request_range\":{");
    txn_key(txn, "key", key, false);
    txn_text(txn, "}}");
}

void etcd_txn_else(struct etcd_txn *txn)
{
    txn_text(txn, txn->part ? "],\"failure\":[" : "],\"success\":[],\"failure\":[");
    txn->part = 2;
    txn->more = false;
}

/* Sends the text to etcd. The text may hold the key of the job, and is wiped with its buf. */
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

int etcd_range(struct etcd *etcd, const char *base, const char *folder, const char *from,
               size_t limit, json_t **ret_answer, struct hvd_err *err)
{
    struct etcd_txn txn = { .base = base };
    int rc;

    buf_init(&txn.text, REQUEST_MAX);
    buf_init(&txn.key, KEY_MAX);
    txn_text(&txn, "{");
    txn_key(&txn, "key", from, false);
    txn_text(&txn, ",");
    txn_key(&txn, "range_end", folder, true);
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
