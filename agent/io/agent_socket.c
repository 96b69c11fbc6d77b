#include "agent/io/agent_socket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a; two of different seeds make accidents impossible, and nobody gains from a clash that he
 * makes himself. */
static uint64_t digest(const char *text, uint64_t seed)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ seed;

    for (size_t i = 0; text[i]; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return hash;
}

const char *agent_socket_name(const char *job, const char *host, char name[AGENT_SOCKET_MAX])
{
    int length = snprintf(name, AGENT_SOCKET_MAX, "@hvd-agent/%s/%s", job, host);
    uint64_t high;
    uint64_t low;

    if (length >= 0 && length < AGENT_SOCKET_MAX)
        return name;
    high = digest(host, digest(job, 0));
    low = digest(host, digest(job, UINT64_C(0x9e3779b97f4a7c15)));
    snprintf(name, AGENT_SOCKET_MAX, "@hvd-agent/%016" PRIx64 "%016" PRIx64, high, low);
    return name;
}
