/* session_loop.c: what the loop thread does, and what becomes of it. */
#include "worker/core/session_parts.h"

#include <stdio.h>

/* The run is over; a later one is answered by what was decided then. */
static void give_back(struct session *session, int code)
{
    ASSERT(session->loop == LOOP_WAITING);
    session->loop = LOOP_AWAY;
    session_do(session, (struct session_action){ .kind = DO_RETURN, .code = code });
}

static void end(struct session *session, enum session_state state, const char *why)
{
    session->change = (struct session_change){ .next = 0 };
    session_forget_arrived(session);
    session_forget_prepared(session);
    sm_move(&session->sm, state, session->now_us, why);
}

static void say_left(struct session *session)
{
    session_send(session, &(struct msg){ .type = MSG_LEFT });
}

static void finish(struct session *session, int code, const char *text)
{
    struct hvd_err line; /* what a user wrote may have several lines */

    err_set(&line, code, "%s", text ? text : "");
    end(session, SESSION_FINISHED, code ? "train failed" : "train returned 0");
    session_send(session,
                 &(struct msg){
                     .type = MSG_FINISHED,
                     .round = session->round,
                     .u.finished = {.code = code,
                                    .text = session_copy(session, line.text, sizeof(line.text))},
    });
    give_back(session, code);
}

void session_outside(struct session *session)
{
    switch (session_state(session)) {
    case SESSION_SWITCHED:
        if (session->dirty)
            session_restore(session);
        else if (session->arrived.round)
            session_enter_arrived(session);
        return;
    case SESSION_REVOKED: session_restore(session); return;
    case SESSION_LEFT:
        say_left(session);
        give_back(session, HVD_LEFT);
        return;
    case SESSION_DISMISSED: give_back(session, HVD_DONE); return;
    case SESSION_LOST: give_back(session, HVD_E_LOST); return;
    default: PANIC("the loop came out in %s", sm_name(&session->sm));
    }
}

void session_on_run(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop == LOOP_AWAY);
    session->loop = LOOP_WAITING;
    switch (session_state(session)) {
    case SESSION_JOINING:
        session_keep_held(session, &event->ready->held);
        session_send(session, &(struct msg){ .type = MSG_READY, .u.ready = *event->ready });
        sm_move(&session->sm, SESSION_READY, session->now_us, "built");
        return;
    case SESSION_LEFT: give_back(session, HVD_LEFT); return; /* LEFT was said when it left */
    case SESSION_FINISHED: give_back(session, HVD_E_STATE); return;
    default: session_outside(session); return;
    }
}

static const char *reason(const struct session_event *event, const char *plain)
{
    return event->text && event->text[0] ? event->text : plain;
}

void session_on_synced(struct session *session, const struct session_event *event)
{
    ASSERT(session->loop == LOOP_ENTERING);
    if (!event->code) {
        session->loop = LOOP_TRAINING;
        if (session->sm.state == SESSION_ENTERING)
            sm_move(&session->sm, SESSION_ACTIVE, session->now_us, "synced");
        return;
    }
    session->loop = LOOP_WAITING;
    if (session->sm.state == SESSION_ENTERING)
        session_revoke(session, session->round, event->code, reason(event, err_text(event->code)));
    else
        session_outside(session);
}

void session_on_stepped(struct session *session, const struct session_event *event)
{
    unsigned state = session->sm.state;

    if ((state != SESSION_ACTIVE && state != SESSION_SWITCHED) || session->entered) {
        trace_add(session->trace, session->now_us, "session: a step in %s: said already, or late",
                  sm_name(&session->sm));
        return;
    }
    session->entered = true;
    session_send(session, &(struct msg){ .type = MSG_ENTERED,
                                         .round = session->round,
                                         .u.entered = *event->entered });
}

/* What the library tells train, and train is to return. */
static bool is_news(int code)
{
    return code == HVD_HOSTS_UPDATED || code == HVD_LEFT || code == HVD_DONE ||
           code == HVD_E_REVOKED || code == HVD_E_LOST;
}

static void active_returned(struct session *session, const struct session_event *event)
{
    char text[64];

    if (event->code == HVD_E_REVOKED) {
        session_revoke(session, session->round, event->failed,
                       reason(event, "its collectives failed"));
    } else if (is_news(event->code) && event->code > 0) {
        snprintf(text, sizeof(text), "returned %s without being told", err_name(event->code));
        finish(session, HVD_E_STATE, text);
    } else {
        finish(session, event->code, event->text);
    }
}

void session_on_returned(struct session *session, const struct session_event *event)
{
    bool own = !is_news(event->code); /* 0 too */

    ASSERT(session->loop == LOOP_TRAINING && !session->waits);
    session->loop = LOOP_WAITING;
    switch (session_state(session)) {
    case SESSION_ACTIVE: active_returned(session, event); return;
    case SESSION_SWITCHED: session->dirty |= event->code != HVD_HOSTS_UPDATED; break;
    case SESSION_DISMISSED: own = event->code == 0; break;
    case SESSION_LEFT:
    case SESSION_LOST: own = false; break;
    default: break;
    }
    if (own)
        finish(session, event->code, event->text);
    else
        session_outside(session);
}

void session_leave(struct session *session, const char *why)
{
    end(session, SESSION_LEFT, why);
    if (session->loop == LOOP_WAITING)
        session_outside(session);
    else if (session->loop == LOOP_AWAY)
        say_left(session);
}

/* Ends what the loop is in, if anything; it returns code, at once or when it comes out. */
static void end_run(struct session *session, enum session_state state, int code, const char *why)
{
    unsigned from = session->sm.state;

    if (from == SESSION_ENTERING || from == SESSION_ACTIVE || from == SESSION_SWITCHED)
        session_stop_loop(session, code);
    end(session, state, why);
    if (session->loop == LOOP_WAITING)
        session_outside(session);
}

void session_dismiss(struct session *session)
{
    end_run(session, SESSION_DISMISSED, HVD_DONE, "the job is done");
}

/* What was decided before stays decided: to leave, or that the job is done. */
void session_lose(struct session *session, const char *why)
{
    if (!session->connected)
        return;
    session->connected = false;
    if (session->sm.state < SESSION_LEFT)
        end_run(session, SESSION_LOST, HVD_E_LOST, why);
    else if (session->loop == LOOP_TRAINING || session->loop == LOOP_ENTERING)
        session_stop_loop(session, HVD_E_LOST);
}
