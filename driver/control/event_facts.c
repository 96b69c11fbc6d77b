/*
 * event_facts.c: writes the facts of an event as a text, and such a text as JSON. The event log
 * writes the texts; the answers to "events" and the program of --on-event get the JSON. Invariants:
 * a text has no control character but the tabs between its fields; the JSON of any text is valid.
 */
#include "driver/control/event_facts.h"

#include "base/text.h"
#include "base/time.h"
#include "driver/control/commits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* All fields, in the order in which JSON has them. */
static const struct event_field {
    const char *name;
    bool is_number;
} event_fields[] = {
    {"dropped",        true },
    { "job",           false},
    { "kind",          false},
    { "round",         true },
    { "size",          true },
    { "commit",        false},
    { "host",          false},
    { "slot",          true },
    { "incarnation",   true },
    { "outcome",       false},
    { "took_us",       true },
    { "left_us",       true },
    { "pause_us",      true },
    { "detect_us",     true },
    { "agree_us",      true },
    { "rebuild_us",    true },
    { "state_us",      true },
    { "first_step_us", true },
    { "cause",         false},
};

/* Appends a field "name=value" to the text. If the text has no room for the field, the field is
 * left out, or with `cut` shortened. A control character in the value, which could end the field or
 * the line, becomes a blank. */
static void event_facts_put(char text[EVENT_FACTS_MAX], const char *name, const char *value,
                            bool cut)
{
    size_t used = strlen(text);
    size_t room = EVENT_FACTS_MAX - used;
    int length = snprintf(text + used, room, "%s%s=%s", used ? "\t" : "", name, value);

    if (length < 0 || ((size_t)length >= room && !cut)) {
        text[used] = '\0';
        return;
    }
    for (char *at = text + used + (used > 0); *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
}

/* Appends a field whose value is a number. */
static void event_facts_put_number(char text[EVENT_FACTS_MAX], const char *name, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    event_facts_put(text, name, digits, false /* not cut */);
}

/* Writes the name of the job and the facts as a text. A fact that is 0 or NULL is not known, and
 * has no field. Only the cause, the last field, may be shortened (`true`). */
void event_facts_write(const char *job, const struct facts *facts, char text[EVENT_FACTS_MAX])
{
    char commit[COMMITS_NUMBER_MAX];

    text[0] = '\0';
    event_facts_put(text, "job", job, false);
    if (!facts)
        return;

    const struct {
        const char *name;
        bool known;
        int64_t us;
    } times[] = {
        {"took_us",        facts->took_us > 0,                                 facts->took_us           },
        { "left_us",       facts->left_us > 0 && facts->left_us != TIME_NEVER, facts->left_us           },
        { "pause_us",      facts->has_cost,                                    facts->cost.pause_us     },
        { "detect_us",     facts->has_cost && facts->cost.detect_us > 0,       facts->cost.detect_us    },
        { "agree_us",      facts->has_cost,                                    facts->cost.agree_us     },
        { "rebuild_us",    facts->has_cost,                                    facts->cost.rebuild_us   },
        { "state_us",      facts->has_cost,                                    facts->cost.state_us     },
        { "first_step_us", facts->has_cost,                                    facts->cost.first_step_us}
    };

    if (facts->kind)
        event_facts_put(text, "kind", facts_kind_name(facts->kind), false);
    if (facts->round)
        event_facts_put_number(text, "round", facts->round);
    if (facts->size)
        event_facts_put_number(text, "size", facts->size);
    if (facts->commit)
        event_facts_put(text, "commit", commits_number(facts->commit, commit), false);
    if (facts->host)
        event_facts_put(text, "host", facts->host, false);
    if (facts->has_slot)
        event_facts_put_number(text, "slot", facts->slot);
    if (facts->incarnation)
        event_facts_put_number(text, "incarnation", facts->incarnation);
    if (facts->outcome)
        event_facts_put(text, "outcome", facts->outcome, false);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (times[i].known)
            event_facts_put_number(text, times[i].name, (uint64_t)times[i].us);
    if (facts->cause && *facts->cause)
        event_facts_put(text, "cause", facts->cause, true /* may be cut */);
}

/* Writes the facts of a text as fields of an open JSON object. Each known field is looked for in
 * the text, so JSON always has the same order of fields. */
void event_facts_json(const char *text, struct json *json)
{
    size_t length = strlen(text);
    char value[EVENT_FACTS_MAX];
    uint64_t number;

    if (length && text[length - 1] == '\t') {
        length--;
        while (length && text[length - 1] != '\t')
            length--;
    }
    for (size_t i = 0; i < ARRAY_SIZE(event_fields); i++) {
        const struct event_field *field = &event_fields[i];
        struct span rest = { text, length }, part, name;
        bool found = false;

        while (!found && span_next(&rest, '\t', &part))
            found = span_next(&part, '=', &name) && part.at && span_is(name, field->name);
        if (!found || part.length >= sizeof(value))
            continue;
        memcpy(value, part.at, part.length);
        value[part.length] = '\0';
        if (!field->is_number)
            json_text(json, field->name, value);
        else if (!text_parse_u64(part, 0, UINT64_MAX, field->name, &number, NULL))
            json_number(json, field->name, number);
    }
}
