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
#include "base/trace.h"
#include "driver/core/view.h"

/* Facts that a table shows and that the view does not have. */
struct table_facts {
    const char *job;
    const char *state_dir;
    uint64_t pid;
    uint32_t np, min_np, max_np;
    int64_t now_us;     /* when the view was made, on the monotonic clock */
    int64_t started_us; /* when this driver began */
    /* orphan true: no driver lives, so the view is made of the journal, and the present state of
     * the job is unknown. silent_us: for how long no driver has written anything; TIME_NEVER:
     * unknown, because the job is in etcd. */
    bool orphan;
    int64_t silent_us;
    /* only if orphan: the URL of the etcd that has the job; NULL: the job is in its folder */
    const char *store;
    /* only if `store` is set: the driver that has written last, "pid 77 on node3" */
    const char *last;
    /* NULL: the job has not ended; else how it has ended, with the code of its journal */
    const char *ended;
    int32_t ended_code;
    const char *checkpoint_dir, *output_dir; /* NULL: the job has none */
};

/* The numbers of hosts, agents and workers, of all hosts together. */
struct table_totals {
    size_t workers[WORKER_STATE_COUNT];
    size_t listed, used, draining, agents;
    uint64_t slots; /* of the listed hosts */
};
struct table_totals table_totals(const struct core_view *view);

int table_status(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out) MUST_CHECK;
int table_hosts(const struct core_view *view, const struct table_facts *facts, bool json,
                struct buf *out) MUST_CHECK;
int table_changes(const struct core_view *view, const struct table_facts *facts, bool json,
                  struct buf *out) MUST_CHECK;
int table_blacklist(const struct core_view *view, const struct table_facts *facts, bool json,
                    struct buf *out) MUST_CHECK;

int table_tokens(const struct core_view *view, const struct table_facts *facts, bool json,
                 struct buf *out) MUST_CHECK;

/* Appends one line of the event log, as events.h has it but without its facts, or as JSON. `moment`
 * is the time as text, `facts` the text of the facts (event_facts.h). */
int table_event(const char *moment, enum trace_level level, const char *text, const char *facts,
                bool json, struct buf *out) MUST_CHECK;

#endif
