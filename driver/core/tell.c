/*
 * tell.c: how the other files of the core make actions. Only functions of this file append to the
 * list of the step, and none of them reports a failure: when no memory is left, the list remembers
 * it, and core_step drops all actions of the step. The order of the calls is the order of the
 * actions.
 */
#include "driver/core/tell.h"

#include "driver/core/roster.h"
#include "proto/catalog.h"

#include <stdarg.h>
#include <string.h>

/* Returns memory that lives as long as the actions of this step; NULL: no memory is left, and the
 * step will fail. */
void *tell_alloc(struct core *core, size_t count, size_t size)
{
    void *memory = arena_alloc_array(&core->out.list->memory, count, size);

    if (!memory)
        core->out.list->failed = true;
    return memory;
}

/* Returns a formatted text that lives as long as the actions of this step; "" when no memory is
 * left. */
const char *tell_text(struct core *core, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = arena_line(&core->out.list->memory, LIMIT_REASON_BYTES + 1, format, args);
    va_end(args);
    if (!text)
        core->out.list->failed = true;
    return text ? text : "";
}

/* Appends an action to the list of the step. When no memory is left, the list remembers it, and the
 * step fails. */
static void tell_add(struct core *core, struct action action)
{
    struct action_list *list = core->out.list;

    if (VEC_RESERVE(list, 1, SIZE_MAX / sizeof(action)))
        list->failed = true;
    else
        list->items[list->count++] = action;
}

/* Returns a message with the core's term, which the caller fills in. `incarnation` 0: for no single
 * worker. `round` 0: about no round. When no memory is left, the spare message is returned, and the
 * list has failed. */
struct msg *tell_msg(struct core *core, enum msg_type type, uint64_t incarnation, uint64_t round)
{
    struct msg *msg = tell_alloc(core, 1, sizeof(*msg));

    if (!msg)
        msg = &core->out.spare;
    *msg = (struct msg){
        .type = type, .term = core->term, .incarnation = incarnation, .round = round
    };
    return msg;
}

/* Makes the answer to the first message of an agent, or of the process of a host that joins: the
 * driver's version, and the times that the agent has to keep. */
const struct msg *tell_welcome(struct core *core)
{
    struct msg *msg = tell_msg(core, MSG_WELCOME_AGENT, 0, 0);

    msg->u.welcome_agent = (struct msg_welcome_agent){
        .minor = PROTO_MINOR,
        .version = HVD_VERSION_TEXT,
        .beat_us = core->config.beat_us,
        .lease_us = core->config.lease_us,
        .driver_grace_us = core->config.driver_grace_us,
    };
    return msg;
}

/* Sends the message to the agent of the host, if it is connected. */
void tell_host(struct core *core, struct core_host *host, const struct msg *msg)
{
    const struct round *current = &core->current, *next = &core->next;
    bool may_need = msg->type == MSG_ROUND || msg->type == MSG_PREPARE, secret = false;
    const struct worker *worker;

    if (host->agent != AGENT_THERE)
        return; /* hello.c sends it again when the agent comes back */
    host->said_us = core->now_us;
    /* PROTOCOL.md, ROUND: only the hosts of a round's members are told the secret. A PREPARE also
     * goes to workers that leave at the switch, and a ROUND to workers that are no members any
     * more. */
    for (size_t slot = 0; may_need && !secret && (worker = roster_next_on(host, &slot));)
        secret = (msg->round == current->number && worker->rank < current->members.count &&
                  current->members.items[worker->rank] == worker->incarnation) ||
                 (msg->round == next->number && worker->next_rank < next->members.count &&
                  next->members.items[worker->next_rank] == worker->incarnation);
    tell_add(core, (struct action){
                       .kind = ACTION_SEND,
                       /* these messages wait for no record of the journal (action.h) */
                       .overtakes = msg->type == MSG_BEAT || msg->type == MSG_WELCOME_AGENT,
                       .secret = secret,
                       .peer = host->peer,
                       /* REKEY only: driver/io adds the key of this host to the message. */
                       .host = msg->type == MSG_REKEY ? tell_text(core, "%s", host->name) : NULL,
                       .msg = msg,
                   });
}

/* Sends the message once to each host that has a member of one of the two rounds (NULL: no round).
 * PROTOCOL.md, K3: a message that names no incarnation is for every worker of the agent, so a host
 * with several members must not get it twice. `stamp` is the number of the last message that a host
 * got in this way. */
void tell_rounds(struct core *core, const struct round *one, const struct round *other,
                 const struct msg *msg)
{
    const struct round *rounds[] = { one, other };
    const struct worker *worker;

    core->out.stamps++;
    for (size_t k = 0; k < ARRAY_SIZE(rounds); k++)
        for (size_t i = 0; rounds[k] && (worker = roster_next_member(core, rounds[k], &i));)
            if (worker->host->stamp != core->out.stamps) {
                worker->host->stamp = core->out.stamps;
                tell_host(core, worker->host, msg);
            }
}

/* Tells the worker's agent to end the worker: SIGTERM, and SIGKILL after grace_us (0: SIGKILL at
 * once). */
void tell_kill(struct core *core, const struct worker *worker, int64_t grace_us, const char *reason)
{
    struct msg *msg = tell_msg(core, MSG_KILL, worker->incarnation, 0);

    msg->u.kill =
        (struct msg_kill){ .grace_us = grace_us, .reason = tell_text(core, "%s", reason) };
    tell_host(core, worker->host, msg);
}

/* Tells the worker that it has to leave within left_us, for this reason. */
void tell_drain(struct core *core, const struct worker *worker, int64_t left_us, const char *reason)
{
    struct msg *msg = tell_msg(core, MSG_DRAIN, worker->incarnation, 0);

    msg->u.drain =
        (struct msg_drain){ .left_us = left_us, .reason = tell_text(core, "%s", reason) };
    tell_host(core, worker->host, msg);
}

/* Tells the agent that the driver knows of the end of this worker: the agent need not repeat
 * EXITED. */
void tell_forget(struct core *core, struct core_host *host, uint64_t incarnation)
{
    tell_host(core, host, tell_msg(core, MSG_FORGET, incarnation, 0));
}

/* Returns a copy of the ids that lives as long as the actions of this step; an empty list when
 * no memory is left. */
struct msg_ids tell_ids(struct core *core, const uint64_t *ids, size_t count)
{
    uint64_t *copy = tell_alloc(core, count, sizeof(*copy));

    if (!copy || !count)
        return (struct msg_ids){ NULL, 0 };
    memcpy(copy, ids, count * sizeof(*copy));
    return (struct msg_ids){ copy, count };
}

/* Closes the connection of the host's agent, for the reason `text`. The caller also calls
 * roster_disconnect, as no EVENT_CLOSED follows. */
void tell_close(struct core *core, struct core_host *host, const char *text)
{
    tell_add(core, (struct action){ .kind = ACTION_CLOSE, .peer = host->peer, .text = text });
}

/* Sends a message to the process of a host that joins (joins.c). Its connection is not that of an
 * agent, so tell_host does not know it. `host` names the host of a START; otherwise NULL. */
void tell_join_peer(struct core *core, uint32_t peer, const char *host, const struct msg *msg)
{
    tell_add(core, (struct action){ .kind = ACTION_SEND,
                                    .overtakes = msg->type == MSG_BEAT,
                                    .peer = peer,
                                    .host = host ? tell_text(core, "%s", host) : NULL,
                                    .msg = msg });
}

void tell_join_close(struct core *core, uint32_t peer, const char *text)
{
    tell_add(core, (struct action){ .kind = ACTION_CLOSE, .peer = peer, .text = text });
}

/* From now on handshakes accept this token; `token` is its id, a blank and the digits of its
 * key. */
void tell_token(struct core *core, const char *token)
{
    tell_add(core, (struct action){ .kind = ACTION_TOKEN, .text = tell_text(core, "%s", token) });
}

/* Asks for the start of an agent on the host: driver/io starts it, or, in a job whose hosts join,
 * the process that has joined. If that process is not connected, its next JOIN makes joins.c ask
 * again. */
void tell_start_agent(struct core *core, struct core_host *host)
{
    struct msg *msg;

    if (!core->config.join) {
        tell_add(core, (struct action){ .kind = ACTION_START_AGENT,
                                        .host = tell_text(core, "%s", host->name) });
    } else if (host->join.connected) {
        msg = tell_msg(core, MSG_START, 0, 0);
        msg->u.start.epoch = host->key.version; /* driver/io adds the settings */
        host->join.said_us = core->now_us;
        tell_join_peer(core, host->join.peer, host->name, msg);
    }
}

/* From now on the driver accepts (`admitted`) or refuses this version of the host's key in
 * handshakes. */
void tell_key(struct core *core, const struct core_host *host, uint32_t version, bool admitted)
{
    tell_add(core, (struct action){ .kind = ACTION_KEY,
                                    .host = tell_text(core, "%s", host->name),
                                    .number = version,
                                    .code = admitted });
}

void tell_discover(struct core *core)
{
    tell_add(core, (struct action){ .kind = ACTION_DISCOVER });
}

/* Asks driver/io to read at once whether this driver still owns the job; if it does not, the driver
 * ends. */
void tell_check_owner(struct core *core)
{
    tell_add(core, (struct action){ .kind = ACTION_CHECK_OWNER });
}

/* Asks driver/io to write the manifest of a checkpoint whose files are all durable. The answer,
 * EVENT_CHECKPOINT, names the attempt as `ask`. */
void tell_checkpoint(struct core *core, const struct checkpoint_done *checkpoint)
{
    tell_add(core, (struct action){ .kind = ACTION_CHECKPOINT,
                                    .ask = checkpoint->number,
                                    .number = checkpoint->commit,
                                    .checkpoint = checkpoint });
}

/* Asks driver/io for the newest checkpoint before the damaged one in `folder`. The name is copied,
 * because checkpoint.c changes it before the action is carried out. */
void tell_checkpoint_reject(struct core *core, const char *folder, uint64_t commit)
{
    size_t bytes = strlen(folder) + 1;
    char *copy = tell_alloc(core, bytes, 1);

    if (copy)
        tell_add(core, (struct action){ .kind = ACTION_CHECKPOINT_REJECT,
                                        .text = memcpy(copy, folder, bytes),
                                        .number = commit });
}

/* Answers the request `ask` of an operator; `code` 0: it was done, or was accepted. */
void tell_reply(struct core *core, uint64_t ask, int code, const char *text)
{
    tell_add(core, (struct action){ .kind = ACTION_REPLY, .ask = ask, .code = code, .text = text });
}

/* Tells the operators who wait for new keys how far the change is. `over`: it is complete. */
void tell_rekeying(struct core *core, const char *text, bool over)
{
    tell_add(core, (struct action){ .kind = ACTION_REKEYING, .code = over, .text = text });
}

/* Ends the driver with this exit status; no action follows. */
void tell_exit(struct core *core, int code, const char *text)
{
    tell_add(core, (struct action){
                       .kind = ACTION_EXIT, .code = code, .text = tell_text(core, "%s", text) });
}

/* Appends a record for the journal, which the caller fills in. All later actions wait until it is
 * durable. Never returns NULL: when no memory is left, it returns the spare record, and the list
 * has failed. */
struct journal_record *tell_record(struct core *core, enum journal_kind kind)
{
    struct journal_record *record = tell_alloc(core, 1, sizeof(*record));

    if (!record)
        record = &core->out.spare_record;
    core->out.records++;
    *record = (struct journal_record){ .kind = kind, .term = core->term, .host = "", .text = "" };
    tell_add(core, (struct action){ .kind = ACTION_RECORD, .record = record });
    return record;
}

/* Appends a copy of the change of the blacklist as an action: the change is stored before any later
 * action is done. */
void tell_blacklist(struct core *core, const struct blacklist_change *change)
{
    struct blacklist_change *copy = tell_alloc(core, 1, sizeof(*copy));

    if (!copy)
        return;
    *copy = *change;
    tell_add(core, (struct action){ .kind = ACTION_BLACKLIST, .change = copy });
}
