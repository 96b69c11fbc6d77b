#include "agent/core/agent_state.h"
#include "base/text.h"

#include <stdarg.h>
#include <string.h>

void agent_action_list_init(struct agent_action_list *list)
{
    *list = (struct agent_action_list){ .failed = false };
    arena_init(&list->memory, SIZE_MAX / 2);
}

void agent_action_list_release(struct agent_action_list *list)
{
    if (!list)
        return;
    VEC_RELEASE(list);
    arena_release(&list->memory);
}

void agent_action_list_clear(struct agent_action_list *list)
{
    list->count = 0;
    list->failed = false;
    arena_release(&list->memory);
}

struct agent_action *agent_do(struct agent *agent, enum agent_action_kind kind)
{
    struct agent_action_list *list = agent->list;
    struct agent_action *action;

    ASSERT(list && kind < AGENT_DO_COUNT);
    if (VEC_RESERVE(list, 1, UINT32_MAX)) {
        list->failed = true;
        action = &agent->nowhere.action;
    } else {
        action = &list->items[list->count++];
    }
    *action = (struct agent_action){ .kind = kind };
    return action;
}

struct msg *agent_msg(struct agent *agent, enum msg_type type, uint64_t incarnation)
{
    struct msg *msg = arena_alloc(&agent->list->memory, sizeof(*msg));

    if (!msg) {
        agent->list->failed = true;
        msg = &agent->nowhere.msg;
        memset(msg, 0, sizeof(*msg));
    }
    msg->type = type;
    msg->term = agent->term;
    msg->incarnation = incarnation;
    return msg;
}

const char *agent_text(struct agent *agent, const char *format, ...)
{
    char line[LIMIT_TEXT_BYTES + 1];
    size_t length;
    va_list args;
    char *text;

    va_start(args, format);
    length = text_line(line, sizeof(line), format, args);
    va_end(args);
    text = arena_alloc(&agent->list->memory, length + 1);
    if (!text) {
        agent->list->failed = true;
        return "";
    }
    memcpy(text, line, length + 1);
    return text;
}
