/*
 * links.h: the kinds of links there are.
 */
#ifndef COLLECTIVES_LINK_LINKS_H
#define COLLECTIVES_LINK_LINKS_H

#include "collectives/link/link.h"
#include "collectives/link/reaper.h"

enum link_kind { LINK_GLOO, LINK_TCP };

/* "gloo", "tcp". */
const char *link_kind_name(enum link_kind kind);

/* Where the links of a process are reached: a numeric address of this machine. A thread that it
 * may have inherits the signals and the priority of the one that calls this. */
struct link_device;
int link_device_open(enum link_kind kind, const char *host, struct link_device **ret_device,
                     struct hvd_err *err) MUST_CHECK;
void link_device_close(struct link_device *device); /* NULL is allowed; no link is left */

/* Of a member of a round: connects these peers only (ranks, borrowed), and no others can be sent
 * to. What a cancel leaves to be closed is done by the reaper, if it takes time. */
int link_create(struct link_device *device, struct reaper *reaper, uint32_t rank, uint32_t size,
                const uint32_t *peers, size_t peer_count, struct link **ret_link,
                struct hvd_err *err) MUST_CHECK;

#endif
