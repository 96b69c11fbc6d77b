/*
 * socket.h: TCP sockets between numeric addresses, for links and for control connections (meet/).
 * All sockets are non-blocking. A function that returns -1 has set errno.
 */
#ifndef COLLECTIVES_LINK_SOCKET_H
#define COLLECTIVES_LINK_SOCKET_H

#include "base/err.h"

#define ENDPOINT_IP_BYTES 16

struct endpoint {
    bool six;                      /* true: an IPv6 address; false: IPv4 */
    uint8_t ip[ENDPOINT_IP_BYTES]; /* IPv4 uses the first four bytes */
    uint16_t port;
};

/* Makes an endpoint of an address and a port. HVD_E_INVAL: `host` is no numeric address. */
int endpoint_parse(const char *host, uint16_t port, struct endpoint *ret_endpoint) MUST_CHECK;

/* Listens, and writes the port that the kernel chose to the endpoint. */
int socket_listen(struct endpoint *endpoint); /* writes the chosen port into the endpoint */
/* Accepts a connection. ret_source: the network that the peer comes from (os/source.h). */
int socket_accept(int listener, uint64_t *ret_source);
int socket_dial(const struct endpoint *endpoint); /* begins to connect, and does not wait */
/* true: both ends of the connection are loopback addresses, so its bytes do not leave the machine
 */
bool socket_stays_inside(int fd);
bool socket_is_loopback(const char *host); /* `host`: a numeric address */
/* Writes the addresses of the two ends of a connection, such as "10.0.0.7:4002"; "an unknown
 * address" for an end that the kernel does not know any more. */
#define SOCKET_TEXT_MAX 64
void socket_text(int fd, char ret_ours[SOCKET_TEXT_MAX], char ret_theirs[SOCKET_TEXT_MAX]);
int socket_fault(int fd); /* how the connect of socket_dial ended: 0, or an errno */

/* the reason in an error when no file descriptor is free to connect a peer */
#define SOCKET_STARVES \
    "no file descriptor is left for the connection; raise the limit of open files (ulimit -n)"

#endif
