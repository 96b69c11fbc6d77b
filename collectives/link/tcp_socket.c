#include "collectives/link/tcp_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

/* A machine that is gone says nothing; the leases of the agents find that out. A network that is
 * down for less than a lease costs nothing but the time. This is the last line, for who has no
 * driver: what lies still is probed by the kernel, and of what is under way the kernel is asked.
 * Not TCP_USER_TIMEOUT: that one also ends a connection whose other side is alive and has been
 * reading nothing for so long (measured, Linux 6.18), and a member may compute for longer than
 * that. */
#define PROBE_AFTER_S  30
#define PROBE_EVERY_S  10
#define PROBES         3
#define SILENT_MS      60000
#define SILENT_REPEATS 3

union endpoint {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static socklen_t endpoint_of(const struct tcp_address *address, union endpoint *ret_endpoint)
{
    memset(ret_endpoint, 0, sizeof(*ret_endpoint));
    if (address->six) {
        ret_endpoint->six.sin6_family = AF_INET6;
        ret_endpoint->six.sin6_port = htons(address->port);
        memcpy(&ret_endpoint->six.sin6_addr, address->ip, sizeof(ret_endpoint->six.sin6_addr));
        return sizeof(ret_endpoint->six);
    }
    ret_endpoint->four.sin_family = AF_INET;
    ret_endpoint->four.sin_port = htons(address->port);
    memcpy(&ret_endpoint->four.sin_addr, address->ip, sizeof(ret_endpoint->four.sin_addr));
    return sizeof(ret_endpoint->four);
}

int tcp_address_parse(const char *host, struct tcp_address *ret_address)
{
    struct tcp_address address = { .six = false };

    if (inet_pton(AF_INET, host, address.ip) != 1) {
        address.six = true;
        if (inet_pton(AF_INET6, host, address.ip) != 1)
            return HVD_E_INVAL;
    }
    *ret_address = address;
    return 0;
}

static int fail(int fd)
{
    int fault = errno;

    if (fd >= 0)
        close(fd);
    errno = fault;
    return -1;
}

static void set(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

static void prepare(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
}

int tcp_listen(struct tcp_address *address)
{
    union endpoint endpoint;
    socklen_t length = endpoint_of(address, &endpoint);
    int fd = socket(endpoint.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, &endpoint.any, length) || listen(fd, BACKLOG) ||
        getsockname(fd, &endpoint.any, &length))
        return fail(fd);
    address->port = ntohs(address->six ? endpoint.six.sin6_port : endpoint.four.sin_port);
    return fd;
}

int tcp_accept(int listener)
{
    int fd;

    do
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd >= 0)
        prepare(fd);
    return fd;
}

int tcp_dial(const struct tcp_address *address)
{
    union endpoint endpoint;
    socklen_t length = endpoint_of(address, &endpoint);
    int fd = socket(endpoint.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    prepare(fd);
    if (connect(fd, &endpoint.any, length) && errno != EINPROGRESS && errno != EINTR)
        return fail(fd);
    return fd;
}

int tcp_fault(int fd)
{
    socklen_t length = sizeof(int);
    int fault = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &length) ? errno : fault;
}

/* A machine that lives answers what is repeated, and what asks whether its memory is full. */
bool tcp_is_silent(int fd)
{
    struct tcp_info info = { .tcpi_state = 0 };
    socklen_t length = sizeof(info);

    return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
           info.tcpi_retransmits + info.tcpi_probes >= SILENT_REPEATS &&
           info.tcpi_last_ack_recv >= SILENT_MS;
}
