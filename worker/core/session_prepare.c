/* session_prepare.c: the connections of the next round, made beside the running ones. */
#include "worker/core/session_parts.h"

#include <inttypes.h>

static void say_prepared(struct session *session)
{
    const struct session_prepared *prepared = &session->prepared;

    session_send(session,
                 &(struct msg){
                     .type = MSG_PREPARED,
                     .round = prepared->round,
                     .u.prepared = {.code = prepared->outcome.code,
                                    .text = session_copy(session, prepared->outcome.text,
                                    sizeof(prepared->outcome.text))},
    });
}

void session_forget_prepared(struct session *session)
{
    struct session_prepared *prepared = &session->prepared;

    if (prepared->state == PREPARED_OPENING || prepared->state == PREPARED_OPEN)
        session_do(session,
                   (struct session_action){ .kind = DO_ABANDON, .round = prepared->round });
    *prepared = (struct session_prepared){ .state = PREPARED_NONE };
}

static void prepare(struct session *session, const struct msg *msg)
{
    session_note_abandoned(session, session->round, session->prepared.round);
    session_forget_prepared(session);
    if (session->change.next < msg->round)
        session_forget_change(session);
    session->prepared.round = msg->round;
    session->prepared.state = PREPARED_WITHOUT_ME;
    if (session_lists_me(session, &msg->u.prepare.members)) {
        session->prepared.state = PREPARED_OPENING;
        session_do(session,
                   (struct session_action){ .kind = DO_PREPARE, .round = msg->round, .msg = msg });
    }
    trace_add(session->trace, session->now_us, "session: prepare round %" PRIu64 "%s", msg->round,
              session->prepared.state == PREPARED_OPENING ? "" : ", without me");
}

void session_on_prepare(struct session *session, const struct msg *msg)
{
    struct session_prepared *prepared = &session->prepared;
    unsigned state = session->sm.state;

    if (state == SESSION_JOINING)
        session_drop(session, msg, "not built yet");
    else if (session_is_dead(session, msg->round) || msg->round < prepared->round ||
             msg->round < session->change.next || msg->round <= session->arrived.round)
        session_drop(session, msg, "stale");
    else if (msg->round == prepared->round && prepared->state >= PREPARED_OPEN)
        say_prepared(session);
    else if (msg->round == prepared->round)
        session_drop(session, msg, "said already");
    else if (session->change.agreed || session->arrived.round)
        session_drop(session, msg, "another round is agreed");
    else
        prepare(session, msg);
}

void session_on_prepared(struct session *session, const struct session_event *event)
{
    struct session_prepared *prepared = &session->prepared;

    if (prepared->state != PREPARED_OPENING || prepared->round != event->round) {
        trace_add(session->trace, session->now_us,
                  "session: round %" PRIu64 " is prepared, but no longer wanted", event->round);
        return;
    }
    prepared->state = event->code ? PREPARED_FAILED : PREPARED_OPEN;
    err_set(&prepared->outcome, event->code, "%s", event->text ? event->text : "");
    trace_add(session->trace, session->now_us, "session: round %" PRIu64 " prepared: %s",
              event->round, err_text(event->code));
    say_prepared(session);
}
