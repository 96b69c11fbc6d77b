/*
 * bare_training.c: the training loop of bare_trainer: carries out its session's actions, at once or
 * at the end of the step, and tells the session the results.
 */
#include "tests/workers/bare_training.h"

#include "base/time.h"
#include "proto/commit.h"
#include "tests/workers/bare_faults.h"

#include <stdio.h>

int bare_training_init(struct bare_training *training, const struct bare_trainer_options *options,
                       struct agent_link *link, uint64_t incarnation,
                       const struct msg_welcome_worker *welcome, int64_t now_us)
{
    *training = (struct bare_training){ .options = options,
                                        .link = link,
                                        .incarnation = incarnation,
                                        .next_us = now_us + (int64_t)options->boot_ms * TIME_MS };
    session_action_list_init(&training->list);
    training->session = session_create(incarnation, welcome, now_us, NULL);
    return training->session ? 0 : HVD_E_NOMEM;
}

void bare_training_release(struct bare_training *training)
{
    session_free(training->session);
    session_action_list_release(&training->list);
}

/* ---- the session's actions ------------------------------------------------------------------- */

static void keep(struct bare_training *training, uint64_t commit)
{
    if (training->held_count && training->held[0].commit >= commit)
        return;
    training->held[1] = training->held[0];
    training->held[0] = (struct msg_held){ commit, training->steps };
    if (training->held_count < ARRAY_SIZE(training->held))
        training->held_count++;
}

/* Cancels the round: a collective in progress ends with an error; a computation that hangs does not
 * notice. */
static void cancel(struct bare_training *training, uint64_t round)
{
    if (round > training->cancelled)
        training->cancelled = round;
    if (training->place == TRAINING_STEPPING && training->round <= training->cancelled) {
        training->place = TRAINING_RETURNING;
        training->code = HVD_E_REVOKED;
    }
}

static void answer(struct bare_training *training, int code, int64_t now_us)
{
    ASSERT(training->place == TRAINING_CHECKING);
    training->place = code ? TRAINING_RETURNING : TRAINING_STEPPING;
    training->code = code;
    training->next_us = now_us + (int64_t)training->options->step_ms * TIME_MS;
}

/* Enters a round. A real worker would fetch a commit that it does not hold; here its own state is
 * used. */
static void enter(struct bare_training *training, const struct session_action *action)
{
    ASSERT(training->place == TRAINING_WAITING);
    training->place = TRAINING_ENTERING;
    training->round = action->round;
    training->checks = 0;
    training->round_steps = 0;
    training->commit_place = 0;
    keep(training, action->msg->u.round.commit ? action->msg->u.round.commit
                                               : COMMIT_FIRST_OF(action->round));
    bare_faults_say(training->options, training->incarnation, action->round, &action->place);
}

static int carry_out(struct bare_training *training, const struct session_action *action,
                     int64_t now_us, struct hvd_err *err)
{
    switch (action->kind) {
    case DO_SEND: return agent_link_send(training->link, action->msg, err);
    case DO_WATCH: return 0; /* nothing to do: every check is brought to the session */
    case DO_PREPARE: training->prepared = action->round; return 0;
    case DO_ABANDON: training->prepared = 0; return 0;
    case DO_PERSISTED:
    case DO_STORED: return 0; /* it asks for no checkpoint, and for no small values */
    case DO_CANCEL: cancel(training, action->round); return 0;
    case DO_COMMIT: keep(training, action->commit); return 0;
    case DO_ANSWER: answer(training, action->code, now_us); return 0;
    case DO_RESTORE: training->place = TRAINING_RESTORING; return 0;
    case DO_ENTER: enter(training, action); return 0;
    case DO_RETURN:
        training->place = TRAINING_OVER;
        training->code = action->code;
        return 0;
    case DO_COUNT: break;
    }
    PANIC("a session's action of kind %d", (int)action->kind);
}

/* Gives the session an event, and carries out the actions that it answers with. A message that is
 * not sent because the agent is gone is no error: the event SESSION_CLOSED follows. */
static int step(struct bare_training *training, struct session_event *event, int64_t now_us,
                struct hvd_err *err)
{
    int rc;

    event->now_us = now_us;
    session_action_list_clear(&training->list);
    rc = session_step(training->session, event, &training->list);
    if (rc)
        return err_set(err, rc, "%s", err_text(rc));
    for (size_t i = 0; !rc && i < training->list.count; i++) {
        rc = carry_out(training, &training->list.items[i], now_us, err);
        if (rc == HVD_E_LOST)
            rc = 0;
    }
    return rc;
}

/* ---- events that follow at once ---- */

static int say_ready(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    static const struct msg_entry entries[] = {
        {.name = "weights", .bytes = 4096}
    };
    static const char *const addresses[] = { "nowhere:1" };
    const struct msg_ready ready = {
        .manifest = 42, .entries = {entries,    1},
             .addresses = { addresses, 1}
    };

    training->place = TRAINING_WAITING;
    return step(training, &(struct session_event){ .kind = SESSION_RUN, .ready = &ready }, now_us,
                err);
}

static int say_synced(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    struct session_event event = { .kind = SESSION_SYNCED, .round = training->round };

    if (training->round <= training->cancelled) {
        training->place = TRAINING_WAITING;
        event.code = HVD_E_REVOKED;
    } else {
        training->place = TRAINING_STEPPING;
        training->next_us = now_us + (int64_t)training->options->step_ms * TIME_MS;
    }
    return step(training, &event, now_us, err);
}

static int say_returned(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    struct session_event event = { .kind = SESSION_RETURNED, .code = training->code };

    training->place = TRAINING_WAITING;
    return step(training, &event, now_us, err);
}

static int say_settled(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    const struct msg_held_list held = { training->held, training->held_count };

    training->place = TRAINING_WAITING;
    return step(training, &(struct session_event){ .kind = SESSION_RESTORED, .held = &held },
                now_us, err);
}

static int say_prepared(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    struct session_event event = { .kind = SESSION_PREPARED, .round = training->prepared };

    training->prepared = 0;
    return step(training, &event, now_us, err);
}

/* Gives the session the events that follow from its last actions, until none is left. */
static int follow_up(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    int rc = 0;

    while (!rc) {
        if (training->place == TRAINING_ENTERING)
            rc = say_synced(training, now_us, err);
        else if (training->place == TRAINING_RETURNING)
            rc = say_returned(training, now_us, err);
        else if (training->place == TRAINING_RESTORING)
            rc = say_settled(training, now_us, err);
        else if (training->prepared && training->place != TRAINING_OVER)
            rc = say_prepared(training, now_us, err);
        else
            break;
    }
    return rc;
}

int bare_training_tell(struct bare_training *training, struct session_event *event, int64_t now_us,
                       struct hvd_err *err)
{
    int rc = step(training, event, now_us, err);

    return rc ? rc : follow_up(training, now_us, err);
}

/* ---- steps ---- */

static int say_stepped(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    const struct msg_entered entered = { .commit = training->held[0].commit };

    return step(training,
                &(struct session_event){
                    .kind = SESSION_STEPPED, .round = training->round, .entered = &entered },
                now_us, err);
}

static int say_check(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    struct session_event event = { .kind = SESSION_CHECK, .check = training->checks++ };

    training->place = TRAINING_CHECKING;
    return step(training, &event, now_us, err);
}

/* Ends a step: commits, then checks, returns, or (with that fault) hangs. */
static int step_is_over(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    int rc = 0;

    training->steps++;
    training->round_steps++;
    if (!bare_faults_step(training->options, training->steps)) {
        training->place = TRAINING_HANGING;
        printf("hangs\n");
        fflush(stdout);
        return 0;
    }
    if (training->round_steps == 1)
        rc = say_stepped(training, now_us, err);
    if (rc || training->place != TRAINING_STEPPING)
        return rc;
    keep(training, COMMIT_FIRST_OF(training->round) | ++training->commit_place);
    if (training->options->steps && training->steps >= training->options->steps) {
        training->place = TRAINING_RETURNING;
        training->code = 0;
        return 0;
    }
    return say_check(training, now_us, err);
}

int bare_training_wake(struct bare_training *training, int64_t now_us, struct hvd_err *err)
{
    int rc = 0;

    if (session_deadline(training->session) <= now_us)
        rc = step(training, &(struct session_event){ .kind = SESSION_TIMER }, now_us, err);
    if (!rc && training->next_us <= now_us) {
        if (training->place == TRAINING_BOOTING)
            rc = say_ready(training, now_us, err);
        else if (training->place == TRAINING_STEPPING)
            rc = step_is_over(training, now_us, err);
    }
    return rc ? rc : follow_up(training, now_us, err);
}

int64_t bare_training_deadline(const struct bare_training *training)
{
    int64_t session_us = session_deadline(training->session);

    if (training->place != TRAINING_BOOTING && training->place != TRAINING_STEPPING)
        return session_us;
    return training->next_us < session_us ? training->next_us : session_us;
}
