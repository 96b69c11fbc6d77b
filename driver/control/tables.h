/*
 * tables.h: the answers that are made from a view of the core: a table for the operator, or one
 * line of JSON for a program. The names in the JSON never change.
 *
 * Each function appends to out. Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT if the text would exceed
 * out's max; after a failure out is unchanged.
 */
#ifndef DRIVER_CONTROL_TABLES_H
#define DRIVER_CONTROL_TABLES_H

#include "base/buf.h"
#include "driver/core/view.h"

/* Facts that a table shows and that the view does not have. */
struct table_facts {
    const char *job;
    const char *state_dir;
    uint64_t pid;
    uint32_t np, min_np, max_np;
    int64_t now_us;     /* when the view was made, on the monotonic clock */
    int64_t started_us; /* when this driver began */
    /* No driver lives: the view is made of the journal, and what the job does now is not known.
     * silent_us: for how long no driver has written anything. */
    bool orphan;
    int64_t silent_us;
};

int table_status(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out) MUST_CHECK;
int table_hosts(const struct core_view *view, const struct table_facts *facts, bool json,
                struct buf *out) MUST_CHECK;
int table_changes(const struct core_view *view, const struct table_facts *facts, bool json,
                  struct buf *out) MUST_CHECK;
int table_blacklist(const struct core_view *view, const struct table_facts *facts, bool json,
                    struct buf *out) MUST_CHECK;

/* Appends one line of the event log, "TIME TEXT" or JSON. `moment` is the time as text. */
int table_event(const char *moment, const char *text, bool json, struct buf *out) MUST_CHECK;

#endif
