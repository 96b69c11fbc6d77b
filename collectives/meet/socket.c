#include "collectives/meet/inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

union endpoint {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static socklen_t endpoint_of(const struct meet_contact *contact, union endpoint *ret_endpoint)
{
    memset(ret_endpoint, 0, sizeof(*ret_endpoint));
    if (inet_pton(AF_INET, contact->host, &ret_endpoint->four.sin_addr) == 1) {
        ret_endpoint->four.sin_family = AF_INET;
        ret_endpoint->four.sin_port = htons(contact->port);
        return sizeof(ret_endpoint->four);
    }
    if (inet_pton(AF_INET6, contact->host, &ret_endpoint->six.sin6_addr) == 1) {
        ret_endpoint->six.sin6_family = AF_INET6;
        ret_endpoint->six.sin6_port = htons(contact->port);
        return sizeof(ret_endpoint->six);
    }
    return 0;
}

static int open_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool listens(int fd, const union endpoint *endpoint, socklen_t length,
                    union endpoint *ret_bound)
{
    socklen_t bound_length = sizeof(*ret_bound);

    return fd >= 0 && !bind(fd, &endpoint->any, length) && !listen(fd, BACKLOG) &&
           !getsockname(fd, &ret_bound->any, &bound_length);
}

int meet_listen(struct meet_contact *contact, int *ret_fd, struct hvd_err *err)
{
    union endpoint endpoint, bound = { .any = { .sa_family = AF_UNSPEC } };
    socklen_t length = endpoint_of(contact, &endpoint);
    int fd;

    if (!length)
        return err_set(err, HVD_E_INVAL, "\"%s\" is no numeric address", contact->host);
    fd = open_socket(endpoint.any.sa_family);
    if (!listens(fd, &endpoint, length, &bound)) {
        (void)err_set(err, HVD_E_IO,
                      "cannot listen on %s: %s; it must be an address of this machine",
                      contact->host, strerror(errno));
        if (fd >= 0)
            close(fd);
        return HVD_E_IO;
    }
    contact->port =
        ntohs(bound.any.sa_family == AF_INET ? bound.four.sin_port : bound.six.sin6_port);
    *ret_fd = fd;
    return 0;
}

static void at_once(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int meet_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0)
        at_once(fd);
    return fd;
}

int meet_dial(const struct meet_contact *contact)
{
    union endpoint endpoint;
    socklen_t length = endpoint_of(contact, &endpoint);
    int fd, fault;

    if (!length) {
        errno = EINVAL;
        return -1;
    }
    fd = open_socket(endpoint.any.sa_family);
    if (fd < 0)
        return -1;
    at_once(fd);
    if (!connect(fd, &endpoint.any, length) || errno == EINPROGRESS)
        return fd;
    fault = errno;
    close(fd);
    errno = fault;
    return -1;
}
