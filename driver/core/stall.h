/*
 * stall.h: who keeps the others waiting. What workers say of it (STALLED) is put together before it
 * is believed: who is waited for may itself wait for somebody. To blame is who is missing and does
 * not wait: that one is named once in each --stall-warning, and ended after --stall-shutdown. Those
 * who all wait for each other are sent back to their last commit.
 *
 * Where nobody can say anything (a recovery, the first step of a round, the way to a check) the
 * driver knows by itself who has not come.
 */
#ifndef DRIVER_CORE_STALL_H
#define DRIVER_CORE_STALL_H

#include "driver/core/state.h"

void stall_on_stalled(struct core *core, struct worker *worker, const struct msg *msg);

/* It has come on: what it said of a wait is over. */
void stall_moved(struct worker *worker);

/* From now on somebody is waited for: warned of after --stall-warning, and then again and again. */
void stall_watch(struct core *core);

/* The last warning of those who said that they wait, without the round: "rank 3 (b:1#4), for 5s in
 * allreduce (number 17)". Borrowed until the next event. "": nobody waits. */
const char *stall_said(const struct core *core);

/* Somebody says that it waits for a worker of this host, which does not wait itself. */
bool stall_waits_for(struct core *core, const struct core_host *host);

/* What is due: a warning, a verdict on what was said. */
void stall_expire(struct core *core);

/* A time limit of all is over; ends those whose fault it is that it was not kept. False: it cannot
 * be told whose it is, and nothing was done. */
bool stall_end_who_never_began(struct core *core);
bool stall_end_who_never_checked(struct core *core);

#endif
