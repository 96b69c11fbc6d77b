/*
 * blacklist.h: may something be launched here? It answers that about hosts and slots, out of the
 * failures it was told about, and nothing else: it never ends what is running.
 *
 *             counted failure                    counted failure, for ever or over the budget
 *      OK ------------------------> COOLING     OK --------------------------------> BARRED
 *       ^---------------------------'            ^-----------------------------------'
 *             its time is over                               cleared
 *
 * A slot may be used when neither it nor its host is cooling or barred. A cooldown that has ended
 * needs no call to end. A failure while the slot or its host is cooling or barred goes to the
 * history but neither counts nor extends: many workers that die of one cause are one failure. The
 * incarnation that a failure is charged to is remembered (the latest LIMIT_BLACKLIST_REMEMBERED),
 * so that a report which comes twice or late counts once.
 *
 * now_us is monotonic and never falls; wall_us is only written into records, for the next driver.
 * Strings are copied. Entries are kept by host, then slot, the host itself last.
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
    size_t max;          /* LIMIT_BLACKLIST_ENTRIES; a test may lower it */
    int64_t earliest_us; /* no cooldown ends before this */
};

/* The policy is copied; it has passed policy_check. */
void blacklist_init(struct blacklist *blacklist, const struct policy *policy, struct trace *trace);
void blacklist_release(struct blacklist *blacklist);

/* What has to be stored, in this order, before the change is acted on. */
struct blacklist_change {
    bool none; /* nothing has changed: this incarnation was charged before */
    struct blacklist_record record;
    struct blacklist_event event;
    bool evicted; /* a forgotten entry made room: the store may drop it afterwards */
    char evicted_host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t evicted_slot;
};

struct blacklist_failure {
    const char *host;
    uint32_t slot;        /* or BLACKLIST_WHOLE_HOST, when its agent failed */
    uint64_t incarnation; /* up to INT64_MAX; 0: of no worker, and never taken for a repetition */
    const char *reason;   /* "exit code 1" */
};

/*
 * A failure. HVD_E_INVAL or HVD_E_LIMIT for a host or slot that cannot be, HVD_E_LIMIT when the
 * blacklist is full: then the oldest entry that is OK and wholly forgiven makes room, and there was
 * none. When the change cannot be stored the failure stands all the same; only a restart of the
 * driver would forget it.
 */
int blacklist_failure(struct blacklist *blacklist, const struct blacklist_failure *failure,
                      int64_t now_us, int64_t wall_us, struct rng *rng,
                      struct blacklist_change *ret_change, struct hvd_err *err) MUST_CHECK;

/*
 * A worker runs here and has since since_us. Each policy.decay_us of such running, counted once,
 * forgives the slot and its host one failure. Called when a worker ends, whatever the reason and
 * before its failure is told, and whenever the counts should be up to date. Returns how many
 * records have changed, which may be stored at leisure: losing one loses only forgiveness.
 */
size_t blacklist_healthy(struct blacklist *blacklist, const char *host, uint32_t slot,
                         int64_t since_us, int64_t now_us, int64_t wall_us,
                         struct blacklist_record ret_changed[2]);

/*
 * The operator takes it all back: no failures, no cooldown, no bar. The incarnations stay known,
 * so that a late report does not bring it back. HVD_E_NOTFOUND when nothing is known of it.
 */
int blacklist_clear(struct blacklist *blacklist, const char *host, uint32_t slot, int64_t now_us,
                    int64_t wall_us, struct blacklist_change *ret_change,
                    struct hvd_err *err) MUST_CHECK;

/*
 * Takes back a record of an earlier driver. What is left of its cooldown is what the wall clock
 * says, but never more than the policy's upper end, however the clock has jumped; a bar stays.
 * HVD_E_CORRUPT for a record that cannot be, HVD_E_EXISTS, HVD_E_LIMIT as above; what makes room
 * here stays in the store.
 */
int blacklist_load(struct blacklist *blacklist, const struct blacklist_record *record,
                   int64_t now_us, int64_t wall_us, struct hvd_err *err) MUST_CHECK;

/* The entries as records, index 0 to blacklist_count() - 1. */
size_t blacklist_count(const struct blacklist *blacklist);
void blacklist_record_at(const struct blacklist *blacklist, size_t index, int64_t now_us,
                         int64_t wall_us, struct blacklist_record *ret_record);

enum blacklist_state { BLACKLIST_OK, BLACKLIST_COOLING, BLACKLIST_BARRED };

struct blacklist_verdict {
    enum blacklist_state state;
    bool by_host; /* said of a slot: its host is what decides */
    uint32_t failures;
    int64_t since_us;
    int64_t until_us;   /* TIME_NEVER when barred */
    const char *reason; /* of the last failure that counted; borrowed until the next change */
};

struct blacklist_verdict blacklist_verdict(const struct blacklist *blacklist, const char *host,
                                           uint32_t slot, int64_t now_us);

/* When the earliest cooldown ends; TIME_NEVER. Not const: it remembers the answer. */
int64_t blacklist_deadline(struct blacklist *blacklist, int64_t now_us);

/* One sentence for operators: "cooling for 19.3s more after 2 failures: exit code 1". */
#define BLACKLIST_SENTENCE_MAX (LIMIT_REASON_BYTES + 128)
const char *blacklist_sentence(const struct blacklist_verdict *verdict, int64_t now_us,
                               char text[BLACKLIST_SENTENCE_MAX]);

#endif
