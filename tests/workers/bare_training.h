/*
 * bare_training.h: a simulated training loop; only its messages to the session are real. A step is
 * a wait, a commit is a number, and a collective is done at once.
 *
 *     WAITING ──DO_ENTER──► ENTERING ──SYNCED──► STEPPING ◄──► CHECKING
 *       ▲  ▲──RESTORED── RESTORING                  │ DO_CANCEL   │ DO_ANSWER
 *       └────────────────RETURNED──── RETURNING ◄───┴─────────────┘      DO_RETURN: OVER
 */
#ifndef TESTS_WORKERS_BARE_TRAINING_H
#define TESTS_WORKERS_BARE_TRAINING_H

#include "tests/workers/bare_trainer_options.h"
#include "worker/core/session.h"
#include "worker/io/agent_link.h"

enum training_place {
    TRAINING_BOOTING,
    TRAINING_WAITING,
    TRAINING_ENTERING,
    TRAINING_STEPPING,
    TRAINING_CHECKING,
    TRAINING_RETURNING,
    TRAINING_RESTORING,
    TRAINING_HANGING,
    TRAINING_OVER
};

struct bare_training {
    const struct bare_trainer_options *options;
    struct agent_link *link;
    struct session *session;
    struct session_action_list list;
    uint64_t incarnation;

    enum training_place place;
    int64_t next_us;   /* when the boot or the step ends */
    int code;          /* the code that train, or the whole run, returns */
    uint64_t prepared; /* the round of a DO_PREPARE without an answer yet; 0: none */

    uint64_t round;
    uint64_t cancelled; /* this round and all rounds before it are cancelled */
    uint64_t checks;    /* checks in the round */
    uint64_t round_steps;
    uint64_t steps; /* of its whole life */
    uint32_t commit_place;
    struct msg_held held[2]; /* the newest commit first */
    size_t held_count;
};

/* Call it after the greeting. options and link are borrowed. 0 or HVD_E_NOMEM. */
int bare_training_init(struct bare_training *training, const struct bare_trainer_options *options,
                       struct agent_link *link, uint64_t incarnation,
                       const struct msg_welcome_worker *welcome, int64_t now_us) MUST_CHECK;
void bare_training_release(struct bare_training *training);

/* Gives the session one event and carries out all actions that follow. Not 0: the process must end.
 */
int bare_training_tell(struct bare_training *training, struct session_event *event, int64_t now_us,
                       struct hvd_err *err) MUST_CHECK;

/* Does everything that is due now. */
int bare_training_wake(struct bare_training *training, int64_t now_us,
                       struct hvd_err *err) MUST_CHECK;
int64_t bare_training_deadline(const struct bare_training *training);

#endif
