/*
 * text_line.c: makes text safe to show: one line, valid UTF-8, no control characters. Called for
 * every log line, error and trace line, so that foreign text can neither move the cursor of a
 * terminal nor look like another line. This file uses nothing of err.c, because err.c uses this
 * file.
 */
#include "base/text.h"

#include "base/panic.h"

#include <stdio.h>
#include <string.h>

/* Returns the length in bytes of the UTF-8 sequence that starts at `at`; 0: no valid sequence.
 * Overlong sequences and surrogates are not valid. */
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

/* true: a control character starts at `at`: a byte less than ' ', DEL, or U+0080 to U+009F, which
 * terminals obey as well. */
static bool is_control(const unsigned char *at)
{
    return at[0] < ' ' || at[0] == 0x7f || (at[0] == 0xc2 && (at[1] & 0xe0) == 0x80);
}

/* true: valid UTF-8 without control characters; tab and newline are allowed. */
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

/* Formats one line of at most `size` bytes with its NUL. Control characters become blanks, so
 * foreign text cannot begin a new line. Returns the length. */
size_t text_line(char *line, size_t size, const char *format, va_list args)
{
    unsigned char *at = (unsigned char *)line;
    int wanted;

    ASSERT(size >= 8);
    wanted = vsnprintf(line, size, format, args);
    /* the arguments cannot be formatted: the format itself is the line */
    if (wanted < 0)
        wanted = snprintf(line, size, "%s", format);
    /* A line that is cut ends in "...", and is never cut in the middle of a character. */
    if ((size_t)wanted >= size) {
        size_t cut = size - 4;

        for (int i = 0; i < 3 && (at[cut] & 0xc0) == 0x80; i++)
            cut--;
        memcpy(line + cut, "...", 4);
    }
    for (; *at; at++) {
        if (!is_control(at))
            continue;
        /* a control character that takes two bytes in UTF-8: 0xc2 and one more */
        if (*at == 0xc2)
            *at++ = ' ';
        *at = ' ';
    }
    return (size_t)(at - (unsigned char *)line);
}
