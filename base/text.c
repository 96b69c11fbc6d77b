/*
 * text.c: strict parsing of small texts (spans, numbers), quoting of foreign text, and the search
 * for the nearest of several names. Called by every parser of input from users and scripts. No
 * function here keeps a pointer into the text.
 */
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Writes a signal with its number and its name, for an operator: "signal 11 (SIGSEGV)". */
const char *text_signal(int number, char text[TEXT_SIGNAL_MAX])
{
    const char *name = sigabbrev_np(number);

    snprintf(text, TEXT_SIGNAL_MAX, "signal %d%s%.16s%s", number, name ? " (SIG" : "",
             name ? name : "", name ? ")" : "");
    return text;
}

static bool text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the span without blanks at both ends. */
struct span span_trim(struct span span)
{
    while (span.length && text_is_blank(span.at[0])) {
        span.at++;
        span.length--;
    }
    while (span.length && text_is_blank(span.at[span.length - 1]))
        span.length--;
    return span;
}

/* true: the bytes of the span are those of `text`. */
bool span_is(struct span span, const char *text)
{
    return strlen(text) == span.length && (!span.length || !memcmp(span.at, text, span.length));
}

/* Cuts the part before the next separator off *rest. false: no part is left (`rest->at` is NULL).
 * An empty part after the last separator still counts. */
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

/* Takes `word` off the beginning of *rest. false: *rest begins with other bytes, and is
 * unchanged. */
bool span_take(struct span *rest, const char *word)
{
    size_t length = strlen(word);

    if (rest->length < length || (length && memcmp(rest->at, word, length) != 0))
        return false;
    *rest = (struct span){ rest->at + length, rest->length - length };
    return true;
}

/* Parses decimal digits. `what` names the number in the error. */
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

/* Writes foreign text for an error: in quotes, cut after TEXT_QUOTE_SHOWN bytes, and with \xNN for
 * bytes that a terminal must not get. Returns `quoted`. */
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

#define NEAREST_MAX 40

/* Returns the Levenshtein distance; only one row of its table is in memory at a time. Both texts
 * have at most NEAREST_MAX bytes. The distance is the number of characters to change, insert or
 * delete. */
static size_t edit_distance(const char *a, const char *b)
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
            size_t fewest = diagonal + (a[i - 1] != b[j - 1]);

            if (fewest > above + 1)
                fewest = above + 1;
            if (fewest > row[j - 1] + 1)
                fewest = row[j - 1] + 1;
            row[j] = fewest;
            diagonal = above;
        }
    }
    return row[b_length];
}

/* Returns the candidate that was probably meant: the one with the fewest edits, of those with at
 * most strlen(text) / 3 + 1 edits. NULL: there is none. */
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
        distance = edit_distance(text, candidates[i]);
        if (distance <= fewest && (!nearest || distance < fewest)) {
            fewest = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
