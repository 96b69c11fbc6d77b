/*
 * stderr_tail.c: keeps the first line and the last bytes of a program's standard error. command.c
 * adds what it reads; its callers (discovery/sources, driver/launch) quote the text in errors. The
 * memory is bounded, however much a program prints.
 */
#include "os/command/stderr_tail.h"

#include <string.h>

/* Takes further bytes of a program's standard error: keeps its first line that is not blank, and
 * its last bytes. `cut`: older bytes than the tail were dropped. */
void stderr_tail_add(struct stderr_tail *stderr_tail, const char *bytes, size_t length)
{
    size_t max = sizeof(stderr_tail->tail);

    /* Takes the first line, without blanks and blank lines before it. */
    for (size_t i = 0; i < length && !stderr_tail->first_whole; i++) {
        /* strchr also finds the NUL, which is no blank */
        if (stderr_tail->first_length == 0 && strchr(" \t\r\n", bytes[i]) && bytes[i])
            continue;
        if (bytes[i] == '\n' || stderr_tail->first_length == sizeof(stderr_tail->first))
            stderr_tail->first_whole = true;
        else
            stderr_tail->first[stderr_tail->first_length++] = bytes[i];
    }
    /* Takes the tail: the oldest bytes make room for the new ones. */
    if (length > max) {
        bytes += length - max;
        length = max;
        stderr_tail->cut = true;
    }
    if (stderr_tail->tail_length + length > max) {
        size_t gone = stderr_tail->tail_length + length - max;

        memmove(stderr_tail->tail, stderr_tail->tail + gone, stderr_tail->tail_length - gone);
        stderr_tail->tail_length -= gone;
        stderr_tail->cut = true;
    }
    memcpy(stderr_tail->tail + stderr_tail->tail_length, bytes, length);
    stderr_tail->tail_length += length;
}

/* Returns the first line that is not blank, without blanks at its ends. */
struct span stderr_tail_first(const struct stderr_tail *stderr_tail)
{
    return span_trim((struct span){ stderr_tail->first, stderr_tail->first_length });
}

/* Returns the last bytes of standard error. If older bytes were dropped, the text begins with the
 * first whole line. */
struct span stderr_tail_text(const struct stderr_tail *stderr_tail)
{
    struct span tail = { stderr_tail->tail, stderr_tail->tail_length };
    struct span rest = tail;
    struct span half;

    if (!stderr_tail->cut || !span_next(&rest, '\n', &half))
        return tail;
    /* No line ends in the tail: it is a part of one very long line, which is better than no
     * text. */
    return rest.at ? rest : tail;
}

/* Takes the next line that is not blank off *rest. false: there is none. */
bool stderr_tail_next_line(struct span *rest, struct span *ret_line)
{
    struct span line;

    while (rest->at && span_next(rest, '\n', &line)) {
        line = span_trim(line);
        if (line.length) {
            *ret_line = line;
            return true;
        }
    }
    return false;
}
