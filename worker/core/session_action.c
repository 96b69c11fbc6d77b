/*
 * session_action.c: the list of actions that a step fills, and what goes into it.
 *
 * All other files of the session append actions here; worker/io/session_thread.c carries them out,
 * in order. When no memory is left the list is marked as failed: the step then fails as a whole.
 */
#include "worker/core/session_action.h"

#include "base/time.h"
#include "worker/core/session_internal.h"

#include <string.h>

/* The most actions in one list. The caller carries out each list, so a list has only a handful
 * of actions; more than this is a bug. */
#define ACTIONS_MAX 65536

/* Appends an action to the list of the present step. Without memory the function marks the list as
 * failed, and session_step then returns HVD_E_NOMEM; so callers check nothing. */
void session_do(struct session *session, struct session_action action)
{
    struct session_action_list *list = session->list;

    ASSERT(list && action.kind < DO_COUNT);
    if (VEC_RESERVE(list, 1, ACTIONS_MAX)) {
        list->failed = true;
        return;
    }
    list->items[list->count++] = action;
}

/* Copies bytes into memory that lives as long as the list of actions. NULL: there is no memory, and
 * the list is marked as failed. */
const void *session_copy(struct session *session, const void *bytes, size_t length)
{
    void *copy = arena_alloc(&session->list->memory, length);

    if (!copy)
        session->list->failed = true;
    else if (length)
        memcpy(copy, bytes, length);
    return copy;
}

/* Appends the action that sends a message to the agent, in the name of this worker. Nothing is sent
 * when the agent is gone. Every message also counts as a heartbeat, so the time is noted. The data
 * that `msg` points to is not copied. */
void session_send(struct session *session, const struct msg *msg)
{
    struct msg sent = *msg;

    if (!session->agent.connected)
        return;
    sent.incarnation = session->incarnation;
    session->agent.last_sent_us = session->now_us;
    session_do(session, (struct session_action){
                            .kind = DO_SEND,
                            .msg = session_copy(session, &sent, sizeof(sent)),
                        });
}

/* Appends the action that ends the collectives of this round, and of all rounds before it, at
 * once. */
void session_cancel(struct session *session, uint64_t round)
{
    session_do(session, (struct session_action){ .kind = DO_CANCEL, .round = round });
}

/* Decides whether the training loop brings its checks (calls of hvd_state_check or
 * hvd_state_commit) to the session. watched true: each check is brought here and waits for its
 * answer; so it is while a switch is planned, and when the round is dead. watched false: each check
 * returns 0 at once, without the session; so it is from the beginning of a round. */
void session_watch(struct session *session, bool watched)
{
    if (session->loop.watched == watched)
        return;
    session->loop.watched = watched;
    session_do(session, (struct session_action){ .kind = DO_WATCH, .yes = watched });
}

/* Answers the check that waits, with the code that hvd_state_check is to return. */
void session_answer(struct session *session, int code)
{
    ASSERT(session->loop.check_waits && session->loop.at == LOOP_TRAINING);
    session->loop.check_waits = false;
    session->loop.warn_stall_us = TIME_NEVER;
    session_do(session, (struct session_action){ .kind = DO_ANSWER, .code = code });
}
