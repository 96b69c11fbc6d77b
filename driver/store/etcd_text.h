/*
 * etcd_text.h: the values of a job's keys in etcd, as JSON: a record of the journal, the facts, the
 * owner, and a record of the blacklist. Private to this folder.
 *
 * Every value is one object on one line. A number that is 0, a text that is empty and a list
 * without items are left out. A number of 64 bits is the signed number with the same bits, as in
 * job.db. A text that is not UTF-8 is an object {"base64": ...}.
 */
#ifndef DRIVER_STORE_ETCD_TEXT_H
#define DRIVER_STORE_ETCD_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"
#include "driver/store/store.h"

struct etcd_owner {
    uint64_t token;
    int64_t since_wall_us;
    int64_t lease_s; /* how long this owner may be silent */
    char who[LIMIT_REASON_BYTES + 1];
};

/* The texts and lists of the record that was read last. */
struct etcd_record {
    struct arena lists;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    char text[LIMIT_REASON_BYTES + 1];
};

/* Makes the JSON library take its memory from base/mem.h. Called before all other functions. */
void etcd_text_start(void);

/* Appends the bytes as base64. */
int etcd_base64(struct buf *out, const void *bytes, size_t length) MUST_CHECK;
/* Appends the bytes that the base64 text stands for. HVD_E_PROTO: the text is not base64. */
int etcd_unbase64(struct buf *out, const char *text, size_t length) MUST_CHECK;

/* Each function appends the value of a key to `out`, as one line of JSON. Returns 0, HVD_E_NOMEM,
 * or HVD_E_LIMIT if `out` would become longer than its maximum. */
int etcd_write_record(struct buf *out, uint64_t number,
                      const struct journal_record *record) MUST_CHECK;
int etcd_write_facts(struct buf *out, const struct job_facts *facts) MUST_CHECK;
int etcd_write_owner(struct buf *out, const struct etcd_owner *owner) MUST_CHECK;
int etcd_write_peers(struct buf *out, const struct store_peers *peers) MUST_CHECK;
int etcd_write_blacklist(struct buf *out, const struct blacklist_record *record) MUST_CHECK;

void etcd_record_init(struct etcd_record *memory);
void etcd_record_release(struct etcd_record *memory);

/* Each function reads the value of a key, which any program may have written. HVD_E_CORRUPT: it
 * breaks a rule. HVD_E_VERSION: a newer driver has written it. HVD_E_NOMEM: no memory is left. The
 * record of etcd_read_record points into `memory` until the next one is read; `number` is the
 * number that it must have. */
int etcd_read_record(struct etcd_record *memory, struct span line, uint64_t number,
                     struct journal_record *ret_record, struct hvd_err *err) MUST_CHECK;
int etcd_read_facts(struct span line, struct job_facts *ret_facts, struct hvd_err *err) MUST_CHECK;
int etcd_read_owner(struct span line, struct etcd_owner *ret_owner, struct hvd_err *err) MUST_CHECK;
/* Appends the addresses of a standby to `peers`, at most STORE_PEERS_MAX in all. */
int etcd_read_peers(struct span line, struct store_peers *peers, struct hvd_err *err) MUST_CHECK;
int etcd_read_blacklist(struct span line, struct blacklist_record *ret_record,
                        struct hvd_err *err) MUST_CHECK;

#endif
