/*
 * text_show.h: foreign text for a terminal, over as many lines as it has.
 */
#ifndef BASE_TEXT_SHOW_H
#define BASE_TEXT_SHOW_H

#include "base/buf.h"

/*
 * Appends the text as a terminal may have it: newlines and tabs pass; other control characters,
 * bytes that are no UTF-8, and characters that turn the direction of writing become \xNN. colours:
 * sequences that set colours and weights (SGR) pass, too, and a line in which one was is reset at
 * its end, so that no colour reaches the text that follows. Returns 0 or the failure of buf.
 */
int text_show(struct buf *out, const char *text, size_t length, bool colours) MUST_CHECK;

/* True: the character of three bytes at `at` turns the direction of writing (U+202A to U+202E,
 * U+2066 to U+2069). */
bool text_show_turns(const char *at);

#endif
