/*
 * state_hosts.h: some hosts in one process: each has the snapshots and the state thread of an
 * agent, and workers whose commits are made here. What is fetched is waited for, not for ever.
 */
#ifndef TESTS_LIB_STATE_HOSTS_H
#define TESTS_LIB_STATE_HOSTS_H

#include "agent/io/state_thread.h"
#include "base/vec.h"
#include "tests/lib/test.h"

#include <event2/event.h>

#define STATE_HOSTS    4
#define STATE_MANIFEST 9

struct state_host {
    struct state_hosts *all;
    char name[8];
    struct snapshots *snapshots;
    struct state_thread *thread;
};

struct state_answer {
    uint64_t who;
    struct msg_fetched fetched; /* but for its text */
    char text[ERR_TEXT_MAX];
};

struct state_hosts {
    struct event_base *base;
    struct tls *tls;
    struct state_host hosts[STATE_HOSTS];
    size_t count;
    struct VEC(struct state_answer) answers;
    bool starved; /* no memory to note an answer */
};

int state_hosts_init(struct state_hosts *hosts, size_t count) MUST_CHECK;
void state_hosts_release(struct state_hosts *hosts);

/* The memory of the worker of this incarnation, as it maps it: of so many chunks, all replicated.
 * NULL: it was not granted. */
struct snapshot *state_worker(struct state_hosts *hosts, size_t host, uint32_t slot,
                              uint64_t incarnation, uint64_t chunks);

/* A commit of the worker: what is in it follows from its number. The second writes a part of it,
 * and leaves the commit unnamed. */
int state_commit(struct snapshot *snapshot, uint64_t commit) MUST_CHECK;
int state_commit_part(struct snapshot *snapshot, uint64_t commit, uint64_t chunks) MUST_CHECK;
void state_chunk_bytes(uint64_t commit, uint64_t chunk, uint8_t *ret_bytes);

/* Is what the agent has fetched this commit? The second names it, as a worker does. */
bool state_has(struct snapshot *snapshot, uint64_t commit);
bool state_is(struct snapshot *snapshot, uint64_t commit);

/* A source on a host that is there, or at an address that the caller knows. */
struct msg_source state_source(const struct state_hosts *hosts, size_t host, uint32_t slot,
                               const char **room, char text[96]);

int state_fetch(struct state_hosts *hosts, size_t host, uint32_t slot, uint64_t incarnation,
                uint64_t number, uint64_t commit, const struct msg_source *sources,
                size_t count) MUST_CHECK;

/* Turns the loop until so many answers have come. */
bool state_wait(struct state_hosts *hosts, size_t answers);
#define STATE_PATIENCE_S 60

#endif
