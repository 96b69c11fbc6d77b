/*
 * replay_hosts.c: gives each node of a trace an address of its own, and decides which nodes are
 * used when there are more than the plan allows.
 */
#include "tests/chaos/replay_hosts.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define NET_HOSTS 250 /* addresses that are used of each 127.0.N.* */

int replay_hosts_init(struct replay_hosts *hosts, struct arena *arena, size_t nodes)
{
    uint64_t most = arena->plan->max_hosts;

    *hosts = (struct replay_hosts){ .arena = arena, .nodes = nodes };
    hosts->most = most > 0 && most < ARENA_HOSTS ? (uint32_t)most : ARENA_HOSTS;
    hosts->waiting = mem_zalloc_array(nodes + 1, sizeof(*hosts->waiting));
    arena->host_count = 0;
    return hosts->waiting ? 0 : HVD_E_NOMEM;
}

void replay_hosts_release(struct replay_hosts *hosts)
{
    mem_free(hosts->waiting);
    hosts->waiting = NULL;
    hosts->waiting_count = 0;
}

const char *replay_hosts_address(uint32_t node, char address[ARENA_NAME])
{
    snprintf(address, ARENA_NAME, "127.0.%u.%u", node / NET_HOSTS % 256, node % NET_HOSTS + 1);
    return address;
}

static uint32_t place_of(const struct replay_hosts *hosts, uint32_t node)
{
    char address[ARENA_NAME];
    uint32_t at = 0;

    replay_hosts_address(node, address);
    while (at < hosts->arena->host_count && strcmp(hosts->arena->hosts[at].name, address) != 0)
        at++;
    return at;
}

bool replay_hosts_used(const struct replay_hosts *hosts, uint32_t node)
{
    return place_of(hosts, node) < hosts->arena->host_count;
}

void replay_hosts_add(struct replay_hosts *hosts, uint32_t node)
{
    if (hosts->waiting_count < hosts->nodes)
        hosts->waiting[hosts->waiting_count++] = node;
}

static void stop_waiting(struct replay_hosts *hosts, size_t at)
{
    hosts->waiting_count--;
    memmove(&hosts->waiting[at], &hosts->waiting[at + 1],
            (hosts->waiting_count - at) * sizeof(*hosts->waiting));
}

bool replay_hosts_remove(struct replay_hosts *hosts, uint32_t node)
{
    struct arena *arena = hosts->arena;
    uint32_t place = place_of(hosts, node);

    for (size_t i = 0; i < hosts->waiting_count; i++)
        if (hosts->waiting[i] == node) {
            stop_waiting(hosts, i);
            return false;
        }
    if (place == arena->host_count)
        return false;
    arena->host_count--;
    memmove(&arena->hosts[place], &arena->hosts[place + 1],
            (arena->host_count - place) * sizeof(*arena->hosts));
    return true;
}

uint32_t replay_hosts_fill(struct replay_hosts *hosts)
{
    struct arena *arena = hosts->arena;
    uint32_t filled = 0;

    while (hosts->waiting_count > 0 && arena->host_count < hosts->most) {
        struct arena_host *host = &arena->hosts[arena->host_count++];

        replay_hosts_address(hosts->waiting[0], host->name);
        host->slots = (uint32_t)arena->plan->slots;
        host->listed = true;
        stop_waiting(hosts, 0);
        filled++;
    }
    return filled;
}
