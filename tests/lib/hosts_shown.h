/*
 * hosts_shown.h: sets of hosts as one line, so that a test writes and compares them as text.
 */
#ifndef TESTS_LIB_HOSTS_SHOWN_H
#define TESTS_LIB_HOSTS_SHOWN_H

#include "discovery/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Parses "a:2,b:4"; a host without a number has one slot. */
static inline int hosts_fill(struct hosts *hosts, const char *list)
{
    return hosts_parse_list((struct span){ list, strlen(list) }, "fill", 1, hosts, NULL);
}

/* Returns "a:2 b:4", in the order of the set, in one static buffer: use it before the next call. */
static inline const char *hosts_shown(const struct hosts *hosts)
{
    static char text[8192];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < hosts->count && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%" PRIu32, i ? " " : "",
                                 hosts->items[i].name, hosts->items[i].slots);
    return text;
}

#endif
