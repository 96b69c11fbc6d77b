/*
 * source.h: the network that a peer comes from, as base/door.h counts its guests: an IPv4 address,
 * or the first 64 bits of an IPv6 address. An IPv4 address that is mapped into IPv6 is an IPv4
 * address. So several peers behind one address count as one source.
 */
#ifndef OS_SOURCE_H
#define OS_SOURCE_H

#include "base/base.h"

#include <sys/socket.h>

#define SOURCE_TEXT_MAX 48

/* The source of this address; 0 for a family that is neither IPv4 nor IPv6. */
uint64_t source_of(const struct sockaddr_storage *address);

/* Writes a source as text: "10.0.0.7", or "2001:db8::/64". */
const char *source_show(uint64_t source, char text[SOURCE_TEXT_MAX]);

/* true: the peer has sent bytes that were not read yet. */
bool source_has_spoken(int fd);

/* true: a peer waits at the listener, and `fault` (errno after accept) says that no descriptor or
 * memory is free for it. When no descriptor is free, accept fails with this errno also if no peer
 * waits. */
bool source_is_starved(int listener, int fault);

#endif
