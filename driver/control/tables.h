/*
 * tables.h: the answers that are made from a view of the core: a table for the operator, or one
 * line of JSON for a program. The names in the JSON never change.
 *
 * Each function appends to `out`. It returns 0, HVD_E_NOMEM, or HVD_E_LIMIT if the text would be
 * longer than out->max; after a failure `out` is unchanged.
 */
#ifndef DRIVER_CONTROL_TABLES_H
#define DRIVER_CONTROL_TABLES_H

#include "base/buf.h"
#include "base/trace.h"
#include "driver/core/view.h"

/* Facts that the tables show, and that a view of the core does not have. */
struct table_facts {
    const char *job;
    const char *state_dir;
    uint64_t pid;
    uint32_t np, min_np, max_np;
    int64_t now_us;     /* when the view was made, on the monotonic clock */
    int64_t started_us; /* when this driver began */
    /* orphan true: no driver lives: the view was made from the journal, and the present state of
     * the job is not known. silent_us: for how long no driver has written anything; TIME_NEVER: not
     * known, because the job is in etcd. */
    bool orphan;
    int64_t silent_us;
    /* only if orphan: the URL of the etcd that has the job's journal; NULL: it is in the job's
     * folder */
    const char *store;
    /* only if `store` is set: the driver that has written last, "pid 77 on node3" */
    const char *last;
    /* how the job has ended, and the exit code of its driver; NULL: it has not ended */
    const char *ended;
    int32_t ended_code;
    const char *checkpoint_dir, *output_dir; /* NULL: there is none */
};

/* Counts of hosts, agents and workers, of all hosts together. */
struct table_totals {
    size_t workers[WORKER_STATE_COUNT];
    size_t listed, used, draining, agents;
    uint64_t slots; /* the slots of the listed hosts */
};
struct table_totals table_totals(const struct core_view *view);

/* Says how many workers that must leave stay for now, as fewer than --min-np would be left; "": all
 * of them may leave. */
#define TABLE_KEPT_MAX 128
const char *table_kept(const struct core_view *view, const struct table_facts *facts,
                       char text[TABLE_KEPT_MAX]);

/* The answers to the requests "status", "hosts", "changes", "blacklist" and "tokens". */
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

/* Appends one line of the event log: without its facts, as events.h writes it, or as JSON with
 * them. `moment` is the time as text, `facts` the text of the facts (event_facts.h). */
int table_event(const char *moment, enum trace_level level, const char *text, const char *facts,
                bool json, struct buf *out) MUST_CHECK;

#endif
