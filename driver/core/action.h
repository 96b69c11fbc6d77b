/*
 * action.h: what the core wants done, in order.
 *
 * Durable before visible: the actions of all steps form one queue. What follows a RECORD or a
 * BLACKLIST in it is not done before that is durable. Nothing else delays an action. So nobody is
 * ever told what a restarted driver could forget, and the core need not wait for a disk. An action
 * that `overtakes` rests on nothing but the driver's term: once the first record, the TERM, is
 * durable, it is done at once, or a slow disk would look like a dead driver to its agents.
 *
 * Until that first record is durable the caller accepts no connection and makes no further step:
 * what that takes is then the driver's own silence, and no lease of an agent runs out in it.
 */
#ifndef DRIVER_CORE_ACTION_H
#define DRIVER_CORE_ACTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "blacklist/blacklist.h"
#include "driver/core/journal.h"
#include "proto/msg.h"

enum action_kind {
    ACTION_RECORD,      /* append to the journal: record */
    ACTION_BLACKLIST,   /* store: change (blacklist_store_put of record and event) */
    ACTION_SEND,        /* peer, msg; of a LAUNCH the caller fills in argv, env and cwd */
    ACTION_CLOSE,       /* peer, text */
    ACTION_START_AGENT, /* host: make sure that an agent of this job runs there and dials us */
    ACTION_DISCOVER,    /* run one discovery; answered by HOSTS or HOSTS_FAILED */
    ACTION_REPLY,       /* to an operator: ask, code, text */
    ACTION_EXIT,        /* the last one: the driver's exit status is code; text says why */
    ACTION_COUNT
};

struct action {
    enum action_kind kind;
    bool overtakes; /* a BEAT, or the WELCOME_AGENT that a connection begins with */
    uint32_t peer;
    int code;
    uint64_t ask;
    const char *host;
    const char *text;
    const struct msg *msg; /* many actions may share one */
    const struct journal_record *record;
    const struct blacklist_change *change;
};

/* What the actions point to lives until the list is cleared, or the next step of the core. */
struct action_list {
    struct VEC(struct action);
    struct arena memory;
    bool failed; /* memory was out: the list is not whole, see core_step */
};

void action_list_init(struct action_list *list);
void action_list_release(struct action_list *list);
void action_list_clear(struct action_list *list);

/* The action as bytes that are equal for equal actions: a line of text, and the frame of a message.
 * 0, HVD_E_NOMEM, HVD_E_LIMIT past the buffer's max. */
int action_write(const struct action *action, struct buf *out) MUST_CHECK;

/* One line for people: "send 3 ROUND round=2 ...". Cut at size. Returns text. */
const char *action_describe(const struct action *action, char *text, size_t size);

#endif
