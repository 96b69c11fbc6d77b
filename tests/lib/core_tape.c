#include "tests/lib/core_tape.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "tests/lib/core_script.h"
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

/* The journal is read back as a file would be: what a driver was told last may not be in it. */
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
    ASSERT(lost <= tape->journal.count);
    tape->journal.count -= lost;
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

static void disconnect(struct core_tape *tape, uint32_t peer)
{
    struct tape_host *host = tape->by_peer[peer];

    if (host && host->peer == peer)
        host->peer = 0;
    tape->by_peer[peer] = NULL;
}

/* What every action has to be: sent to somebody who is there, and a frame that can be made. */
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

static bool is_hidden(const struct core_tape *tape, const struct action *action)
{
    return !tape->show && (action->kind == ACTION_DISCOVER ||
                           (action->kind == ACTION_SEND && action->msg->type == MSG_BEAT));
}

/* One message to several hosts is one line: "a,b < ROUND ...". */
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

static int show_all(struct core_tape *tape)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < tape->list.count; i++) {
        const struct action *action = &tape->list.items[i];

        if (is_hidden(tape, action))
            continue;
        if (tape->did.length)
            rc = buf_append_text(&tape->did, "\n");
        if (!rc && action->kind == ACTION_SEND)
            rc = show_hosts(tape, &i);
        if (!rc)
            rc = tape_show(tape, action, &tape->did);
    }
    return rc;
}

int tape_step(struct core_tape *tape, struct event *event)
{
    int rc;

    event->now_us = tape->now_us;
    event->wall_us = tape->now_us + TAPE_WALL;
    action_list_clear(&tape->list);
    rc = core_step(tape->core, event, &tape->list);
    ASSERT(!rc || !tape->list.count);
    for (size_t i = 0; !rc && i < tape->list.count; i++)
        rc = take(tape, &tape->list.items[i], i + 1 == tape->list.count);
    if (!rc)
        rc = show_all(tape);
    for (size_t i = 0; i < tape->list.count; i++)
        if (tape->list.items[i].kind == ACTION_CLOSE)
            disconnect(tape, tape->list.items[i].peer);
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
    return tape_step(tape, &(struct event){ .kind = EVENT_MSG, .peer = peer, .msg = msg });
}

int tape_msg(struct core_tape *tape, struct tape_host *host, struct msg *msg)
{
    uint8_t number = tape->host_of[msg->incarnation % TAPE_WORKERS];

    if (!host)
        host = &tape->hosts[number ? number - 1 : 0];
    if (!host->peer)
        return err_set(NULL, HVD_E_INVAL, "not connected");
    return tape_step(tape, &(struct event){ .kind = EVENT_MSG, .peer = host->peer, .msg = msg });
}

static int beat_all(struct core_tape *tape)
{
    struct msg beat = { .type = MSG_BEAT };
    int rc = 0;

    for (size_t i = 0; !rc && i < tape->host_count; i++)
        if (tape->hosts[i].peer && !tape->hosts[i].silent)
            rc = tape_msg(tape, &tape->hosts[i], &beat);
    return rc;
}

static int answer_discovery(struct core_tape *tape)
{
    struct hosts hosts;
    int rc;

    hosts_init(&hosts);
    tape->asked = false;
    rc = hosts_fill(&hosts, tape->listing);
    if (!rc)
        rc = tape_step(tape, &(struct event){ .kind = EVENT_HOSTS, .hosts = &hosts });
    hosts_release(&hosts);
    return rc;
}

/* Time passes as it would: everybody beats, discovery answers, timers come when they are due. */
int tape_wait(struct core_tape *tape, int64_t us)
{
    int64_t until_us = tape->now_us + us;
    int64_t deadline_us;
    int rc = 0;

    while (!rc && !tape->over && (deadline_us = core_deadline(tape->core)) <= until_us) {
        if (tape->now_us < deadline_us)
            tape->now_us = deadline_us;
        rc = beat_all(tape);
        if (!rc)
            rc = tape_step(tape, &(struct event){ .kind = EVENT_TIMER });
        if (!rc && tape->asked && *tape->listing)
            rc = answer_discovery(tape);
    }
    tape->now_us = until_us;
    return rc;
}

static const char *wrong(struct core_tape *tape, unsigned line, const char *format, ...)
    PRINTF_LIKE(3, 4);
static const char *wrong(struct core_tape *tape, unsigned line, const char *format, ...)
{
    int used = snprintf(tape->wrong, sizeof(tape->wrong), "line %u: ", line);
    va_list args;

    va_start(args, format);
    vsnprintf(tape->wrong + used, sizeof(tape->wrong) - (size_t)used, format, args);
    va_end(args);
    return tape->wrong;
}

/* What was expected of the line before, now that all of it has been read. */
static bool is_expected(struct core_tape *tape, const struct buf *expected)
{
    const char *text = buf_text(expected);

    if (*text != '!')
        return !strcmp(text, tape_did(tape));
    text += 1 + (text[1] == ' ');
    if (*tape_did(tape))
        return false;
    for (size_t i = 0; i < tape->trace.written - tape->traced; i++) {
        const char *line = trace_line(&tape->trace, i);

        if (line && strstr(line, text))
            return true;
    }
    return false;
}

static int expect(struct buf *expected, struct span right)
{
    int rc = 0;

    if (expected->length && right.length)
        rc = buf_append_text(expected, "\n");
    return rc ? rc : buf_append(expected, right.at, right.length);
}

static int perform(struct core_tape *tape, struct span left)
{
    char line[512];

    if (left.length >= sizeof(line))
        return HVD_E_LIMIT;
    memcpy(line, left.at, left.length);
    line[left.length] = '\0';
    buf_clear(&tape->did);
    tape->traced = tape->trace.written;
    return tape_do(tape, line);
}

const char *tape_play(struct core_tape *tape, const char *script)
{
    struct span rest = { script, strlen(script) };
    struct span line, left;
    struct buf expected;
    const char *why = NULL;
    bool compared = false;
    unsigned number = 0;
    int rc = 0;

    buf_init(&expected, 1 << 20);
    while (!why && span_next(&rest, '\n', &line)) {
        bool has_bar = memchr(line.at, '|', line.length) != NULL;

        number++;
        span_next(&line, '|', &left);
        left = span_trim(left);
        if (left.length) {
            if (compared && !is_expected(tape, &expected))
                break;
            compared = has_bar;
            buf_clear(&expected);
            rc = perform(tape, left);
        }
        if (!rc && has_bar)
            rc = expect(&expected, span_trim(line));
        if (rc)
            why = wrong(tape, number, "%s: %.*s", err_name(rc), (int)left.length, left.at);
    }
    if (!why && compared && !is_expected(tape, &expected))
        why = wrong(tape, number, "before it: did\n%s\nnot\n%s\nlast trace %s", tape_did(tape),
                    buf_text(&expected),
                    trace_line(&tape->trace, 0) ? trace_line(&tape->trace, 0) : "");
    buf_release(&expected);
    return why;
}
