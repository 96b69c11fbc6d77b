/*
 * format.c: hosts as text, for messages and for files that parse.c reads back.
 */
#include "discovery/format.h"

#include <inttypes.h>
#include <stdio.h>

/* Writes a host's name; an IPv6 address gets brackets, because a colon also separates the slots. */
const char *host_name_format(const char *name, char text[HOST_NAME_TEXT_MAX])
{
    snprintf(text, HOST_NAME_TEXT_MAX, host_name_is_ipv6(name) ? "[%s]" : "%s", name);
    return text;
}

/* Appends each host as a line "name:slots", which hosts_parse_text reads back. After a failure
 * `buf` is unchanged. */
int hosts_format_text(const struct hosts *hosts, struct buf *buf)
{
    char name[HOST_NAME_TEXT_MAX];
    struct buf text; /* a separate buffer, so that a failure leaves no half text in buf */
    int rc = 0;

    buf_init(&text, LIMIT_HOST_TEXT_BYTES);
    for (size_t i = 0; i < hosts->count && !rc; i++)
        rc = buf_printf(&text, "%s:%" PRIu32 "\n", host_name_format(hosts->items[i].name, name),
                        hosts->items[i].slots);
    if (!rc)
        rc = buf_append(buf, text.data, text.length);
    buf_release(&text);
    return rc;
}
