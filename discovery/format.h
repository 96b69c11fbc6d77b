/*
 * format.h: hosts as text: the form that people read in messages and that parse.h reads back.
 */
#ifndef DISCOVERY_FORMAT_H
#define DISCOVERY_FORMAT_H

#include "base/buf.h"
#include "base/limits.h"
#include "discovery/hosts.h"

#define HOST_NAME_TEXT_MAX (LIMIT_HOST_NAME_BYTES + 3)

/* The name as it is written in a host file: an IPv6 address in brackets. Returns text. */
const char *host_name_format(const char *name, char text[HOST_NAME_TEXT_MAX]);

/* Appends one "name:slots" line per host, in order. 0, HVD_E_NOMEM, or HVD_E_LIMIT when it would be
 * past the buffer's max or past LIMIT_HOST_TEXT_BYTES, and so unreadable to hosts_parse_text. */
int hosts_format_text(const struct hosts *hosts, struct buf *buf) MUST_CHECK;

#endif
