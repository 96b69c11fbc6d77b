/*
 * journal.h: what a driver writes down so that its successor can go on: one record for each fact
 * that an agent or worker may have been told.
 *
 * The records are replayed in the order in which they were written. A record that is in the journal
 * twice has no second effect.
 */
#ifndef DRIVER_CORE_JOURNAL_H
#define DRIVER_CORE_JOURNAL_H

#include "base/limits.h"
#include "proto/msg.h"

enum journal_kind {
    JOURNAL_TERM = 1, /* a driver has begun `term` */
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
    JOURNAL_FINISHED = 7, /* the training of `incarnation` returned 0; the membership is closed */
    /* The worker `incarnation` has ended, as `ended` and `value` say. `code`: an enum
     * journal_blame. */
    JOURNAL_ENDED = 8,
    /* `slot` of `host`, or all of `host`, is drained until wall_us (0: the drain has ended). `code`
     * 1: the machine itself gave notice. */
    JOURNAL_DRAIN = 9,
    JOURNAL_OVER = 10, /* the job has ended with `code` and `text` */
    /* Failures without progress: `value` in `slot` of `host` and `code` in the whole job, the last
     * in `round`, since `commit`, whose checksum is `check`. `host` "": a whole host has failed.
     * `incarnation`: the highest one at the last of these failures. */
    JOURNAL_STUCK = 11,
    /* Which keys the agent of `host` may use: `value` is an epoch, and `code` an enum
     * journal_key. */
    JOURNAL_KEY = 12,
    /* Stands for records that were removed (compact.h); a field that is 0 says nothing.
     * Incarnations up to `incarnation` were given out, and those without a LAUNCH have ended.
     * Rounds up to `round` were told; the next ROUND follows on `previous`. No round resumes from a
     * commit older than `commit`; `check` rounds came after the first one. Epochs of keys were
     * given out up to `value`. `code` 1: a worker has joined with `manifest`. */
    JOURNAL_BASE = 13
};

/* HOST_KEY_NONE: the host has no key any more. HOST_KEY_MORE: the host has the key of this epoch,
 * and also the key before, if there is one. HOST_KEY_ONLY: of its keys the host has only this
 * one. */
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
    struct msg_texts addresses; /* of a READY: a successor tells other workers these addresses */
    struct msg_ids members;     /* of a ROUND: incarnations, the index is the rank */
    struct msg_ids holders;     /* of a ROUND: the members that hold its commit */
};

#define JOURNAL_LINE_MAX (LIMIT_HOST_NAME_BYTES + LIMIT_REASON_BYTES + 256)

const char *journal_kind_name(enum journal_kind kind);

/* Writes a line for traces, "ROUND round=3 previous=2 ...", into `line`. The line has the number of
 * the members, but no list of them. Returns `line`. */
const char *journal_describe(const struct journal_record *record, char line[JOURNAL_LINE_MAX]);

#endif
