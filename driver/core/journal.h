/*
 * journal.h: what a driver writes down so that its successor can go on: one record for each fact
 * that an agent or worker may have been told. Records are replayed in the order in which they were
 * written. A record that is in the journal twice has no second effect.
 */
#ifndef DRIVER_CORE_JOURNAL_H
#define DRIVER_CORE_JOURNAL_H

#include "base/limits.h"
#include "proto/msg.h"

enum journal_kind {
    JOURNAL_TERM = 1, /* a driver has begun, whose number is `term` */
    /* The worker `incarnation` in `slot` of `host` may exist from wall_us on. `value`: 1 + the rank
     * that it is told; 0: some worker of the job has joined before, so rounds give the ranks. */
    JOURNAL_LAUNCH = 2,
    JOURNAL_READY = 3, /* `incarnation` has joined with `manifest` and `addresses` */
    /* An agent may have been told the number `round`, so no other round gets this number. */
    JOURNAL_NUMBER = 4,
    /* `round` begins; the record has cause, previous, commit, check, members and holders */
    JOURNAL_ROUND = 5,
    /* Members train in `round`: no later round resumes from a commit older than that of `round`. */
    JOURNAL_ENTERED = 6,
    /* The training of `incarnation` returned 0: from now on no further round begins. */
    JOURNAL_FINISHED = 7,
    /* The worker `incarnation` has ended, as `ended` and `value` say. `code`: an enum
     * journal_blame. */
    JOURNAL_ENDED = 8,
    /* `slot`, or all of `host`, is drained until wall_us (0: ended). `code`: an enum
     * journal_drain. */
    JOURNAL_DRAIN = 9,
    JOURNAL_OVER = 10, /* the job has ended with `code` and `text` */
    /* The counts of failures without progress:
     * `value`: number of failures of `slot` on `host`; `host` "": of no slot, a whole host failed.
     * `code`: number of failures in the whole job.
     * `round`: the round of the last failure.
     * `commit`, `check`: the commit since which these failures are counted, and its checksum.
     * `incarnation`: the highest incarnation given out when the last failure happened. */
    JOURNAL_STUCK = 11,
    /* Which keys the agent of `host` may use: `value` is the version of a key, and `code` an enum
     * journal_key. */
    JOURNAL_KEY = 12,
    /* Stands for records that were removed (compact.h); a field that is 0 says nothing.
     * Incarnations up to `incarnation` were given out, and those without a LAUNCH have ended.
     * Rounds up to `round` were told; the next ROUND follows on `previous`. No round resumes from a
     * commit older than `commit`; `check` rounds came after the first one. Versions of keys
     * were given out up to `value`. `code` 1: a worker has joined with `manifest`. */
    JOURNAL_BASE = 13,
    /* A value of `round` (0: of the job) under the key `text` was changed, as `code` says (enum
     * journal_value), by the call `check` of `incarnation`. `addresses` are the value in
     * hexadecimal digits. */
    JOURNAL_STORE = 14,
    /* A token with which hosts may join, as `code` says (enum journal_token). `text` begins with
     * its id. MADE: then follow a blank and the digits of its key; `host` is the only one that may
     * use it ("": any), `value` for how many hosts it is good (0: any number), wall_us until when.
     * USED: `host` has joined with it; `check` is the number of its process. */
    JOURNAL_TOKEN = 15,
    /* The notice of the machine of `host` has ended ("": only the counts). `code` notices have
     * ended so far, `value` of them were honoured; the least lead time of these is `check`, the
     * least margin `manifest` (microseconds). */
    JOURNAL_NOTICE = 16,
    /* For the use `slot` (enum goodput_use) the job has spent `check` microseconds of workers, and
     * `manifest` of time, up to wall_us. With `host`: workers there have failed `check` times
     * (compact.h). */
    JOURNAL_GOODPUT = 17,
    JOURNAL_REPORTED = 18 /* a value that the program has reported: reported.h has the fields */
};

/* VALUE_ADDED: the value is a sum, which is also the answer to the call. VALUE_NUMBER: no value was
 * changed; the record says which call of the worker was the last, and its sum (compact.h). */
enum journal_value { VALUE_SET, VALUE_ADDED, VALUE_DELETED, VALUE_NUMBER, VALUE_COUNT };

/* BY_MACHINE: a notice began the drain. COUNTED: the same; a JOURNAL_NOTICE counts that notice. */
enum journal_drain { DRAIN_BY_OPERATOR, DRAIN_BY_MACHINE, DRAIN_COUNTED };

enum journal_token { TOKEN_MADE, TOKEN_USED, TOKEN_REVOKED, TOKEN_CODE_COUNT };

/* HOST_KEY_NONE: the host has no key any more. HOST_KEY_MORE: the host has the key of this version,
 * and also the key before, if there is one. HOST_KEY_ONLY: the host has only this key. */
enum journal_key { HOST_KEY_NONE, HOST_KEY_MORE, HOST_KEY_ONLY };

/* How progress.c counts the end of a worker. SLOT, HOST: a member failed, by the fault of its slot
 * or of its host. START: a worker failed before it joined. RUN: a plain command failed after a run
 * that counts as progress. NONE: any other end. */
enum journal_blame { BLAME_NONE, BLAME_SLOT, BLAME_HOST, BLAME_START, BLAME_RUN };

struct journal_record {
    enum journal_kind kind;
    uint64_t term;
    uint64_t incarnation;
    uint64_t round;
    uint64_t previous;
    uint64_t commit;
    uint64_t check;
    uint64_t manifest;
    uint32_t cause; /* an enum msg_cause */
    uint32_t slot;
    uint32_t ended; /* an enum msg_ended */
    int32_t value;
    int32_t code;
    int64_t wall_us;
    /* "": the record has no host; never NULL in a record that tell_record made or that was read */
    const char *host;
    const char *text;
    /* of a READY: a successor tells other workers these addresses; of a STORE: its value */
    struct msg_texts addresses;
    struct msg_ids members; /* of a ROUND: incarnations, the index is the rank */
    struct msg_ids holders; /* of a ROUND: the members that hold its commit */
};

#define JOURNAL_LINE_MAX (LIMIT_HOST_NAME_BYTES + LIMIT_REASON_BYTES + 256)

const char *journal_kind_name(enum journal_kind kind);

/* Writes a line for traces, "ROUND round=3 previous=2 ...", into `line`. The line has the number of
 * the members, but no list of them. Returns `line`. */
const char *journal_describe(const struct journal_record *record, char line[JOURNAL_LINE_MAX]);

#endif
