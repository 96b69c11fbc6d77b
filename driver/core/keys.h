/*
 * keys.h: which key the agent of a host may use. A key is named by its version: driver/io derives
 * it from the job's key, the host and the version. The journal has the version before an agent gets
 * the key, so each driver of the job knows the version.
 *
 * A host that has left the job, and has neither a worker nor an agent, has no key: its agent does
 * not get past the handshake. When the host is listed again, it gets a key that it never had.
 *
 * While an operator changes the keys (hvd-elastic rekey), a host may use two keys: the new one, and
 * the old one until its agent has the new one. PROTOCOL.md, REKEY, says when the old one is dead.
 */
#ifndef DRIVER_CORE_KEYS_H
#define DRIVER_CORE_KEYS_H

#include "driver/core/core_internal.h"

/* Asks for the start of an agent, which gets the host's key: a new one if the host has none. */
void keys_start_agent(struct core *core, struct core_host *host);

/* Ends the keys of hosts that have left the job. Called only when a discovery has succeeded. */
void keys_reconcile(struct core *core);

/* Gives each host that has a key a new one, unless a change of keys is under way. The operator gets
 * an answer, and later ACTION_REKEYING says how the change goes on. */
void keys_on_rekey(struct core *core, const struct event *event);
/* The agent of the host is welcomed. `version`: that of the key with which the agent has dialled;
 * 0: not known. The newest key ends the old one; an agent with the old key is sent REKEY. */
void keys_greet(struct core *core, struct core_host *host, uint64_t version);
/* The agent of the host has said REKEYED: it has the key of this `version`. */
void keys_on_rekeyed(struct core *core, struct core_host *host, uint64_t version);
/* Ends old keys whose time is over, and ends the change when no old key is left. Called in each
 * step. */
void keys_look(struct core *core);

/* Restores a JOURNAL_KEY record. False: the record is impossible. When no memory is left, the core
 * has failed. */
bool keys_replay(struct core *core, const struct journal_record *record);
/* The driver starts: the keys that the journal names are admitted, and a change of keys that an
 * earlier driver began goes on. */
void keys_start(struct core *core);

#endif
