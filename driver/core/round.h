/*
 * round.h: the three rounds that the core knows, and how each of them begins and ends:
 *
 *     next     chosen by change.c or recovery.c; not told as a ROUND yet
 *     current  the newest round that has begun; revoked or not
 *     last     the round before a switch, until all members train in the current round
 *
 * Which workers are in a round, and when a round begins, is decided by join.c, change.c and
 * recovery.c.
 */
#ifndef DRIVER_CORE_ROUND_H
#define DRIVER_CORE_ROUND_H

#include "driver/core/core_internal.h"

/* round_release frees the lists of the round. round_clear empties the round and keeps its memory.
 */
void round_release(struct round *round);
void round_clear(struct round *round);

/* Appends a member. False: no memory is left, and the core has failed. */
bool round_add(struct core *core, struct round *round, uint64_t incarnation);
/* round_has: the worker is a member. round_all_entered: all members have said ENTERED. */
bool round_has(const struct round *round, const struct worker *worker);
bool round_all_entered(const struct round *round);

/* Gives core->next the next number. The number counts as told from now on, so it is never used
 * again, not even when the change is abandoned. */
void round_name_next(struct core *core, enum msg_cause cause);

/* The next round begins with a checkpoint, which is older than resume_min_commit: from now on
 * rounds may resume from this commit. */
void round_fall_back(struct core *core, uint64_t commit);

/* Sends STATE_KEY, the key with which agents fetch commits from each other, to the agents of hosts
 * that have a worker in this round or in the round before, or that serve the commit. */
void round_tell_state_key(struct core *core, const struct round *round);
/* Sends STATE_KEY again to the agent of this host, which may have missed it: for the current round
 * and the next one. */
void round_tell_state_key_again(struct core *core, struct core_host *host);

/* round_begin: core->next becomes core->current, with all that belongs to it: the journal record,
 * the ranks and states of its members, and the job state. round_tell sends ROUND to the members;
 * the caller calls it after round_begin. */
void round_begin(struct core *core);
void round_tell(struct core *core);

/* Restores a round that an earlier driver began, from its journal record. Called only before the
 * core gets EVENT_START. Returns 0 or HVD_E_NOMEM. */
int round_replay(struct core *core, const struct journal_record *record);

/* Handles ENTERED of a worker: counts the worker as training if it is a member of core->current. */
void round_on_entered(struct core *core, struct worker *worker, const struct msg *msg);

/* round_wait_enter: the members get the whole --stall-shutdown again to begin to train.
 * round_stop_waiting: that time limit ends. */
void round_wait_enter(struct core *core);
void round_stop_waiting(struct core *core);

/* Abandons the change to core->next: the members of both rounds are told ABANDON, and the current
 * round goes on. */
void round_abandon(struct core *core, const char *why);

/* Revokes core->current, because the worker `lost` has died; NULL: for another reason. */
void round_revoke(struct core *core, const struct worker *lost, const char *why);

/* A worker that was in state `was` is lost. Abandons the change or revokes the round if the worker
 * was part of it. */
void round_lost(struct core *core, const struct worker *worker, enum worker_state was,
                const char *why);

/* Remembers the first failure of this round, for the exit text of the job. */
void round_note_failure(struct core *core, const struct worker *worker, const char *why);

/* round_note_error counts a member whose program ended with an error of its own.
 * round_forget_errors sets the count to 0 when the verdict has used it. */
void round_note_error(struct core *core);
void round_forget_errors(struct core *core);

/* True: `need` workers are READY, and the time to wait for workers that are still starting is over.
 */
bool round_gathered(struct core *core, size_t need);

/* True: the round has members on the host `with`, the agents of some members are connected, and all
 * of those members train. */
bool round_is_trained(const struct core *core, const struct core_host *with);

/* The functions msg_of_... make messages about rounds; the caller sends the message. msg_of_round:
 * a ROUND that describes the current round. */
struct msg *msg_of_round(struct core *core);

/* A REVOKE: the current round is dead. `lost`: the worker whose death is the reason; may be
 * NULL. */
struct msg *msg_of_revoke(struct core *core, const struct worker *lost, const char *why);

/* msg_of_prepare: a PREPARE of core->next, or of core->current for members that may not have got
 * it. msg_of_pending: a PENDING of core->next. msg_of_switch: a SWITCH_AT to core->current. */
struct msg *msg_of_prepare(struct core *core, const struct round *round);
struct msg *msg_of_pending(struct core *core);
struct msg *msg_of_switch(struct core *core);

/* An ABANDON: every change that was prepared up to now is abandoned, also those of an earlier
 * driver. */
struct msg *msg_of_abandon(struct core *core, const char *why);

#endif
