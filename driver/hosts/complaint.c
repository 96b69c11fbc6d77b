#include "driver/hosts/complaint.h"

#include <string.h>

void complaint_init(struct complaint *complaint)
{
    complaint->first_length = 0;
    complaint->first_whole = false;
    complaint->tail_length = 0;
    complaint->cut = false;
}

static void add_to_first(struct complaint *complaint, char byte)
{
    bool blank = byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';

    if (complaint->first_length == 0 && blank)
        return;
    if (byte == '\n' || complaint->first_length == sizeof(complaint->first))
        complaint->first_whole = true;
    else
        complaint->first[complaint->first_length++] = byte;
}

void complaint_add(struct complaint *complaint, const char *bytes, size_t length)
{
    size_t max = sizeof(complaint->tail);

    for (size_t i = 0; i < length && !complaint->first_whole; i++)
        add_to_first(complaint, bytes[i]);
    if (length > max) {
        bytes += length - max;
        length = max;
        complaint->cut = true;
    }
    if (complaint->tail_length + length > max) {
        size_t gone = complaint->tail_length + length - max;

        memmove(complaint->tail, complaint->tail + gone, complaint->tail_length - gone);
        complaint->tail_length -= gone;
        complaint->cut = true;
    }
    memcpy(complaint->tail + complaint->tail_length, bytes, length);
    complaint->tail_length += length;
}

struct span complaint_first(const struct complaint *complaint)
{
    return span_trim((struct span){ complaint->first, complaint->first_length });
}

struct span complaint_tail(const struct complaint *complaint)
{
    struct span tail = { complaint->tail, complaint->tail_length };
    struct span rest = tail;
    struct span half;

    if (!complaint->cut || !span_next(&rest, '\n', &half))
        return tail;
    return rest.at ? rest : tail; /* one line without an end is better than nothing */
}

bool complaint_next(struct span *rest, struct span *ret_line)
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
