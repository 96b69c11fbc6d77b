/*
 * socket.c: the sockets of links and of control connections; called by tcp_connect.c, tcp_link.c
 * and meet/. All sockets are non-blocking, are closed on exec, and send at once (TCP_NODELAY).
 */
#include "collectives/link/socket.h"

#include "os/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

/* An address as the kernel takes and gives it, IPv4 (`four`) or IPv6 (`six`). */
union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

/* Writes the endpoint as an address for the kernel, and returns the length of that address. */
static socklen_t socket_address_of(const struct endpoint *endpoint, union address *ret_address)
{
    memset(ret_address, 0, sizeof(*ret_address));
    if (endpoint->six) {
        ret_address->six.sin6_family = AF_INET6;
        ret_address->six.sin6_port = htons(endpoint->port);
        memcpy(&ret_address->six.sin6_addr, endpoint->ip, sizeof(ret_address->six.sin6_addr));
        return sizeof(ret_address->six);
    }
    ret_address->four.sin_family = AF_INET;
    ret_address->four.sin_port = htons(endpoint->port);
    memcpy(&ret_address->four.sin_addr, endpoint->ip, sizeof(ret_address->four.sin_addr));
    return sizeof(ret_address->four);
}

/* Reads a numeric address, IPv4 or IPv6; no name is looked up. HVD_E_INVAL: the text is not an
 * address. */
int endpoint_parse(const char *host, uint16_t port, struct endpoint *ret_endpoint)
{
    struct endpoint endpoint = { .port = port };

    if (inet_pton(AF_INET, host, endpoint.ip) != 1) {
        endpoint.six = true;
        if (inet_pton(AF_INET6, host, endpoint.ip) != 1)
            return HVD_E_INVAL;
    }
    *ret_endpoint = endpoint;
    return 0;
}

/* Closes `fd` (-1: there is none) after a failed call. Returns -1 with the errno of that call,
 * because close may change errno. */
static int close_failed(int fd)
{
    int fault = errno;

    if (fd >= 0)
        close(fd);
    errno = fault;
    return -1;
}

/* Makes the kernel send each write at once: it does not wait for more bytes to fill a packet. */
static void send_at_once(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Listens at the endpoint. Port 0: the kernel chooses a port, which is written to the endpoint.
 * Returns the descriptor; -1: errno has the reason. */
int socket_listen(struct endpoint *endpoint)
{
    union address address;
    socklen_t length = socket_address_of(endpoint, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, &address.any, length) || listen(fd, BACKLOG) ||
        getsockname(fd, &address.any, &length))
        return close_failed(fd);
    endpoint->port = ntohs(endpoint->six ? address.six.sin6_port : address.four.sin_port);
    return fd;
}

/* Accepts a connection. *ret_source: the network that the peer comes from (os/source.h). A
 * connection that broke while it waited is skipped. Returns the descriptor; -1: errno has the
 * reason, EAGAIN if no connection waits. */
int socket_accept(int listener, uint64_t *ret_source)
{
    struct sockaddr_storage from;
    socklen_t length;
    int fd;

    do {
        length = sizeof(from);
        fd = accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        return fd;
    send_at_once(fd);
    *ret_source = source_of(&from);
    return fd;
}

/* Begins to connect, and does not wait: the descriptor is ready to write when the connect is done
 * (socket_fault). Returns the descriptor; -1: errno has the reason. */
int socket_dial(const struct endpoint *endpoint)
{
    union address address;
    socklen_t length = socket_address_of(endpoint, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    send_at_once(fd);
    if (connect(fd, &address.any, length) && errno != EINPROGRESS && errno != EINTR)
        return close_failed(fd);
    return fd;
}

/* How the connect of socket_dial ended: 0: connected; otherwise the errno. */
int socket_fault(int fd)
{
    socklen_t length = sizeof(int);
    int fault = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &length) ? errno : fault;
}

/* true: the address is one of this machine alone: 127.x.x.x or ::1. */
static bool socket_address_is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
}

/* true: `host` is a numeric loopback address; false also if it is no numeric address. */
bool socket_is_loopback(const char *host)
{
    struct endpoint endpoint;
    union address address;

    if (endpoint_parse(host, 0, &endpoint))
        return false;
    (void)socket_address_of(&endpoint, &address);
    return socket_address_is_loopback(&address);
}

/* true: both ends of the connection are loopback addresses, so no byte leaves this machine. false
 * also if the kernel cannot tell. */
bool socket_stays_inside(int fd)
{
    union address ours = { .any.sa_family = AF_UNSPEC }, theirs = { .any.sa_family = AF_UNSPEC };
    socklen_t length = sizeof(ours), their_length = sizeof(theirs);

    return !getsockname(fd, &ours.any, &length) && !getpeername(fd, &theirs.any, &their_length) &&
           socket_address_is_loopback(&ours) && socket_address_is_loopback(&theirs);
}

/* Writes an address with its port as text: "10.0.0.7:4002", or "[::1]:4002" for IPv6; "an unknown
 * address" if it is neither. */
static void address_text(const union address *address, char ret_text[SOCKET_TEXT_MAX])
{
    bool six = address->any.sa_family == AF_INET6;
    char ip[INET6_ADDRSTRLEN];
    const void *at = six ? (const void *)&address->six.sin6_addr : &address->four.sin_addr;

    if (!inet_ntop(address->any.sa_family, at, ip, sizeof(ip)))
        (void)snprintf(ret_text, SOCKET_TEXT_MAX, "an unknown address");
    else
        (void)snprintf(ret_text, SOCKET_TEXT_MAX, "%s%s%s:%u", six ? "[" : "", ip, six ? "]" : "",
                       (unsigned)ntohs(six ? address->six.sin6_port : address->four.sin_port));
}

/* Writes both ends of a connection as text. An end that the kernel does not name becomes "an
 * unknown address". */
void socket_text(int fd, char ret_ours[SOCKET_TEXT_MAX], char ret_theirs[SOCKET_TEXT_MAX])
{
    union address ours = { .any.sa_family = AF_UNSPEC }, theirs = { .any.sa_family = AF_UNSPEC };
    socklen_t length = sizeof(ours), their_length = sizeof(theirs);

    (void)getsockname(fd, &ours.any, &length);
    (void)getpeername(fd, &theirs.any, &their_length);
    address_text(&ours, ret_ours);
    address_text(&theirs, ret_theirs);
}
