/*
 * session_tape.c: a worker's session in a test: reads scripts of messages and calls, and writes the
 * session's actions as text.
 */
#include "tests/lib/session_tape.h"

#include "base/text.h"
#include "base/time.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 6

int tape_init(struct tape *tape)
{
    static const struct msg_welcome_worker welcome = { .minor = PROTO_MINOR,
                                                       .beat_us = TIME_S,
                                                       .stall_warning_us = 10 * TIME_S };

    *tape = (struct tape){ .term = 1 };
    session_action_list_init(&tape->list);
    buf_init(&tape->did, 65536);
    arena_init(&tape->memory, 65536);
    if (trace_init(&tape->trace, "session", 64))
        return HVD_E_NOMEM;
    tape->session = session_create(TAPE_ME, &welcome, 0, &tape->trace);
    return tape->session ? 0 : HVD_E_NOMEM;
}

void tape_release(struct tape *tape)
{
    session_free(tape->session);
    trace_release(&tape->trace);
    session_action_list_release(&tape->list);
    buf_release(&tape->did);
    arena_release(&tape->memory);
}

const char *tape_did(const struct tape *tape)
{
    return buf_text(&tape->did);
}

static const char *short_name(int code)
{
    return err_name(code) + strlen("HVD_");
}

static int show_send(const struct msg *msg, struct buf *out)
{
    struct msg shown = *msg;
    char text[256];
    int rc;

    ASSERT(msg->incarnation == TAPE_ME && msg->term == 0);
    shown.incarnation = 0;
    if (msg->type == MSG_RECOVERING)
        shown.u.recovering.held.count = 0;
    rc = buf_printf(out, "send %s", msg_describe(&shown, text, sizeof(text)));
    if (!rc && msg->type == MSG_RECOVERING) {
        /* Appends the commits of a list, which msg_describe only counts. */
        for (size_t i = 0; !rc && i < msg->u.recovering.held.count; i++)
            rc = buf_printf(out, "%s%" PRIu64, i ? "," : " with ",
                            msg->u.recovering.held.items[i].commit);
    }
    return rc;
}

static int show_enter(const struct session_action *action, struct buf *out)
{
    const struct msg_round *round = &action->msg->u.round;
    const struct place *place = &action->place;
    int rc =
        buf_printf(out, "enter %" PRIu64 " %u/%u of ", action->round, place->rank, place->size);

    for (size_t i = 0; !rc && i < round->members.count; i++) {
        const struct msg_member *member = &round->members.items[i];

        ASSERT(strlen(member->host) == 1 && member->addresses.count == 1);
        ASSERT(strlen(member->addresses.items[0]) == 1);
        rc = buf_printf(out, "%s%" PRIu64, i ? "," : "", member->incarnation);
    }
    for (size_t i = 0; i < round->holders.count; i++)
        ASSERT(round->holders.items[i] == round->members.items[i].incarnation);
    if (!rc && action->yes)
        rc = buf_append_text(out, " prepared");
    return rc;
}

int tape_show(const struct session_action *action, struct buf *out)
{
    switch (action->kind) {
    case DO_SEND: return show_send(action->msg, out);
    case DO_WATCH: return buf_printf(out, "watch %s", action->yes ? "yes" : "no");
    case DO_PREPARE:
        ASSERT(action->msg->type == MSG_PREPARE && action->msg->round == action->round);
        return buf_printf(out, "prepare %" PRIu64, action->round);
    case DO_ABANDON: return buf_printf(out, "abandon %" PRIu64, action->round);
    case DO_PERSISTED:
        return buf_printf(out, "persisted %" PRIu64 ".%" PRIu32 "%s%s%s%s",
                          COMMIT_ROUND_OF(action->commit), COMMIT_PLACE_OF(action->commit),
                          action->code ? " " : "", action->code ? err_name(action->code) : "",
                          action->text[0] ? ": " : "", action->text);
    case DO_STORED:
        return buf_printf(out, "stored %" PRIu32 ":%" PRIu64 "%s%s%s%s",
                          action->msg->u.stored.channel, action->msg->u.stored.number,
                          action->msg->u.stored.code ? " " : "",
                          action->msg->u.stored.code ? err_name(action->msg->u.stored.code) : "",
                          action->msg->u.stored.text[0] ? ": " : "", action->msg->u.stored.text);
    case DO_CANCEL: return buf_printf(out, "cancel %" PRIu64, action->round);
    case DO_COMMIT:
        return buf_printf(out, "commit %" PRIu64 ":%u", COMMIT_ROUND_OF(action->commit),
                          COMMIT_PLACE_OF(action->commit));
    case DO_ANSWER: return buf_printf(out, "answer %s", short_name(action->code));
    case DO_RESTORE: return buf_append_text(out, "restore");
    case DO_ENTER: return show_enter(action, out);
    case DO_RETURN: return buf_printf(out, "return %s", short_name(action->code));
    case DO_COUNT: break;
    }
    return HVD_E_INVAL;
}

int tape_step(struct tape *tape, struct session_event *event)
{
    uint64_t traced = tape->trace.written;
    int rc;

    event->now_us = tape->now_us;
    rc = session_step(tape->session, event, &tape->list);
    tape->traced = tape->trace.written - traced;
    buf_clear(&tape->did);
    for (size_t i = 0; !rc && i < tape->list.count; i++) {
        if (i)
            rc = buf_append_text(&tape->did, "; ");
        if (!rc)
            rc = tape_show(&tape->list.items[i], &tape->did);
    }
    session_action_list_clear(&tape->list);
    arena_release(&tape->memory);
    return rc;
}

int tape_msg(struct tape *tape, struct msg *msg)
{
    return tape_step(tape, &(struct session_event){ .kind = SESSION_MSG, .msg = msg });
}

/* One line of a script, cut into words. */
struct words {
    char text[WORDS_MAX][64];
    unsigned count;
};

static uint64_t number(const struct words *words, unsigned i)
{
    return i < words->count ? strtoull(words->text[i], NULL, 10) : 0;
}

static bool is(const struct words *words, const char *verb)
{
    return !strcmp(words->text[0], verb);
}

static int code_at(const struct words *words, unsigned i)
{
    if (i >= words->count)
        return 0;
    for (int code = HVD_E_EXCEPTION; code <= HVD_DONE; code++) {
        if (!strcmp(words->text[i], short_name(code)))
            return code;
    }
    return (int)strtol(words->text[i], NULL, 10);
}

/* Reads "7,8,9"; NULL: no memory. */
static uint64_t *numbers(struct tape *tape, const struct words *words, unsigned i,
                         size_t *ret_count)
{
    uint64_t *items = arena_alloc_array(&tape->memory, 16, sizeof(*items));
    const char *at = i < words->count ? words->text[i] : "";

    *ret_count = 0;
    while (items && *at) {
        char *after;

        ASSERT(*ret_count < 16);
        items[(*ret_count)++] = strtoull(at, &after, 10);
        at = *after == ',' ? after + 1 : after;
    }
    return items;
}

static const char *letter(struct tape *tape, char c)
{
    char *text = arena_alloc(&tape->memory, 2);

    if (text)
        text[0] = c;
    return text;
}

/* Makes members of the incarnations in word i, each with a host and an address of one letter. */
static int members_at(struct tape *tape, const struct words *words, unsigned i,
                      struct msg_member_list *ret_members)
{
    size_t count;
    uint64_t *ids = numbers(tape, words, i, &count);
    struct msg_member *members = arena_alloc_array(&tape->memory, 16, sizeof(*members));

    if (!ids || !members)
        return HVD_E_NOMEM;
    for (size_t m = 0; m < count; m++) {
        const char **addresses = arena_alloc(&tape->memory, sizeof(*addresses));
        const char *host = letter(tape, 'h');

        if (!addresses || !host)
            return HVD_E_NOMEM;
        addresses[0] = letter(tape, 'a');
        if (!addresses[0])
            return HVD_E_NOMEM;
        members[m] = (struct msg_member){
            .incarnation = ids[m],
            .host = host,
            .slot = (uint32_t)ids[m],
            .addresses = {addresses, 1}
        };
    }
    *ret_members = (struct msg_member_list){ members, count };
    return 0;
}

static int held_at(struct tape *tape, const struct words *words, unsigned i,
                   struct msg_held_list *ret_held)
{
    size_t count;
    uint64_t *commits = numbers(tape, words, i, &count);
    struct msg_held *held = arena_alloc_array(&tape->memory, 16, sizeof(*held));

    if (!commits || !held)
        return HVD_E_NOMEM;
    for (size_t h = 0; h < count; h++)
        held[h] = (struct msg_held){ .commit = commits[h], .checksum = commits[h] };
    *ret_held = (struct msg_held_list){ held, count };
    return 0;
}

static int do_round(struct tape *tape, const struct words *words, struct msg *msg)
{
    struct msg_round *round = &msg->u.round;
    int rc = members_at(tape, words, 2, &round->members);
    size_t count;

    round->holders.items = numbers(tape, words, 2, &count);
    round->holders.count = count;
    round->cause = words->count > 3 ? CAUSE_RECOVERY : CAUSE_SWITCH;
    round->commit = COMMIT_FIRST_OF(msg->round);
    return rc ? rc : round->holders.items ? 0 : HVD_E_NOMEM;
}

static const struct verb {
    const char *word;
    enum msg_type type;
} verbs[] = {
    {"round",      MSG_ROUND        },
    { "prepare",   MSG_PREPARE      },
    { "pending",   MSG_PENDING      },
    { "switch",    MSG_SWITCH_AT    },
    { "abandon",   MSG_ABANDON      },
    { "revoke",    MSG_REVOKE       },
    { "hosts",     MSG_HOSTS_UPDATED},
    { "drain",     MSG_DRAIN        },
    { "done",      MSG_DONE         },
    { "persisted", MSG_PERSISTED    },
    { "stored",    MSG_STORED       },
    { "beat",      MSG_BEAT         },
    { "bye",       MSG_BYE          },
};

/* Fills in the body of a message from the words of a script line. */
static int fill(struct tape *tape, const struct words *words, struct msg *msg)
{
    uint64_t second = number(words, 2);

    switch (msg->type) {
    case MSG_ROUND: return do_round(tape, words, msg);
    case MSG_PREPARE: return members_at(tape, words, 2, &msg->u.prepare.members);
    case MSG_PENDING: msg->u.pending.next = second; return 0;
    case MSG_SWITCH_AT:
        msg->u.switch_at = (struct msg_switch_at){ second, number(words, 3) };
        return 0;
    case MSG_ABANDON: msg->u.abandon = (struct msg_abandon){ second, "a reason" }; return 0;
    case MSG_REVOKE: msg->u.revoke.reason = "a reason"; return 0;
    case MSG_HOSTS_UPDATED: msg->u.hosts_updated.added = 1; return 0;
    case MSG_DRAIN: msg->u.drain.reason = "a reason"; return 0;
    case MSG_BEAT:
        msg->u.beat.sequence = msg->round;
        msg->round = 0;
        return 0;
    case MSG_PERSISTED: /* persisted ROUND INDEX [CODE]: the round is that of the commit */
        msg->u.persisted = (struct msg_persisted){
            .commit = COMMIT_FIRST_OF(msg->round) | second,
            .code = words->count > 3 ? code_at(words, 3) : 0,
            .text = words->count > 3 ? "a reason" : "",
        };
        msg->round = 0;
        return 0;
    case MSG_STORED: /* stored CHANNEL NUMBER; of no round */
        msg->u.stored =
            (struct msg_stored){ .channel = (uint32_t)msg->round, .number = second, .text = "" };
        msg->round = 0;
        return 0;
    case MSG_BYE: msg->u.bye.reason = "a reason"; return 0;
    default: return 0;
    }
}

static int do_msg(struct tape *tape, const struct words *words, enum msg_type type)
{
    struct msg *msg = arena_alloc(&tape->memory, sizeof(*msg));
    int rc;

    if (!msg)
        return HVD_E_NOMEM;
    *msg = (struct msg){ .type = type,
                         .term = type == MSG_BEAT || type == MSG_BYE ? 0 : tape->term,
                         .incarnation = tape->incarnation,
                         .round = number(words, 1) };
    rc = fill(tape, words, msg);
    return rc ? rc
              : tape_step(tape, &(struct session_event){ .kind = SESSION_MSG,
                                                         .msg = msg,
                                                         .counted = type == MSG_PENDING &&
                                                                    words->count > 3,
                                                         .check = number(words, 3) });
}

/* Runs a line that is an event of the training loop or of the clock. */
static int do_loop(struct tape *tape, const struct words *words)
{
    static const struct msg_entered entered = { .commit = 1 };
    static const struct msg_stalled stalled = { .waited_us = TIME_S, .operation = "allreduce" };
    struct msg store = { .type = MSG_STORE };
    struct session_event event = { .code = code_at(words, 1) };

    if (is(words, "synced"))
        event.kind = SESSION_SYNCED;
    else if (is(words, "stepped"))
        event.kind = SESSION_STEPPED;
    else if (is(words, "check"))
        event.kind = SESSION_CHECK;
    else if (is(words, "returned"))
        event.kind = SESSION_RETURNED;
    else if (is(words, "prepared"))
        event.kind = SESSION_PREPARED;
    else if (is(words, "stuck"))
        event.kind = SESSION_STUCK;
    else if (is(words, "unusable"))
        event.kind = SESSION_UNUSABLE;
    else if (is(words, "remark"))
        event.kind = SESSION_REMARK;
    else if (is(words, "persist"))
        event.kind = SESSION_PERSIST;
    else if (is(words, "store")) /* store ROUND CHANNEL NUMBER */
        event.kind = SESSION_STORE;
    else if (is(words, "timer"))
        event.kind = SESSION_TIMER;
    else if (is(words, "closed"))
        event.kind = SESSION_CLOSED;
    else
        return HVD_E_INVAL;
    event.entered = &entered;
    event.stalled = &stalled;
    event.check = number(words, 1);
    event.commit = COMMIT_FIRST_OF(number(words, 1)) | number(words, 2);
    if (event.kind == SESSION_STORE) {
        store.round = number(words, 1);
        store.u.store = (struct msg_store){ .channel = (uint32_t)number(words, 2),
                                            .number = number(words, 3),
                                            .key = "k" };
        event.msg = &store;
    }
    if (event.kind == SESSION_PREPARED) {
        event.round = number(words, 1);
        event.code = code_at(words, 2);
        event.text = event.code ? "no route" : NULL;
    }
    if (event.kind == SESSION_UNUSABLE && words->count > 1)
        event.text = "its device\nis stuck";
    if (event.kind == SESSION_REMARK)
        event.text = "through\nthe host";
    if (event.kind == SESSION_RETURNED && words->count > 1)
        event.text = "as told\nin two lines";
    if (event.kind == SESSION_RETURNED && words->count > 2)
        event.failed = code_at(words, 2);
    return tape_step(tape, &event);
}

/* Runs the left side of a line. 0, or a code; the actions are in tape->did. */
static int do_span(struct tape *tape, struct span line)
{
    struct words words = { .count = 0 };
    struct span word;

    while (span_next(&line, ' ', &word)) {
        if (!word.length)
            continue;
        ASSERT(words.count < WORDS_MAX && word.length < sizeof(words.text[0]));
        memcpy(words.text[words.count++], word.at, word.length);
    }
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (is(&words, verbs[i].word))
            return do_msg(tape, &words, verbs[i].type);
    }
    if (is(&words, "run")) {
        struct msg_ready ready = { .manifest = 5 };
        int rc = held_at(tape, &words, 1, &ready.held);

        return rc ? rc
                  : tape_step(tape,
                              &(struct session_event){ .kind = SESSION_RUN, .ready = &ready });
    }
    if (is(&words, "restored")) {
        struct msg_held_list held;
        int rc = held_at(tape, &words, 1, &held);

        return rc ? rc
                  : tape_step(tape,
                              &(struct session_event){ .kind = SESSION_RESTORED, .held = &held });
    }
    if (is(&words, "at") || is(&words, "term") || is(&words, "for")) {
        buf_clear(&tape->did);
        if (is(&words, "at"))
            tape->now_us = (int64_t)number(&words, 1) * TIME_S;
        else if (is(&words, "term"))
            tape->term = number(&words, 1);
        else
            tape->incarnation = number(&words, 1);
        return 0;
    }
    if (is(&words, "state")) {
        const char *name = session_state_name(session_state(tape->session));

        buf_clear(&tape->did);
        return strcmp(name, words.text[1]) != 0 ? buf_printf(&tape->did, "is %s", name) : 0;
    }
    return do_loop(tape, &words);
}

int tape_do(struct tape *tape, const char *line)
{
    return do_span(tape, (struct span){ line, strlen(line) });
}

static bool as_expected(struct tape *tape, struct span expected)
{
    const char *traced = trace_line(&tape->trace, 0);
    char text[160] = "";

    if (!expected.length || expected.at[0] != '!')
        return span_is(expected, tape_did(tape));
    expected.at++;
    expected.length--;
    expected = span_trim(expected);
    ASSERT(expected.length < sizeof(text));
    memcpy(text, expected.at, expected.length);
    return !*tape_did(tape) && tape->traced == 1 && strstr(traced, text);
}

const char *tape_play(struct tape *tape, const char *script)
{
    struct span rest = { script, strlen(script) };
    struct span line;

    while (span_next(&rest, '\n', &line)) {
        struct span expected = line;
        struct span told;
        int rc;

        if (!span_trim(line).length)
            continue;
        span_next(&expected, '|', &told);
        rc = do_span(tape, span_trim(told));
        if (rc || !as_expected(tape, span_trim(expected))) {
            const char *traced = trace_line(&tape->trace, 0);

            snprintf(tape->wrong, sizeof(tape->wrong), "%.*s: %s %s (%s)", (int)line.length,
                     line.at, rc ? err_name(rc) : "it did", tape_did(tape), traced ? traced : "");
            return tape->wrong;
        }
    }
    return NULL;
}
