/*
 * security.c: the rules of --data-security: which bytes between hosts are encrypted, authenticated
 * or sent in clear. Called by tcp_connect.c and tcp_speed.c for links, by engine.c for Gloo and by
 * device_group.c for NCCL. Invariants: encryption counts as cheap only after it was measured; no
 * connection is protected less than the option asks for.
 */
#include "collectives/link/security.h"

/* true: encryption costs less than SECURITY_PERCENT of a transfer (security.h). A time that was not
 * measured (-1, 0) never counts as cheap. */
bool security_is_cheap(int64_t extra_us, uint64_t mib_us)
{
    return extra_us >= 0 && (uint64_t)extra_us * 100 < SECURITY_PERCENT * mib_us;
}

/* Returns the least and the most protection that this side accepts (security.h). With
 * --data-security auto, bytes within a host travel in clear; bytes between hosts are authenticated,
 * and encrypted if both sides find the encryption cheap. Any other value asks for one protection
 * exactly. */
struct tcp_wish security_wish(enum link_security security, bool loopback, bool encryption_is_cheap)
{
    enum seal_mode only = SEAL_PLAIN;

    switch (security) {
    case LINK_SECURITY_NONE: break;
    case LINK_SECURITY_AUTHENTICATED: only = SEAL_AUTHENTICATED; break;
    case LINK_SECURITY_ENCRYPTED: only = SEAL_ENCRYPTED; break;
    case LINK_SECURITY_AUTO:
        if (loopback)
            break;
        return (struct tcp_wish){ .least = SEAL_AUTHENTICATED,
                                  .most =
                                      encryption_is_cheap ? SEAL_ENCRYPTED : SEAL_AUTHENTICATED };
    }
    return (struct tcp_wish){ .least = only, .most = only };
}

/* Gloo protects nothing, so it is refused where the option asks for protection (security.h); `auto`
 * asks for none within a host. */
bool security_allows_gloo(enum link_security security, bool loopback)
{
    return security == LINK_SECURITY_NONE || (security == LINK_SECURITY_AUTO && loopback);
}

/* NCCL protects nothing between hosts, but `auto` allows it: device_group.c warns of it then. */
bool security_allows_nccl(enum link_security security, uint32_t host_count)
{
    return host_count == 1 || security == LINK_SECURITY_NONE || security == LINK_SECURITY_AUTO;
}

/* The operator is told only where the option says neither yes nor no (`auto`), and bytes leave the
 * machine (security.h). */
bool security_tells_of_nccl(enum link_security security, uint32_t host_count, bool loopback)
{
    return host_count > 1 && security == LINK_SECURITY_AUTO && !loopback;
}
