/*
 * round.h: how rounds begin and die. A round begins first when np workers are READY, and again when
 * a revoked one's survivors have all said RECOVERING; in between, change.h replaces one by the next
 * without losing a step.
 */
#ifndef DRIVER_CORE_ROUND_H
#define DRIVER_CORE_ROUND_H

#include "driver/core/state.h"

void round_release(struct round *round);
void round_clear(struct round *round);

/* One more member; false when memory is out, and then the core is broken. */
bool round_add(struct core *core, struct round *round, uint64_t incarnation);
bool round_has(const struct round *round, const struct worker *worker);

/* Begins a round if one is due: the first, or the one after a revoked one. */
void round_look(struct core *core);

/* core->next becomes core->current: journal, ranks, states. The caller tells the workers. */
void round_begin(struct core *core);

/* The three change places, and nothing else. What a switch leaves behind stays in core->last. */
void round_rotate(struct core *core);
void round_tell(struct core *core);

/* The ROUND of the current one, to be told. */
struct msg *round_msg(struct core *core);

/* REVOKE of the current round. lost may be NULL. */
struct msg *round_revoke_msg(struct core *core, const struct worker *lost, const char *why);

/* A worker that was `was` is lost: the round with it, or the change that it took part in. */
void round_lost(struct core *core, const struct worker *worker, enum worker_state was,
                const char *why);
void round_revoke(struct core *core, const struct worker *lost, const char *why);

/* False, and the job ends, when one more round is one too many. */
bool round_allowed(struct core *core);

/* READY workers that are to join, in order, behind the members that core->next has. */
void round_add_joiners(struct core *core);

/* Have enough been ready for so long that the others are not waited for any longer? */
bool round_gathered(struct core *core, size_t need);

/* It has members on this host, and all of its members that are heard train; some are. */
bool round_is_trained(const struct core *core, const struct core_host *with);

/* Whoever is to begin is heard again: its time counts from now on. */
void round_wait_again(struct core *core);

/* Not everybody has begun to train, and it is time. */
void round_expire(struct core *core);

void round_on_recovering(struct core *core, struct worker *worker, const struct msg *msg);
void round_on_entered(struct core *core, struct worker *worker, const struct msg *msg);

#endif
