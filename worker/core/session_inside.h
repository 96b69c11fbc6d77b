/*
 * session_inside.h: what a session remembers.
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
 *   - Numbers of rounds are not used twice: what was abandoned or revoked stays so. ABANDON ends
 * what lies above the round that it names as running; that one may still be on its way here.
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
    uint64_t next; /* 0: none is pending */
    bool at_said;  /* the loop goes on until it has passed check `at`, and waits at the next one */
    uint64_t at;
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
    uint64_t asked;     /* the highest REVOKE; above it RECOVERING was unasked, */
    struct hvd_err why; /* for this reason */
    uint64_t current;   /* above what ran when it was abandoned, */
    uint64_t abandoned; /* no number up to this one will become a round */
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

#endif
