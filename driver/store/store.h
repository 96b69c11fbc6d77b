/*
 * store.h: all that a job leaves behind: its facts, its journal and its blacklist, and which driver
 * may write them. The interface has an implementation for each place where that can lie: an SQLite
 * file (driver/journal/job_file.h) and etcd (etcd_store.h).
 *
 * A driver claims the store before it reads the journal. From then on every write and every
 * store_check of an earlier owner fails with HVD_E_LOST: the earlier driver has been replaced, and
 * ends.
 *
 * Only one thread may use a store at a time.
 */
#ifndef DRIVER_STORE_STORE_H
#define DRIVER_STORE_STORE_H

#include "blacklist/blacklist.h"
#include "driver/core/journal.h"

#define JOB_KEY_BYTES 32
#define JOB_NAME_MAX  64

struct job_facts {
    char job[JOB_NAME_MAX + 1];
    uint8_t key[JOB_KEY_BYTES];
    int64_t created_wall_us;
    uint16_t port; /* the port that agents dial; 0: not chosen yet */
    bool ended;    /* the job has ended; then code and text are valid */
    int32_t code;
    char text[LIMIT_REASON_BYTES + 1];
};

/* One write. At least one of record, change, ended and port is set. */
struct job_write {
    const struct journal_record *record;
    const struct blacklist_change *change;
    bool ended; /* the job has ended, with code and text */
    int32_t code;
    const char *text;
    uint16_t port;
};

/* The record is borrowed during the call. */
typedef int store_record_fn(void *arg, const struct journal_record *record, struct hvd_err *err);
typedef int store_blacklist_fn(void *arg, const struct blacklist_record *record,
                               struct hvd_err *err);

/* The addresses at which standbys (drivers that wait to take the job over) will listen, such as
 * "10.0.0.7:4321". */
#define STORE_PEERS_MAX     8
#define STORE_PEER_TEXT_MAX 64
struct store_peers {
    size_t count;
    char address[STORE_PEERS_MAX][STORE_PEER_TEXT_MAX];
};

struct store {
    const struct store_ops *ops;
    /* the longest time from one store_check or store_write of the owner to the next */
    int64_t check_us;
    /* No other driver claims the job before this time (of clock_now_us). Later another one may have
     * claimed it, until a store_check or store_write says that none has. TIME_NEVER: the store has
     * no lease. */
    int64_t held_until_us;
};

/* The operations of an implementation. Each is described at the function of its name below. */
struct store_ops {
    int (*facts)(struct store *store, struct job_facts *ret_facts, struct hvd_err *err);
    int (*claim)(struct store *store, uint64_t token, const char *who, struct hvd_err *err);
    int (*check)(struct store *store, struct hvd_err *err);
    int (*replay)(struct store *store, store_record_fn *each, void *arg, struct hvd_err *err);
    int (*blacklist)(struct store *store, store_blacklist_fn *each, void *arg, struct hvd_err *err);
    int (*write)(struct store *store, const struct job_write *writes, size_t count,
                 struct hvd_err *err);
    int (*replace)(struct store *store, const struct journal_record *records, size_t count,
                   struct hvd_err *err);
    void (*close)(struct store *store);
    /* NULL: the store knows no standbys */
    void (*peers)(struct store *store, struct store_peers *ret_peers);
};

/* A name has only letters, digits and . _ - and does not begin with a dot or dash, because it
 * becomes a part of the names of files, sockets and keys. */
int job_name_check(const char *name, struct hvd_err *err) MUST_CHECK;

int store_facts(struct store *store, struct job_facts *ret_facts, struct hvd_err *err) MUST_CHECK;

/* Makes this driver the owner; the change is durable on return. `token`: a random number, not 0.
 * `who`: names the driver in messages, "pid 77 on node3". */
int store_claim(struct store *store, uint64_t token, const char *who,
                struct hvd_err *err) MUST_CHECK;

/* Checks that this driver is still the owner. HVD_E_LOST: another driver is the owner, and the
 * error names it. */
int store_check(struct store *store, struct hvd_err *err) MUST_CHECK;

/* store_replay calls `each` with every record of the journal, from the first to the last, and
 * store_blacklist with every record of the blacklist. If `each` returns another value than 0, no
 * further record is read and that value is returned. HVD_E_CORRUPT: a record is damaged; then the
 * caller must not use any record of this call. */
int store_replay(struct store *store, store_record_fn *each, void *arg, struct hvd_err *err);
int store_blacklist(struct store *store, store_blacklist_fn *each, void *arg, struct hvd_err *err);

/* Writes all `writes`, or none of them. Returns 0 when all are durable. After a failure the same
 * writes may be given again, and are then written once. HVD_E_LOST: another driver is the owner.
 * HVD_E_INVAL: a record could not be read back. HVD_E_BUSY, HVD_E_FULL, HVD_E_NOMEM: a later call
 * may succeed. */
int store_write(struct store *store, const struct job_write *writes, size_t count,
                struct hvd_err *err) MUST_CHECK;

/* Writes these records instead of the whole journal, or changes nothing. Codes are those of
 * store_write. HVD_E_LIMIT: the records are too many for one transaction of this store. */
int store_replace(struct store *store, const struct journal_record *records, size_t count,
                  struct hvd_err *err) MUST_CHECK;

/* Returns the addresses of the standbys that the last store_check or store_write has found. */
void store_peers(struct store *store, struct store_peers *ret_peers);

void store_close(struct store *store); /* store may be NULL */

#endif
