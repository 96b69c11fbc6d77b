/*
 * checkpoint_places.h: the slots in which the members of a round train, or have trained.
 * Their agents keep the commits of the members, also of dead ones.
 */
#ifndef DRIVER_CORE_CHECKPOINT_PLACES_H
#define DRIVER_CORE_CHECKPOINT_PLACES_H

#include "driver/core/core_internal.h"

/* The minor version of the protocol since which agents know HOLD. */
#define CHECKPOINT_MINOR 2

/* Fills core->checkpoint.places. False: a member has never trained in this round, or the agent of
 * its slot is not connected or does not know HOLD. */
bool checkpoint_find_places(struct core *core, const struct round *round);

/* While an attempt is HOLDING or SAVING: the host of the first member whose agent has not said
 * which commit it keeps, or has not written a file. */
const struct core_host *checkpoint_awaited_host(const struct core *core);

/* True: each host in which a member of the current round trains or has trained is to leave: it is
 * drained by a deadline, or discovery does not list it any more. */
bool checkpoint_all_leave(const struct core *core);

#endif
