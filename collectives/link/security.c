/*
 * security.c: the rules of --data-security: which bytes between hosts are encrypted, authenticated
 * or sent in clear. Called by tcp_connect.c and tcp_speed.c for links, by engine.c for Gloo and by
 * device_group.c for NCCL. Invariants: encryption counts as cheap only after it was measured; no
 * connection is protected less than the option asks for.
 */
#include "collectives/link/security.h"

bool security_is_cheap(int64_t extra_us, uint64_t mib_us)
{
    return extra_us >= 0 && (uint64_t)extra_us * 100 < SECURITY_PERCENT * mib_us;
}

/* Returns the protection that this side wants (security.h): first the weakest mode that it accepts,
 * then the strongest mode that it wants. */
struct tcp_wish security_wish(enum link_security security, bool inside, bool cheap)
{
    switch (security) {
    case LINK_SECURITY_NONE: return (struct tcp_wish){ SEAL_PLAIN, SEAL_PLAIN };
    case LINK_SECURITY_AUTHENTICATED:
        return (struct tcp_wish){ SEAL_AUTHENTICATED, SEAL_AUTHENTICATED };
    case LINK_SECURITY_ENCRYPTED: return (struct tcp_wish){ SEAL_ENCRYPTED, SEAL_ENCRYPTED };
    case LINK_SECURITY_AUTO: break;
    }
    if (inside)
        return (struct tcp_wish){ SEAL_PLAIN, SEAL_PLAIN };
    return (struct tcp_wish){ SEAL_AUTHENTICATED, cheap ? SEAL_ENCRYPTED : SEAL_AUTHENTICATED };
}

bool security_allows_gloo(enum link_security security, bool inside)
{
    return security == LINK_SECURITY_NONE || (security == LINK_SECURITY_AUTO && inside);
}

bool security_allows_nccl(enum link_security security, uint32_t host_count)
{
    return host_count == 1 || security == LINK_SECURITY_NONE || security == LINK_SECURITY_AUTO;
}

bool security_tells_of_nccl(enum link_security security, uint32_t host_count, bool inside)
{
    return host_count > 1 && security == LINK_SECURITY_AUTO && !inside;
}
