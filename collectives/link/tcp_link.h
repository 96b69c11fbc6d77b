/*
 * tcp_link.h: a link over TCP connections of our own. No thread: bytes move while a thread of the
 * program is inside connected, send or wait, and then those of all peers.
 */
#ifndef COLLECTIVES_LINK_TCP_LINK_H
#define COLLECTIVES_LINK_TCP_LINK_H

#include "collectives/link/link.h"

/* Where the links of a process listen: a numeric address of this machine. */
struct tcp_device;
int tcp_device_open(const char *host, struct tcp_device **ret_device,
                    struct hvd_err *err) MUST_CHECK;
void tcp_device_close(struct tcp_device *device);

/* Connects these peers only (ranks, borrowed), and no others can be sent to. */
int tcp_link_create(const struct tcp_device *device, uint32_t rank, const uint32_t *peers,
                    size_t peer_count, struct link **ret_link, struct hvd_err *err) MUST_CHECK;

#endif
