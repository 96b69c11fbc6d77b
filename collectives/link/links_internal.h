/*
 * links_internal.h: this library's own TCP connections (tcp_link.c), behind links.h. Gloo's TCP
 * pairs, the other kind, are in a module (gloo_module.h).
 */
#ifndef COLLECTIVES_LINK_LINKS_INTERNAL_H
#define COLLECTIVES_LINK_LINKS_INTERNAL_H

#include "collectives/link/link.h"
#include "collectives/link/socket.h"

/* Our own TCP has no thread: bytes of all peers move while a thread of the program is in the
 * operation connected, send or wait (link.h). tcp_link_host reads the numeric address at which the
 * links of a process listen, and listens there once, so that a wrong address is found here and not
 * in the first round. */
int tcp_link_host(const char *host, struct endpoint *ret_here, struct hvd_err *err) MUST_CHECK;
struct tcp_speed;
/* Makes a link that listens at `here`, at a port of its own. Peers are told the address `told`. */
int tcp_link_create(const struct endpoint *here, const struct endpoint *told,
                    struct tcp_speed *speed, const struct link_spec *spec, struct link **ret_link,
                    struct hvd_err *err) MUST_CHECK;

#endif
