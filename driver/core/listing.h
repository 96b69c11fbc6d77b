/*
 * listing.h: what discovery says, and what follows from it.
 */
#ifndef DRIVER_CORE_LISTING_H
#define DRIVER_CORE_LISTING_H

#include "driver/core/state.h"

void listing_discover(struct core *core);
void listing_on_hosts(struct core *core, const struct hosts *hosts);
void listing_on_failure(struct core *core, const char *why);

#endif
