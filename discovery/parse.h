/*
 * parse.h: what people and scripts write about hosts, read strictly.
 *
 * A discovery script's output and a host file have one grammar, one host a line:
 *
 *     # a comment, also behind a host
 *     name          as many slots as default_slots
 *     name:4
 *     name slots=4  blanks around '=' are fine
 *     [fe80::1%eth0]:4
 *
 * Blank lines, blanks around a line, CRLF and a missing last newline are fine. "name:0" is a host
 * that offers nothing. A host may be repeated with the same number and keeps its first place; with
 * another number it is an error, as is anything that is not understood: a half-read host list would
 * look like hosts that went away. A text without hosts is an empty set; the caller judges that.
 *
 * Errors say where, what and what to do:
 *
 *     hosts.txt: line 3: "a b": only :n or slots=n may follow a host name; write one host a line
 */
#ifndef DISCOVERY_PARSE_H
#define DISCOVERY_PARSE_H

#include "base/text.h"
#include "discovery/hosts.h"

/*
 * `source` names the text in errors. default_slots 0: every host needs a number. ret_hosts is a set
 * already, and is replaced on success. The text may be any bytes at all; more than
 * LIMIT_HOST_TEXT_BYTES of them is an error, so one who reads on behalf of this function may stop
 * one byte after that. 0, HVD_E_INVAL, HVD_E_LIMIT or HVD_E_NOMEM.
 */
int hosts_parse_text(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err);

/* The same for "a:2,b:2" on a command line: commas instead of newlines, no comments, and nothing
 * may be left out between two commas. */
int hosts_parse_list(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err);

#endif
