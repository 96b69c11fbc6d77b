/*
 * replay_hosts.h: which nodes of a trace are hosts now, and how one is taken away.
 *
 * Each node has an address of its own, 127.0.0.1 and those after it, and the same one when it comes
 * back. Of more than may be used those that came first are; who waits is used when there is room.
 */
#ifndef TESTS_CHAOS_REPLAY_HOSTS_H
#define TESTS_CHAOS_REPLAY_HOSTS_H

#include "tests/chaos/arena.h"
#include "tests/chaos/trace.h"

struct replay_hosts {
    struct arena *arena; /* its hosts are those that are used, in the order of their arrival */
    uint32_t most;
    uint32_t *waiting; /* nodes that are there and not used, in that order */
    size_t waiting_count;
    size_t nodes;
};

int replay_hosts_init(struct replay_hosts *hosts, struct arena *arena, size_t nodes) MUST_CHECK;
void replay_hosts_release(struct replay_hosts *hosts);

void replay_hosts_add(struct replay_hosts *hosts, uint32_t node);

/* False: it was not used. */
bool replay_hosts_remove(struct replay_hosts *hosts, uint32_t node);

/* Those that wait are used as far as there is room; how many. */
uint32_t replay_hosts_fill(struct replay_hosts *hosts);

bool replay_hosts_used(const struct replay_hosts *hosts, uint32_t node);

/* SIGKILL to every process of a host that is not used: a worker by what its environment says of its
 * host, an agent by its workers or its log, a keeper by its agent. How many. */
uint32_t replay_hosts_sweep(const struct replay_hosts *hosts);

const char *replay_hosts_address(uint32_t node, char address[ARENA_NAME]);

#endif
