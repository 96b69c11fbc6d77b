/*
 * etcd_store.h: the store of a job in etcd: its facts, journal and blacklist, and how a driver was
 * started. So a job outlives the machine of its driver.
 *
 *     PREFIX/JOB/facts            name, key, port, how the job has ended
 *     PREFIX/JOB/owner            the driver that may write: its token, and who it is
 *     PREFIX/JOB/alive            is there as long as the lease of that driver
 *     PREFIX/JOB/journal/NUMBER   a step or more; the first byte is + if more of it follows, and =
 *                                 if it replaces all before it
 *     PREFIX/JOB/blacklist/HOST/SLOT
 *     PREFIX/JOB/standby/LEASE    where a standby will listen, as long as its lease
 *     PREFIX/JOB/command          how the driver was started, for --standby and --resume
 *
 * Every transaction compares the revision of `owner` with that of this driver's claim, so a driver
 * that was replaced changes nothing. `alive` only says when another driver may claim the job.
 */
#ifndef DRIVER_STORE_ETCD_STORE_H
#define DRIVER_STORE_ETCD_STORE_H

#include "base/buf.h"
#include "driver/store/store.h"

/* All texts are copied. */
struct etcd_store_config {
    const char *url; /* the option --store, "etcd://..." (etcd_url.h) */
    /* files for TLS; NULL: none (ca_file: the system's) */
    const char *ca_file, *cert_file, *key_file;
    const char *user;          /* NULL: the user that the URL names, or none */
    const char *password_file; /* the file with the user's password; NULL: none */
    /* the key of the job may go to other machines without TLS */
    bool insecure;
    int64_t lease_us; /* how long a silent driver keeps its job */
    bool takeover;    /* claim the job even from a driver that lives */
};

/* Checks the options without a call of etcd. HVD_E_INVAL, or a code of file_read. */
int etcd_store_check_config(const struct etcd_store_config *config, struct hvd_err *err) MUST_CHECK;

/* Opens the store of the job. `fresh`: the facts of a new job, which are written if there is no
 * such job; NULL: the job must be there (HVD_E_NOTFOUND). Nothing is claimed yet.
 *
 * store_claim waits until the lease of a driver that no longer renews it is over. HVD_E_EXISTS: the
 * driver of the job lives. HVD_E_STATE: the job has ended meanwhile. HVD_E_FULL: etcd is full, and
 * stays so for 20 s. */
int etcd_store_open(const struct etcd_store_config *config, const char *job,
                    const struct job_facts *fresh, struct store **ret_store,
                    struct hvd_err *err) MUST_CHECK;

/* Waits until no driver of the job lives, as store_claim does, and claims nothing. ret_who: the
 * last driver. The codes are those of store_claim. */
int etcd_store_await_orphan(struct store *store, char ret_who[LIMIT_REASON_BYTES + 1],
                            struct hvd_err *err) MUST_CHECK;

/* The driver that has made the claim with this token is dead: store_claim does not wait for the end
 * of its lease. */
void etcd_store_bury(struct store *store, uint64_t token);

/* Removes everything of a job that has ended, and begins it anew with the facts `fresh`.
 * HVD_E_BUSY: another driver has begun it first. */
int etcd_store_begin_anew(struct store *store, const struct job_facts *fresh,
                          struct hvd_err *err) MUST_CHECK;

/* etcd_store_save_command keeps the bytes that say how the driver was started; it needs a claim.
 * etcd_store_load_command appends them to `out`; HVD_E_NOTFOUND: none were kept. */
int etcd_store_save_command(struct store *store, struct span bytes, struct hvd_err *err) MUST_CHECK;
int etcd_store_load_command(struct store *store, struct buf *out, struct hvd_err *err) MUST_CHECK;

/* Tells the driver of the job where this standby will listen, under a lease, which is renewed when
 * that is due. The addresses in `hosts` have no port: the port of the job is added. Called after
 * each etcd_store_look. */
int etcd_store_announce(struct store *store, const struct store_peers *hosts,
                        struct hvd_err *err) MUST_CHECK;

/* Tells a standby whether it may take the job over: *ret_free is true if no driver of the job is
 * alive, or if the job has ended. *ret_ended: the job has ended. */
int etcd_store_look(struct store *store, bool *ret_free, bool *ret_ended,
                    struct hvd_err *err) MUST_CHECK;

#endif
