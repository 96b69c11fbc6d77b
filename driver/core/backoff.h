/*
 * backoff.h: how long the next round or change waits after rounds or changes that brought nothing.
 *
 * A round is fruitless if it has gained nothing. The round after a first fruitless round begins at
 * once, because a death in the middle of a recovery is common. After a second fruitless round the
 * cause is likely to be still there, and each try costs every survivor its connections. So the
 * survivors wait, and each wait is twice as long as the wait before.
 *
 * A round has gained something in two cases: it leaves a newer commit with other contents, or it
 * has trained for as long as the longest wait. A round does not count as fruitless either when a
 * member died after some member had begun to train: the cause is gone with the dead member.
 */
#ifndef DRIVER_CORE_BACKOFF_H
#define DRIVER_CORE_BACKOFF_H

#include "driver/core/core_internal.h"

/* True: a round or change may begin now. False: no round or change may begin yet, and core_step is
 * called again at the right time. */
bool backoff_is_over(struct core *core);

/* The current round has been revoked. `died` is true if the reason is the death of a member. */
void backoff_round_ended(struct core *core, bool died);

/* Decides whether the round that has ended gained anything. Called once for each round, when all
 * survivors have said which commits they hold. Returns NULL, or the reason why the job fails. */
const char *backoff_weigh(struct core *core);

/* Sets the count of fruitless rounds to 0, and the next round need not wait. Called when a round
 * gained something or lost a member, or when a worker that made rounds fail is ended. */
void backoff_forgive(struct core *core);

/* backoff_switched: the current round has ended in a switch, so it was a success.
 * backoff_change_failed: a change was abandoned. */
void backoff_switched(struct core *core);
void backoff_change_failed(struct core *core);

/* A member reported that the ranks called different operations; `text` says which operations. */
void backoff_note_mismatch(struct core *core, const char *text);

#endif
