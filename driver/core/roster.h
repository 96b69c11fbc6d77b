/*
 * roster.h: the hosts with their seats, and the workers in them.
 *
 * A host is known as long as discovery lists it, an agent of it is there or may come back, or a
 * worker is in one of its seats. A worker is in the table from its launch to its end.
 */
#ifndef DRIVER_CORE_ROSTER_H
#define DRIVER_CORE_ROSTER_H

#include "driver/core/state.h"

struct core_host *roster_find_host(const struct core *core, const char *name);

/* The host, made if need be; NULL when memory is out, and then the core is broken. */
struct core_host *roster_host(struct core *core, const char *name);

/* Seats for slots 0 to count - 1 at least. False when memory is out; the core is broken. */
bool roster_seats(struct core *core, struct core_host *host, uint32_t count);

/* Drops hosts that nothing holds any more. What pointed at one of them is gone. */
void roster_sweep(struct core *core);

struct core_host *roster_peer(const struct core *core, uint32_t peer);
bool roster_connect(struct core *core, struct core_host *host, uint32_t peer);
void roster_disconnect(struct core *core, struct core_host *host);

/* NULL when it has ended, or never was. */
struct worker *roster_worker(const struct core *core, uint64_t incarnation);

/* A new worker in a free seat; NULL when memory is out, and then the core is broken. */
struct worker *roster_add(struct core *core, uint64_t incarnation, struct core_host *host,
                          uint32_t slot, enum worker_state state);
void roster_move(struct core *core, struct worker *worker, enum worker_state to);

/* Of the worker, and of its host for when it is gone. False when memory is out. */
bool roster_keep_addresses(struct worker *worker, const struct msg_texts *addresses);

/* What the journal says it was: before the start only. */
void roster_restore(struct core *core, struct worker *worker, enum worker_state state);

/* It has ended: its seat is free, and the pointer is no more. */
void roster_remove(struct core *core, struct worker *worker);

/* Frees who has gone in the last step: what the step said may have pointed at them. */
void roster_bury(struct core *core);

/* It may become, or is, a member. */
bool worker_is_alive(const struct worker *worker);

/* Works out anew who has to give up their seat; true when that changed for anyone alive. */
bool roster_judge_seats(struct core *core);

void roster_release(struct core *core);

/* Every worker there is: for (size_t i = 0; (worker = roster_next(core, &i));) */
struct worker *roster_next(const struct core *core, size_t *index);

#endif
