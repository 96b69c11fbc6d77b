/*
 * clock.h: the two clocks, for programs to read and to hand down.
 */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/base.h"

int64_t clock_now_us(void);  /* monotonic: for every decision */
int64_t clock_wall_us(void); /* since 1970, UTC: for what is shown and kept, never for a decision */

#endif
