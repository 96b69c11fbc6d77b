/*
 * training.h: a training loop of which nothing is real but what it says to its session: a step is
 * a while that passes, a commit a number, a collective done at once.
 *
 *     WAITING ──DO_ENTER──► ENTERING ──SYNCED──► STEPPING ◄──► CHECKING
 *       ▲  ▲──SETTLED── RESTORING                   │ DO_CANCEL   │ DO_ANSWER
 *       └────────────────RETURNED──── RETURNING ◄───┴─────────────┘      DO_RETURN: OVER
 */
#ifndef TESTS_BODY_TRAINING_H
#define TESTS_BODY_TRAINING_H

#include "tests/body/trainer_options.h"
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

struct training {
    const struct trainer_options *options;
    struct agent_link *link;
    struct session *session;
    struct session_action_list list;
    uint64_t incarnation;

    enum training_place place;
    int64_t next_us;   /* when the boot or the step is over */
    int code;          /* that train, or the whole run, returns */
    uint64_t prepared; /* a round whose DO_PREPARE has no answer yet; 0 */

    uint64_t round;
    uint64_t cancelled; /* this round and all before it */
    uint64_t checks;    /* of the round */
    uint64_t round_steps;
    uint64_t steps; /* of its life */
    uint32_t commit_place;
    struct msg_held held[2]; /* the newest first */
    size_t held_count;
};

/* After the greeting. Both are borrowed. 0 or HVD_E_NOMEM. */
int training_init(struct training *training, const struct trainer_options *options,
                  struct agent_link *link, uint64_t incarnation,
                  const struct msg_welcome_worker *welcome, int64_t now_us) MUST_CHECK;
void training_release(struct training *training);

/* One event, and all that follows from it at once. Anything but 0 ends the process. */
int training_tell(struct training *training, struct session_event *event, int64_t now_us,
                  struct hvd_err *err) MUST_CHECK;

/* What is due now. */
int training_wake(struct training *training, int64_t now_us, struct hvd_err *err) MUST_CHECK;
int64_t training_deadline(const struct training *training);

#endif
