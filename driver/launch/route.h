/*
 * route.h: judges the addresses of a host as seen from this machine: whether one of them is an
 * address of this machine, and which address of this machine is the source on the route to the
 * host.
 */
#ifndef DRIVER_LAUNCH_ROUTE_H
#define DRIVER_LAUNCH_ROUTE_H

#include "base/err.h"
#include "driver/launch/reach.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* An address as the calls for sockets take it: `any` of either family, `four` of IPv4, `six` of
 * IPv6. */
struct route_address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } of;
};

/* Copies the address `from` to *address. False: it is neither an IPv4 nor an IPv6 address. An IPv4
 * address that is mapped into IPv6 becomes an IPv4 address. */
bool route_take(struct route_address *address, const struct sockaddr *from, socklen_t length);

/* Reads a numeric address, "10.0.0.7" or "fe80::1%eth0". False: the text is a name. Nothing is
 * looked up. */
bool route_parse(struct route_address *address, const char *text);

/* True for "localhost" and for loopback addresses such as "127.0.0.2" and "::1". Other names are
 * not looked up, and give false. */
bool route_names_loopback(const char *host);

/* `interfaces` is a list of network interfaces to use, "eth0,eth1", or of those not to use,
 * "^lo,docker0". Checks that this machine has each interface to use; or that it has an interface
 * that is not excluded. Returns 0, HVD_E_NOTFOUND or HVD_E_IO; the error names the interfaces of
 * this machine. */
int route_check_interfaces(const char *interfaces, struct hvd_err *err) MUST_CHECK;

/*
 * Finds where a host with these addresses is. The first IPv4 address with a route is used; if no
 * IPv4 address has a route, the first IPv6 address with one. answer.source is an address of one of
 * the `interfaces`: the address from which the kernel reaches the host, if one of the interfaces
 * has it, else an address of the first named interface. interfaces NULL: any interface. Returns 0,
 * HVD_E_NOTFOUND or HVD_E_IO; the error begins with the host.
 */
int route_find(const char *host, const struct route_address *addresses, size_t count,
               const char *interfaces, struct reach_answer *ret_answer,
               struct hvd_err *err) MUST_CHECK;

#endif
