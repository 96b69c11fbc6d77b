/*
 * session_internal.h: the functions that the files of the session call in each other. The files
 * form layers. A file calls only functions of the layers below its own:
 *
 *     4  session.c                               one step: an event in, actions out
 *     3  session_loop.c   session_switch.c       handlers of the training loop's events
 *        session_rounds.c session_recover.c      handlers of the driver's messages
 *     2  session_move.c                          the moves from one state to another
 *     1  session_known.c  session_action.c       what is known of rounds; the action list
 *     0  session_states.c session_data.h         the states, the invariant, the data
 */
#ifndef WORKER_CORE_SESSION_INTERNAL_H
#define WORKER_CORE_SESSION_INTERNAL_H

#include "worker/core/session_data.h"

/* An agent that speaks a lower minor of the protocol than this does not pass on PERSIST, or
 * STORE. */
#define SESSION_PERSIST_MINOR 3
#define SESSION_STORE_MINOR   4

/* ---- session_states.c ------------------------------------------------------------------------ */

extern const struct sm_type session_type;
/* for each state, where the loop may be: a set of bits 1 << enum session_loop_at */
extern const unsigned session_loop_allowed[SESSION_STATE_COUNT];
/* true: the state is ENTERING, ACTIVE or SWITCHED */
bool session_in_round(const struct session *session);
/* true: the state is ENTERING or ACTIVE, so train runs or is about to */
bool session_in_train(const struct session *session);

/* ---- session_action.c: append to the list, and note there when memory runs out ---- */

void session_do(struct session *session, struct session_action action);
/* requests that msg is sent to the agent. msg is copied, but not the data that msg points to */
void session_send(struct session *session, const struct msg *msg);
void session_cancel(struct session *session, uint64_t round);
void session_watch(struct session *session, bool watched);
void session_answer(struct session *session, int code); /* answers the waiting check */
const void *session_copy(struct session *session, const void *bytes, size_t length);

/* ---- session_known.c: the rounds to come, and the dead ones ---------------------------------- */

void session_drop(struct session *session, const struct msg *msg, const char *why);
/* true: this worker is one of the members */
bool session_lists_worker(const struct session *session, const struct msg_member_list *members);
/* true: the round is revoked, abandoned, or not later than the round of this worker */
bool session_is_dead(const struct session *session, uint64_t round);
void session_note_abandoned(struct session *session, uint64_t current, uint64_t last);
void session_keep_held(struct session *session, const struct msg_held_list *held);
/* forgets the round that is prepared; DO_ABANDON closes its connections */
void session_forget_prepared(struct session *session);
void session_forget_arrived(struct session *session);
/* forgets the switch that is planned; a check that waits for it is answered with 0 */
void session_forget_change(struct session *session);

/* ---- session_move.c -------------------------------------------------------------------------- */

void session_enter(struct session *session,
                   /* `round`: a ROUND message, which must live as long as the list of actions */
                   const struct msg *round);
void session_enter_arrived(struct session *session);
void session_revoke(struct session *session, uint64_t round, int code, const char *why);
/* ends the collectives of the round; a check that waits is answered with `code` */
void session_stop_loop(struct session *session, int code);
/* gives the training loop its next order, when it has left train or finished DO_RESTORE */
void session_order_next(struct session *session);
void session_return(struct session *session, int code); /* lets hvd_elastic_run return this code */
void session_finish(struct session *session, int code, const char *text);
void session_leave(struct session *session, const char *why);
void session_dismiss(struct session *session);
void session_lose(struct session *session, const char *why);

/* ---- the handlers ---------------------------------------------------------------------------- */

/* session_rounds.c: PREPARE, PREPARED, ABANDON, ROUND */
void session_on_prepare(struct session *session, const struct msg *msg);
void session_on_prepared(struct session *session, const struct session_event *event);
void session_on_abandon(struct session *session, const struct msg *msg);
void session_on_round(struct session *session, const struct msg *msg);

/* session_switch.c: PENDING, SWITCH_AT, CHECK */
void session_on_pending(struct session *session, const struct session_event *event);
void session_on_switch_at(struct session *session, const struct msg *msg);
void session_on_check(struct session *session, const struct session_event *event);

/* session_recover.c: REVOKE, RESTORED, DRAIN */
void session_on_revoke(struct session *session, const struct msg *msg);
void session_on_restored(struct session *session, const struct session_event *event);
void session_on_drain(struct session *session, const struct msg *msg);

/* session_loop.c: RUN, SYNCED, STEPPED, RETURNED */
void session_on_run(struct session *session, const struct session_event *event);
void session_on_synced(struct session *session, const struct session_event *event);
void session_on_stepped(struct session *session, const struct session_event *event);
void session_on_returned(struct session *session, const struct session_event *event);

#endif
