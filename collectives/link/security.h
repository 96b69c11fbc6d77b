/*
 * security.h: the rules of --data-security: how a link wants its messages to travel, and whether
 * Gloo and NCCL may be used, which send numbers in clear. The rules use no sockets and no clock.
 */
#ifndef COLLECTIVES_LINK_SECURITY_H
#define COLLECTIVES_LINK_SECURITY_H

#include "collectives/link/link.h"
#include "collectives/link/tcp_wire.h"

/* With --data-security auto, encryption is used if it takes less than this share of a transfer's
 * time. */
#define SECURITY_PERCENT 10

/* true: encryption takes less than SECURITY_PERCENT of the time of a transfer. extra_us: how much
 * longer it takes to encrypt 1 MiB than to authenticate it (-1: not measured). mib_us: in what time
 * the kernel carried 1 MiB to the host of the peer (0: not measured). */
bool security_is_cheap(int64_t extra_us, uint64_t mib_us);

/* Returns how this side of a connection wants its messages to travel. loopback: both ends are
 * loopback addresses; encryption_is_cheap: the result of security_is_cheap for the peer's host. */
struct tcp_wish security_wish(enum link_security security, bool loopback, bool encryption_is_cheap);

/* true: Gloo may be used. Gloo does not check who its peers are, and sends numbers in clear.
 * loopback: Gloo uses a loopback address, so no byte leaves the machine. */
bool security_allows_gloo(enum link_security security, bool loopback);

/* true: NCCL may be used. Between hosts NCCL sends numbers in clear. */
bool security_allows_nccl(enum link_security security, uint32_t host_count);
/* true: the operator must be told that NCCL sends numbers in clear, which --data-security auto
 * allows. loopback: the workers use a loopback address. */
bool security_tells_of_nccl(enum link_security security, uint32_t host_count, bool loopback);

#endif
