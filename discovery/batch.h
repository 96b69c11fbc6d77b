/*
 * batch.h: reads the lists of hosts that batch systems give to their jobs. Each system has a
 * variable or a file with one of four grammars:
 *
 *     BATCH_NODES   a host a line; each line is slots_per_line slots
 *     BATCH_NAMES   a b b        the same with blanks in place of lines
 *     BATCH_PAIRS   a 1 b 2      a host and its slots
 *     BATCH_QUEUES  a 4 q@a 0-3  a line begins with a host and its slots; the rest is not read
 *
 * A host that is named again has so many slots more.
 */
#ifndef DISCOVERY_BATCH_H
#define DISCOVERY_BATCH_H

#include "base/text.h"
#include "discovery/hosts.h"

enum batch_grammar { BATCH_NODES, BATCH_NAMES, BATCH_PAIRS, BATCH_QUEUES };

/* Parses a text. `source` names the text in errors. slots_per_line: from 1 to
 * LIMIT_SLOTS_PER_HOST; only BATCH_NODES and BATCH_NAMES use it. ret_hosts must be initialised, and
 * is replaced on success. The text may hold any bytes. A text without a host is an error. Returns
 * 0, HVD_E_INVAL, HVD_E_LIMIT or HVD_E_NOMEM. */
int hosts_parse_batch(enum batch_grammar grammar, struct span text, const char *source,
                      uint32_t slots_per_line, struct hosts *ret_hosts,
                      struct hvd_err *err) MUST_CHECK;

#endif
