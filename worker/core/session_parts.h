/*
 * session_parts.h: what the files of a session need of each other.
 */
#ifndef WORKER_CORE_SESSION_PARTS_H
#define WORKER_CORE_SESSION_PARTS_H

#include "worker/core/session_inside.h"

/* session_action.c: appends, and notes in the list when memory is out. */
void session_do(struct session *session, struct session_action action);
void session_send(struct session *session, const struct msg *msg); /* msg is copied, not deeply */
void session_cancel(struct session *session, uint64_t round);
void session_watch(struct session *session, bool yes);
void session_answer(struct session *session, int code); /* the check that waits */
const void *session_copy(struct session *session, const void *bytes, size_t length);

/* session_msg.c */
void session_on_msg(struct session *session, const struct session_event *event);
void session_drop(struct session *session, const struct msg *msg, const char *why);
bool session_lists_me(const struct session *session, const struct msg_member_list *members);
bool session_is_dead(const struct session *session, uint64_t round); /* and those before it */

/* session_prepare.c: PREPARE, PREPARED */
void session_on_prepare(struct session *session, const struct msg *msg);
void session_on_prepared(struct session *session, const struct session_event *event);
void session_forget_prepared(struct session *session);

/* session_change.c: PENDING, SWITCH_AT, ABANDON, CHECK */
void session_on_pending(struct session *session, const struct session_event *event);
void session_on_switch_at(struct session *session, const struct msg *msg);
void session_on_abandon(struct session *session, const struct msg *msg);
void session_on_check(struct session *session, const struct session_event *event);
void session_note_abandoned(struct session *session, uint64_t current, uint64_t last);
void session_forget_change(struct session *session); /* a check that waits is let go */

/* session_round.c: ROUND */
void session_on_round(struct session *session, const struct msg *msg);
void session_enter_arrived(struct session *session);
void session_forget_arrived(struct session *session);

/* session_recover.c: REVOKE, and what ends a round without it */
void session_on_revoke(struct session *session, const struct msg *msg);
void session_revoke(struct session *session, uint64_t round, int code, const char *why);
void session_restore(struct session *session);
void session_stop_loop(struct session *session,
                       int code); /* its collectives; its check gets code */
void session_keep_held(struct session *session, const struct msg_held_list *held);
void session_on_settled(struct session *session, const struct session_event *event);

/* session_loop.c: what the loop thread does, and how it ends */
void session_on_run(struct session *session, const struct session_event *event);
void session_on_synced(struct session *session, const struct session_event *event);
void session_on_stepped(struct session *session, const struct session_event *event);
void session_on_returned(struct session *session, const struct session_event *event);
void session_outside(struct session *session); /* the loop has come out: what now? */
void session_leave(struct session *session, const char *why);
void session_dismiss(struct session *session);
void session_lose(struct session *session, const char *why);

#endif
