/*
 * session.h: the worker's half of the protocol, as a pure state machine. Messages of the agent and
 * steps of the training loop come in as events; the tasks of the library go out as actions, in
 * order. It has no thread, no socket and no clock. "The loop" is the thread that called
 * hvd_elastic_run.
 *
 *     JOINING ──RUN──► READY ──ROUND──► ENTERING ──SYNCED──► ACTIVE ──RETURNED 0──► FINISHED
 *                                        ▲    ▲ │            │    │
 *                              ROUND(next)    │ │REVOKE      │    │CHECK at the agreed check
 *                                        │    │ ▼            ▼    ▼
 *                                        │    │ REVOKED ◄────── SWITCHED, or LEFT
 *                                        │    │    │RESTORED        │
 *                                        │    └─ RECOVERED          │
 *                                        └──────────────────────────┘
 *     DRAIN in JOINING, READY, RECOVERED: LEFT.  DONE: DISMISSED.  Agent gone, or UNUSABLE: LOST.
 *
 * The loop is in one of three phases: outside (before RUN, or waiting for a round), carrying out
 * DO_ENTER until SYNCED, or in train until RETURNED. Each DO_ENTER is answered by one SYNCED, each
 * SYNCED of 0 is followed by one RETURNED, each DO_RESTORE by one RESTORED, each CHECK by one
 * DO_ANSWER, each RUN by one DO_RETURN. A DO_PREPARE ends with a PREPARED that failed, with
 * DO_ABANDON, or with a DO_ENTER that uses the connections; a PREPARED that comes later is ignored.
 * README.md has the whole table of states; session_data.h says what the session decides where
 * PROTOCOL.md is silent.
 */
#ifndef WORKER_CORE_SESSION_H
#define WORKER_CORE_SESSION_H

#include "base/trace.h"
#include "worker/core/session_action.h"
#include "worker/core/session_event.h"

enum session_state {
    SESSION_JOINING,
    SESSION_READY,
    SESSION_ENTERING,
    SESSION_ACTIVE,
    SESSION_SWITCHED,
    SESSION_REVOKED,
    SESSION_RECOVERED,
    SESSION_LEFT,
    SESSION_FINISHED,
    SESSION_DISMISSED,
    SESSION_LOST,
    SESSION_STATE_COUNT
};

struct session;

/* Creates the session from the agent's welcome, when the greeting is done. */
struct session *session_create(uint64_t incarnation, const struct msg_welcome_worker *welcome,
                               int64_t now_us, struct trace *trace) MUST_CHECK;
void session_free(struct session *session);

/* Handles one event, and appends the actions to the list. Returns 0, or HVD_E_NOMEM: the session
 * must not be used any more, and the process must end. For the other workers this is the same as
 * a death of this worker. */
int session_step(struct session *session, const struct session_event *event,
                 struct session_action_list *list) MUST_CHECK;

int64_t session_deadline(const struct session *session); /* when the next SESSION_TIMER is due */
enum session_state session_state(const struct session *session);
const char *session_state_name(enum session_state state);
/* returns the round that the worker is in, or was in last; 0: it was in none */
uint64_t session_round(const struct session *session);

#endif
