/*
 * state_hosts.h: some hosts in one process. Each host has the snapshots and the state thread of an
 * agent, and workers whose commits the test makes. Every wait for a fetch is bounded.
 */
#ifndef TESTS_LIB_STATE_HOSTS_H
#define TESTS_LIB_STATE_HOSTS_H

#include "agent/commits/state_thread.h"
#include "base/vec.h"
#include "tests/lib/test.h"

#include <event2/event.h>

#define STATE_HOSTS    4
#define STATE_MANIFEST 9
#define STATE_KEY_US   (1 * INT64_C(1000000)) /* instead of LIMIT_STATE_KEY_US */

struct state_host {
    struct state_hosts *all;
    char name[8];
    struct snapshots *snapshots;
    struct state_thread *thread;
    struct tls *tls; /* dials with the key of all hosts, and accepts it, until it gets others */
};

struct state_answer {
    uint64_t who;
    struct msg_fetched fetched; /* without its text, which is below */
    char text[ERR_TEXT_MAX];
};

struct state_hosts {
    struct event_base *base;
    struct tls *tls;
    struct state_host hosts[STATE_HOSTS];
    size_t count;
    struct VEC(struct state_answer) answers;
    bool starved; /* true: an answer could not be noted for lack of memory */
};

int state_hosts_init(struct state_hosts *hosts, size_t count) MUST_CHECK;
void state_hosts_release(struct state_hosts *hosts);

/* The snapshot of the worker with this incarnation, as the worker maps it, with `chunks` chunks,
 * all replicated. NULL: the snapshot was not granted. */
struct snapshot *state_worker(struct state_hosts *hosts, size_t host, uint32_t slot,
                              uint64_t incarnation, uint64_t chunks);

/* Writes a commit of the worker; its bytes are a function of the number. state_commit_part writes
 * only the first `chunks` chunks and does not name the commit. */
int state_commit(struct snapshot *snapshot, uint64_t commit) MUST_CHECK;
int state_commit_part(struct snapshot *snapshot, uint64_t commit, uint64_t chunks) MUST_CHECK;
void state_chunk_bytes(uint64_t commit, uint64_t chunk, uint8_t *ret_bytes);

/* Does the snapshot have the bytes of this commit? state_is also requires its number; state_has
 * names the commit first, as a worker does after a fetch. */
bool state_has(struct snapshot *snapshot, uint64_t commit);
bool state_is(struct snapshot *snapshot, uint64_t commit);

/* A source of a commit: the snapshot of a slot on a host of these. */
struct msg_source state_source(const struct state_hosts *hosts, size_t host, uint32_t slot,
                               const char **room, char text[96]);

int state_fetch(struct state_hosts *hosts, size_t host, uint32_t slot, uint64_t incarnation,
                uint64_t number, uint64_t commit, const struct msg_source *sources,
                size_t count) MUST_CHECK;

/* Runs the event loop until so many answers have come; false: not in time. */
bool state_wait(struct state_hosts *hosts, size_t answers);
#define STATE_PATIENCE_S 60

#endif
