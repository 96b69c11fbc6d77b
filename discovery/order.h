/*
 * order.h: the order of hosts over time. Known hosts keep their place, so that old hosts hold the
 * low ranks; new ones append in the order in which they were printed. A host that went away is
 * forgotten: when it comes back it is new, and goes to the end.
 */
#ifndef DISCOVERY_ORDER_H
#define DISCOVERY_ORDER_H

#include "discovery/hosts.h"

/*
 * The hosts of `now` with their slots, ordered after `before`, which is what the last call gave.
 * ret_hosts is a set already, is replaced on success, and may be either of the two.
 * 0 or HVD_E_NOMEM. Linear in the number of hosts.
 */
int order_update(const struct hosts *before, const struct hosts *now,
                 struct hosts *ret_hosts) MUST_CHECK;

#endif
