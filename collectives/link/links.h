/*
 * links.h: the kinds of links (our own TCP, and Gloo), and how a link of a kind is made.
 */
#ifndef COLLECTIVES_LINK_LINKS_H
#define COLLECTIVES_LINK_LINKS_H

#include "collectives/link/link.h"
#include "collectives/link/reaper.h"

enum link_kind { LINK_GLOO, LINK_TCP };

/* A device listens for the links of a process at a numeric address of this machine. If the device
 * has a thread, that thread inherits the signal mask and the priority of the calling thread. */
struct link_device;
int link_device_open(enum link_kind kind, const char *host, struct link_device **ret_device,
                     struct hvd_err *err) MUST_CHECK;
/* Peers are told this address in place of the one at which links listen, as a device translates it
 * (NAT). Called before the first link is made, for LINK_TCP. HVD_E_INVAL: no numeric address. */
int link_device_announce(struct link_device *device, const char *host,
                         struct hvd_err *err) MUST_CHECK;
/* The caller has freed all links of the device before. `device` may be NULL. */
void link_device_close(struct link_device *device);

int link_create(struct link_device *device, const struct link_spec *spec, struct link **ret_link,
                struct hvd_err *err) MUST_CHECK;

#endif
