/*
 * source.c: sources of peers, for the listeners of wire/ and collectives/. Invariant: all addresses
 * of one IPv6 /64 network are one source, because one host may use them at will. A host with
 * several IPv4 addresses or networks counts as several sources.
 */
#include "os/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* No IPv6 network begins with these 32 bits (0:ffff::/32), so they mark an IPv4 address. */
#define SOURCE_IPV4 (UINT64_C(0xffff) << 32)

/* Returns the network of a peer as one number: an IPv4 address, or the first 64 bits of an IPv6
 * address. 0: another family. */
uint64_t source_of(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *ipv4 = (const void *)address;
    const struct sockaddr_in6 *ipv6 = (const void *)address;
    uint64_t source = 0;
    uint32_t mapped;

    if (address->ss_family == AF_INET)
        return SOURCE_IPV4 | ntohl(ipv4->sin_addr.s_addr);
    if (address->ss_family != AF_INET6)
        return 0;
    if (IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr)) {
        memcpy(&mapped, &ipv6->sin6_addr.s6_addr[12], sizeof(mapped));
        return SOURCE_IPV4 | ntohl(mapped);
    }
    for (size_t i = 0; i < sizeof(source); i++)
        source = source << 8 | ipv6->sin6_addr.s6_addr[i];
    return source;
}

/* Writes a source as text. SOURCE_IPV4 in the upper half marks an IPv4 address. */
const char *source_show(uint64_t source, char text[SOURCE_TEXT_MAX])
{
    struct in6_addr ipv6 = { 0 };
    struct in_addr ipv4 = { htonl((uint32_t)source) };

    if (source >> 32 == SOURCE_IPV4 >> 32) {
        (void)inet_ntop(AF_INET, &ipv4, text, SOURCE_TEXT_MAX);
        return text;
    }
    for (size_t i = 0; i < sizeof(source); i++)
        ipv6.s6_addr[i] = (uint8_t)(source >> (56 - 8 * i));
    (void)inet_ntop(AF_INET6, &ipv6, text, SOURCE_TEXT_MAX);
    snprintf(text + strlen(text), SOURCE_TEXT_MAX - strlen(text), "/64");
    return text;
}

/* true: the peer has sent bytes that were not read yet. They are left in the socket. */
bool source_has_spoken(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return got > 0;
}

/* true: accept has failed with the errno `fault` because a descriptor or memory is missing, and a
 * peer waits. poll is asked because accept fails with EMFILE also when no peer waits. */
bool source_is_starved(int listener, int fault)
{
    struct pollfd waits = { .fd = listener, .events = POLLIN };

    return (fault == EMFILE || fault == ENFILE || fault == ENOBUFS || fault == ENOMEM) &&
           poll(&waits, 1, 0) > 0;
}
