/*
 * parse.h: the strict reading of texts and lists of hosts that operators and scripts write.
 *
 * The output of a discovery script and a host file have the same grammar, one host a line. The
 * two grammars differ only for a host that is named twice.
 *
 *     # a comment, also behind a host
 *     name          as many slots as default_slots
 *     name:4
 *     name slots=4  blanks around '=' are fine
 *     name slots=4 max_slots=8   as for mpirun; a host never has more workers than slots
 *     [fe80::1%eth0]:4
 *
 * Blank lines, blanks around a line, CRLF and a missing last newline are fine. "name:0" is a host
 * on which no worker can run. In a script's output a host may be named again with the same number
 * of slots; its first position counts. A host that is named again with another number is an error,
 * and so is every line outside the grammar: if half of a list were used, the other hosts would seem
 * to have left. A text without hosts gives an empty set, which the caller may refuse.
 *
 * Errors say where, what and what to do:
 *
 *     hosts.txt: line 3: "a b": only :n or slots=n may follow a host name; write one host a line
 */
#ifndef DISCOVERY_PARSE_H
#define DISCOVERY_PARSE_H

#include "base/text.h"
#include "discovery/hosts.h"

/* Parses a host file. Its grammar is that of hosts_parse_text, but a host that is named again
 * without a number gets default_slots more each time, and a host that is named again with a number
 * is an error. mpirun does the same. */
int hosts_parse_hostfile(struct span text, const char *source, uint32_t default_slots,
                         struct hosts *ret_hosts, struct hvd_err *err);

/*
 * Parses a text. `source` names the text in errors. default_slots 0: every host needs a number.
 * ret_hosts must be initialised, and is replaced on success. The text may hold any bytes. More than
 * LIMIT_HOST_TEXT_BYTES bytes are an error, so a caller may stop reading one byte after that limit.
 * Returns 0, HVD_E_INVAL, HVD_E_LIMIT or HVD_E_NOMEM.
 */
int hosts_parse_text(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err);

/* Parses "a:2,b:2" from a command line: commas instead of newlines, no comments, and no empty item
 * between two commas. A host that is named again is treated as in a host file. */
int hosts_parse_list(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err);

#endif
