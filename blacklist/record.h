/*
 * record.h: the part of the blacklist that outlives the driver: the state of one host or slot, and
 * the lines of its history.
 *
 * Records and history lines have times of the wall clock, the only clock that two drivers share.
 * The file with the records may have been edited by an operator, so each record is checked before
 * use.
 */
#ifndef BLACKLIST_RECORD_H
#define BLACKLIST_RECORD_H

#include "blacklist/numbers.h"

#define BLACKLIST_WHOLE_HOST UINT32_MAX /* this slot number means the whole host */

/* One moment on both clocks. now_us is monotonic and never falls; wall_us is only written into
 * records, for the next driver. */
struct blacklist_moment {
    int64_t now_us;
    int64_t wall_us;
};

struct blacklist_record {
    uint32_t slot;
    uint32_t failures;       /* failures that counted and are not forgiven */
    int64_t since_wall_us;   /* when the last counted failure or clear came */
    int64_t until_wall_us;   /* the end of the cooldown; TIME_NEVER: barred until cleared */
    struct numbers restarts; /* wall-clock times of failures that counted */
    /* the latest incarnations that were charged to this host or slot */
    struct numbers incarnations;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    char reason[LIMIT_REASON_BYTES + 1];
};

struct blacklist_event {
    char host[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t slot;
    uint64_t incarnation; /* the worker that failed; 0: the event is not about a worker */
    int64_t wall_us;
    bool counted; /* the failure counts; false: it came during a cooldown, or this is a clear */
    char reason[LIMIT_REASON_BYTES + 1];
};

/* Checks a host name (letters, digits and . _ - : % only, at most LIMIT_HOST_NAME_BYTES) and a slot
 * number. */
int blacklist_key_check(const char *host, uint32_t slot, struct hvd_err *err);

/* blacklist_record_check checks a record, blacklist_event_check a line of the history. Both return
 * 0, or HVD_E_CORRUPT with a text that names the host and what is wrong. */
int blacklist_record_check(const struct blacklist_record *record, struct hvd_err *err);
int blacklist_event_check(const struct blacklist_event *event, struct hvd_err *err);

/* Copies a text from another program into `reason` as one line. A text that is too long is cut, but
 * never inside a character. A text with control characters or invalid UTF-8 is escaped. */
void blacklist_reason_set(char reason[LIMIT_REASON_BYTES + 1], const char *text);

/* Writes "host" or "host:slot"; an IPv6 address stands in brackets. Returns text. */
#define BLACKLIST_KEY_TEXT_MAX (LIMIT_HOST_NAME_BYTES + 16)
const char *blacklist_key_format(const char *host, uint32_t slot,
                                 char text[BLACKLIST_KEY_TEXT_MAX]);

#endif
