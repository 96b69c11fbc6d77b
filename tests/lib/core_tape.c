/*
 * core_tape.c: runs a driver's core with simulated hosts and workers: carries out the events of a
 * script, and keeps the core's actions, so that each line of the script can be compared.
 */
#include "tests/lib/core_tape.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "tests/lib/hosts_shown.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX ((size_t)1 << 28)

int tape_init(struct core_tape *tape)
{
    *tape = (struct core_tape){ .now_us = TIME_S };
    core_config_init(&tape->config);
    tape->config.job = "j";
    tape->config.np = 4;
    tape->config.min_np = 2;
    tape->config.max_np = LIMIT_WORKERS;
    action_list_init(&tape->list);
    buf_init(&tape->did, 1 << 20);
    buf_init(&tape->bytes, 1 << 24);
    arena_init(&tape->memory, 1 << 20);
    arena_init(&tape->kept, KEPT_MAX);
    return trace_init(&tape->trace, "core", 64);
}

void tape_release(struct core_tape *tape)
{
    core_free(tape->core);
    trace_release(&tape->trace);
    action_list_release(&tape->list);
    buf_release(&tape->did);
    buf_release(&tape->bytes);
    arena_release(&tape->memory);
    arena_release(&tape->kept);
    VEC_RELEASE(&tape->journal);
    VEC_RELEASE(&tape->blacklist);
}

const char *tape_did(const struct core_tape *tape)
{
    return buf_text(&tape->did);
}

struct tape_host *tape_host(struct core_tape *tape, const char *name)
{
    for (size_t i = 0; i < tape->host_count; i++)
        if (!strcmp(tape->hosts[i].name, name))
            return &tape->hosts[i];
    ASSERT(tape->host_count < TAPE_HOSTS);
    snprintf(tape->hosts[tape->host_count].name, sizeof(tape->hosts[0].name), "%s", name);
    return &tape->hosts[tape->host_count++];
}

int tape_core(struct core_tape *tape)
{
    struct hvd_err err;

    if (tape->core)
        return 0;
    if (core_config_finish(&tape->config, &err))
        return err_set(NULL, HVD_E_INVAL, "%s", err.text);
    tape->core = core_create(&tape->config, &tape->trace);
    return tape->core ? 0 : HVD_E_NOMEM;
}

/* Scripts do not see these records: test_core_goodput.c looks at the sums, test_core_reported.c at
 * the values. */
static bool is_hidden(const struct journal_record *record)
{
    return record->kind == JOURNAL_GOODPUT || record->kind == JOURNAL_REPORTED;
}

/* Kills the core, and makes a new one from the journal, as from a file; the last `lost` records
 * were not written. */
int tape_kill(struct core_tape *tape, size_t lost, bool twice)
{
    int64_t wall_us = tape->now_us + TAPE_WALL;
    int rc;

    core_free(tape->core);
    tape->core = NULL;
    tape->asked = tape->over = false;
    for (size_t i = 0; i < tape->host_count; i++)
        tape->hosts[i].peer = 0;
    memset(tape->by_peer, 0, sizeof(tape->by_peer));
    rc = tape_core(tape);
    while (lost && tape->journal.count)
        lost -= !is_hidden(&tape->journal.items[--tape->journal.count]);
    for (size_t i = 0; !rc && i < tape->journal.count; i++) {
        rc = core_replay(tape->core, &tape->journal.items[i], NULL);
        if (!rc && twice)
            rc = core_replay(tape->core, &tape->journal.items[i], NULL);
    }
    for (size_t i = 0; !rc && i < tape->blacklist.count; i++)
        rc = core_replay_blacklist(tape->core, &tape->blacklist.items[i], tape->now_us, wall_us,
                                   NULL);
    return rc;
}

static const char *keep_text(struct core_tape *tape, const char *text)
{
    size_t length = strlen(text) + 1;
    char *copy = arena_alloc(&tape->kept, length);

    return copy ? memcpy(copy, text, length) : NULL;
}

static bool keep_ids(struct core_tape *tape, struct msg_ids *ids)
{
    uint64_t *copy = arena_alloc_array(&tape->kept, ids->count, sizeof(*copy));

    if (copy && ids->count)
        memcpy(copy, ids->items, ids->count * sizeof(*copy));
    ids->items = copy;
    return copy != NULL;
}

static bool keep_texts(struct core_tape *tape, struct msg_texts *texts)
{
    const char **copy = arena_alloc_array(&tape->kept, texts->count, sizeof(*copy));

    for (size_t i = 0; copy && i < texts->count; i++) {
        copy[i] = keep_text(tape, texts->items[i]);
        if (!copy[i])
            return false;
    }
    texts->items = copy;
    return copy != NULL;
}

static int keep_record(struct core_tape *tape, const struct journal_record *record)
{
    struct journal_record copy = *record;

    copy.host = keep_text(tape, record->host);
    copy.text = keep_text(tape, record->text);
    if (!copy.host || !copy.text || !keep_ids(tape, &copy.members) ||
        !keep_ids(tape, &copy.holders) || !keep_texts(tape, &copy.addresses) ||
        VEC_RESERVE(&tape->journal, 1, SIZE_MAX / sizeof(copy)))
        return HVD_E_NOMEM;
    tape->journal.items[tape->journal.count++] = copy;
    if (record->kind == JOURNAL_TERM)
        tape->term = record->term;
    return 0;
}

static int keep_blacklist(struct core_tape *tape, const struct blacklist_record *record)
{
    for (size_t i = 0; i < tape->blacklist.count; i++) {
        struct blacklist_record *old = &tape->blacklist.items[i];

        if (!strcmp(old->host, record->host) && old->slot == record->slot) {
            *old = *record;
            return 0;
        }
    }
    if (VEC_RESERVE(&tape->blacklist, 1, LIMIT_BLACKLIST_ENTRIES))
        return HVD_E_NOMEM;
    tape->blacklist.items[tape->blacklist.count++] = *record;
    return 0;
}

/* Shows one action. A message must go to a connected agent, and must fit into a frame. */
static int take(struct core_tape *tape, const struct action *action, bool last)
{
    int rc;

    if (action->kind == ACTION_SEND || action->kind == ACTION_CLOSE)
        ASSERT(action->peer < TAPE_PEERS && tape->by_peer[action->peer]);
    ASSERT(action->kind != ACTION_EXIT || last);
    buf_clear(&tape->bytes);
    rc = action_write(action, &tape->bytes);
    if (rc && rc != HVD_E_NOMEM) {
        char x[900];
        PANIC("%s", action_describe(action, x, sizeof(x)));
    }
    for (size_t i = 0; i < tape->bytes.length; i++)
        tape->digest = (tape->digest ^ (unsigned char)tape->bytes.data[i]) * 0x100000001b3;
    if (rc)
        return rc;
    switch (action->kind) {
    case ACTION_RECORD: return keep_record(tape, action->record);
    case ACTION_BLACKLIST: return keep_blacklist(tape, &action->change->record);
    case ACTION_DISCOVER: tape->asked = true; break;
    case ACTION_EXIT:
        tape->over = true;
        tape->exit_code = action->code;
        break;
    case ACTION_SEND:
        if (action->msg->type == MSG_LAUNCH)
            tape->host_of[action->msg->incarnation % TAPE_WORKERS] =
                (uint8_t)(tape->by_peer[action->peer] - tape->hosts + 1);
        break;
    default: break;
    }
    return 0;
}

/* Shows one message to several hosts as one line: "a,b < ROUND ...". */
static int show_hosts(struct core_tape *tape, size_t *i)
{
    const struct msg *msg = tape->list.items[*i].msg;
    const char *before = "";
    int rc = 0;

    for (; !rc && *i < tape->list.count; (*i)++) {
        const struct action *action = &tape->list.items[*i];

        if (action->kind != ACTION_SEND || action->msg != msg)
            break;
        rc = buf_printf(&tape->did, "%s%s", before, tape->by_peer[action->peer]->name);
        before = ",";
    }
    --*i;
    return rc ? rc : buf_append_text(&tape->did, " < ");
}

/* Runs one event and writes its actions into tape->did; beats only after "show". */
int tape_step(struct core_tape *tape, struct event *event)
{
    int rc;

    event->now_us = tape->now_us;
    event->wall_us = tape->now_us + TAPE_WALL;
    event->held_us = tape->full_us ? tape->now_us - tape->full_us : 0;
    action_list_clear(&tape->list);
    rc = core_step(tape->core, event, &tape->list);
    ASSERT(!rc || !tape->list.count);
    for (size_t i = 0; !rc && i < tape->list.count; i++)
        rc = take(tape, &tape->list.items[i], i + 1 == tape->list.count);
    for (size_t i = 0; !rc && i < tape->list.count; i++) {
        const struct action *action = &tape->list.items[i];

        if (!tape->keys && (action->kind == ACTION_KEY ||
                            (action->kind == ACTION_SEND && (action->msg->type == MSG_STATE_KEY ||
                                                             action->msg->type == MSG_REKEY)) ||
                            (action->kind == ACTION_RECORD && action->record->kind == JOURNAL_KEY)))
            continue;
        if (action->kind == ACTION_RECORD && is_hidden(action->record))
            continue;
        if (!tape->show &&
            (action->kind == ACTION_DISCOVER ||
             (action->kind == ACTION_SEND && action->msg->type == MSG_BEAT) ||
             (action->kind == ACTION_RECORD && action->record->kind == JOURNAL_STUCK &&
              action->record->code == 1 && action->record->value <= 1)))
            continue;
        if (tape->did.length)
            rc = buf_append_text(&tape->did, "\n");
        if (!rc && action->kind == ACTION_SEND)
            rc = show_hosts(tape, &i);
        if (!rc)
            rc = tape_show(tape, action, &tape->did);
    }
    for (size_t i = 0; i < tape->list.count; i++)
        if (tape->list.items[i].kind == ACTION_CLOSE) {
            uint32_t peer = tape->list.items[i].peer;
            struct tape_host *host = tape->by_peer[peer];

            if (host && host->peer == peer)
                host->peer = 0;
            tape->by_peer[peer] = NULL;
        }
    if (!rc && event->kind == EVENT_TIMER)
        ASSERT(core_deadline(tape->core) > tape->now_us);
    return rc;
}

int tape_hello(struct core_tape *tape, struct tape_host *host, struct msg *msg)
{
    uint32_t peer = 1;

    while (peer < TAPE_PEERS && tape->by_peer[peer])
        peer++;
    ASSERT(peer < TAPE_PEERS);
    tape->by_peer[peer] = host;
    host->peer = peer;
    return tape_step(tape, &(struct event){ .kind = EVENT_MSG,
                                            .peer = peer,
                                            .host = tape->proved ? tape->proved : host->name,
                                            .key_version = tape->epoch,
                                            .text = tape->seen,
                                            .msg = msg });
}

int tape_msg(struct core_tape *tape, struct tape_host *host, struct msg *msg)
{
    uint8_t number = tape->host_of[msg->incarnation % TAPE_WORKERS];

    if (!host)
        host = &tape->hosts[number ? number - 1 : 0];
    if (!host->peer)
        return err_set(NULL, HVD_E_INVAL, "not connected");
    return tape_step(
        tape,
        &(struct event){ .kind = EVENT_MSG, .peer = host->peer, .host = host->name, .msg = msg });
}

/* Lets time pass: all agents send heartbeats, discovery answers, and timers fire when they are due.
 */
int tape_wait(struct core_tape *tape, int64_t us)
{
    int64_t until_us = tape->now_us + us;
    int64_t deadline_us;
    int rc = 0;

    while (!rc && !tape->over && (deadline_us = core_deadline(tape->core)) <= until_us) {
        struct msg beat = { .type = MSG_BEAT };

        if (tape->now_us < deadline_us)
            tape->now_us = deadline_us;
        for (size_t i = 0; !rc && i < tape->host_count; i++)
            if (tape->hosts[i].peer && !tape->hosts[i].silent)
                rc = tape_msg(tape, &tape->hosts[i], &beat);
        if (!rc)
            rc = tape_step(tape, &(struct event){ .kind = EVENT_TIMER });
        if (!rc && tape->asked && *tape->listing) {
            struct hosts hosts;

            hosts_init(&hosts);
            tape->asked = false;
            rc = hosts_fill(&hosts, tape->listing);
            if (!rc)
                rc = tape_step(tape, &(struct event){ .kind = EVENT_HOSTS, .hosts = &hosts });
            hosts_release(&hosts);
        }
    }
    tape->now_us = until_us;
    return rc;
}
