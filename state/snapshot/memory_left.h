/*
 * memory_left.h: how much memory this machine and the control groups of this process have left. The
 * number is an estimate, because other processes take memory too. It is needed because Linux grants
 * more memory than it has, and kills a process when the granted memory is used: a caller asks here
 * before it takes much memory.
 */
#ifndef STATE_SNAPSHOT_MEMORY_LEFT_H
#define STATE_SNAPSHOT_MEMORY_LEFT_H

#include "base/base.h"

/* Returns the memory that is left, in bytes; UINT64_MAX: the system does not say how much. */
uint64_t memory_left(void);

/* Finds the line of `text` that begins with `word`, and returns the number after the word;
 * UINT64_MAX: there is no such line. */
uint64_t memory_number(const char *text, const char *word);

#endif
