/*
 * etcd_store_internal.h: the state of a job's store in etcd, for etcd_store.c (facts, owner,
 * opening) and etcd_journal.c (journal and blacklist).
 */
#ifndef DRIVER_STORE_ETCD_STORE_INTERNAL_H
#define DRIVER_STORE_ETCD_STORE_INTERNAL_H

#include "driver/store/etcd_text.h"
#include "driver/store/etcd_txn.h"
#include "driver/store/etcd_url.h"

#include "base/time.h"

/* How long a call is tried while the driver opens the store. Later the scribe calls it, which
 * itself tries a failed write again. */
#define ETCD_OPEN_PATIENCE_US (20 * TIME_S)
#define ETCD_BASE_MAX         (ETCD_PREFIX_MAX + JOB_NAME_MAX + 8)

struct etcd_store {
    struct store store;
    struct etcd *etcd;
    char base[ETCD_BASE_MAX]; /* "PREFIX/JOB/" */
    bool takeover;
    /* the token in the claim of a driver that is known to be dead; 0: there is no such driver */
    uint64_t dead_token;
    int64_t lease_s; /* how long this driver may be silent before another may claim the job */
    int64_t lease;   /* the id of this driver's lease in etcd; 0: there is none */
    int64_t kept_us; /* when the request was sent that last renewed the lease */
    /* the revision of the key "owner" after this driver's claim; 0: not claimed */
    int64_t revision;
    struct job_facts facts;
    int64_t facts_revision;
    /* the two numbers below are right: they were read, or follow from this driver's own writes */
    bool tail_known;
    uint64_t next_key;    /* the number of the journal's next key */
    uint64_t next_record; /* the number of the journal's next record */
    struct etcd_record record;
    struct store_peers peers; /* of a driver: its standbys; of a standby: its own addresses */
    uint16_t peers_port;      /* the port in the addresses that a standby has announced */
};

struct etcd_store *etcd_of(struct store *store);
struct span etcd_span(const struct buf *buf);

/* Begins a transaction that only the owner may make. etcd_run_fenced runs it if it has no other
 * comparison. */
void etcd_begin_fenced(struct etcd_store *self, struct etcd_txn *txn);
int etcd_run_fenced(struct etcd_store *self, struct etcd_txn *txn, struct hvd_err *err) MUST_CHECK;

/* Sets the error "another driver has taken over this job", and returns HVD_E_LOST. `kvs`: the
 * present value of the key "owner"; NULL: the key is gone, so the new owner is unknown. */
int etcd_lost(const json_t *kvs, struct hvd_err *err);

/* Renews the lease when a third of it is over, and moves store.held_until_us. */
int etcd_keep(struct etcd_store *self, struct hvd_err *err) MUST_CHECK;

/* Four operations of the store (struct store_ops), which etcd_journal.c implements. */
int etcd_store_replay(struct store *store, store_record_fn *each, void *arg, struct hvd_err *err);
int etcd_store_blacklist(struct store *store, store_blacklist_fn *each, void *arg,
                         struct hvd_err *err);
int etcd_store_write(struct store *store, const struct job_write *writes, size_t count,
                     struct hvd_err *err);
int etcd_store_replace(struct store *store, const struct journal_record *records, size_t count,
                       struct hvd_err *err);

#endif
