/*
 * arrivals_line.c: parses a line of a timeline: one object of the trace event format, as timeline/
 * writes it. arrivals.c calls it for each line. The line is foreign text: nothing but strings,
 * whole numbers and one object "args" is taken.
 */
#include "tools/arrivals.h"

#include <string.h>

/* A field that is read: its key, whether it is in "args", and where its value goes in the event. */
struct field {
    bool in_args, is_number;
    const char *key;
    size_t at; /* offset of the field in struct arrivals_event */
};

#define TEXT(in_args, key, field)                                   \
    {                                                               \
        in_args, false, key, offsetof(struct arrivals_event, field) \
    }
#define NUMBER(in_args, key, field)                                \
    {                                                              \
        in_args, true, key, offsetof(struct arrivals_event, field) \
    }

/* The fields: true: the field is in "args"; its key; its name in struct arrivals_event. */
static const struct field fields[] = {
    TEXT(false, "ph", phase),         TEXT(false, "cat", category),
    TEXT(false, "name", name),        NUMBER(false, "pid", process),
    NUMBER(false, "ts", began_us),    NUMBER(false, "dur", lasted_us),
    TEXT(true, "name", text),         TEXT(true, "ended", ended),
    NUMBER(true, "number", number),   NUMBER(true, "round", round),
    NUMBER(true, "group", group),     NUMBER(true, "lowest", lowest_rank),
    NUMBER(true, "members", members),
};

/* Takes the character c off the front; false: the front is another character, or the text is at its
 * end. */
static bool take(struct span *rest, char c)
{
    if (!rest->length || rest->at[0] != c)
        return false;
    rest->at++;
    rest->length--;
    return true;
}

/* Takes a text in quotes; its escapes stay as they are. */
static bool take_text(struct span *rest, struct span *ret_text)
{
    size_t length = 0;

    if (!take(rest, '"'))
        return false;
    while (length < rest->length && rest->at[length] != '"')
        length += rest->at[length] == '\\' ? 2 : 1;
    if (length >= rest->length)
        return false;
    *ret_text = (struct span){ rest->at, length };
    rest->at += length + 1;
    rest->length -= length + 1;
    return true;
}

/* Stores a value in the field of the event that has this key; a key that no field has is ignored.
 * text NULL: the value is the number. */
static void keep(struct arrivals_event *event, bool in_args, struct span key,
                 const struct span *text, uint64_t number)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        char *at = (char *)event + fields[i].at;

        if (fields[i].in_args != in_args || fields[i].is_number == (text != NULL) ||
            !span_is(key, fields[i].key))
            continue;
        if (text)
            memcpy(at, text, sizeof(*text));
        else
            memcpy(at, &number, sizeof(number));
    }
}

/* Takes a JSON object of texts and numbers. Only the object "args" may stand inside another one.
 * false: the text is no such object. */
static bool take_object(struct span *rest, bool in_args, struct arrivals_event *event)
{
    if (!take(rest, '{'))
        return false;
    if (take(rest, '}'))
        return true;
    do {
        uint64_t number = 0;
        struct span key, text;
        bool negative;

        if (!take_text(rest, &key) || !take(rest, ':'))
            return false;
        if (!in_args && span_is(key, "args")) {
            if (!take_object(rest, true /* in "args" */, event))
                return false;
        } else if (rest->length && rest->at[0] == '"') {
            if (!take_text(rest, &text))
                return false;
            keep(event, in_args, key, &text, 0);
        } else {
            /* A negative number counts as 0: no field that matters here is ever below 0. */
            negative = take(rest, '-');
            text = (struct span){ rest->at, 0 };
            while (text.length < rest->length && text.at[text.length] >= '0' &&
                   text.at[text.length] <= '9')
                text.length++;
            if (text_parse_u64(text, 0, INT64_MAX, "", &number, NULL))
                return false;
            rest->at += text.length;
            rest->length -= text.length;
            keep(event, in_args, key, NULL, negative ? 0 : number);
        }
    } while (take(rest, ','));
    return take(rest, '}');
}

/* Parses one line of a timeline. HVD_DONE: the line is empty or a bracket, and has no event. */
int arrivals_read(struct span line, struct arrivals_event *ret_event, struct hvd_err *err)
{
    struct arrivals_event event = { .number = 0 };
    struct span rest = line;

    while (rest.length && (rest.at[rest.length - 1] == ' ' || rest.at[rest.length - 1] == '\r'))
        rest.length--;
    /* These lines are the brackets of the array of events; a reader may have closed the array
     * (docs/timeline.md). */
    if (!rest.length || span_is(rest, "[") || span_is(rest, "]") || span_is(rest, "{}]"))
        return HVD_DONE;
    if (!take_object(&rest, false /* not in "args" */, &event))
        return err_set(err, HVD_E_INVAL,
                       "the line is no event; the file is no timeline of hvd-elastic");
    (void)take(&rest, ',');
    (void)take(&rest, ']');
    if (rest.length)
        return err_set(err, HVD_E_INVAL,
                       "text follows the event; the file is no timeline of hvd-elastic");
    *ret_event = event;
    return 0;
}
