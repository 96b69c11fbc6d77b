/* describe.c: writes a message as one readable line for traces and logs. Called by the cores and by
 * tests. The line is cut at the size of the caller's buffer. */
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "proto/catalog.h"
#include "proto/codec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct line {
    char *text;
    size_t size;
    size_t used;
};

/* Appends to the line; a text that does not fit is cut. */
PRINTF_LIKE(2, 3) static void add(struct line *line, const char *format, ...)
{
    va_list args;
    int wanted;

    va_start(args, format);
    wanted = vsnprintf(line->text + line->used, line->size - line->used, format, args);
    va_end(args);
    if (wanted > 0)
        line->used += (size_t)wanted;
    if (line->used >= line->size)
        line->used = line->size - 1; /* the text was cut */
}

/* Appends " NAME=VALUE" to the line; a field whose value is 0 is left out. */
static void add_num(struct line *line, const char *name, uint64_t value)
{
    if (value)
        add(line, " %s=%" PRIu64, name, value);
}

/* Appends " NAME=TEXT" to the line, with quotes; a field without a text is left out. */
static void add_text(struct line *line, const char *name, const char *value)
{
    char quoted[TEXT_QUOTE_MAX];

    if (value && value[0])
        add(line, " %s=%s", name, text_quote(value, strlen(value), quoted));
}

/* Appends " NAME=1,2,3": the first 8 ids, and the number of all if there are more. */
static void add_ids(struct line *line, const char *name, struct msg_ids ids)
{
    const size_t shown = 8;

    if (ids.count == 0)
        return;
    add(line, " %s=%" PRIu64, name, ids.items[0]);
    for (size_t i = 1; i < ids.count && i < shown; i++)
        add(line, ",%" PRIu64, ids.items[i]);
    if (ids.count > shown)
        add(line, ",... (%zu)", ids.count);
}

#define ADD_FIELD(kind, name, a, b) ADD_##kind(name)
#define ADD_NUM(name)               add_num(&line, #name, body->name);
#define ADD_SIGNED(name) \
    if (body->name)      \
        add(&line, " %s=%" PRId64, #name, (int64_t)body->name);
#define ADD_SPAN(name)                                                      \
    if (body->name)                                                         \
        add(&line, " %.*s=%s", (int)(strlen(#name) - strlen("_us")), #name, \
            time_format(body->name, time));
#define ADD_TEXT(name)  add_text(&line, #name, body->name);
#define ADD_RAW(name)   add_text(&line, #name, body->name);
#define ADD_BYTES(name) add_num(&line, #name, body->name.length);
#define ADD_IDS(name)   add_ids(&line, #name, body->name);
#define ADD_TEXTS(name) add_num(&line, #name, body->name.count);
#define ADD_LIST(name)  add_num(&line, #name, body->name.count);

#define DESCRIBE(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME: {                                          \
        const struct msg_##name *body = &msg->u.name;           \
                                                                \
        FIELDS_##name(ADD_FIELD);                               \
        break;                                                  \
    }
#define DESCRIBE_EMPTY(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME: break;

/* Writes a message as one line of text, for logs and traces. Returns `text`. */
const char *msg_describe(const struct msg *msg, char *text, size_t size)
{
    const struct msg_kind *kind = msg_kind(msg->type);
    struct line line = { text, size, 0 };
    char time[TIME_TEXT_MAX];

    text[0] = '\0';
    add(&line, "%s", kind ? kind->name : "UNKNOWN");
    add_num(&line, "term", msg->term);
    add_num(&line, "incarnation", msg->incarnation);
    add_num(&line, "round", msg->round);
    switch (msg->type) {
        MSG_CATALOG(DESCRIBE, DESCRIBE_EMPTY)
    }
    return text;
}
