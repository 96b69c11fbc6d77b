#include "worker/core/session_action.h"

#include "base/time.h"
#include "worker/core/session_parts.h"

#include <string.h>

/* A caller that carries out what it is told never has more than a handful in a list. */
#define ACTIONS_MAX 65536

void session_action_list_init(struct session_action_list *list)
{
    *list = (struct session_action_list){ .items = NULL };
    arena_init(&list->memory, 2 * (size_t)LIMIT_DECODE_BYTES_MAX);
}

void session_action_list_release(struct session_action_list *list)
{
    if (!list)
        return;
    VEC_RELEASE(list);
    arena_release(&list->memory);
}

void session_action_list_clear(struct session_action_list *list)
{
    arena_release(&list->memory);
    list->count = 0;
    list->failed = false;
}

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

const void *session_copy(struct session *session, const void *bytes, size_t length)
{
    void *copy = arena_alloc(&session->list->memory, length);

    if (!copy)
        session->list->failed = true;
    else if (length)
        memcpy(copy, bytes, length);
    return copy;
}

void session_send(struct session *session, const struct msg *msg)
{
    struct msg sent = *msg;

    if (!session->connected)
        return;
    sent.incarnation = session->incarnation;
    session->sent_us = session->now_us;
    session_do(session, (struct session_action){
                            .kind = DO_SEND,
                            .msg = session_copy(session, &sent, sizeof(sent)),
                        });
}

void session_cancel(struct session *session, uint64_t round)
{
    session_do(session, (struct session_action){ .kind = DO_CANCEL, .round = round });
}

void session_watch(struct session *session, bool yes)
{
    if (session->watching == yes)
        return;
    session->watching = yes;
    session_do(session, (struct session_action){ .kind = DO_WATCH, .yes = yes });
}

void session_answer(struct session *session, int code)
{
    ASSERT(session->waits && session->loop == LOOP_TRAINING);
    session->waits = false;
    session->warn_stall_us = TIME_NEVER;
    session_do(session, (struct session_action){ .kind = DO_ANSWER, .code = code });
}
