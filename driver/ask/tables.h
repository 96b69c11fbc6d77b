/*
 * tables.h: what operators are shown of a job: tables for people, and the same as one line of JSON
 * whose names do not change.
 *
 * Each appends to out. 0, HVD_E_NOMEM, or HVD_E_LIMIT past its max; out is then as it was.
 */
#ifndef DRIVER_ASK_TABLES_H
#define DRIVER_ASK_TABLES_H

#include "base/buf.h"
#include "driver/core/view.h"

/* What a view does not say of itself. */
struct table_facts {
    const char *job;
    const char *state_dir;
    uint64_t pid;
    uint32_t np, min_np, max_np;
    int64_t now_us;     /* of the view's times */
    int64_t started_us; /* when this driver began */
};

int table_status(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out) MUST_CHECK;
int table_hosts(const struct core_view *view, const struct table_facts *facts, bool json,
                struct buf *out) MUST_CHECK;
int table_changes(const struct core_view *view, const struct table_facts *facts, bool json,
                  struct buf *out) MUST_CHECK;
int table_blacklist(const struct core_view *view, const struct table_facts *facts, bool json,
                    struct buf *out) MUST_CHECK;

/* One line of the event log. */
int table_event(int64_t wall_us, const char *text, bool json, struct buf *out) MUST_CHECK;

#endif
