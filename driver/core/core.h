/*
 * core.h: the driver's mind. Events with their time in, actions out; no clock, no socket, no file,
 * no thread. The same events give the same actions, byte for byte.
 *
 *     GATHERING   until enough are READY                          ──► RUNNING
 *     RUNNING     somebody comes or has to go, and all train      ──► PREPARING
 *     PREPARING   until all have the new connections              ──► PENDING
 *     PENDING     until all have said at which check they are     ──► RUNNING, the next round
 *     PREPARING, PENDING   abandoned: somebody died or was late   ──► RUNNING, the same round
 *     RUNNING, PREPARING, PENDING   a member died                 ──► RECOVERING
 *     RECOVERING  until all survivors have stopped, and enough are there ──► RUNNING
 *
 *     first FINISHED: FINISHING; then, or on failure or STOP: STOPPING ──► OVER
 */
#ifndef DRIVER_CORE_CORE_H
#define DRIVER_CORE_CORE_H

#include "base/trace.h"
#include "driver/core/action.h"
#include "driver/core/config.h"
#include "driver/core/event.h"
#include "driver/core/view.h"

struct core;

/* The driver's exit status. */
enum core_exit {
    CORE_FINISHED = 0,
    CORE_FAILED = 1,
    CORE_STOPPED = 2,  /* somebody asked for it */
    CORE_REPLACED = 3, /* another driver has taken over */
    CORE_TOO_FEW = 4   /* not enough workers for longer than the elastic timeout */
};

/* The config has passed core_config_finish, and is copied. trace is borrowed, may be NULL. */
struct core *core_create(const struct core_config *config, struct trace *trace) MUST_CHECK;
void core_free(struct core *core);

/*
 * Before EVENT_START, in order: what earlier drivers of this job wrote down, and the blacklist's
 * records. 0, HVD_E_NOMEM, or HVD_E_CORRUPT for a record that cannot be, naming it. The times
 * are those that EVENT_START will have.
 */
int core_replay(struct core *core, const struct journal_record *record, struct hvd_err *err);
int core_replay_blacklist(struct core *core, const struct blacklist_record *record, int64_t now_us,
                          int64_t wall_us, struct hvd_err *err);

/*
 * Appends to the list. 0, or HVD_E_NOMEM: then the actions of this step are not in the list, and
 * the core must not be used again. The caller ends the process, or makes another core out of the
 * journal: a driver that cannot go on is replaced like one that was killed, the same way.
 */
int core_step(struct core *core, const struct event *event, struct action_list *list) MUST_CHECK;

/* When EVENT_TIMER is wanted; TIME_NEVER. */
int64_t core_deadline(const struct core *core);

/* Replaces the view, which is one already. 0 or HVD_E_NOMEM. */
int core_view(const struct core *core, struct core_view *ret_view) MUST_CHECK;

#endif
