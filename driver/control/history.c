/*
 * history.c: reads events.log once more, for the verb "page" (driver/cli/page.c). Changes are
 * found by the line that cost.c has written for each of them. Invariant: the text is only read; the
 * first pass counts, the second one writes, and both see the same lines.
 */
#include "driver/control/history.h"

#include "base/time.h"
#include "driver/control/event_facts.h"
#include "driver/control/events.h"
#include "driver/control/json.h"
#include "driver/core/view.h"

#include <stdio.h>
#include <string.h>

#define MOMENT_LENGTH_MAX (TIME_STAMP_MAX - 1)

struct history {
    const struct span *texts;
    size_t text; /* which one is read */
    struct span rest;
    const char *since;
    uint64_t round;         /* of the change before; 0: there was none */
    uint32_t size;          /* the number of members after it */
    uint64_t lines, graves; /* how many lines were read; how many were warnings or errors */
    uint64_t changes;
};

/* Takes what stands before the first of the characters `ends`; "" if none of them follows. */
static struct span history_take_until(struct span *rest, const char *ends)
{
    size_t length = 0;
    struct span part;

    while (length < rest->length && !strchr(ends, rest->at[length]))
        length++;
    if (length == rest->length)
        length = 0;
    part = (struct span){ rest->at, length };
    *rest = (struct span){ rest->at + length, rest->length - length };
    return part;
}

/* Takes a word and the duration that follows on it up to one of the characters `ends`. */
static bool history_take_time(struct span *rest, const char *word, const char *ends,
                              int64_t *ret_us)
{
    char text[TIME_TEXT_MAX];
    struct span part;

    if (!span_take(rest, word))
        return false;
    part = history_take_until(rest, ends);
    if (part.length >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)part.length, part.at);
    return !time_parse(text, ret_us, NULL) && *ret_us != TIME_NEVER;
}

/* Reads "round 3: all 4 train", and behind it what cost_text has written, if anything. False: this
 * line is another one. *ret_known: the cause and the durations are known. */
static bool history_read_change(struct span text, struct view_change *ret_change, bool *ret_known)
{
    struct view_change change = { .round = 0 };
    uint64_t round, size;
    struct span rest = text;
    bool known = false;

    if (!span_take(&rest, "round ") ||
        text_parse_u64(history_take_until(&rest, ":"), 1, UINT64_MAX, "", &round, NULL) ||
        !span_take(&rest, ": all ") ||
        text_parse_u64(history_take_until(&rest, " "), 1, UINT32_MAX, "", &size, NULL) ||
        !span_take(&rest, " train"))
        return false;
    if (span_take(&rest, " (")) {
        struct span cause = history_take_until(&rest, " ");

        for (size_t i = 0; i < CAUSE_COUNT && !known; i++) {
            change.cause = (enum msg_cause)i;
            known = span_is(cause, change_cause_name(change.cause));
        }
        known =
            known && history_take_time(&rest, " ", ":", &change.pause_us) && span_take(&rest, ": ");
        if (known && change.cause != CAUSE_FIRST) {
            known = history_take_time(&rest, "agree ", ", ", &change.agree_us);
            (void)span_take(&rest, " beside it");
            known = known && span_take(&rest, ", ");
        }
        known = known && history_take_time(&rest, "rebuild ", ",", &change.rebuild_us) &&
                history_take_time(&rest, ", state ", ",", &change.state_us) &&
                history_take_time(&rest, ", first step ", ")", &change.first_step_us);
    }
    if (!known)
        change = (struct view_change){ .round = 0 };
    change.round = round;
    change.to = (uint32_t)size;
    *ret_change = change;
    *ret_known = known;
    return true;
}

/* Reads the next line of this job. False: there is none. */
static bool history_next(struct history *own, struct events_parsed *ret_line)
{
    struct span line;

    while (own->text < HISTORY_TEXTS || own->rest.length) {
        if (!own->rest.length) {
            own->rest = own->texts[own->text++];
            continue;
        }
        (void)span_next(&own->rest, '\n', &line);
        *ret_line = events_parse(line);
        if (!ret_line->moment.length || ret_line->moment.length > MOMENT_LENGTH_MAX ||
            strncmp(ret_line->moment.at, own->since,
                    ret_line->moment.length < strlen(own->since) ? ret_line->moment.length
                                                                 : strlen(own->since)) < 0)
            continue;
        own->lines++;
        own->graves += ret_line->level <= TRACE_WARNING;
        return true;
    }
    return false;
}

/* Reads the next change, and the time at which it was complete. A driver that takes a job over says
 * of the round that it finds that all train; that is no change. */
static bool history_next_change(struct history *own, struct view_change *ret_change,
                                bool *ret_known, struct span *ret_moment)
{
    struct events_parsed line;

    while (history_next(own, &line)) {
        if (!history_read_change(line.text, ret_change, ret_known) ||
            ret_change->round <= own->round)
            continue;
        ret_change->from = own->size;
        *ret_moment = line.moment;
        own->round = ret_change->round;
        own->size = ret_change->to;
        own->changes++;
        return true;
    }
    return false;
}

/* Adds a text that may have any bytes; one that lies behind a NUL is left out. */
static void history_text(struct json *json, const char *name, struct span text, struct buf *memory)
{
    buf_clear(memory);
    if (!json->rc)
        json->rc = buf_append(memory, text.at, text.length);
    json_text(json, name, json->rc ? "" : buf_text(memory));
}

int history_write(const struct span texts[HISTORY_TEXTS], const char *since, struct buf *out)
{
    const struct history begin = { .texts = texts, .since = since };
    struct history all = begin, changes = begin, own = begin;
    struct json json = { .out = out };
    struct events_parsed line = { .level = TRACE_INFO };
    struct view_change change;
    struct span moment;
    struct buf memory;
    bool known;

    buf_init(&memory, out->max);
    while (history_next(&all, &line))
        continue;
    while (history_next_change(&changes, &change, &known, &moment))
        continue;
    json_open(&json, NULL, '{');
    if (history_next(&own, &line))
        history_text(&json, "began", line.moment, &memory);
    else
        json_null(&json, "began");
    json_open(&json, "changes", '[');
    for (own = begin; !json.rc && history_next_change(&own, &change, &known, &moment);) {
        if (own.changes + HISTORY_CHANGES <= changes.changes)
            continue;
        json_open(&json, NULL, '{');
        json_number(&json, "round", change.round);
        json_text(&json, "cause", known ? change_cause_name(change.cause) : "unknown");
        json_number(&json, "from", change.from);
        json_number(&json, "to", change.to);
        history_text(&json, "ended", moment, &memory);
        json_number(&json, "pause_us", (uint64_t)change.pause_us);
        json_number(&json, "agree_us", (uint64_t)change.agree_us);
        json_number(&json, "rebuild_us", (uint64_t)change.rebuild_us);
        json_number(&json, "state_us", (uint64_t)change.state_us);
        json_number(&json, "first_step_us", (uint64_t)change.first_step_us);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "events", '[');
    for (own = begin; !json.rc && history_next(&own, &line);) {
        if (own.lines + HISTORY_EVENTS <= all.lines &&
            (line.level > TRACE_WARNING || own.graves + HISTORY_GRAVE <= all.graves))
            continue;
        json_open(&json, NULL, '{');
        json_number(&json, "number", own.lines);
        history_text(&json, "time", line.moment, &memory);
        json_text(&json, "severity", events_severity(line.level));
        history_text(&json, "text", line.text, &memory);
        buf_clear(&memory);
        if (!json.rc)
            json.rc = buf_append(&memory, line.facts.at, line.facts.length);
        if (!json.rc)
            event_facts_json(buf_text(&memory), &json);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    buf_release(&memory);
    return json.rc;
}
