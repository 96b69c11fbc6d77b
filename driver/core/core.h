/*
 * core.h: the decisions of the driver. The core takes events with their time and returns actions;
 * it uses no clock, no socket, no file and no thread. The same events give the same actions, byte
 * for byte. states.md has the states of a job and of its parts.
 */
#ifndef DRIVER_CORE_CORE_H
#define DRIVER_CORE_CORE_H

#include "base/trace.h"
#include "driver/core/action.h"
#include "driver/core/config.h"
#include "driver/core/event.h"
#include "driver/core/view.h"

struct core;

/* The exit status of the driver's core. */
enum core_exit {
    CORE_FINISHED = 0,
    CORE_FAILED = 1,
    CORE_STOPPED = 2,  /* an operator asked for the end */
    CORE_REPLACED = 3, /* another driver has taken over */
    CORE_TOO_FEW = 4   /* not enough workers for longer than the elastic timeout */
};

/* Makes a core. `config` is one that core_config_finish has accepted; the core copies it. `trace`
 * is borrowed until core_free, and may be NULL. Returns NULL when no memory is left. */
struct core *core_create(const struct core_config *config, struct trace *trace) MUST_CHECK;
void core_free(struct core *core);

/* An agent that may still run and does not know that the job is over, because the driver had no
 * connection to it at the end. */
struct core_missing {
    const char *host;
    uint32_t epoch;   /* version of the host's newest key, which the agent may use */
    uint32_t old;     /* version of the key before that, which the agent may use too; 0: none */
    int64_t until_us; /* the agent has ended by itself at this time */
    uint64_t term;    /* the term of this driver */
};

/* Finds the next missing agent (struct core_missing) of a job that has ended. The search begins at
 * the host with the index *at (0 at first) and sets *at to the index after the host that it has
 * found. False: no further agent is missing. */
bool core_missing(const struct core *core, int64_t now_us, size_t *at,
                  struct core_missing *ret_missing);

/*
 * Two functions that restore what earlier drivers of this job knew. Before EVENT_START the caller
 * calls core_replay for each record of the journal in order, and then core_replay_blacklist for
 * each record of the blacklist. now_us and wall_us are the times that EVENT_START will have. Both
 * return 0, HVD_E_NOMEM, or HVD_E_CORRUPT for a record that is impossible; the error names the
 * record.
 */
int core_replay(struct core *core, const struct journal_record *record, struct hvd_err *err);
int core_replay_blacklist(struct core *core, const struct blacklist_record *record, int64_t now_us,
                          int64_t wall_us, struct hvd_err *err);

/*
 * Handles one event and appends the actions to the list. Returns 0 or HVD_E_NOMEM. After
 * HVD_E_NOMEM the list has no action of this step, and the core must not be used again: the caller
 * ends the process, or makes another core out of the journal. So a driver without memory is
 * replaced in the same way as a driver that was killed.
 */
int core_step(struct core *core, const struct event *event, struct action_list *list) MUST_CHECK;

/* True: the worker `incarnation` runs on the host whose agent has the connection `peer`. The driver
 * shows output of this worker only if this connection brings it. */
bool core_speaks_for(const struct core *core, uint32_t peer, uint64_t incarnation);

/* True: the worker ends by order: its slot is given up (a drain, or the host is not listed), it
 * was told to leave, or the job is being stopped. */
bool core_ends_by_order(const struct core *core, uint64_t incarnation);

/* The time at which the core wants an EVENT_TIMER; TIME_NEVER: it wants none. */
int64_t core_deadline(const struct core *core);

/* Copies the visible part of the core to *ret_view, which core_view_init has initialised. Returns
 * 0; or HVD_E_NOMEM, and *ret_view is unchanged. */
int core_view(const struct core *core, struct core_view *ret_view) MUST_CHECK;

#endif
