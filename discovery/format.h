/*
 * format.h: hosts as text: the form that messages show and that parse.h reads back.
 */
#ifndef DISCOVERY_FORMAT_H
#define DISCOVERY_FORMAT_H

#include "base/buf.h"
#include "base/limits.h"
#include "discovery/hosts.h"

#define HOST_NAME_TEXT_MAX (LIMIT_HOST_NAME_BYTES + 3) /* a name, two brackets and a NUL */

/* Writes the name of a host as it stands in a host file: an IPv6 address gets brackets. Returns
 * `text`. */
const char *host_name_format(const char *name, char text[HOST_NAME_TEXT_MAX]);

/* Appends one "name:slots" line per host, in order. Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT: the
 * text would be longer than the buffer's max or than LIMIT_HOST_TEXT_BYTES, which hosts_parse_text
 * refuses. */
int hosts_format_text(const struct hosts *hosts, struct buf *buf) MUST_CHECK;

#endif
