/*
 * core_script.c: reads the scripts of core_tape.h: an event or a message for a driver's core, and
 * behind a bar the actions that the core must answer with.
 */
#include "tests/lib/core_tape.h"

#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/commit.h"
#include "tests/lib/hosts_shown.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_WORDS_MAX 24

struct words {
    struct core_tape *tape;
    char text[512]; /* the line, cut into words */
    const char *word[SCRIPT_WORDS_MAX];
    size_t count;
};

/* A list of incarnations like "1,3-5". */
struct script_ids {
    const char *at;
    uint64_t next, last;
};

/* The value of the word KEY=VALUE, or NULL. */
static const char *script_value(const struct words *words, const char *key)
{
    size_t length = strlen(key);

    for (size_t i = 1; i < words->count; i++)
        if (!strncmp(words->word[i], key, length) && words->word[i][length] == '=')
            return words->word[i] + length + 1;
    return NULL;
}

/* The i-th word that is not KEY=VALUE; "" when there is none. Word 0 is the verb. */
static const char *script_plain(const struct words *words, size_t i)
{
    for (size_t k = 0; k < words->count; k++) {
        if (strchr(words->word[k], '=') && *words->word[k] != '#')
            continue;
        if (!i--)
            return words->word[k];
    }
    return "";
}

static uint64_t script_number(const char *text, uint64_t otherwise)
{
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Reads how a process ended: "exit1", "sig9", "silent". */
static void script_ended(const char *text, uint32_t *ret_ended, int32_t *ret_value)
{
    *ret_ended = ENDED_EXIT;
    *ret_value = 0;
    if (!strcmp(text, "silent"))
        *ret_ended = ENDED_SILENT;
    else if (!strcmp(text, "running"))
        *ret_ended = ENDED_NOT;
    else if (!strncmp(text, "sig", 3))
        *ret_ended = ENDED_SIGNAL, *ret_value = (int32_t)script_number(text + 3, 9);
    else if (!strncmp(text, "exit", 4))
        *ret_value = (int32_t)script_number(text + 4, 0);
}

/* Reads "a:1": returns the host, and stores the slot. */
static const char *script_seat(struct words *words, const char *text, uint32_t *ret_slot)
{
    const char *colon = strchr(text, ':');
    char *host;

    *ret_slot = colon ? (uint32_t)script_number(colon + 1, 0) : EVENT_WHOLE_HOST;
    host = arena_alloc(&words->tape->memory, 64);
    if (!host)
        return NULL;
    snprintf(host, 64, "%.*s", colon ? (int)(colon - text) : 63, text);
    return host;
}

/* Takes the next incarnation off the list; false: the list is used up. */
static bool script_next_id(struct script_ids *ids, uint64_t *ret_id)
{
    char *end;

    if (ids->next > ids->last || !ids->last) {
        if (!*ids->at)
            return false;
        ids->next = ids->last = strtoull(ids->at, &end, 10);
        if (*end == '-')
            ids->last = strtoull(end + 1, &end, 10);
        ids->at = *end ? end + 1 : end;
    }
    *ret_id = ids->next++;
    return true;
}

static int64_t span_of(const char *text)
{
    int64_t us = 0;

    ASSERT(!text || !time_parse(text, &us, NULL));
    return us;
}

/* Reads "1.3/7,2.0": commits, each with its checksum, if one is given. */
static int read_held(struct words *words, struct msg_held_list *ret_held)
{
    const char *at = script_value(words, "held");
    struct msg_held *items =
        arena_alloc_array(&words->tape->memory, LIMIT_COMMITS_HELD, sizeof(*items));

    if (!items)
        return HVD_E_NOMEM;
    *ret_held = (struct msg_held_list){ items, 0 };
    while (at && *at) {
        char *end;
        uint64_t round = strtoull(at, &end, 10);
        uint64_t place = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
        uint64_t checksum = *end == '/' ? strtoull(end + 1, &end, 10) : 0;

        items[ret_held->count++] = (struct msg_held){ COMMIT_FIRST_OF(round) | place, checksum };
        at = *end ? end + 1 : end;
    }
    return 0;
}

/* Reads "w:8,b:4:7": entries with their bytes and, if it is given, the number of their type. A "!"
 * at the end of one: a custom entry. */
static int read_entries(struct words *words, struct msg_entry_list *ret_entries)
{
    const char *at = script_value(words, "entries");
    struct msg_entry *items = arena_alloc_array(&words->tape->memory, 8, sizeof(*items));
    size_t count = 0;

    while (items && at && *at) {
        size_t length = strcspn(at, ":");
        char *name = arena_alloc(&words->tape->memory, length + 1);
        char *end;

        if (!name)
            return HVD_E_NOMEM;
        memcpy(name, at, length);
        items[count] =
            (struct msg_entry){ .name = name, .bytes = strtoull(at + length + 1, &end, 10) };
        if (!strncmp(end, ":rank", strlen(":rank"))) {
            items[count].kind = ENTRY_PER_RANK;
            end += strlen(":rank");
        }
        if (*end == ':')
            items[count].type = (uint32_t)strtoul(end + 1, &end, 10);
        items[count].custom = *end == '!';
        for (size_t i = 0; i < count; i++)
            if (items[i].kind == items[count].kind)
                items[count].offset = items[i].offset + items[i].bytes;
        at = *end == '!' ? end + 1 : end;
        at = *at ? at + 1 : at;
        count++;
    }
    *ret_entries = (struct msg_entry_list){ items, count };
    return items ? 0 : HVD_E_NOMEM;
}

static int read_ids(struct words *words, const char *text, struct msg_ids *ret_ids)
{
    uint64_t *items = arena_alloc_array(&words->tape->memory, 32, sizeof(*items));
    struct script_ids ids = { .at = text };
    size_t count = 0;

    while (items && script_next_id(&ids, &items[count]))
        count++;
    *ret_ids = (struct msg_ids){ items, count };
    return items ? 0 : HVD_E_NOMEM;
}

static const struct msg_kind *kind_of(const char *verb)
{
    static const struct {
        const char *verb;
        enum msg_type type;
    } verbs[] = {
        {"launched",    MSG_LAUNCHED     },
        { "launchfail", MSG_LAUNCH_FAILED},
        { "ready",      MSG_READY        },
        { "prepared",   MSG_PREPARED     },
        { "at",         MSG_NEXT_CHECK   },
        { "entered",    MSG_ENTERED      },
        { "recovering", MSG_RECOVERING   },
        { "left",       MSG_LEFT         },
        { "finished",   MSG_FINISHED     },
        { "exited",     MSG_EXITED       },
        { "stalled",    MSG_STALLED      },
        { "unusable",   MSG_UNUSABLE     },
        { "remark",     MSG_REMARK       },
        { "persist",    MSG_PERSIST      },
        { "output",     MSG_OUTPUT       },
        { "beat",       MSG_BEAT         },
        { "bye",        MSG_BYE          },
        { "notice",     MSG_NOTICE       },
        { "rekeyed",    MSG_REKEYED      },
        { "holding",    MSG_HOLDING      },
        { "saved",      MSG_SAVED        },
    };

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (!strcmp(verb, verbs[i].verb))
            return msg_kind(verbs[i].type);
    return NULL;
}

static int fill_ready(struct words *words, struct msg *msg)
{
    static const char *const address[] = { "10.0.0.1:7", "shm" };
    int rc = read_held(words, &msg->u.ready.held);

    msg->u.ready.manifest = script_number(script_value(words, "manifest"), 5);
    msg->u.ready.addresses = (struct msg_texts){ address, ARRAY_SIZE(address) };
    return rc ? rc : read_entries(words, &msg->u.ready.entries);
}

/* Reads "0:1.3,1:2.0": commits that an agent keeps, by slot. */
static int read_kept(struct words *words, struct msg_kept_list *ret_kept)
{
    const char *at = script_value(words, "kept");
    struct msg_kept *items = arena_alloc_array(&words->tape->memory, 8, sizeof(*items));
    size_t count = 0;

    while (items && at && *at) {
        char *end;
        uint32_t slot = (uint32_t)strtoul(at, &end, 10);
        uint64_t round = strtoull(end + 1, &end, 10);
        uint64_t place = strtoull(end + 1, &end, 10);

        items[count++] =
            (struct msg_kept){ .slot = slot, .commit = COMMIT_FIRST_OF(round) | place };
        at = *end ? end + 1 : end;
    }
    *ret_kept = (struct msg_kept_list){ items, count };
    return items ? 0 : HVD_E_NOMEM;
}

/* Returns the number of a checkpoint's attempt: "try=2" is the second one of the driver. */
static uint64_t script_attempt(struct words *words, uint64_t term)
{
    return term << 32 | script_number(script_value(words, "try"), 1);
}

/* Fills in HOLDING or SAVED. A file of "chunks=2" has two checksums. */
static int fill_checkpoint(struct words *words, uint64_t term, struct msg *msg)
{
    static const uint8_t sums[64];
    const char *code = script_value(words, "code"), *text = script_value(words, "text");
    uint64_t chunks = script_number(script_value(words, "chunks"), 1);

    if (msg->type == MSG_PERSIST) { /* persist INCARNATION ROUND.INDEX */
        msg->u.persist.commit = COMMIT_FIRST_OF(strtoull(script_plain(words, 2), NULL, 10));
        msg->u.persist.commit |= strtoull(strchr(script_plain(words, 2), '.') + 1, NULL, 10);
        return 0;
    }
    if (msg->type == MSG_HOLDING) {
        msg->u.holding = (struct msg_holding){ .number = script_attempt(words, term),
                                               .code = (int32_t)strtol(code ? code : "0", NULL, 10),
                                               .text = text ? text : "" };
        return read_kept(words, &msg->u.holding.kept);
    }
    msg->round = 0;
    msg->u.saved = (struct msg_saved){
        .number = script_attempt(words, term),
        .name = script_plain(words, 2),
        .code = (int32_t)strtol(code ? code : "0", NULL, 10),
        .text = text ? text : "",
        .bytes = chunks * STATE_CHUNK_BYTES,
        .sums = {sums, 8 * chunks}
    };
    return 0;
}

/* Fills in the round of a message whose script line names none: the round that the core works on.
 */
static int fill_body(struct words *words, const struct core_view *view, struct msg *msg)
{
    const char *second = script_plain(words, 2);
    const char *code = script_value(words, "code"), *text = script_value(words, "text");

    msg->round = script_number(script_value(words, "round"),
                               msg->type == MSG_PREPARED ? view->next : view->round);
    switch (msg->type) {
    case MSG_READY: return fill_ready(words, msg);
    case MSG_RECOVERING:
        msg->u.recovering.text = text;
        msg->u.recovering.code = (int32_t)strtol(code ? code : "0", NULL, 10);
        return read_held(words, &msg->u.recovering.held);
    case MSG_LAUNCH_FAILED:
        msg->u.launch_failed =
            (struct msg_launch_failed){ .code = (int32_t)strtol(second, NULL, 10), .text = "no" };
        break;
    case MSG_ENTERED:
        msg->u.entered.rebuild_us = span_of(script_value(words, "rebuild"));
        msg->u.entered.state_us = span_of(script_value(words, "state"));
        msg->u.entered.first_step_us = span_of(script_value(words, "step"));
        break;
    case MSG_PREPARED:
        msg->u.prepared.code = (int32_t)strtol(second, NULL, 10);
        msg->u.prepared.text = "no route";
        break;
    case MSG_NEXT_CHECK:
        msg->u.next_check.check = script_number(second, 0);
        msg->u.next_check.next = script_number(script_value(words, "next"), view->next);
        break;
    case MSG_FINISHED:
        msg->u.finished.code = (int32_t)strtol(second, NULL, 10);
        msg->u.finished.text = text ? text : msg->u.finished.code ? "diverged" : "";
        break;
    case MSG_EXITED: {
        struct msg_held_list held;
        int rc = read_held(words, &held);

        if (!rc && held.count)
            msg->u.exited.commit = held.items[0].commit;
        script_ended(second, &msg->u.exited.ended, &msg->u.exited.value);
        return rc;
    }
    case MSG_STALLED:
        msg->u.stalled.waited_us = span_of(second);
        msg->u.stalled.operation = script_value(words, "in");
        if (!msg->u.stalled.operation)
            msg->u.stalled.operation = "allreduce";
        return read_ids(words, script_plain(words, 3), &msg->u.stalled.missing);
    case MSG_UNUSABLE:
        msg->round = 0;
        msg->u.unusable.text = "its device is stuck";
        break;
    case MSG_REKEYED:
        msg->round = 0;
        msg->u.rekeyed.epoch = script_number(second, 0);
        break;
    case MSG_PERSIST:
    case MSG_HOLDING:
    case MSG_SAVED: return fill_checkpoint(words, view->term, msg);
    case MSG_REMARK: msg->u.remark.text = text; break;
    case MSG_NOTICE:
        msg->round = 0;
        msg->u.notice.left_us = span_of(second);
        msg->u.notice.source = "the cloud";
        break;
    default: break;
    }
    return 0;
}

/* Gives the core a message of this kind, one for each incarnation of the line. */
static int do_msg(struct words *words, const struct msg_kind *kind)
{
    struct core_tape *tape = words->tape;
    const char *from = script_value(words, "from");
    struct script_ids ids = { .at = script_plain(words, 1) };
    bool of_agent = !(kind->keys & KEY_INCARNATION);
    struct core_view view;
    uint64_t id = 0;
    int rc = 0;

    while (!rc && (of_agent || script_next_id(&ids, &id))) {
        struct msg msg = { .type = kind->type, .incarnation = id };

        core_view_init(&view);
        rc = core_view(tape->core, &view);
        if (!rc)
            rc = fill_body(words, &view, &msg);
        core_view_release(&view);
        if (!rc)
            rc = tape_msg(tape,
                          from       ? tape_host(tape, from)
                          : of_agent ? tape_host(tape, script_plain(words, 1))
                                     : NULL,
                          &msg);
        if (of_agent)
            break;
    }
    return rc;
}

/* Reads "#I:SLOT=exit1": the slots that an agent's hello reports, and how ended workers ended. */
static int read_reports(struct words *words, struct tape_host *host,
                        struct msg_slot_report_list *ret_reports)
{
    struct msg_slot_report *items =
        arena_alloc_array(&words->tape->memory, SCRIPT_WORDS_MAX, sizeof(*items));
    size_t count = 0;

    for (size_t i = 2; items && i < words->count; i++) {
        const char *ended = strchr(words->word[i], '=');
        char *end;

        if (*words->word[i] != '#')
            continue;
        items[count].incarnation = strtoull(words->word[i] + 1, &end, 10);
        items[count].slot = (uint32_t)strtoul(end + 1, NULL, 10);
        script_ended(ended ? ended + 1 : "running", &items[count].ended, &items[count].value);
        words->tape->host_of[items[count].incarnation % TAPE_WORKERS] =
            (uint8_t)(host - words->tape->hosts + 1);
        count++;
    }
    *ret_reports = (struct msg_slot_report_list){ items, count };
    return items ? 0 : HVD_E_NOMEM;
}

static int do_closed(struct words *words)
{
    struct core_tape *tape = words->tape;
    struct tape_host *host = tape_host(tape, script_plain(words, 1));
    uint32_t peer = host->peer;

    host->peer = 0;
    tape->by_peer[peer] = NULL;
    return tape_step(tape, &(struct event){ .kind = EVENT_CLOSED, .peer = peer, .text = "reset" });
}

/* "join HOST* [slots=N] [number=N] [token=ID] [version=V] [address=A seen=A:PORT]": the process of
 * HOST joins, over a connection of its own, which the script calls HOST*. */
static int do_join(struct words *words)
{
    struct core_tape *tape = words->tape;
    struct tape_host *host = tape_host(tape, script_plain(words, 1));
    const char *token = script_value(words, "token"), *version = script_value(words, "version");
    const char *name = script_value(words, "name");
    char proved[32], called[64];
    struct msg msg = { .type = MSG_JOIN };
    int rc;

    snprintf(proved, sizeof(proved), TOKEN_PEER "%s", token ? token : "aaaaaaaa");
    snprintf(called, sizeof(called), "%.*s", (int)strcspn(host->name, "*"), host->name);
    msg.u.join =
        (struct msg_join){ .minor = PROTO_MINOR,
                           .version = version ? version : HVD_VERSION_TEXT,
                           .host = name ? name : called,
                           .join = script_number(script_value(words, "number"), 3),
                           .slots = (uint32_t)script_number(script_value(words, "slots"), 1),
                           .address = script_value(words, "address") };
    tape->seen = script_value(words, "seen");
    tape->proved = script_value(words, "proved") ? script_value(words, "proved") : proved;
    rc = tape_hello(tape, host, &msg);
    tape->proved = NULL;
    return rc;
}

/* "token ID [uses=N] [host=HOST] [for=TIME]" makes a token, "token ID revoke" revokes it. */
static int do_token(struct words *words)
{
    const char *id = script_plain(words, 1), *left = script_value(words, "for");
    char text[LIMIT_TOKEN_TEXT_BYTES + 1];
    bool revoke = !strcmp(script_plain(words, 2), "revoke");
    struct event event = { .kind = EVENT_TOKEN,
                           .ask = 1,
                           .code = revoke ? TOKEN_REVOKED : TOKEN_MADE,
                           .text = revoke ? id : text,
                           .host = script_value(words, "host"),
                           .left_us = left ? span_of(left) : TIME_NEVER,
                           .slot = (uint32_t)script_number(script_value(words, "uses"), 0) };

    snprintf(text, sizeof(text), "%s %064d", id, 7);
    return tape_step(words->tape, &event);
}

/* Gives the core the list of hosts; if the core has not asked for one, time passes first. */
static int do_hosts(struct words *words)
{
    struct core_tape *tape = words->tape;
    struct hosts hosts;
    int rc;

    hosts_init(&hosts);
    rc = hosts_fill(&hosts, script_plain(words, 1));
    snprintf(tape->listing, sizeof(tape->listing), "%s", script_plain(words, 1));
    if (!rc && !tape->asked) { /* the core gets no answer before it has asked */
        tape->now_us += tape->config.discovery.pause_us;
        rc = tape_step(tape, &(struct event){ .kind = EVENT_TIMER });
    }
    tape->asked = false;
    if (!rc)
        rc = tape_step(tape, &(struct event){ .kind = EVENT_HOSTS, .hosts = &hosts });
    hosts_release(&hosts);
    return rc;
}

static int do_seat(struct words *words, enum event_kind kind)
{
    uint32_t slot;
    const char *host = script_seat(words, script_plain(words, 1), &slot);
    int64_t left_us = kind == EVENT_DRAIN ? span_of(script_plain(words, 2)) : 0;

    if (!host)
        return HVD_E_NOMEM;
    return tape_step(
        words->tape,
        &(struct event){ .kind = kind, .host = host, .slot = slot, .left_us = left_us, .ask = 7 });
}

static const struct {
    const char *name;
    size_t at;
    bool is_time;
} settings[] = {
#define COUNT(name)                                      \
    {                                                    \
#name, offsetof(struct core_config, name), false \
    }
#define TIME(name)                                           \
    {                                                        \
#name, offsetof(struct core_config, name##_us), true \
    }
    COUNT(np),
    COUNT(min_np),
    COUNT(max_np),
    COUNT(progress_restarts),
    COUNT(progress_restarts_job),
    COUNT(reset_limit),
    COUNT(checkpoint_commits),
    TIME(beat),
    TIME(lease),
    TIME(gather),
    TIME(prepare),
    TIME(elastic_timeout),
    TIME(start_timeout),
    {"discovery", offsetof(struct core_config, discovery.pause_us), true},
    TIME(stall),
    TIME(kill_grace),
    TIME(driver_grace),
    TIME(agent_start),
    TIME(stall_warning),
};

static int do_config(struct words *words)
{
    struct core_config *config = &words->tape->config;
    const char *value;

    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        value = script_value(words, settings[i].name);
        if (value && settings[i].is_time)
            *(int64_t *)(void *)((char *)config + settings[i].at) = span_of(value);
        else if (value)
            *(uint32_t *)(void *)((char *)config + settings[i].at) =
                (uint32_t)script_number(value, 0);
    }
    value = script_value(words, "dir");
    if (value) {
        snprintf(words->tape->checkpoint_dir, sizeof(words->tape->checkpoint_dir), "%s", value);
        config->checkpoint_dir = words->tape->checkpoint_dir;
        config->checkpoint_us = span_of(script_value(words, "every"));
        config->checkpoint_awaited = script_value(words, "awaited");
    }
    value = script_value(words, "from"); /* "from=3.4": a checkpoint of that commit is there */
    if (value) {
        char *end;
        uint64_t round = strtoull(value, &end, 10);

        snprintf(words->tape->checkpoint_from, sizeof(words->tape->checkpoint_from), "/c/commit-%s",
                 value);
        config->checkpoint_from.folder = words->tape->checkpoint_from;
        config->checkpoint_round = round;
        config->checkpoint_from.commit = COMMIT_FIRST_OF(round) | strtoull(end + 1, &end, 10);
    }
    value = script_value(words, "forever");
    if (value)
        config->blacklist.forever = true;
    value = script_value(words, "cooldown");
    if (value)
        config->blacklist.lower_us = config->blacklist.upper_us = span_of(value);
    value = script_value(words, "join");
    if (value)
        config->join = *value == 'a' ? JOIN_ALONE : JOIN_LISTED;
    value = script_value(words, "scope");
    if (value)
        config->blacklist.scope = SCOPE_HOST;
    return 0;
}

/* Checks the job's state ("state NAME") or a worker's ("worker W NAME"). */
static int do_check(struct words *words, bool of_worker)
{
    uint64_t id = script_number(script_plain(words, 1), 0);
    const char *found = "none";
    struct core_view view;
    int rc;

    core_view_init(&view);
    rc = core_view(words->tape->core, &view);
    for (size_t i = 0; of_worker && i < view.host_count; i++)
        for (size_t k = 0; k < view.hosts[i].worker_count; k++)
            if (view.hosts[i].workers[k].incarnation == id)
                found = worker_state_name(view.hosts[i].workers[k].state);
    if (!of_worker)
        found = job_state_name(view.job);
    if (!rc && strcmp(found, script_plain(words, of_worker ? 2 : 1)) != 0)
        rc = buf_printf(&words->tape->did, "%s", found) ? HVD_E_NOMEM : HVD_E_STATE;
    core_view_release(&view);
    return rc;
}

/* "written 1.5 try=1", or "written 0 code=-7 text=full". found=1: the newest one that is left. */
static int do_written(struct words *words)
{
    const char *code = script_value(words, "code"), *text = script_value(words, "text");
    char *end;
    uint64_t round = strtoull(script_plain(words, 1), &end, 10);
    struct event event = { .kind = EVENT_CHECKPOINT, .text = text ? text : "/c/commit" };
    struct core_view view;
    int rc;

    core_view_init(&view);
    rc = core_view(words->tape->core, &view);
    event.ask = script_value(words, "found") ? 0 : script_attempt(words, view.term);
    event.commit = round ? COMMIT_FIRST_OF(round) | strtoull(end + 1, &end, 10) : 0;
    event.code = (int)strtol(code ? code : "0", NULL, 10);
    core_view_release(&view);
    return rc ? rc : tape_step(words->tape, &event);
}

/* Runs a line that is no message: an event, or a command about time or the tape itself. */
static int do_event(struct words *words)
{
    struct core_tape *tape = words->tape;
    const char *verb = script_plain(words, 0);
    struct event event = { .host = script_plain(words, 1), .text = "broken" };

    if (!strcmp(verb, "start")) {
        event.kind = EVENT_START;
    } else if (!strcmp(verb, "nohosts")) {
        tape->asked = false;
        event.kind = EVENT_HOSTS_FAILED;
    } else if (!strcmp(verb, "failed")) {
        event.kind = EVENT_AGENT_FAILED;
    } else if (!strcmp(verb, "crowd")) {
        event.kind = EVENT_CROWDED;
    } else if (!strcmp(verb, "rekey")) {
        event.kind = EVENT_REKEY;
        event.ask = 1;
    } else if (!strcmp(verb, "checkpoint")) {
        event.kind = EVENT_WANT_CHECKPOINT;
        event.ask = script_number(script_plain(words, 1), 0);
        event.code = script_value(words, "wait") != NULL;
    } else if (!strcmp(verb, "stop")) {
        event.kind = EVENT_STOP;
        event.text = script_plain(words, 1);
        event.code = script_value(words, "checkpoint") != NULL;
    } else {
        const char *first = script_plain(words, 1);

        /* The commands about time and about the tape itself. */
        if (!strcmp(verb, "wait"))
            return tape_wait(tape, span_of(first));
        if (!strcmp(verb, "jump")) {
            tape->now_us += span_of(first);
            return tape_step(tape, &(struct event){ .kind = EVENT_TIMER });
        }
        if (!strcmp(verb, "state") || !strcmp(verb, "worker"))
            return do_check(words, *verb == 'w');
        if (!strcmp(verb, "view") || !strcmp(verb, "held")) {
            struct core_view view;
            int rc;

            core_view_init(&view);
            rc = core_view(tape->core, &view);
            if (!rc)
                rc = *verb == 'h' ? tape_show_held(&view, &tape->did)
                                  : tape_show_view(&view, &tape->did);
            core_view_release(&view);
            return rc;
        }
        if (!strcmp(verb, "kill"))
            return tape_kill(words->tape, script_number(script_plain(words, 1), 0),
                             !strcmp(script_plain(words, 2), "twice"));
        if (!strcmp(verb, "config"))
            return do_config(words);
        if (!strcmp(verb, "silent"))
            tape_host(tape, first)->silent = true;
        else if (!strcmp(verb, "full") || !strcmp(verb, "room"))
            tape->full_us = *verb == 'f' ? tape->now_us : 0;
        else if (!strcmp(verb, "show"))
            tape->show = true;
        else if (!strcmp(verb, "keys"))
            tape->keys = true;
        else
            return HVD_E_INVAL;
        return 0;
    }
    return tape_step(tape, &event);
}

int tape_do(struct core_tape *tape, const char *line)
{
    struct words words = { .tape = tape };
    const struct msg_kind *kind;
    const char *verb;
    int rc = 0;
    char *save = NULL;

    arena_release(&tape->memory);
    words.count = 0;
    snprintf(words.text, sizeof(words.text), "%s", line);
    for (char *word = strtok_r(words.text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        ASSERT(words.count < SCRIPT_WORDS_MAX);
        words.word[words.count++] = word;
    }
    verb = script_plain(&words, 0);
    if (strcmp(verb, "config") != 0 && strcmp(verb, "kill") != 0)
        rc = tape_core(tape);
    if (rc)
        return rc;
    kind = kind_of(verb);
    if (kind)
        return do_msg(&words, kind);
    if (!strcmp(verb, "hello")) {
        struct tape_host *host = tape_host(words.tape, script_plain(&words, 1));
        const char *job = script_value(&words, "job"), *serves = script_value(&words, "serves");
        struct msg msg = { .type = MSG_HELLO_AGENT };

        host->agent = script_number(script_value(&words, "agent"), host->agent ? host->agent : 7);
        msg.term = script_number(script_value(&words, "term"), 0);
        msg.u.hello_agent = (struct msg_hello_agent){
            .minor = PROTO_MINOR,
            .version = "1",
            .job = job ? job : "j",
            .host = host->name,
            .agent = host->agent,
            .addresses = {&serves, serves ? 1 : 0}
        };
        if (read_reports(&words, host, &msg.u.hello_agent.slots) ||
            read_kept(&words, &msg.u.hello_agent.kept))
            return HVD_E_NOMEM;
        host->agent = host->agent ? host->agent : 7;
        words.tape->proved = script_value(&words, "proved");
        words.tape->epoch = script_number(script_value(&words, "epoch"), 0);
        return tape_hello(words.tape, host, &msg);
    }
    if (!strcmp(verb, "closed"))
        return do_closed(&words);
    if (!strcmp(verb, "join"))
        return do_join(&words);
    if (!strcmp(verb, "token"))
        return do_token(&words);
    if (!strcmp(verb, "hosts"))
        return do_hosts(&words);
    if (!strcmp(verb, "drain"))
        return do_seat(&words, EVENT_DRAIN);
    if (!strcmp(verb, "undrain"))
        return do_seat(&words, EVENT_UNDRAIN);
    if (!strcmp(verb, "clear"))
        return do_seat(&words, EVENT_CLEAR);
    if (!strcmp(verb, "written"))
        return do_written(&words);
    return do_event(&words);
}

/* ---- a whole script ---------------------------------------------------------------------------
 */

PRINTF_LIKE(3, 4)
static const char *wrong(struct core_tape *tape, unsigned line, const char *format, ...)
{
    int used = snprintf(tape->wrong, sizeof(tape->wrong), "line %u: ", line);
    va_list args;

    va_start(args, format);
    vsnprintf(tape->wrong + used, sizeof(tape->wrong) - (size_t)used, format, args);
    va_end(args);
    return tape->wrong;
}

/* Compares the actions of the line before with its expectation, which has now been read completely.
 */
static bool is_expected(struct core_tape *tape, const struct buf *expected)
{
    const char *actions = buf_text(expected);
    const char *text = *actions == '!' ? actions : strstr(actions, "\n!");
    size_t length = text ? (size_t)(text - actions) : strlen(actions);

    if (strlen(tape_did(tape)) != length || strncmp(actions, tape_did(tape), length) != 0)
        return false;
    if (!text)
        return true;
    text += *text == '\n';
    text += 1 + (text[1] == ' ');
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
