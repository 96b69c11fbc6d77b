/*
 * room.h: how much memory this machine, and the control groups of this process, have left. It is a
 * guess, as others take memory too; but Linux gives out more than it has, and kills somebody when
 * that is used. So it is asked before much is taken.
 */
#ifndef STATE_SNAPSHOT_ROOM_H
#define STATE_SNAPSHOT_ROOM_H

#include "base/base.h"

/* In bytes; UINT64_MAX where nobody says. */
uint64_t room_left(void);

/* The number that stands behind the word, where that begins a line; UINT64_MAX: none. */
uint64_t room_number(const char *text, const char *word);

#endif
