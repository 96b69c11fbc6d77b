/*
 * json.c: writes JSON for the programs of operators. The tables of this folder call it. The output
 * is always valid: a control character in a text is escaped, and a byte that is not UTF-8 becomes
 * U+FFFD. Invariant: nothing is left in the output that base/text_show.c would change, because the
 * verbs show JSON through text_show, too.
 */
#include "driver/control/json.h"

#include "base/text.h"
#include "base/text_show.h"
#include "base/time.h"

#include <inttypes.h>
#include <string.h>

/* Appends bytes, unless an earlier call has failed. */
static void json_put(struct json *json, const void *bytes, size_t length)
{
    if (!json->rc)
        json->rc = buf_append(json->out, bytes, length);
}

/* Appends the text in quotes. A character that would change the direction of the text
 * (text_show_turns) is escaped as \u20xx, as base/text_show.c does: its code is U+20xx, in 3 bytes
 * of UTF-8. */
static void json_put_quoted(struct json *json, const char *text)
{
    json_put(json, "\"", 1);
    for (size_t remaining = strlen(text), length; remaining > 0 && !json->rc;
         remaining -= length, text += length) {
        unsigned char byte = (unsigned char)*text;

        /* Sets `length` to the number of bytes of the first UTF-8 character; 0: the bytes are no
         * character. */
        length = byte < 0x80;
        for (size_t i = 2; i <= 4 && i <= remaining && !length; i++)
            length = text_is_clean(text, i) ? i : 0;

        if (byte == '"' || byte == '\\') {
            json->rc = buf_printf(json->out, "\\%c", byte);
        } else if (length == 3 && text_show_turns(text)) {
            json->rc = buf_printf(json->out, "\\u20%02x",
                                  (unsigned)(text[1] & 1) << 6 | (unsigned)(text[2] & 0x3f));
        } else if (length && byte >= ' ' && byte != 0x7f) {
            json_put(json, text, length);
        } else {
            json->rc = buf_printf(json->out, "\\u%04x", length ? byte : 0xfffdu);
            length = 1;
        }
    }
    json_put(json, "\"", 1);
}

/* Writes what comes before each value: a comma, unless it is the first, and the name; name NULL:
 * the value is in a list. */
static void json_put_name(struct json *json, const char *name)
{
    if (json->comma)
        json_put(json, ",", 1);
    if (name) {
        json_put_quoted(json, name);
        json_put(json, ":", 1);
    }
    json->comma = true;
}

void json_open(struct json *json, const char *name, char bracket)
{
    json_put_name(json, name);
    json_put(json, &bracket, 1);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    json_put(json, &bracket, 1);
    json->comma = true;
}

/* Closes the outermost object, and ends the line. */
int json_end(struct json *json)
{
    json_close(json, '}');
    json_put(json, "\n", 1);
    return json->rc;
}

void json_text(struct json *json, const char *name, const char *text)
{
    json_put_name(json, name);
    json_put_quoted(json, text);
}

void json_number(struct json *json, const char *name, uint64_t number)
{
    json_put_name(json, name);
    if (!json->rc)
        json->rc = buf_printf(json->out, "%" PRIu64, number);
}

void json_bool(struct json *json, const char *name, bool value)
{
    json_put_name(json, name);
    json_put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_raw(struct json *json, const char *name, const char *text)
{
    json_put_name(json, name);
    json_put(json, text, strlen(text));
}

void json_null(struct json *json, const char *name)
{
    json_put_name(json, name);
    json_put(json, "null", 4);
}

/* Writes a duration in seconds, with three digits behind the point: null for TIME_NEVER, 0 for a
 * negative duration. */
void json_seconds(struct json *json, const char *name, int64_t us)
{
    if (us == TIME_NEVER) {
        json_null(json, name);
        return;
    }
    json_put_name(json, name);
    if (us < 0)
        us = 0;
    if (!json->rc)
        json->rc =
            buf_printf(json->out, "%" PRId64 ".%03" PRId64, us / TIME_S, us / TIME_MS % 1000);
}
