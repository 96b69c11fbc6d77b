/*
 * report.h: the values that a program has reported (hvd_report), as its worker keeps them in the
 * page that it shares with its agent (page.h). There is one slot for each name, with the newest
 * value. The worker writes and never waits; the agent reads with each heartbeat.
 *
 * The agent may read while the worker writes, and the worker may die on any line: `turn` is odd as
 * long as a slot is being written, so a half-written slot is seen, and is not read.
 */
#ifndef PROTO_REPORT_H
#define PROTO_REPORT_H

#include "base/base.h"
#include "base/limits.h"

struct report {
    char name[LIMIT_REPORT_NAME_BYTES + 1]; /* the bytes behind the name are 0 */
    uint64_t bits;                          /* the value: the bits of a double */
    /* the running round and the newest commit at the moment of the report */
    uint64_t round, commit;
    int64_t said_us; /* that moment, on the monotonic clock of the host */
};

#define REPORT_WORDS (sizeof(struct report) / sizeof(uint64_t))

/* The place of one name and its newest value in the page. Zeroed memory is a slot without a
 * value. */
struct report_slot {
    /* grows by 2 with each value of this name; odd: a value is being written */
    _Atomic uint64_t turn;
    _Atomic uint64_t words[REPORT_WORDS];
};

/* A report that an agent has read from a worker's page, and the worker's incarnation and slot. */
struct report_seen {
    uint64_t incarnation;
    uint32_t slot;
    uint64_t said; /* how often the worker has reported this name */
    struct report report;
};

struct report_list {
    const struct report_seen *items;
    size_t count;
};

/* true: the name has 1 to LIMIT_REPORT_NAME_BYTES letters, digits and characters of "_-./:@%+". So
 * it needs no quoting in a table, a page or a label of a metric. */
bool report_name_is_good(const char *name);

/* The bits of a double as a number, and back: a report has words, not doubles. */
uint64_t report_bits_of(double value);
double report_value_of(uint64_t bits);

/* Writes a report to the slot of its name; one thread at a time may call it. HVD_E_LIMIT: all slots
 * have other names. */
int report_put(struct report_slot slots[LIMIT_REPORTS], const struct report *report) MUST_CHECK;

/* Reads the report of a slot, which another process may be writing, or may have filled with
 * anything. Returns how often its name was reported; 0: there is no report, or it is being written,
 * or the slot has something else. */
uint64_t report_get(const struct report_slot *slot, struct report *ret_report);

#endif
