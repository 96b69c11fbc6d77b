/*
 * history.c: reads events.log for the verbs "page" and "changes" (driver/cli). A change of the
 * membership is found by the line that driver/core/cost.c has written for it. Invariant: the text
 * is only read; a first pass counts lines and changes, a second pass writes them, and both read the
 * same lines.
 */
#include "driver/control/history.h"

#include "base/stamp.h"
#include "base/time.h"
#include "driver/control/event_facts.h"
#include "driver/control/events.h"
#include "driver/control/json.h"
#include "driver/core/view.h"

#include <stdio.h>
#include <string.h>

#define MOMENT_LENGTH_MAX (TIME_STAMP_MAX - 1)

/* The position of one pass over the lines of a job, and what it has counted. */
struct history {
    const struct span *texts;
    size_t text;                 /* the index of the text that is read next */
    struct span rest;            /* the part of the present text that is not read yet */
    const char *since;           /* lines before this time belong to another job */
    uint64_t round;              /* the round of the change before; 0: there was none */
    uint32_t size;               /* the number of members after that change */
    uint64_t lines, grave_lines; /* how many lines were read; how many were warnings or errors */
    uint64_t changes;
};

/* Returns what comes before the first of the characters `ends`, and moves *rest there. If none of
 * them follows, the result is "". */
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

/* Reads `word` and a duration behind it, which ends at one of the characters `ends`. False: *rest
 * does not begin so. */
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

/* Reads the line of a change: "round 3: all 4 train", and behind it what cost_text
 * (driver/core/cost.c) has written, if there is anything; else the cause is CAUSE_COUNT, and the
 * durations are 0. False: the line is about something else. */
static bool history_read_change(struct span text, struct view_change *ret_change)
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
        if (known && span_take(&rest, "detect "))
            known = history_take_time(&rest, "", ",", &change.detect_us) && span_take(&rest, ", ");
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
        change = (struct view_change){ .cause = CAUSE_COUNT };
    change.round = round;
    change.to = (uint32_t)size;
    *ret_change = change;
    return true;
}

/* Reads the next line of this job, and counts it. Lines without a time, and those before `since`,
 * are left out. False: there is no further line. */
static bool history_next(struct history *history, struct events_parsed *ret_line)
{
    struct span line;

    while (history->text < HISTORY_TEXTS || history->rest.length) {
        if (!history->rest.length) {
            history->rest = history->texts[history->text++];
            continue;
        }
        (void)span_next(&history->rest, '\n', &line);
        *ret_line = events_parse(line);
        if (!ret_line->moment.length || ret_line->moment.length > MOMENT_LENGTH_MAX ||
            strncmp(ret_line->moment.at, history->since,
                    ret_line->moment.length < strlen(history->since) ? ret_line->moment.length
                                                                     : strlen(history->since)) < 0)
            continue;
        history->lines++;
        history->grave_lines += ret_line->level <= TRACE_WARNING;
        return true;
    }
    return false;
}

/* Reads the next change, and the time at which it was complete. A driver that takes a job over also
 * writes that all members of the round that it finds train; such a line is no change, and has no
 * higher round. */
static bool history_next_change(struct history *history, struct view_change *ret_change,
                                struct span *ret_moment)
{
    struct events_parsed line;

    while (history_next(history, &line)) {
        if (!history_read_change(line.text, ret_change) || ret_change->round <= history->round)
            continue;
        ret_change->from = history->size;
        *ret_moment = line.moment;
        history->round = ret_change->round;
        history->size = ret_change->to;
        history->changes++;
        return true;
    }
    return false;
}

/* Two passes: the first counts the changes, because only the newest of them are wanted. */
size_t history_changes(const struct span texts[HISTORY_TEXTS], const char *since, int64_t now_us,
                       int64_t wall_us, struct view_change *ret_changes, size_t max)
{
    const struct history begin = { .texts = texts, .since = since };
    struct history all = begin, history = begin;
    struct view_change change;
    struct span moment;
    int64_t ended_us;
    size_t count = 0;

    while (history_next_change(&all, &change, &moment))
        continue;
    while (history_next_change(&history, &change, &moment)) {
        if (history.changes + max <= all.changes || !stamp_read(moment, &ended_us))
            continue;
        change.ended_us = now_us - (wall_us - ended_us);
        ret_changes[count++] = change;
    }
    return count;
}

/* Writes a text of the log as a value of JSON. `memory` gets a copy that ends in NUL; what follows
 * a NUL in the text is left out. */
static void history_text(struct json *json, const char *name, struct span text, struct buf *memory)
{
    buf_clear(memory);
    if (!json->rc)
        json->rc = buf_append(memory, text.at, text.length);
    json_text(json, name, json->rc ? "" : buf_text(memory));
}

/* Writes the history as a JSON object. Two passes count all lines (`all`) and all changes
 * (`changes`), because only the newest of them are written. The passes after these write. */
int history_write(const struct span texts[HISTORY_TEXTS], const char *since, struct buf *out)
{
    const struct history begin = { .texts = texts, .since = since };
    struct history all = begin, changes = begin, history = begin;
    struct json json = { .out = out };
    struct events_parsed line = { .level = TRACE_INFO };
    struct view_change change;
    struct span moment;
    struct buf memory;

    buf_init(&memory, out->max);
    while (history_next(&all, &line))
        continue;
    while (history_next_change(&changes, &change, &moment))
        continue;
    json_open(&json, NULL, '{');
    if (history_next(&history, &line))
        history_text(&json, "began", line.moment, &memory);
    else
        json_null(&json, "began");
    json_open(&json, "changes", '[');
    for (history = begin; !json.rc && history_next_change(&history, &change, &moment);) {
        if (history.changes + HISTORY_CHANGES <= changes.changes)
            continue;
        json_open(&json, NULL, '{');
        json_number(&json, "round", change.round);
        json_text(&json, "cause", change_cause_name(change.cause));
        json_number(&json, "from", change.from);
        json_number(&json, "to", change.to);
        history_text(&json, "ended", moment, &memory);
        json_number(&json, "pause_us", (uint64_t)change.pause_us);
        json_number(&json, "detect_us", (uint64_t)change.detect_us);
        json_number(&json, "agree_us", (uint64_t)change.agree_us);
        json_number(&json, "rebuild_us", (uint64_t)change.rebuild_us);
        json_number(&json, "state_us", (uint64_t)change.state_us);
        json_number(&json, "first_step_us", (uint64_t)change.first_step_us);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "events", '[');
    for (history = begin; !json.rc && history_next(&history, &line);) {
        if (history.lines + HISTORY_EVENTS <= all.lines &&
            (line.level > TRACE_WARNING || history.grave_lines + HISTORY_GRAVE <= all.grave_lines))
            continue;
        json_open(&json, NULL, '{');
        json_number(&json, "number", history.lines);
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
