/*
 * replay_hosts.h: which nodes of a trace are hosts now, and how a host is taken away.
 *
 * Each node has an address of its own, from 127.0.0.1 on, and gets the same address when it comes
 * back. When there are more nodes than may be used, the nodes that came first are used; the next
 * ones wait until there is room.
 */
#ifndef TESTS_CHAOS_REPLAY_HOSTS_H
#define TESTS_CHAOS_REPLAY_HOSTS_H

#include "tests/chaos/arena.h"
#include "tests/chaos/trace.h"

struct replay_hosts {
    struct arena *arena; /* its hosts are the used nodes, in the order of their arrival */
    uint32_t most;
    uint32_t *waiting; /* nodes that are present and not used, in the order of their arrival */
    size_t waiting_count;
    size_t nodes;
};

int replay_hosts_init(struct replay_hosts *hosts, struct arena *arena, size_t nodes) MUST_CHECK;
void replay_hosts_release(struct replay_hosts *hosts);

void replay_hosts_add(struct replay_hosts *hosts, uint32_t node);

/* Removes the node; false: it was not used. */
bool replay_hosts_remove(struct replay_hosts *hosts, uint32_t node);

/* Uses waiting nodes as far as there is room; returns how many. */
uint32_t replay_hosts_fill(struct replay_hosts *hosts);

bool replay_hosts_used(const struct replay_hosts *hosts, uint32_t node);

/* Sends SIGKILL to every process of a host that is not used, and returns how many were hit. The
 * host of a worker is known from its environment, of an agent from its workers or its log, of a
 * supervisor from its agent. */
uint32_t replay_hosts_sweep(const struct replay_hosts *hosts);

const char *replay_hosts_address(uint32_t node, char address[ARENA_NAME]);

#endif
