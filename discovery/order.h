/*
 * order.h: the order of hosts over time. Known hosts keep their position, so that old hosts have
 * the low ranks; new hosts are appended in the order of the discovered text. A host that went away
 * is forgotten: when that host comes back, it is appended as a new host.
 */
#ifndef DISCOVERY_ORDER_H
#define DISCOVERY_ORDER_H

#include "discovery/hosts.h"

/*
 * Sorts the hosts of `now`: first the hosts that are also in `before`, in the order of `before`,
 * then the new hosts in the order of `now`. `before` is the result of the last call. Each host gets
 * the number of slots that it has in `now`. ret_hosts must be initialised, is replaced on success,
 * and may be `before` or `now`. Returns 0 or HVD_E_NOMEM. The time is linear in the number of
 * hosts.
 */
int order_update(const struct hosts *before, const struct hosts *now,
                 struct hosts *ret_hosts) MUST_CHECK;

#endif
