/*
 * listing.h: handles the results of discovery: the list of hosts, and what the driver does when the
 * list changes.
 */
#ifndef DRIVER_CORE_LISTING_H
#define DRIVER_CORE_LISTING_H

#include "driver/core/core_internal.h"

/* Asks for one discovery, unless a discovery is already running. */
void listing_discover(struct core *core);

/* Makes `hosts` the hosts of the job. */
void listing_set(struct core *core, const struct hosts *hosts);

void listing_on_hosts(struct core *core, const struct hosts *hosts);
void listing_on_failure(struct core *core, const char *why);

#endif
