/*
 * session_inside.h: what a session remembers, and what its files need of each other.
 *
 * Whatever is not decided by PROTOCOL.md is decided so that nothing is lost and nobody waits for
 * ever; to lose steps is better than to diverge:
 *   - A ROUND that lists this worker, though it knows of no way there, says that all before it is
 *     dead: the loop is stopped, restored, and enters it. One that does not list it: it is out.
 *   - A check beyond the agreed one, a switch agreed for a check that has passed, an ABANDON after
 *     the switch: the round is given up as if it were revoked.
 *   - After the agreed check train may have gone on (it checked again, or returned something else
 *     than it was told): then the loop restores the commit of the switch before it goes on.
 *   - Train returns 0: it has finished, whatever was known of its round. Who was told to leave says
 *     LEFT all the same, and who lost its agent can tell nobody. It returns news that it was never
 *     told: HVD_E_STATE, which ends the worker, as to recover would only have it come again. An
 *     error of its own ends the worker, in REVOKED too.
 *   - A joiner that is READY and prepared for a revoked round has nothing to restore: RECOVERED at
 *     once. As it was never in a round, a ROUND without it leaves it waiting.
 *   - Numbers of rounds are not used twice: what was abandoned or revoked stays so.
 */
#ifndef WORKER_CORE_SESSION_INSIDE_H
#define WORKER_CORE_SESSION_INSIDE_H

#include "base/limits.h"
#include "base/sm.h"
#include "worker/core/session.h"

enum session_loop {
    LOOP_AWAY,     /* hvd_elastic_run is not being called */
    LOOP_WAITING,  /* in it, outside train */
    LOOP_ENTERING, /* in DO_ENTER, until SYNCED */
    LOOP_TRAINING, /* in train, until RETURNED */
    LOOP_RESTORING /* in DO_RESTORE, until SETTLED */
};

enum session_prepared_state {
    PREPARED_NONE,
    PREPARED_WITHOUT_ME,
    PREPARED_OPENING, /* DO_PREPARE was said */
    PREPARED_OPEN,
    PREPARED_FAILED
};

/* DO_PREPARE ends with a PREPARED that failed, with DO_ABANDON, or with a DO_ENTER that uses it. */
struct session_prepared {
    enum session_prepared_state state;
    uint64_t round;
    struct hvd_err outcome;
};

struct session_change {
    uint64_t next;  /* 0: none is pending */
    bool at_said;   /* the check after it waits */
    bool agreed;    /* SWITCH_AT came */
    uint64_t check; /* the agreed one */
};

struct session {
    struct sm sm;
    struct trace *trace;
    uint64_t incarnation;
    int64_t beat_us;
    int64_t stall_warning_us;

    int64_t now_us;                   /* of the step that is being made, as is list */
    struct session_action_list *list; /* NULL between steps */

    bool connected;
    uint64_t term;     /* the highest obeyed */
    uint64_t sequence; /* of our beats */
    uint64_t heard;    /* of theirs */
    int64_t sent_us;

    enum session_loop loop;
    bool watching;
    uint64_t round;     /* that it is in, or was in last */
    uint64_t revoked;   /* this round and every one before it is dead */
    uint64_t asked;     /* the highest REVOKE; above it RECOVERING was unasked */
    uint64_t abandoned; /* neither this nor an earlier number will become a round */
    bool entered;       /* ENTERED was said */
    bool dirty;         /* train may have gone on after the agreed check */
    bool draining;      /* leaves instead of recovering */

    uint64_t checks;       /* of the round, as far as they were brought here */
    bool waits;            /* the last of them has no answer yet */
    int64_t waiting_us;    /* since then */
    int64_t warn_stall_us; /* when to say so; TIME_NEVER */

    struct session_change change;
    struct session_prepared prepared;
    struct msg arrived; /* a ROUND that waits for the loop; its round is 0: none */
    struct msg_held held[LIMIT_COMMITS_HELD];
    size_t held_count;
};

/* session_action.c: appends, and notes in the list when memory is out. */
void session_do(struct session *session, struct session_action action);
void session_send(struct session *session, const struct msg *msg); /* msg is copied, not deeply */
void session_cancel(struct session *session, uint64_t round);
void session_watch(struct session *session, bool yes);
void session_answer(struct session *session, int code); /* the check that waits */
const void *session_copy(struct session *session, const void *bytes, size_t length);

/* session_msg.c */
void session_on_msg(struct session *session, const struct msg *msg);
void session_drop(struct session *session, const struct msg *msg, const char *why);
bool session_lists_me(const struct session *session, const struct msg_member_list *members);
bool session_is_dead(const struct session *session, uint64_t round); /* and those before it */

/* session_prepare.c: PREPARE, PREPARED */
void session_on_prepare(struct session *session, const struct msg *msg);
void session_on_prepared(struct session *session, const struct session_event *event);
void session_forget_prepared(struct session *session);

/* session_change.c: PENDING, SWITCH_AT, ABANDON, CHECK */
void session_on_pending(struct session *session, const struct msg *msg);
void session_on_switch_at(struct session *session, const struct msg *msg);
void session_on_abandon(struct session *session, const struct msg *msg);
void session_on_check(struct session *session, const struct session_event *event);
void session_forget_change(struct session *session); /* a check that waits is let go */

/* session_round.c: ROUND */
void session_on_round(struct session *session, const struct msg *msg);
void session_enter_arrived(struct session *session);
void session_forget_arrived(struct session *session);

/* session_recover.c: REVOKE, and what ends a round without it */
void session_on_revoke(struct session *session, const struct msg *msg);
void session_revoke(struct session *session, uint64_t round, const char *why);
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
