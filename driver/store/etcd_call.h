/*
 * etcd_call.h: one call of etcd's v3 API through its JSON gateway. Private to this folder.
 *
 * A call is tried on one server after the other until its patience is over, each time with a short
 * limit: a server whose leader has just died would hold a request for seven seconds. So a call that
 * changes something may be carried out twice, or later than its failure; its caller makes that
 * harmless by what it compares.
 */
#ifndef DRIVER_STORE_ETCD_CALL_H
#define DRIVER_STORE_ETCD_CALL_H

#include "base/buf.h"
#include "base/text.h"
#include "driver/store/etcd_store.h"
#include "driver/store/etcd_url.h"

#include <jansson.h>

struct etcd;

/* One key with its value, in an answer. */
struct etcd_pair {
    struct buf key;
    struct buf value;
    int64_t revision; /* the revision of etcd at the key's last change */
};

int etcd_create(const struct etcd_store_config *config, struct etcd **ret_etcd,
                struct hvd_err *err) MUST_CHECK;
void etcd_free(struct etcd *etcd);

/* Sets how long each later call is tried on one server after the other; 0: once on each server. */
void etcd_set_patience(struct etcd *etcd, int64_t patience_us);

/* Calls for example "kv/range" with the JSON text `body`. The caller frees *ret_answer with
 * json_decref.
 *
 * HVD_E_BUSY: no server could answer in time. HVD_E_FULL: etcd's database is full. HVD_E_DENIED:
 * user, password or certificate were refused. HVD_E_NOTFOUND: there is no such lease. HVD_E_LIMIT:
 * the request or the answer is too long. HVD_E_PROTO: the answer is not one of etcd. */
int etcd_call(struct etcd *etcd, const char *path, const struct buf *body, json_t **ret_answer,
              struct hvd_err *err) MUST_CHECK;

/* ---- reading answers; each function takes any JSON ------------------------------------------- */

/* Parses the body of an HTTP answer with this status; the codes are those of etcd_call. Errors name
 * the server as `server`. */
int etcd_read_answer(const char *server, long status, struct span body, json_t **ret_answer,
                     struct hvd_err *err) MUST_CHECK;

/* Returns a number of 64 bits, which etcd writes as text. 0: the number is missing, or the text is
 * no number. */
int64_t etcd_number(const json_t *object, const char *name);

/* etcd_kvs returns the list of keys in the answer of a range, etcd_txn_kvs that of operation number
 * `index` of a transaction. NULL: there is no such list, because no key was found. */
const json_t *etcd_kvs(const json_t *answer);
const json_t *etcd_txn_kvs(const json_t *answer, size_t index);

/* Reads entry number `index` of a list that etcd_kvs has returned into `pair`, whose bufs are
 * cleared first. HVD_E_PROTO: the entry is not a key with a value. */
int etcd_pair_at(const json_t *kvs, size_t index, struct etcd_pair *pair,
                 struct hvd_err *err) MUST_CHECK;
void etcd_pair_init(struct etcd_pair *pair);
void etcd_pair_release(struct etcd_pair *pair);

#endif
