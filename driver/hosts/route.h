/*
 * route.h: what this machine knows of an address: whether it is one of its own, and which of its
 * own stands on the way to it.
 */
#ifndef DRIVER_HOSTS_ROUTE_H
#define DRIVER_HOSTS_ROUTE_H

#include "base/err.h"
#include "driver/hosts/reach.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct route_address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } of;
};

/* False for what is neither IPv4 nor IPv6. One is taken out of the other where it is hidden there.
 */
bool route_take(struct route_address *address, const struct sockaddr *from, socklen_t length);

/* "10.0.0.7", "fe80::1%eth0"; false for names. Nothing is looked up. */
bool route_parse(struct route_address *address, const char *text);

/* "localhost", "127.0.0.2", "::1". What other names mean is known when they have been looked up. */
bool route_names_loopback(const char *host);

/* "eth0": 0, or HVD_E_NOTFOUND with those that there are. */
int route_check_interface(const char *interface, struct hvd_err *err) MUST_CHECK;

/*
 * Where a host of these addresses is. The first IPv4 address to which there is a way counts, then
 * the first of IPv6. interface (NULL: any) says whose address the source is. 0, or an err that
 * begins with the host: HVD_E_NOTFOUND, HVD_E_IO.
 */
int route_find(const char *host, const struct route_address *addresses, size_t count,
               const char *interface, struct reach_answer *ret_answer,
               struct hvd_err *err) MUST_CHECK;

#endif
