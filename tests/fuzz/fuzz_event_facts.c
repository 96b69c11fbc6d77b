/*
 * fuzz_event_facts.c: any line of events.log, as "events --json" shows it. The result is one line
 * with one flat object of JSON, in which no name comes twice. The same bytes are read as
 * --on-event-filter: an error has a text.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "driver/control/event_filter.h"
#include "driver/control/events.h"
#include "driver/control/tables.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the text after a string in quotes. */
static const char *after_text(const char *at)
{
    ASSERT(*at++ == '"');
    while (*at != '"') {
        ASSERT((unsigned char)*at >= ' ');
        if (*at == '\\' && at[1] == 'u') {
            ASSERT(strspn(at + 2, "0123456789abcdef") >= 4);
            at += 6;
        } else if (*at == '\\') {
            ASSERT(at[1] == '"' || at[1] == '\\');
            at += 2;
        } else {
            at++;
        }
    }
    return at + 1;
}

/* Returns the text after a number without leading zeros. */
static const char *after_number(const char *at)
{
    size_t digits = strspn(at, "0123456789");

    ASSERT(digits && (digits == 1 || *at != '0'));
    return at + digits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct events_parsed parsed = events_parse((struct span){ (const char *)data, size });
    char *line = mem_strndup(parsed.text.at, parsed.text.length);
    char *facts = mem_strndup(parsed.facts.at, parsed.facts.length);
    const char *at, *names[64];
    struct event_filter filter;
    struct hvd_err err;
    size_t count = 0;
    struct buf out;

    buf_init(&out, 16 * size + 4096);
    ASSERT(!table_event("2026-11-21T07:36:04.743Z", parsed.level, line, facts, true, &out));
    ASSERT(text_is_clean(buf_text(&out), out.length));
    at = buf_text(&out);
    do {
        ASSERT(*at == (count ? ',' : '{') && count < ARRAY_SIZE(names));
        names[count++] = ++at;
        at = after_text(at);
        for (size_t i = 0; i + 1 < count; i++)
            ASSERT(strncmp(names[i], names[count - 1], (size_t)(at - names[count - 1])) != 0);
        ASSERT(*at++ == ':');
        at = *at == '"' ? after_text(at) : after_number(at);
    } while (*at != '}');
    ASSERT(!strcmp(at, "}\n"));
    ASSERT(!event_filter_parse(line, &filter, &err) || *err.text);
    buf_release(&out);
    mem_free(facts);
    mem_free(line);
    return 0;
}
