/*
 * journal.h: what a driver writes down so that its successor can go on: one record for each fact
 * that somebody may have been told.
 *
 * Replayed in the order in which they were written. A record that is there twice changes nothing.
 */
#ifndef DRIVER_CORE_JOURNAL_H
#define DRIVER_CORE_JOURNAL_H

#include "base/limits.h"
#include "proto/msg.h"

enum journal_kind {
    JOURNAL_TERM = 1,     /* term: a driver has begun */
    JOURNAL_LAUNCH = 2,   /* incarnation, host, slot: the worker may exist from here on */
    JOURNAL_READY = 3,    /* incarnation, manifest, addresses: it has joined */
    JOURNAL_NUMBER = 4,   /* round: this number may have been told; it is not used again */
    JOURNAL_ROUND = 5,    /* round, cause, previous, commit, check, members: the round begins */
    JOURNAL_ENTERED = 6,  /* round: somebody trains in it, so its commit must not be lost */
    JOURNAL_FINISHED = 7, /* incarnation: its training returned 0; the membership is closed */
    JOURNAL_ENDED = 8,    /* incarnation, ended, value: it is gone and was judged */
    JOURNAL_DRAIN = 9,    /* host, slot, wall_us: leave by then; code 1: the machine says so */
    JOURNAL_OVER = 10     /* code, text: the job has ended */
};

struct journal_record {
    enum journal_kind kind;
    uint64_t term;
    uint64_t incarnation;
    uint64_t round;
    uint64_t previous;
    uint64_t commit;
    uint64_t check;
    uint64_t manifest;
    uint32_t cause; /* enum msg_cause */
    uint32_t slot;
    uint32_t ended; /* enum msg_ended */
    int32_t value;
    int32_t code;
    int64_t wall_us;
    const char *host; /* "" when it has none; never NULL once made or read */
    const char *text;
    struct msg_texts addresses; /* of a READY: a successor tells them to others */
    struct msg_ids members;     /* of a ROUND, by rank */
    struct msg_ids holders;     /* of its commit */
};

#define JOURNAL_LINE_MAX (LIMIT_HOST_NAME_BYTES + LIMIT_REASON_BYTES + 256)

const char *journal_kind_name(enum journal_kind kind);

/* "ROUND round=3 previous=2 ..." for traces; of the members only how many. Returns line. */
const char *journal_describe(const struct journal_record *record, char line[JOURNAL_LINE_MAX]);

#endif
