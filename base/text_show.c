/*
 * text_show.c: makes foreign text safe for a terminal. Called for the output of workers, where a
 * terminal reads that output, and for the output of the verbs. Invariant: no sequence passes that
 * moves the cursor, erases, answers, or reaches past its own line.
 */
#include "base/text_show.h"

#include "base/text.h"

#include <string.h>

#define ESCAPE '\x1b'
#define RESET  "\x1b[0m"
/* The most bytes of a colour sequence; the ESC of a longer one is escaped. */
#define SGR_MAX 48

/* true: the three bytes at `at` are a character that changes the direction of writing (U+202A to
 * U+202E, U+2066 to U+2069): foreign text could hide its meaning with it. */
bool text_show_turns(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    return byte[0] == 0xe2 && ((byte[1] == 0x80 && byte[2] >= 0xaa && byte[2] <= 0xae) ||
                               (byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9));
}

/* Appends foreign text so that it cannot harm a terminal. `colours`: colour sequences pass, too,
 * and are reset at the end of the line. On failure `out` is unchanged. */
int text_show(struct buf *out, const char *text, size_t length, bool colours)
{
    const size_t before = out->length;
    bool coloured = false;
    size_t from = 0, at = 0; /* the bytes from `from` to `at` pass and are not appended yet */
    int rc = 0;

    while (at < length && !rc) {
        size_t left = length - at < SGR_MAX ? length - at : SGR_MAX, step = 0, end = 2;

        /* A colour passes: the SGR sequence "ESC [ digits and separators m". */
        if (colours && left >= 3 && text[at] == ESCAPE && text[at + 1] == '[') {
            while (end < left && text[at + end] && strchr("0123456789;:", text[at + end]))
                end++;
            if (end < left && text[at + end] == 'm')
                step = end + 1;
        }
        if (step)
            coloured = true;
        /* A character of 1 to 4 bytes is copied unchanged if it is printable and does not change
         * the direction of the text. A newline after a colour is not copied here: a reset of the
         * colour is written before the newline. */
        for (size_t bytes = 1; !step && bytes <= 4 && bytes <= length - at; bytes++) {
            if ((text[at] == '\n' && coloured) || (bytes == 3 && text_show_turns(text + at)))
                break;
            if (text_is_clean(text + at, bytes))
                step = bytes;
        }
        if (step) {
            at += step;
            continue;
        }
        rc = buf_append(out, text + from, at - from);
        if (!rc && text[at] == '\n')
            rc = buf_append_text(out, RESET "\n");
        else if (!rc)
            rc = buf_printf(out, "\\x%02x", (unsigned)(unsigned char)text[at]);
        coloured = coloured && text[at] != '\n';
        from = ++at;
    }
    if (!rc)
        rc = buf_append(out, text + from, at - from);
    if (!rc && coloured)
        rc = buf_append_text(out, RESET);
    if (rc)
        out->length = before;
    return rc;
}
