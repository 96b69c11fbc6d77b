/*
 * etcd_store.c: the store of a job in etcd. driver/job_folder.c opens it, and the scribe's thread
 * writes it. Invariants: every transaction that writes compares the revision of the key "owner"
 * with that of this driver's claim; every write has a key of the journal of its own, which it
 * creates, so a transaction that is carried out twice or late changes nothing the second time.
 */
#include "driver/store/etcd_store.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "driver/store/etcd_store_internal.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_US (100 * TIME_MS) /* how often a claim looks whether the former lease is over */
/* a claim waits this much longer than the lease of the former driver */
#define LEASE_MARGIN_S 2
/* etcd is asked for a lease that is this much longer. In the remaining time a standby can see that
 * the driver's lease is over: etcd itself ends a lease up to a second late, and grants none below
 * two seconds. */
#define LEASE_SPARE_S 2

struct etcd_store *etcd_of(struct store *store)
{
    return CONTAINER_OF(store, struct etcd_store, store);
}

struct span etcd_span(const struct buf *buf)
{
    return (struct span){ buf_text(buf), buf->length };
}

/* ---- the facts ------------------------------------------------------------------------------ */

/* Checks the options of --store for faults that show without a call of etcd: the URL, certificates
 * without TLS, a job's key in clear, a password without a user. */
int etcd_store_check_config(const struct etcd_store_config *config, struct hvd_err *err)
{
    struct etcd_url url;
    int rc = etcd_url_parse(config->url, &url, err);

    if (rc)
        return err_prefix(err, rc, "--store");
    if (!url.tls && (config->ca_file || config->cert_file || config->key_file))
        return err_set(err, HVD_E_INVAL,
                       "--store: etcd:// has no TLS; write etcds:// to use the certificates");
    if (!url.tls && !url.loopback && !config->insecure)
        return err_set(err, HVD_E_INVAL,
                       "--store: the key of the job would go to other machines in clear; write "
                       "etcds://, or accept that with --store-insecure");
    if (config->key_file && !config->cert_file)
        return err_set(err, HVD_E_INVAL,
                       "--store-key: its certificate is missing; give --store-cert");
    if (config->password_file && !config->user && !*url.user)
        return err_set(err, HVD_E_INVAL,
                       "--store-password-file: a password needs a user; give --store-user too");
    if (config->user && strlen(config->user) > ETCD_USER_MAX)
        return err_set(err, HVD_E_LIMIT, "--store-user: longer than %d bytes; use another user",
                       ETCD_USER_MAX);
    return 0;
}

/* Reads the job's facts from the first key of the list `kvs` into self->facts, with the revision of
 * that key. */
static int etcd_take_facts(struct etcd_store *self, const json_t *kvs, struct hvd_err *err)
{
    struct etcd_pair pair;
    int rc;

    etcd_pair_init(&pair);
    rc = etcd_pair_at(kvs, 0, &pair, err);
    if (!rc)
        rc = etcd_read_facts(etcd_span(&pair.value), &self->facts, err);
    if (!rc)
        self->facts_revision = pair.revision;
    etcd_pair_release(&pair);
    return rc;
}

/* Reads the facts of the job from etcd into self->facts. HVD_E_NOTFOUND: there is no such job. */
static int etcd_find_facts(struct etcd_store *self, struct hvd_err *err)
{
    json_t *answer = NULL;
    struct etcd_txn txn;
    bool held;
    int rc;

    etcd_txn_begin(&txn, self->base);
    etcd_txn_get(&txn, "facts");
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    if (!rc && !etcd_txn_kvs(answer, 0))
        rc = err_set(err, HVD_E_NOTFOUND,
                     "%s: there is no such job in etcd; give the name and the --store that the job "
                     "was started with",
                     self->base);
    else if (!rc)
        rc = etcd_take_facts(self, etcd_txn_kvs(answer, 0), err);
    json_decref(answer);
    return rc;
}

/* Writes the facts of a new job, unless another driver has just done so, and reads the facts that
 * are there then. Called only if there are none: a full etcd refuses even a transaction that would
 * write nothing. */
static int etcd_make_facts(struct etcd_store *self, const struct job_facts *fresh,
                           struct hvd_err *err)
{
    json_t *answer = NULL;
    struct etcd_txn txn;
    struct buf value;
    bool held;
    int rc;

    buf_init(&value, LIMIT_ETCD_VALUE_BYTES);
    etcd_txn_begin(&txn, self->base);
    etcd_txn_compare(&txn, "facts", "VERSION", 0 /* no such key */);
    rc = etcd_write_facts(&value, fresh);
    if (rc)
        txn.rc = rc;
    etcd_txn_put(&txn, "facts", etcd_span(&value), 0 /* no lease */);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    json_decref(answer);
    buf_release(&value);
    return rc ? rc : etcd_find_facts(self, err);
}

/* The operation `facts` of the store: reads the job's facts anew. */
static int etcd_store_facts(struct store *store, struct job_facts *ret_facts, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    int rc = etcd_find_facts(self, err);

    if (!rc)
        *ret_facts = self->facts;
    return rc;
}

/* ---- the owner ------------------------------------------------------------------------------ */

/* Asks etcd for a lease, whose number is then in self->lease. kept_us is the time before the
 * request, so etcd ends the lease no earlier than this driver counts. */
static int etcd_grant(struct etcd_store *self, struct hvd_err *err)
{
    json_t *answer = NULL;
    int64_t began_us = clock_now_us();
    struct buf text;
    int rc;

    buf_init(&text, 256);
    rc = buf_printf(&text, "{\"TTL\":\"%" PRId64 "\"}", self->lease_s + LEASE_SPARE_S);
    if (rc)
        err_set(err, rc, "no memory for the request of a lease; free memory on this host");
    else
        rc = etcd_call(self->etcd, "lease/grant", &text, &answer, err);
    if (!rc && !etcd_number(answer, "ID"))
        rc = err_set(err, HVD_E_PROTO,
                     "etcd has granted no lease; let the driver reach etcd without a proxy");
    if (!rc) {
        self->lease = etcd_number(answer, "ID");
        self->kept_us = began_us;
    }
    json_decref(answer);
    buf_release(&text);
    return rc;
}

/* Sets the error that another driver has taken over the job. `kvs`: the present key "owner", which
 * names that driver; NULL: the key is gone. */
int etcd_lost(const json_t *kvs, struct hvd_err *err)
{
    struct etcd_owner owner = { .who = "unknown: its key is gone" };
    struct etcd_pair pair;

    etcd_pair_init(&pair);
    if (kvs && !etcd_pair_at(kvs, 0, &pair, NULL))
        (void)!etcd_read_owner(etcd_span(&pair.value), &owner, NULL);
    etcd_pair_release(&pair);
    return err_set(err, HVD_E_LOST, "another driver (%s) has taken over this job; this driver ends",
                   owner.who);
}

/* Begins a transaction that etcd carries out only if this driver is still the owner: if the key
 * "owner" has not changed since this driver's claim. */
void etcd_begin_fenced(struct etcd_store *self, struct etcd_txn *txn)
{
    etcd_txn_begin(txn, self->base);
    etcd_txn_compare(txn, "owner", "MOD", self->revision);
}

/* Runs a transaction that has no other comparison than that of the owner. */
int etcd_run_fenced(struct etcd_store *self, struct etcd_txn *txn, struct hvd_err *err)
{
    json_t *answer = NULL;
    bool held = false;
    int rc;

    etcd_txn_else(txn);
    etcd_txn_get(txn, "owner");
    rc = etcd_txn_run(txn, self->etcd, &held, &answer, err);
    if (!rc && !held)
        rc = etcd_lost(etcd_txn_kvs(answer, 0), err);
    json_decref(answer);
    return rc;
}

/* Sends etcd a request about the lease with this number; `path` is "lease/keepalive",
 * "lease/timetolive" or "lease/revoke". */
static int etcd_call_lease(struct etcd_store *self, const char *path, int64_t lease,
                           json_t **ret_answer, struct hvd_err *err)
{
    struct buf text;
    int rc;

    buf_init(&text, 256);
    rc = buf_printf(&text, "{\"ID\":\"%" PRId64 "\"}", lease);
    if (rc)
        err_set(err, rc, "no memory for the request of a lease; free memory on this host");
    else
        rc = etcd_call(self->etcd, path, &text, ret_answer, err);
    buf_release(&text);
    return rc;
}

/* Asks etcd to renew the lease of this driver. *ret_alive true: the lease is renewed; false: the
 * lease had already run out. */
static int etcd_renew(struct etcd_store *self, bool *ret_alive, struct hvd_err *err)
{
    int64_t began_us = clock_now_us();
    json_t *answer = NULL;
    int rc = etcd_call_lease(self, "lease/keepalive", self->lease, &answer, err);

    *ret_alive = !rc && etcd_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    if (*ret_alive)
        self->kept_us = began_us;
    return rc;
}

/* The operation `peers` of the store: returns the standbys that etcd_keep has found. */
static void etcd_store_peers(struct store *store, struct store_peers *ret_peers)
{
    *ret_peers = etcd_of(store)->peers;
}

/* Moves the time until which no other driver can have the job: one lease after the last renewal was
 * sent. etcd has renewed the lease at that moment or later. */
static void etcd_hold(struct etcd_store *self)
{
    self->store.held_until_us = self->kept_us + self->lease_s * TIME_S;
}

/* Renews the lease when a third of it is over. A lease that has run out is replaced: as long as no
 * other driver has claimed the job, this one is still its owner. If the answer comes after the
 * lease was over, a standby may have seen it over, and may be claiming the job. Then the key
 * `alive` is written anew: the claim of that standby fails, or this write does. */
int etcd_keep(struct etcd_store *self, struct hvd_err *err)
{
    struct store_peers peers = { .count = 0 };
    struct etcd_pair pair;
    json_t *answer = NULL;
    struct etcd_txn txn;
    bool alive, in_time;
    int rc;

    if (clock_now_us() < self->kept_us + self->lease_s * TIME_S / 3)
        return 0;
    rc = etcd_renew(self, &alive, err);
    in_time = clock_now_us() <= self->store.held_until_us;
    if (alive && in_time)
        etcd_hold(self);
    /* Asks which drivers stand by. If etcd does not answer, the list stays unchanged. */
    if (alive && !etcd_range(self->etcd, self->base, "standby/", "standby/", STORE_PEERS_MAX,
                             &answer, NULL)) {
        etcd_pair_init(&pair);
        for (size_t i = 0; i < json_array_size(etcd_kvs(answer)); i++)
            if (!etcd_pair_at(etcd_kvs(answer), i, &pair, NULL))
                (void)!etcd_read_peers(etcd_span(&pair.value), &peers, NULL);
        etcd_pair_release(&pair);
        json_decref(answer);
        self->peers = peers;
    }
    if (rc || (alive && in_time))
        return rc;
    rc = alive ? 0 : etcd_grant(self, err);
    if (rc)
        return rc;
    etcd_begin_fenced(self, &txn);
    etcd_txn_put(&txn, "alive", (struct span){ "", 0 }, self->lease);
    rc = etcd_run_fenced(self, &txn, err);
    if (rc) {
        self->kept_us = 0; /* the next call of etcd_keep tries again */
        return rc;
    }
    etcd_hold(self);
    log_warning(STORE, "the lease of this driver had run out, and no other driver has taken the "
                       "job: the lease is renewed");
    return 0;
}

/* The result of a look at the owner; the facts of the same moment are in self->facts. */
struct etcd_seen {
    bool alive;
    bool is_free;           /* the job may be claimed at once */
    int64_t revision;       /* of the key "owner"; 0: there is none */
    int64_t alive_revision; /* of the key "alive"; 0: there is none */
    struct etcd_owner owner;
};

/* Looks at the owner, and whether it has renewed its lease within the time that it may be silent.
 * etcd says how much of the lease is left, in whole seconds. After the death of etcd's leader the
 * next one begins all leases anew, so a driver that could not renew keeps its job. */
static int etcd_see(struct etcd_store *self, struct etcd_seen *ret_seen, struct hvd_err *err)
{
    json_t *answer = NULL, *left = NULL;
    struct etcd_seen seen = { .owner = { .lease_s = self->lease_s } };
    struct etcd_txn txn;
    struct etcd_pair pair;
    int64_t lease;
    bool held;
    int rc;

    etcd_txn_begin(&txn, self->base);
    etcd_txn_get(&txn, "owner");
    etcd_txn_get(&txn, "alive");
    /* in the same transaction, because a driver that has ended the job has left no lease */
    etcd_txn_get(&txn, "facts");
    etcd_pair_init(&pair);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    if (!rc && etcd_txn_kvs(answer, 2))
        rc = etcd_take_facts(self, etcd_txn_kvs(answer, 2), err);
    if (!rc && etcd_txn_kvs(answer, 0)) {
        rc = etcd_pair_at(etcd_txn_kvs(answer, 0), 0, &pair, err);
        if (!rc)
            rc = etcd_read_owner(etcd_span(&pair.value), &seen.owner, err);
        seen.revision = pair.revision;
    }
    lease = etcd_number(json_array_get(etcd_txn_kvs(answer, 1), 0), "lease");
    seen.alive_revision = etcd_number(json_array_get(etcd_txn_kvs(answer, 1), 0), "mod_revision");
    if (!rc && lease) {
        rc = etcd_call_lease(self, "lease/timetolive", lease, &left, err);
        /* A lease that is gone by now was given back after the look, perhaps by a driver that has
         * ended the job: the next look tells. A number that is 0 is left out of the answer. */
        seen.alive =
            rc || !etcd_number(left, "grantedTTL") ||
            etcd_number(left, "TTL") >= etcd_number(left, "grantedTTL") - seen.owner.lease_s;
        rc = rc == HVD_E_NOTFOUND ? 0 : rc;
    }
    seen.is_free =
        !seen.alive || self->takeover || (self->dead_token && self->dead_token == seen.owner.token);
    etcd_pair_release(&pair);
    json_decref(answer);
    json_decref(left);
    if (!rc)
        *ret_seen = seen;
    return rc;
}

/* Makes this driver the owner of the job, if the key "owner" has not changed since it was seen, and
 * the owner has not written the key "alive" again (etcd_keep). *ret_won: this driver is the owner
 * now. If etcd has carried out an earlier claim whose answer was lost, the token in the key "owner"
 * shows that. */
static int etcd_try_claim(struct etcd_store *self, const struct etcd_seen *seen,
                          const struct etcd_owner *owner, bool *ret_won, struct hvd_err *err)
{
    json_t *answer = NULL;
    struct etcd_owner now = { .token = 0 };
    struct etcd_pair pair;
    struct etcd_txn txn;
    struct buf value;
    bool held = false;
    int rc;

    buf_init(&value, LIMIT_ETCD_VALUE_BYTES);
    etcd_pair_init(&pair);
    etcd_txn_begin(&txn, self->base);
    etcd_txn_compare(&txn, "owner", "MOD", seen->revision);
    etcd_txn_compare(&txn, "alive", "MOD", seen->alive_revision);
    rc = etcd_write_owner(&value, owner);
    if (rc)
        txn.rc = rc;
    etcd_txn_put(&txn, "owner", etcd_span(&value), 0 /* no lease */);
    etcd_txn_put(&txn, "alive", (struct span){ "", 0 }, self->lease);
    etcd_txn_else(&txn);
    etcd_txn_get(&txn, "owner");
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    if (!rc && held)
        self->revision = etcd_number(json_object_get(answer, "header"), "revision");
    if (!rc && !held && etcd_txn_kvs(answer, 0)) {
        rc = etcd_pair_at(etcd_txn_kvs(answer, 0), 0, &pair, err);
        if (!rc)
            rc = etcd_read_owner(etcd_span(&pair.value), &now, err);
        if (!rc && now.token == owner->token)
            self->revision = pair.revision;
    }
    *ret_won = self->revision;
    if (self->revision)
        etcd_hold(self);
    json_decref(answer);
    etcd_pair_release(&pair);
    buf_release(&value);
    return rc;
}

/* Waits until the job may be claimed. A driver that renews its lease keeps its job; the lease of a
 * dead driver runs out. HVD_E_EXISTS: the driver of the job is alive. HVD_E_STATE: the job has
 * ended. Other codes: etcd could not be asked. */
static int etcd_await_free(struct etcd_store *self, struct etcd_seen *ret_seen, struct hvd_err *err)
{
    int64_t began_us = clock_now_us();
    bool waits = false;
    int rc;

    for (;;) {
        rc = etcd_see(self, ret_seen, err);
        /* perhaps another standby took the job over and has ended it */
        if (!rc && self->facts.ended)
            rc = err_set(err, HVD_E_STATE, "job %s has ended: %s", self->facts.job,
                         self->facts.text);
        if (rc || ret_seen->is_free)
            return rc;
        if (clock_now_us() >= began_us + (ret_seen->owner.lease_s + LEASE_MARGIN_S) * TIME_S)
            return err_set(err, HVD_E_EXISTS, "the driver of this job lives (%s)",
                           ret_seen->owner.who);
        if (!waits)
            log_info(STORE, "the lease of the former driver (%s) is not over yet; waiting for it",
                     ret_seen->owner.who);
        waits = true;
        thread_pause(LOOK_US);
    }
}

/* Claims the job for this driver: waits until it is free, gets a lease and writes the key "owner".
 * If etcd's database is full, the claim is tried again for ETCD_OPEN_PATIENCE_US. */
static int etcd_store_claim(struct store *store, uint64_t token, const char *who,
                            struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    struct etcd_owner owner = { .token = token,
                                .since_wall_us = clock_wall_us(),
                                .lease_s = self->lease_s };
    int64_t began_us = clock_now_us();
    struct etcd_seen seen;
    bool won = false, full = false;
    int rc;

    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    blacklist_reason_set(owner.who, who);
    self->revision = 0;
    self->tail_known = false;
    for (;;) {
        rc = etcd_await_free(self, &seen, err);
        if (rc == HVD_E_EXISTS)
            return err_set(err, rc,
                           "the driver of this job lives (%s); end it first, stand by for it with "
                           "--standby, or take its job over with --takeover",
                           seen.owner.who);
        if (!rc)
            rc = etcd_grant(self, err);
        if (!rc)
            rc = etcd_try_claim(self, &seen, &owner, &won, err);
        /* 0 without `won`: another driver was faster, and the loop looks again at what it holds */
        if (won || (rc && rc != HVD_E_FULL) ||
            (rc && clock_now_us() >= began_us + ETCD_OPEN_PATIENCE_US))
            return rc;
        if (rc && !full)
            log_warning(STORE, "the job cannot be claimed yet, and the claim is tried again: %s",
                        err ? err->text : err_text(rc));
        full = full || rc;
        thread_pause(LOOK_US);
    }
}

/* Waits until no driver of the job is alive, without claiming the job. ret_who: the name of the
 * last driver. */
int etcd_store_await_orphan(struct store *store, char ret_who[LIMIT_REASON_BYTES + 1],
                            struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    struct etcd_seen seen;
    int rc;

    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    rc = etcd_await_free(self, &seen, err);
    if (!rc)
        memcpy(ret_who, seen.owner.who, sizeof(seen.owner.who));
    return rc;
}

/* The operation `check` of the store: asks etcd whether this driver is still the owner, and renews
 * its lease when that is due. */
static int etcd_store_check(struct store *store, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    struct etcd_txn txn;
    int rc;

    ASSERT(self->revision != 0);
    etcd_set_patience(self->etcd, 0 /* one try on each server */);
    etcd_begin_fenced(self, &txn);
    rc = etcd_run_fenced(self, &txn, err);
    return rc ? rc : etcd_keep(self, err);
}

/* ---- opening and closing -----------------------------------------------------------------------
 */

/* Gives the lease back, so that a standby does not have to wait until it runs out. */
static void etcd_store_close(struct store *store)
{
    struct etcd_store *self = etcd_of(store);
    json_t *answer = NULL;

    if (self->etcd && self->lease) {
        etcd_set_patience(self->etcd, 0 /* one try on each server */);
        (void)!etcd_call_lease(self, "lease/revoke", self->lease, &answer, NULL);
        json_decref(answer);
    }
    etcd_free(self->etcd);
    etcd_record_release(&self->record);
    explicit_bzero(&self->facts, sizeof(self->facts));
    mem_free(self);
}

static const struct store_ops etcd_store_ops = {
    etcd_store_facts, etcd_store_claim,   etcd_store_check, etcd_store_replay, etcd_store_blacklist,
    etcd_store_write, etcd_store_replace, etcd_store_close, etcd_store_peers,
};

/* Opens the store of a job in etcd: reads the facts, or writes those of a new job (`fresh`). The
 * job is claimed later, by store_claim. */
int etcd_store_open(const struct etcd_store_config *config, const char *job,
                    const struct job_facts *fresh, struct store **ret_store, struct hvd_err *err)
{
    struct etcd_store *self;
    struct etcd_url url;
    int rc = job_name_check(job, err);

    if (!rc)
        rc = etcd_store_check_config(config, err);
    if (!rc)
        rc = etcd_url_parse(config->url, &url, err);
    if (rc)
        return rc;
    self = mem_zalloc(sizeof(*self));
    if (!self)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the store in etcd; free memory on this host");
    /* The owner has to call within a third of the lease; 0: the job is not held yet. */
    self->store = (struct store){ &etcd_store_ops, config->lease_us / 3, 0 };
    self->lease_s = (config->lease_us + TIME_S - 1) / TIME_S;
    self->takeover = config->takeover;
    etcd_record_init(&self->record);
    snprintf(self->base, sizeof(self->base), "%s/%s/", url.prefix, job);
    rc = etcd_create(config, &self->etcd, err);
    if (!rc) {
        etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
        rc = etcd_find_facts(self, err);
        if (rc == HVD_E_NOTFOUND && fresh)
            rc = etcd_make_facts(self, fresh, err);
    }
    if (!rc && strcmp(self->facts.job, job) != 0)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%sfacts: this key of etcd belongs to the job %s, and not to the job %s; give "
                     "another prefix in --store",
                     self->base, self->facts.job, job);
    if (rc)
        etcd_store_close(&self->store);
    else
        *ret_store = &self->store;
    return rc;
}

/* The driver that claimed the job with this token is dead: a claim does not wait for the end of its
 * lease. */
void etcd_store_bury(struct store *store, uint64_t token)
{
    etcd_of(store)->dead_token = token;
}

/* Deletes all keys of a job that has ended, and writes the facts of a new one. The key of the job
 * tells whether another driver has done so at the same time. */
int etcd_store_begin_anew(struct store *store, const struct job_facts *fresh, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    json_t *answer = NULL;
    struct etcd_txn txn;
    bool held = false;
    int rc;

    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    etcd_txn_begin(&txn, self->base);
    etcd_txn_compare(&txn, "facts", "MOD", self->facts_revision);
    etcd_txn_delete(&txn, "", true /* all keys of the job */);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    json_decref(answer);
    /* If the answer to the deletion was lost, the second try fails its comparison, because the
     * facts are gone. So `held` is not looked at: the key of the job shows which driver has begun
     * it anew. */
    if (!rc)
        rc = etcd_make_facts(self, fresh, err);
    if (!rc && memcmp(self->facts.key, fresh->key, sizeof(fresh->key)) != 0)
        rc = err_set(err, HVD_E_BUSY,
                     "another driver has begun the job %s at this moment; start a job only once",
                     fresh->job);
    return rc;
}

/* Writes how the driver was started to the key "command", for a standby. Only the owner may do
 * that. */
int etcd_store_save_command(struct store *store, struct span bytes, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    struct etcd_txn txn;

    ASSERT(self->revision != 0);
    if (bytes.length > LIMIT_ETCD_VALUE_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "the command and the environment have more than %d bytes, which is too much "
                       "for etcd; shorten the environment",
                       LIMIT_ETCD_VALUE_BYTES);
    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    etcd_begin_fenced(self, &txn);
    etcd_txn_put(&txn, "command", bytes, 0);
    return etcd_run_fenced(self, &txn, err);
}

/* Appends the value of the key "command" (how the driver was started) to `out`. HVD_E_NOTFOUND: no
 * driver has written it yet. */
int etcd_store_load_command(struct store *store, struct buf *out, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    json_t *answer = NULL;
    struct etcd_txn txn;
    struct etcd_pair pair;
    bool held;
    int rc;

    etcd_set_patience(self->etcd, ETCD_OPEN_PATIENCE_US);
    etcd_txn_begin(&txn, self->base);
    etcd_txn_get(&txn, "command");
    etcd_pair_init(&pair);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    if (!rc && !etcd_txn_kvs(answer, 0))
        rc =
            err_set(err, HVD_E_NOTFOUND, "%scommand: there is no such key in etcd yet", self->base);
    else if (!rc)
        rc = etcd_pair_at(etcd_txn_kvs(answer, 0), 0, &pair, err);
    if (!rc && buf_append(out, pair.value.data, pair.value.length))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the command of the job; free memory on this host");
    etcd_pair_release(&pair);
    json_decref(answer);
    return rc;
}

/* Called again and again by a standby: writes where it will listen, under a lease of its own, and
 * renews that lease when a third of it is over. Until the job has a port there is no address to
 * announce. */
int etcd_store_announce(struct store *store, const struct store_peers *hosts, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    struct store_peers peers = { .count = 0 };
    bool alive = self->lease, held, due;
    json_t *answer = NULL;
    struct etcd_txn txn;
    struct buf value;
    char key[64];
    int rc = 0;

    due = !self->lease || clock_now_us() >= self->kept_us + self->lease_s * TIME_S / 3;
    if (alive && due)
        rc = etcd_renew(self, &alive, err);
    if (rc || !self->facts.port || (alive && self->peers_port == self->facts.port))
        return rc;
    if (!alive && (rc = etcd_grant(self, err)))
        return rc;
    for (size_t i = 0; i < hosts->count; i++)
        if (snprintf(peers.address[peers.count], STORE_PEER_TEXT_MAX, "%s:%u", hosts->address[i],
                     self->facts.port) < STORE_PEER_TEXT_MAX)
            peers.count++;
    buf_init(&value, LIMIT_ETCD_VALUE_BYTES);
    snprintf(key, sizeof(key), "standby/%016" PRIx64, (uint64_t)self->lease);
    etcd_txn_begin(&txn, self->base);
    txn.rc = etcd_write_peers(&value, &peers);
    etcd_txn_put(&txn, key, etcd_span(&value), self->lease);
    rc = etcd_txn_run(&txn, self->etcd, &held, &answer, err);
    json_decref(answer);
    buf_release(&value);
    self->peers_port = rc ? 0 : self->facts.port;
    return rc;
}

/* Called again and again by a standby: tells whether no driver of the job is alive (*ret_free), and
 * whether the job has ended. */
int etcd_store_look(struct store *store, bool *ret_free, bool *ret_ended, struct hvd_err *err)
{
    struct etcd_store *self = etcd_of(store);
    struct etcd_seen seen;
    int rc;

    etcd_set_patience(self->etcd, 0 /* one try on each server */);
    rc = etcd_see(self, &seen, err);
    if (rc)
        return rc;
    *ret_ended = self->facts.ended;
    *ret_free = self->facts.ended || !seen.alive;
    return 0;
}
