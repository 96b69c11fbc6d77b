#include "driver/ask/json.h"

#include "base/text.h"
#include "base/time.h"

#include <inttypes.h>
#include <string.h>

static void put(struct json *json, const void *bytes, size_t length)
{
    if (!json->rc)
        json->rc = buf_append(json->out, bytes, length);
}

static void put_word(struct json *json, const char *word)
{
    put(json, word, strlen(word));
}

/* How many bytes of text are one character that may stand as it is; 0: none is. */
static size_t whole_character(const char *text)
{
    size_t length = strlen(text);

    if ((unsigned char)*text < 0x80)
        return (unsigned char)*text >= ' ' && *text != 0x7f;
    for (size_t i = 2; i <= 4 && i <= length; i++)
        if (text_is_clean(text, i))
            return i;
    return 0;
}

static void put_quoted(struct json *json, const char *text)
{
    put(json, "\"", 1);
    while (*text && !json->rc) {
        size_t length = whole_character(text);

        if (*text == '"' || *text == '\\') {
            json->rc = buf_printf(json->out, "\\%c", *text);
            length = 1;
        } else if (length) {
            put(json, text, length);
        } else {
            unsigned char byte = (unsigned char)*text;

            json->rc = buf_printf(json->out, "\\u%04x", byte < 0x80 ? byte : 0xfffdu);
            length = 1;
        }
        text += length;
    }
    put(json, "\"", 1);
}

/* What stands before a value. */
static void begin(struct json *json, const char *name)
{
    if (json->comma)
        put(json, ",", 1);
    if (name) {
        put_quoted(json, name);
        put(json, ":", 1);
    }
    json->comma = true;
}

void json_open(struct json *json, const char *name, char bracket)
{
    begin(json, name);
    put(json, &bracket, 1);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    put(json, &bracket, 1);
    json->comma = true;
}

void json_text(struct json *json, const char *name, const char *text)
{
    begin(json, name);
    put_quoted(json, text);
}

void json_number(struct json *json, const char *name, uint64_t number)
{
    begin(json, name);
    if (!json->rc)
        json->rc = buf_printf(json->out, "%" PRIu64, number);
}

void json_bool(struct json *json, const char *name, bool value)
{
    begin(json, name);
    put_word(json, value ? "true" : "false");
}

void json_null(struct json *json, const char *name)
{
    begin(json, name);
    put_word(json, "null");
}

void json_seconds(struct json *json, const char *name, int64_t us)
{
    if (us == TIME_NEVER) {
        json_null(json, name);
        return;
    }
    begin(json, name);
    if (us < 0)
        us = 0;
    if (!json->rc)
        json->rc =
            buf_printf(json->out, "%" PRId64 ".%03" PRId64, us / TIME_S, us / TIME_MS % 1000);
}
