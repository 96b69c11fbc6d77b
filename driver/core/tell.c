#include "driver/core/tell.h"

#include "driver/core/roster.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *tell_alloc(struct core *core, size_t count, size_t size)
{
    void *memory = arena_alloc_array(&core->out->memory, count, size);

    if (!memory)
        core->out->failed = true;
    return memory;
}

const char *tell_text(struct core *core, const char *format, ...)
{
    char line[LIMIT_REASON_BYTES + 1];
    char *text;
    size_t length;
    va_list args;

    va_start(args, format);
    length = text_line(line, sizeof(line), format, args);
    va_end(args);
    text = tell_alloc(core, length + 1, 1);
    if (!text)
        return "";
    memcpy(text, line, length + 1);
    return text;
}

static struct action *add(struct core *core, enum action_kind kind)
{
    struct action_list *list = core->out;

    if (VEC_RESERVE(list, 1, SIZE_MAX / sizeof(struct action))) {
        list->failed = true;
        return NULL;
    }
    list->items[list->count] = (struct action){ .kind = kind };
    return &list->items[list->count++];
}

struct msg *tell_msg(struct core *core, enum msg_type type, uint64_t incarnation, uint64_t round)
{
    struct msg *msg = tell_alloc(core, 1, sizeof(*msg));

    if (!msg)
        msg = &core->spare;
    *msg = (struct msg){
        .type = type, .term = core->term, .incarnation = incarnation, .round = round
    };
    return msg;
}

void tell_host(struct core *core, struct core_host *host, const struct msg *msg)
{
    struct action *action;

    if (host->agent != AGENT_THERE)
        return;
    host->said_us = core->now_us;
    action = add(core, ACTION_SEND);
    if (!action)
        return;
    action->peer = host->peer;
    action->msg = msg;
    action->overtakes = msg->type == MSG_BEAT || msg->type == MSG_WELCOME_AGENT;
}

static void tell_round(struct core *core, const struct round *round, const struct msg *msg)
{
    for (size_t i = 0; round && i < round->members.count; i++) {
        struct worker *worker = roster_worker(core, round->members.items[i]);

        if (worker && worker->host->stamp != core->stamps) {
            worker->host->stamp = core->stamps;
            tell_host(core, worker->host, msg);
        }
    }
}

void tell_rounds(struct core *core, const struct round *one, const struct round *other,
                 const struct msg *msg)
{
    core->stamps++;
    tell_round(core, one, msg);
    tell_round(core, other, msg);
}

void tell_kill(struct core *core, const struct worker *worker, int64_t grace_us, const char *reason)
{
    struct msg *msg = tell_msg(core, MSG_KILL, worker->incarnation, 0);

    msg->u.kill =
        (struct msg_kill){ .grace_us = grace_us, .reason = tell_text(core, "%s", reason) };
    tell_host(core, worker->host, msg);
}

void tell_drain(struct core *core, const struct worker *worker, int64_t left_us, const char *reason)
{
    struct msg *msg = tell_msg(core, MSG_DRAIN, worker->incarnation, 0);

    msg->u.drain =
        (struct msg_drain){ .left_us = left_us, .reason = tell_text(core, "%s", reason) };
    tell_host(core, worker->host, msg);
}

void tell_forget(struct core *core, struct core_host *host, uint64_t incarnation)
{
    tell_host(core, host, tell_msg(core, MSG_FORGET, incarnation, 0));
}

struct msg_member_list tell_members(struct core *core, const struct round *round)
{
    size_t count = round->members.count;
    struct msg_member *members = tell_alloc(core, count, sizeof(*members));

    if (!members)
        return (struct msg_member_list){ NULL, 0 };
    for (size_t i = 0; i < count; i++) {
        const struct worker *worker = roster_worker(core, round->members.items[i]);

        ASSERT(worker);
        members[i] = (struct msg_member){ .incarnation = worker->incarnation,
                                          .host = worker->host->name,
                                          .slot = worker->slot,
                                          .addresses = worker->addresses };
    }
    return (struct msg_member_list){ members, count };
}

struct msg_ids tell_ids(struct core *core, const uint64_t *ids, size_t count)
{
    uint64_t *copy = tell_alloc(core, count, sizeof(*copy));

    if (!copy || !count)
        return (struct msg_ids){ NULL, 0 };
    memcpy(copy, ids, count * sizeof(*copy));
    return (struct msg_ids){ copy, count };
}

void tell_close(struct core *core, struct core_host *host, const char *text)
{
    struct action *action = add(core, ACTION_CLOSE);

    if (!action)
        return;
    action->peer = host->peer;
    action->text = text;
}

void tell_start_agent(struct core *core, const struct core_host *host)
{
    struct action *action = add(core, ACTION_START_AGENT);

    if (action)
        action->host = tell_text(core, "%s", host->name);
}

void tell_discover(struct core *core)
{
    add(core, ACTION_DISCOVER);
}

void tell_reply(struct core *core, uint64_t ask, int code, const char *text)
{
    struct action *action = add(core, ACTION_REPLY);

    if (!action)
        return;
    action->ask = ask;
    action->code = code;
    action->text = text;
}

void tell_exit(struct core *core, int code, const char *text)
{
    struct action *action = add(core, ACTION_EXIT);

    if (!action)
        return;
    action->code = code;
    action->text = tell_text(core, "%s", text);
}

/* Stands in for a record that there is no memory for; the list has failed. */
struct journal_record *tell_record(struct core *core, enum journal_kind kind)
{
    struct journal_record *record = tell_alloc(core, 1, sizeof(*record));
    struct action *action = add(core, ACTION_RECORD);

    if (!record || !action) {
        core->out->failed = true;
        record = &core->spare_record;
    } else {
        action->record = record;
    }
    *record = (struct journal_record){ .kind = kind, .term = core->term, .host = "", .text = "" };
    return record;
}

void tell_blacklist(struct core *core, const struct blacklist_change *change)
{
    struct blacklist_change *copy = tell_alloc(core, 1, sizeof(*copy));
    struct action *action = copy ? add(core, ACTION_BLACKLIST) : NULL;

    if (!action)
        return;
    *copy = *change;
    action->change = copy;
}
