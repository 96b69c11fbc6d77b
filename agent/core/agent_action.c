/*
 * agent_action.c: the list of actions of a step, and the memory of their messages and texts. Called
 * by all files of the core that add actions. Invariant: the caller may always write to what a
 * function here returns. When no memory is left, the function returns the agent's spare action or
 * message, and the list is marked as failed.
 */
#include "agent/core/agent_internal.h"

#include <stdarg.h>
#include <string.h>

/* Appends an action to the list of this step; the caller fills its fields. When no memory is left
 * the caller fills the spare action, which is never carried out, and the step fails. */
struct agent_action *agent_do(struct agent *agent, enum agent_action_kind kind)
{
    struct agent_action_list *list = agent->list;
    struct agent_action *action;

    ASSERT(list && kind < AGENT_DO_COUNT);
    if (VEC_RESERVE(list, 1, UINT32_MAX)) {
        list->failed = true;
        action = &agent->spare.action;
    } else {
        action = &list->items[list->count++];
    }
    *action = (struct agent_action){ .kind = kind };
    return action;
}

/* Makes a message in the memory of this step, with the driver's term. `incarnation`: the worker of
 * the message; 0: the message is about no one worker. When no memory is left the caller gets the
 * spare message, and the step fails. */
struct msg *agent_msg(struct agent *agent, enum msg_type type, uint64_t incarnation)
{
    struct msg *msg = arena_alloc(&agent->list->memory, sizeof(*msg));

    if (!msg) {
        agent->list->failed = true;
        msg = &agent->spare.msg;
        memset(msg, 0, sizeof(*msg));
    }
    msg->type = type;
    msg->term = agent->link.term;
    msg->incarnation = incarnation;
    return msg;
}

/* Formats a text into the memory of this step. When no memory is left the text is "", and the step
 * fails. */
const char *agent_text(struct agent *agent, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = arena_line(&agent->list->memory, LIMIT_TEXT_BYTES + 1, format, args);
    va_end(args);
    if (!text)
        agent->list->failed = true;
    return text ? text : "";
}
