#include "base/text.h"

#include "base/panic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

struct span span_trim(struct span span)
{
    while (span.length && is_blank(span.at[0])) {
        span.at++;
        span.length--;
    }
    while (span.length && is_blank(span.at[span.length - 1]))
        span.length--;
    return span;
}

bool span_is(struct span span, const char *text)
{
    return strlen(text) == span.length && (!span.length || !memcmp(span.at, text, span.length));
}

bool span_next(struct span *rest, char separator, struct span *ret_part)
{
    const char *found;

    if (!rest->at)
        return false;
    found = rest->length ? memchr(rest->at, separator, rest->length) : NULL;
    if (found) {
        size_t length = (size_t)(found - rest->at);

        *ret_part = (struct span){ rest->at, length };
        *rest = (struct span){ found + 1, rest->length - length - 1 };
    } else {
        *ret_part = *rest;
        *rest = (struct span){ NULL, 0 };
    }
    return true;
}

int text_parse_u64(struct span span, uint64_t min, uint64_t max, const char *what,
                   uint64_t *ret_value, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    uint64_t value = 0;
    bool too_big = false;

    for (size_t i = 0; i < span.length; i++) {
        unsigned digit = (unsigned char)span.at[i] - (unsigned)'0';

        if (digit > 9)
            return err_set(err, HVD_E_INVAL, "%s: %s must be a whole number",
                           text_quote(span.at, span.length, quoted), what);
        if (value > (UINT64_MAX - digit) / 10)
            too_big = true;
        else
            value = value * 10 + digit;
    }
    if (span.length == 0)
        return err_set(err, HVD_E_INVAL, "%s is missing", what);
    if (too_big || value < min || value > max)
        return err_set(err, HVD_E_LIMIT, "%s: %s must be between %" PRIu64 " and %" PRIu64,
                       text_quote(span.at, span.length, quoted), what, min, max);
    *ret_value = value;
    return 0;
}

const char *text_quote(const char *text, size_t length, char quoted[TEXT_QUOTE_MAX])
{
    size_t shown = length < TEXT_QUOTE_SHOWN ? length : TEXT_QUOTE_SHOWN;
    char *out = quoted;

    *out++ = '"';
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= ' ' && c < 0x7f && c != '"' && c != '\\')
            *out++ = (char)c;
        else
            out += snprintf(out, 5, "\\x%02x", c);
    }
    *out++ = '"';
    if (shown < length) {
        memcpy(out, "...", 3);
        out += 3;
    }
    *out = '\0';
    return quoted;
}

/* Bytes of the UTF-8 sequence that starts here, 0 if it is none (overlong and surrogates too). */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

    if (length == 0 || length > left || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

/* Whether a control character starts here: below ' ', DEL, and U+0080 to U+009F, the eight-bit ones
 * that terminals obey as well. */
static bool is_control(const unsigned char *at)
{
    return at[0] < ' ' || at[0] == 0x7f || (at[0] == 0xc2 && (at[1] & 0xe0) == 0x80);
}

bool text_is_clean(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t i = 0;

    while (i < length) {
        size_t step = utf8_length(at + i, length - i);

        if (step == 0 || (is_control(at + i) && at[i] != '\t' && at[i] != '\n'))
            return false;
        i += step;
    }
    return true;
}

size_t text_line(char *line, size_t size, const char *format, va_list args)
{
    unsigned char *at = (unsigned char *)line;
    int wanted;

    ASSERT(size >= 8);
    wanted = vsnprintf(line, size, format, args);
    if (wanted < 0)
        wanted = snprintf(line, size, "%s", format);
    if ((size_t)wanted >= size) {
        size_t cut = size - 4;

        for (int i = 0; i < 3 && (at[cut] & 0xc0) == 0x80; i++)
            cut--;
        memcpy(line + cut, "...", 4);
    }
    for (; *at; at++) {
        if (!is_control(at))
            continue;
        if (*at == 0xc2)
            *at++ = ' ';
        *at = ' ';
    }
    return (size_t)(at - (unsigned char *)line);
}

#define NEAREST_MAX 40

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein, one row at a time. Both texts are at most NEAREST_MAX long. */
static size_t edits(const char *a, const char *b)
{
    size_t row[NEAREST_MAX + 1];
    size_t b_length = strlen(b);

    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t above = row[j];

            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_length];
}

const char *text_nearest(const char *text, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    size_t fewest = strlen(text) / 3 + 1;

    if (strlen(text) > NEAREST_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance;

        if (strlen(candidates[i]) > NEAREST_MAX)
            continue;
        distance = edits(text, candidates[i]);
        if (distance <= fewest && (!nearest || distance < fewest)) {
            fewest = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
