/*
 * blacklist.h: may a worker be launched on this host and slot? The answer follows from the failures
 * that the core has reported, and is for launches only: the blacklist never ends a worker.
 *
 *             counted failure                    counted failure, for ever or over the budget
 *      OK ------------------------> COOLING     OK --------------------------------> BARRED
 *       ^---------------------------'            ^-----------------------------------'
 *             its time is over                               cleared
 *
 * A slot may be used when neither it nor its host is cooling or barred. A cooldown ends by itself.
 * A failure while the slot or its host is cooling or barred goes to the history, but it does not
 * count and makes no cooldown longer: many workers that die of one cause are one failure. An entry
 * remembers the incarnations of its latest LIMIT_BLACKLIST_REMEMBERED failures, so that a failure
 * whose report comes twice or late counts once.
 *
 * Strings are copied. Entries are sorted by host, then by slot; that of the whole host comes last.
 */
#ifndef BLACKLIST_BLACKLIST_H
#define BLACKLIST_BLACKLIST_H

#include "base/trace.h"
#include "base/vec.h"
#include "blacklist/policy.h"
#include "blacklist/record.h"

struct blacklist {
    struct policy policy;
    struct trace *trace; /* borrowed, may be NULL */
    struct VEC(struct blacklist_entry *) entries;
    size_t max;          /* most entries: LIMIT_BLACKLIST_ENTRIES; a test may lower it */
    int64_t earliest_us; /* no cooldown that still runs ends before this time */
};

/* Initialises an empty blacklist. The policy is copied and must have passed policy_check. */
void blacklist_init(struct blacklist *blacklist, const struct policy *policy, struct trace *trace);
void blacklist_release(struct blacklist *blacklist);

/* The result of a failure or clear. The driver stores it before it acts on the change. */
struct blacklist_change {
    bool none; /* nothing changed, because a failure of this incarnation was recorded before */
    struct blacklist_record record;
    struct blacklist_event event;
    bool evicted; /* the entry of evicted_host was dropped to make room; its row may be removed */
    char evicted_host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t evicted_slot;
};

struct blacklist_failure {
    const char *host;
    uint32_t slot;        /* BLACKLIST_WHOLE_HOST when the agent of the host failed */
    uint64_t incarnation; /* the failed worker, up to INT64_MAX; 0: no worker */
    const char *reason;   /* why it failed, for example "exit code 1" */
};

/*
 * Records a failure. HVD_E_INVAL or HVD_E_LIMIT: the host or slot is not valid. A full blacklist
 * drops its oldest entry that is OK and has no unforgiven failure; HVD_E_LIMIT: there is no such
 * entry. A failure whose change cannot be stored still counts, until the driver is restarted.
 */
int blacklist_failure(struct blacklist *blacklist, const struct blacklist_failure *failure,
                      struct blacklist_moment moment, struct rng *rng,
                      struct blacklist_change *ret_change, struct hvd_err *err) MUST_CHECK;

/* A worker has run on this slot since `since_us`: for each policy.decay_us of healthy running, the
 * slot and its host are each forgiven one failure. No time counts twice. The core calls this when a
 * worker ends, before it reports a failure. Returns the number of records in ret_changed. The
 * caller need not store these records: a lost record costs only its forgiveness. */
size_t blacklist_healthy(struct blacklist *blacklist, const char *host, uint32_t slot,
                         int64_t since_us, struct blacklist_moment moment,
                         struct blacklist_record ret_changed[2]);

/* The operator forgives everything: failures, cooldown and bar are removed. The incarnations stay
 * known, so that a late report does not bring a failure back. HVD_E_NOTFOUND when the host or slot
 * has no entry. */
int blacklist_clear(struct blacklist *blacklist, const char *host, uint32_t slot,
                    struct blacklist_moment moment, struct blacklist_change *ret_change,
                    struct hvd_err *err) MUST_CHECK;

/*
 * Loads a record of an earlier driver. The remaining time of its cooldown is computed from the wall
 * clock, and is at most the policy's upper_us. A barred host or slot stays barred. HVD_E_CORRUPT:
 * the record is not valid; HVD_E_EXISTS: the host or slot has an entry already; HVD_E_LIMIT as in
 * blacklist_failure. If an entry is dropped to make room, its row stays in the file.
 */
int blacklist_load(struct blacklist *blacklist, const struct blacklist_record *record,
                   struct blacklist_moment moment, struct hvd_err *err) MUST_CHECK;

/* blacklist_record_at makes a record of entry number `index`, less than blacklist_count(). */
size_t blacklist_count(const struct blacklist *blacklist);
void blacklist_record_at(const struct blacklist *blacklist, size_t index,
                         struct blacklist_moment moment, struct blacklist_record *ret_record);

enum blacklist_state { BLACKLIST_OK, BLACKLIST_COOLING, BLACKLIST_BARRED };

struct blacklist_verdict {
    enum blacklist_state state;
    bool by_host; /* the entry of the whole host decides, not that of the slot */
    uint32_t failures;
    int64_t since_us;
    int64_t until_us;   /* TIME_NEVER when barred */
    const char *reason; /* reason of the last failure that counted; borrowed */
};

struct blacklist_verdict blacklist_verdict(const struct blacklist *blacklist, const char *host,
                                           uint32_t slot, int64_t now_us);

/* Returns the end of the earliest cooldown (TIME_NEVER: none), and keeps it for later calls. */
int64_t blacklist_deadline(struct blacklist *blacklist, int64_t now_us);

/* Returns the host (borrowed) of the next cooldown that is over; NULL: no further one. Each one is
 * returned once. *index is 0 at first. Called before blacklist_deadline, which forgets them. */
const char *blacklist_next_cooled(struct blacklist *blacklist, int64_t now_us, size_t *index,
                                  uint32_t *ret_slot);

/* Writes one sentence for operators: "cooling for 19.3s more after 2 failures: exit code 1". */
#define BLACKLIST_SENTENCE_MAX (LIMIT_REASON_BYTES + 128)
const char *blacklist_sentence(const struct blacklist_verdict *verdict, int64_t now_us,
                               char text[BLACKLIST_SENTENCE_MAX]);

#endif
