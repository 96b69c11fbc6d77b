#include "worker/core/session.h"

#include "base/mem.h"
#include "base/time.h"
#include "worker/core/session_parts.h"

#define ENDS (SM_BIT(SESSION_LEFT) | SM_BIT(SESSION_DISMISSED) | SM_BIT(SESSION_LOST))

static const struct sm_state states[SESSION_STATE_COUNT] = {
    [SESSION_JOINING] = {"joining",    SM_BIT(SESSION_READY) | ENDS,                                SM_INITIAL},
    [SESSION_READY] = { "ready",     SM_BIT(SESSION_ENTERING) | SM_BIT(SESSION_RECOVERED) | ENDS, 0         },
    [SESSION_ENTERING] = { "entering",  SM_BIT(SESSION_ACTIVE) | SM_BIT(SESSION_REVOKED) | ENDS,     0         },
    [SESSION_ACTIVE] = { "active",
                         SM_BIT(SESSION_SWITCHED) | SM_BIT(SESSION_REVOKED) |
                             SM_BIT(SESSION_FINISHED) | ENDS,
                         0                                                                                    },
    [SESSION_SWITCHED] = { "switched",
                         SM_BIT(SESSION_ENTERING) | SM_BIT(SESSION_REVOKED) |
                               SM_BIT(SESSION_FINISHED) | ENDS,
                         0                                                                                    },
    [SESSION_REVOKED] = { "revoked",
                         SM_BIT(SESSION_RECOVERED) | SM_BIT(SESSION_ENTERING) |
                              SM_BIT(SESSION_FINISHED) | ENDS,
                         0                                                                                    },
    [SESSION_RECOVERED] = { "recovered", SM_BIT(SESSION_ENTERING) | ENDS,                             0         },
    [SESSION_LEFT] = { "left",      0,                                                           SM_FINAL  },
    [SESSION_FINISHED] = { "finished",  0,                                                           SM_FINAL  },
    [SESSION_DISMISSED] = { "dismissed", SM_BIT(SESSION_FINISHED),                                    0         },
    [SESSION_LOST] = { "lost",      0,                                                           SM_FINAL  },
};

/* Where the loop may be in each state. */
#define PLACE(loop) (1u << (loop))
#define INSIDE      (PLACE(LOOP_ENTERING) | PLACE(LOOP_TRAINING))
#define ANYWHERE    (INSIDE | PLACE(LOOP_AWAY) | PLACE(LOOP_WAITING) | PLACE(LOOP_RESTORING))

static const unsigned places[SESSION_STATE_COUNT] = {
    [SESSION_JOINING] = PLACE(LOOP_AWAY),
    [SESSION_READY] = PLACE(LOOP_WAITING),
    [SESSION_ENTERING] = PLACE(LOOP_ENTERING),
    [SESSION_ACTIVE] = PLACE(LOOP_TRAINING),
    [SESSION_SWITCHED] = PLACE(LOOP_TRAINING) | PLACE(LOOP_WAITING) | PLACE(LOOP_RESTORING),
    [SESSION_REVOKED] = INSIDE | PLACE(LOOP_WAITING) | PLACE(LOOP_RESTORING),
    [SESSION_RECOVERED] = PLACE(LOOP_WAITING),
    [SESSION_LEFT] = ANYWHERE,
    [SESSION_FINISHED] = PLACE(LOOP_WAITING) | PLACE(LOOP_AWAY),
    [SESSION_DISMISSED] = ANYWHERE,
    [SESSION_LOST] = ANYWHERE,
};

static bool is_in_round(unsigned state)
{
    return state == SESSION_ENTERING || state == SESSION_ACTIVE || state == SESSION_SWITCHED;
}

static void check_session(const void *owner, unsigned state)
{
    const struct session *session = owner;

    ASSERT(places[state] & PLACE(session->loop));
    if (is_in_round(state) || state == SESSION_REVOKED)
        ASSERT(session->round > 0);
    if (is_in_round(state))
        ASSERT(session->round > session->revoked);
    if (session->waits) /* with a reason: a check must not wait for what will not come */
        ASSERT(state == SESSION_ACTIVE && session->change.at_said && !session->change.agreed);
    if (session->change.next)
        ASSERT(is_in_round(state) && session->change.next > session->round && session->watching);
    if (session->arrived.round)
        ASSERT(state == SESSION_REVOKED || session->arrived.round == session->change.next);
    if (state >= SESSION_LEFT)
        ASSERT(session->prepared.state == PREPARED_NONE);
}

static const struct sm_type session_type = { "session", states, SESSION_STATE_COUNT,
                                             check_session };

struct session *session_create(uint64_t incarnation, const struct msg_welcome_worker *welcome,
                               int64_t now_us, struct trace *trace)
{
    struct session *session;

    ASSERT(incarnation > 0);
    session = mem_zalloc(sizeof(*session));
    if (!session)
        return NULL;
    session->incarnation = incarnation;
    session->trace = trace;
    session->beat_us = welcome->beat_us > 0 ? welcome->beat_us : TIME_NEVER;
    session->stall_warning_us =
        welcome->stall_warning_us > 0 ? welcome->stall_warning_us : TIME_NEVER;
    session->connected = true;
    session->sent_us = now_us;
    session->warn_stall_us = TIME_NEVER;
    sm_init(&session->sm, &session_type, SESSION_JOINING, session, trace);
    return session;
}

void session_free(struct session *session)
{
    if (!session)
        return;
    session_forget_arrived(session);
    mem_free(session);
}

static int64_t beat_at(const struct session *session)
{
    return session->connected ? time_add(session->sent_us, session->beat_us) : TIME_NEVER;
}

/* A check that waits for others is said before the beat, as it is a sign of life too. */
static void on_timer(struct session *session)
{
    if (session->now_us >= session->warn_stall_us) {
        session->warn_stall_us = time_add(session->now_us, session->stall_warning_us);
        session_send(session, &(struct msg){
                                  .type = MSG_STALLED,
                                  .round = session->round,
                                  .u.stalled = {.waited_us = session->now_us - session->waiting_us,
                                                .operation = "check"},
        });
    }
    if (session->now_us >= beat_at(session))
        session_send(session,
                     &(struct msg){
                         .type = MSG_BEAT,
                         .u.beat = {.sequence = ++session->sequence, .answers = session->heard},
        });
}

static void on_stuck(struct session *session, const struct msg_stalled *stalled)
{
    unsigned state = session->sm.state;

    if (!is_in_round(state)) {
        trace_add(session->trace, session->now_us, "session: stuck in %s: not in a round",
                  stalled->operation);
        return;
    }
    session_send(
        session,
        &(struct msg){ .type = MSG_STALLED, .round = session->round, .u.stalled = *stalled });
}

/* Of a round that is over nobody needs to know. */
static void on_remark(struct session *session, const char *text)
{
    struct hvd_err line;

    if (!is_in_round((unsigned)session->sm.state))
        return;
    err_set(&line, 0, "%s", text);
    session_send(session, &(struct msg){ .type = MSG_REMARK,
                                         .round = session->round,
                                         .u.remark = { session_copy(session, line.text,
                                                                    sizeof(line.text)) } });
}

/* The last word: to who does not understand it a silent worker is a dead one. */
static void on_useless(struct session *session, const char *why)
{
    struct hvd_err line; /* it may have been written by a device's driver */

    err_set(&line, HVD_E_STATE, "%s", why && why[0] ? why : "it does not say why");
    session_send(session, &(struct msg){ .type = MSG_USELESS,
                                         .u.useless = { session_copy(session, line.text,
                                                                     sizeof(line.text)) } });
    session_lose(session, "of no more use");
}

static void take(struct session *session, const struct session_event *event)
{
    switch (event->kind) {
    case SESSION_MSG: session_on_msg(session, event); return;
    case SESSION_CLOSED: session_lose(session, "the agent's connection is gone"); return;
    case SESSION_TIMER: on_timer(session); return;
    case SESSION_RUN: session_on_run(session, event); return;
    case SESSION_PREPARED: session_on_prepared(session, event); return;
    case SESSION_SYNCED: session_on_synced(session, event); return;
    case SESSION_STEPPED: session_on_stepped(session, event); return;
    case SESSION_CHECK: session_on_check(session, event); return;
    case SESSION_RETURNED: session_on_returned(session, event); return;
    case SESSION_SETTLED: session_on_settled(session, event); return;
    case SESSION_STUCK: on_stuck(session, event->stalled); return;
    case SESSION_USELESS: on_useless(session, event->text); return;
    case SESSION_REMARK: on_remark(session, event->text); return;
    case SESSION_EVENT_COUNT: break;
    }
    PANIC("there is no event %d", (int)event->kind);
}

int session_step(struct session *session, const struct session_event *event,
                 struct session_action_list *list)
{
    ASSERT(!session->list);
    session->now_us = event->now_us;
    session->list = list;
    take(session, event);
    session->list = NULL;
    check_session(session, session->sm.state);
    return list->failed ? HVD_E_NOMEM : 0;
}

int64_t session_deadline(const struct session *session)
{
    int64_t beat_us = beat_at(session);

    return beat_us < session->warn_stall_us ? beat_us : session->warn_stall_us;
}

enum session_state session_state(const struct session *session)
{
    return (enum session_state)session->sm.state;
}

const char *session_state_name(enum session_state state)
{
    return (unsigned)state < SESSION_STATE_COUNT ? states[state].name : "?";
}

uint64_t session_round(const struct session *session)
{
    return session->round;
}
