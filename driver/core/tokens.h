/*
 * tokens.h: the tokens with which hosts may join a job. A token is a secret; the core knows only
 * its id and a key that is derived from it. The journal has each token, and which hosts have used
 * one that has an end or is good for a number of hosts, so that the next driver accepts and counts
 * as this one.
 *
 * A token that has expired goes on to let those processes in that joined before: a process is known
 * by the random number of its JOIN, which only that process and the drivers of the job know. A
 * token that is revoked lets no process in.
 *
 * Expired, used and revoked tokens still get past the handshake, so that a host that comes with one
 * is told why it is refused. They open nothing else.
 */
#ifndef DRIVER_CORE_TOKENS_H
#define DRIVER_CORE_TOKENS_H

#include "driver/core/core_internal.h"

/* An operator, or the driver at its start, makes or revokes a token; the core answers. */
void tokens_on_event(struct core *core, const struct event *event);

/* Notes that `host` joins with the token of this id. `number`: that of the process, which JOIN has;
 * never 0. Returns NULL; or why the host may not, and nothing is noted. */
const char *tokens_use(struct core *core, const char *id, const char *host, uint64_t number);

/* Returns "", or the first time while hosts may join and the job has no token: a text for the end
 * of a log line, which says that and names the remedy. */
const char *tokens_advise(struct core *core);

/* The driver starts: the tokens that the journal names are accepted in handshakes. */
void tokens_start(struct core *core);

/* Restores what a JOURNAL_TOKEN record says of a token. Returns 0, HVD_E_NOMEM, or HVD_E_CORRUPT
 * for a record that is impossible. */
int tokens_replay(struct core *core, const struct journal_record *record,
                  struct hvd_err *err) MUST_CHECK;

void tokens_release(struct core *core);

#endif
