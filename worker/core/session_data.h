/*
 * session_data.h: the data of a session. Where PROTOCOL.md is silent the session decides so that no
 * commit is lost and no worker waits for ever. Losing steps is better than different states on two
 * ranks:
 *
 * - A ROUND lists this worker, but the session knows of no agreed switch to that round: all earlier
 *   rounds are dead. The loop is stopped and restored, and then enters the round. A ROUND that does
 *   not list this worker: the worker leaves.
 * - The loop has passed the agreed check, or an ABANDON comes after the switch: the round is given
 *   up as if it were revoked.
 * - After the agreed check train may have gone on (train checked again, or did not return
 *   HVD_HOSTS_UPDATED): the loop restores the commit of the switch before it enters the next round.
 * - train returns 0: the worker has finished, even if its round is dead. But a worker that was told
 *   to leave sends LEFT, and a worker without an agent cannot send anything.
 * - train returns news (such as HVD_HOSTS_UPDATED) that the library has not given: HVD_E_STATE,
 *   which ends the worker, because after a recovery train would do the same again. An error of
 *   train itself ends the worker, also in REVOKED.
 * - A joiner that is READY and prepared for a revoked round has nothing to restore: it is RECOVERED
 *   at once. It was never in a round, so after a ROUND that does not list it, the joiner waits for
 *   another one.
 * - The number of a round is never used twice: the number of an abandoned or revoked round stays
 *   dead. ABANDON names the running round and a later one: the numbers after the running round, up
 *   to the later one, are dead. The ROUND message of the running round may still be on its way.
 */
#ifndef WORKER_CORE_SESSION_DATA_H
#define WORKER_CORE_SESSION_DATA_H

#include "base/limits.h"
#include "base/sm.h"
#include "worker/core/session.h"

enum session_loop_at {
    LOOP_AWAY,     /* hvd_elastic_run is not running */
    LOOP_WAITING,  /* the loop is in hvd_elastic_run, but not in train */
    LOOP_ENTERING, /* the loop carries out DO_ENTER, until SYNCED */
    LOOP_TRAINING, /* in train, until RETURNED */
    LOOP_RESTORING /* the loop carries out DO_RESTORE, until RESTORED */
};

/* The training loop, as the session knows it from the loop's last event. */
struct session_loop {
    enum session_loop_at at;
    bool watched;          /* DO_WATCH was sent: each check is brought to the session */
    bool entered;          /* ENTERED was sent to the agent for this round */
    bool went_on;          /* train may have changed the state after the agreed check of a switch */
    uint64_t checks;       /* number of checks of this round that the session knows of */
    bool check_waits;      /* the loop waits for the answer to the last of these checks */
    int64_t waiting_us;    /* since when that check waits; valid with check_waits */
    int64_t warn_stall_us; /* when to send STALLED for that check; TIME_NEVER: never */
};

/* The connection to the agent, and the state of its messages. */
struct session_agent {
    bool connected;
    uint32_t minor; /* the minor number of the protocol that the agent speaks */
    uint64_t term;  /* the highest term of a driver whose message this worker has obeyed */
    /* sequence numbers of the last heartbeats to and from the agent */
    uint64_t beats_sent, beats_heard;
    int64_t last_sent_us;
};

/* The rounds that will never train, or never train again. */
struct session_dead {
    uint64_t revoked; /* the number of a round: that round and all before it are revoked */
    /* The highest round that a REVOKE of the driver has named. A RECOVERING for a higher round is
     * sent unasked, so it tells the driver the reason: `why`. */
    uint64_t revoke_heard;
    struct hvd_err why; /* why the round that was revoked last has died */
    /* the rounds after abandoned_above, up to abandoned_to, are abandoned and never begin */
    uint64_t abandoned_above;
    uint64_t abandoned_to;
};

/* The state of the connections of the next round. */
enum session_prepared_state {
    PREPARED_NONE,
    PREPARED_NOT_LISTED, /* the next round does not list this worker */
    PREPARED_OPENING,    /* DO_PREPARE was ordered, and the event PREPARED has not come yet */
    PREPARED_OPEN,
    PREPARED_FAILED
};
struct session_prepared {
    enum session_prepared_state state;
    uint64_t round;
    struct hvd_err outcome;
};

/* The switch to the next round. */
struct session_change {
    uint64_t next;        /* the number of the next round; 0: no change is pending */
    bool next_check_sent; /* NEXT_CHECK was sent */
    uint64_t next_check;  /* the check of NEXT_CHECK: the loop waits at the one after it */
    bool agreed;          /* true: SWITCH_AT has come from the driver, so `check` is valid */
    uint64_t check;       /* the check at which all members leave train */
};

struct session {
    struct sm sm;
    struct trace *trace;
    uint64_t incarnation;
    int64_t beat_us;
    int64_t stall_warning_us;

    int64_t now_us;                   /* time of the present step */
    struct session_action_list *list; /* the actions of the present step; NULL between steps */

    struct session_agent agent;
    struct session_loop loop;
    uint64_t round; /* the round that the worker is in, or was in last; 0: there was none */
    struct session_dead dead;
    bool draining; /* in REVOKED: the worker was asked to leave, and will when it has restored */
    struct session_change change;
    struct session_prepared prepared;
    /* a ROUND that waits until the training loop can enter it; its round is 0: none waits */
    struct msg arrived;
    struct msg_held held[LIMIT_COMMITS_HELD];
    size_t held_count;
};

#endif
