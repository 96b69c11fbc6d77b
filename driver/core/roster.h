/*
 * roster.h: the hosts with their slots, and the workers in the slots.
 *
 * A host is known as long as discovery lists it, an agent runs there or may come back, or a worker
 * is in one of its slots. A worker is in the table from its launch to its end.
 */
#ifndef DRIVER_CORE_ROSTER_H
#define DRIVER_CORE_ROSTER_H

#include "driver/core/core_internal.h"

/* Writes "a:1#7" into `text`: host, slot and incarnation, as traces name a worker. Returns
 * `text`. */
#define WORKER_NAME_MAX (LIMIT_HOST_NAME_BYTES + 40)
const char *worker_name(const struct worker *worker, char text[WORKER_NAME_MAX]);

/* Returns the host of this name; NULL: no host of this name is known. */
struct core_host *roster_find_host(const struct core *core, const char *name);

/* Returns the host of this name, and adds it to the table if it is not known. NULL: no memory is
 * left, and the core has failed. */
struct core_host *roster_host(struct core *core, const char *name);

/* Makes sure that the host has the slots 0 to `count` - 1. False: no memory is left, and the core
 * has failed. */
bool roster_slots(struct core *core, struct core_host *host, uint32_t count);

/* These functions take over a new list of hosts. roster_relist sets the totals over listed hosts to
 * 0; then roster_list_host is called for each listed host, and adds to the totals.
 * roster_unlist_host: discovery no longer lists this host. roster_is_drained: an operator has
 * drained the host or one of its slots, so the host is remembered even if it is not listed. */
void roster_relist(struct core *core);
void roster_list_host(struct core *core, struct core_host *host, uint32_t index, uint32_t slots);
void roster_unlist_host(struct core_host *host);
bool roster_is_drained(const struct core_host *host);

/* roster_mark_done: a command has ended with 0 in this worker's slot. roster_clear_done: a worker
 * has joined, so such ends count no longer. */
void roster_mark_done(struct core *core, const struct worker *worker);
void roster_clear_done(struct core *core);

/* Removes DOOMED workers of hosts that are not listed and have no agent: no agent will report their
 * ends, so they count as ended. */
void roster_remove_unheard(struct core *core);

/* Drops hosts that are not listed and have neither a worker nor an agent. The caller must have no
 * pointer to such a host. */
void roster_sweep(struct core *core);

/* The connections of agents. roster_peer returns the host of the connection `peer`; NULL: no agent
 * has it. roster_connect: the host's agent now has the connection `peer`; false: no memory is left,
 * and the core has failed. roster_disconnect: the connection is gone. roster_move_agent: the agent
 * gets another state. */
struct core_host *roster_peer(const struct core *core, uint32_t peer);
bool roster_connect(struct core *core, struct core_host *host, uint32_t peer);
void roster_disconnect(struct core *core, struct core_host *host);
void roster_move_agent(struct core_host *host, enum agent_state to);

/* Returns the worker; NULL: it has ended or never existed. */
struct worker *roster_worker(const struct core *core, uint64_t incarnation);

/* Puts a new worker into a free slot. NULL: no memory is left, and the core has failed. */
struct worker *roster_add(struct core *core, uint64_t incarnation, struct core_host *host,
                          uint32_t slot, enum worker_state state);
/* Moves the worker to another state; the table in moves.c must have the move. The worker's time
 * limit ends. */
void roster_move(struct core *core, struct worker *worker, enum worker_state to);

/* Copies the addresses for the worker, and for its host, which keeps them after the worker's end.
 * False: no memory is left. */
bool roster_keep_addresses(struct worker *worker, const struct msg_texts *addresses);
/* Copies the addresses for the host alone. False: no memory is left. */
bool roster_keep_contacts(struct core_host *host, const struct msg_texts *addresses);

/* Sets the state that the journal says, without a check of the move; only before the start. */
void roster_restore(struct core *core, struct worker *worker, enum worker_state state);

/* The worker has ended: its slot becomes free, and the caller must not use the pointer any more. */
void roster_remove(struct core *core, struct worker *worker);

/* Frees the workers and hosts that the last step removed. The actions of that step may have pointed
 * at them, and are done now. */
void roster_bury(struct core *core);

/* True: the worker is a member, or may still become one. */
bool worker_is_alive(const struct worker *worker);

/* Notes that the agent keeps this commit for the slot, if it is newer than the known one. */
void slot_note_commit(struct core_slot *slot, uint64_t commit);

/* Works out again which workers have to give up their slot. True: that changed for a worker that is
 * alive. */
bool roster_judge_slots(struct core *core);

void roster_release(struct core *core);

/* These functions visit, one for each call: all workers; the members of a round by rank, without
 * those that have ended; the workers on a host by slot. They return NULL at the end. Usage:
 * for (size_t i = 0; (worker = roster_next(core, &i));) */
struct worker *roster_next(const struct core *core, size_t *index);
struct worker *roster_next_member(const struct core *core, const struct round *round,
                                  size_t *index);
struct worker *roster_next_on(const struct core_host *host, size_t *slot);

#endif
