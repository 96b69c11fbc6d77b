/*
 * record.h: what outlives the driver: the state of one host or slot, and the lines of its history.
 *
 * Both carry wall-clock times, the only ones that mean something to the next driver. They are read
 * back from a file that somebody may have edited, so they are checked before they are believed.
 */
#ifndef BLACKLIST_RECORD_H
#define BLACKLIST_RECORD_H

#include "blacklist/numbers.h"

#define BLACKLIST_WHOLE_HOST UINT32_MAX /* in place of a slot: the host itself */

struct blacklist_record {
    uint32_t slot;
    uint32_t failures;           /* those that counted, less the forgiven */
    int64_t since_wall_us;       /* the last failure that counted, or when it was cleared */
    int64_t until_wall_us;       /* the end of its cooldown; TIME_NEVER: barred until cleared */
    struct numbers restarts;     /* wall-clock times of failures that counted */
    struct numbers incarnations; /* the latest that were charged here */
    char host[LIMIT_HOST_NAME_BYTES + 1];
    char reason[LIMIT_REASON_BYTES + 1];
};

struct blacklist_event {
    char host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t slot;
    uint64_t incarnation; /* 0: not about a worker */
    int64_t wall_us;
    bool counted;
    char reason[LIMIT_REASON_BYTES + 1];
};

/* Letters, digits and . _ - : % only, at most LIMIT_HOST_NAME_BYTES, and a slot there can be. */
int blacklist_key_check(const char *host, uint32_t slot, struct hvd_err *err);

/* 0, or HVD_E_CORRUPT naming the host and what is wrong. */
int blacklist_record_check(const struct blacklist_record *record, struct hvd_err *err);
int blacklist_event_check(const struct blacklist_event *event, struct hvd_err *err);

/* Foreign text as one clean line: cut where a character ends, escaped when it is not UTF-8. */
void blacklist_reason_set(char reason[LIMIT_REASON_BYTES + 1], const char *text);

/* "host", or "host:slot", an IPv6 address in brackets. Returns text. */
#define BLACKLIST_KEY_TEXT_MAX (LIMIT_HOST_NAME_BYTES + 16)
const char *blacklist_key_format(const char *host, uint32_t slot,
                                 char text[BLACKLIST_KEY_TEXT_MAX]);

#endif
