/*
 * session.h: the worker's half of the protocol. What its agent says and what its training loop does
 * come in as events, what the library must do goes out as actions, in order; no thread, no socket,
 * no clock. "The loop" is the thread that called hvd_elastic_run.
 *
 *     JOINING ──RUN──► READY ──ROUND──► ENTERING ──SYNCED──► ACTIVE ──RETURNED 0──► FINISHED
 *                                        ▲    ▲ │            │    │
 *                              ROUND(next)    │ │REVOKE      │    │CHECK at the agreed check
 *                                        │    │ ▼            ▼    ▼
 *                                        │    │ REVOKED ◄────── SWITCHED, or LEFT
 *                                        │    │    │SETTLED         │
 *                                        │    └─ RECOVERED          │
 *                                        └──────────────────────────┘
 *     DRAIN in JOINING, READY, RECOVERED: LEFT.  DONE: DISMISSED.  Agent gone, or USELESS: LOST.
 *
 * The loop is in one of three places: outside (before RUN, or waiting for a round), in DO_ENTER
 * until SYNCED, or in train until RETURNED. Each DO_ENTER is answered by one SYNCED, each SYNCED of
 * 0 is followed by one RETURNED, each DO_RESTORE by one SETTLED, each CHECK by one DO_ANSWER, each
 * RUN by one DO_RETURN. A DO_PREPARE ends with a PREPARED that failed, with DO_ABANDON, or with a
 * DO_ENTER that uses it; a PREPARED that comes later is ignored. What the session decides where
 * PROTOCOL.md is silent is in session_inside.h.
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

/* After the greeting, with what the agent's welcome said. */
struct session *session_create(uint64_t incarnation, const struct msg_welcome_worker *welcome,
                               int64_t now_us, struct trace *trace) MUST_CHECK;
void session_free(struct session *session);

/* Appends to the list. 0, or HVD_E_NOMEM: then the session must not be used again, and its process
 * ends: to the others it is a death like any other. */
int session_step(struct session *session, const struct session_event *event,
                 struct session_action_list *list) MUST_CHECK;

int64_t session_deadline(const struct session *session);
enum session_state session_state(const struct session *session);
const char *session_state_name(enum session_state state);
uint64_t session_round(const struct session *session); /* that it is in, or was in last; 0 */

#endif
