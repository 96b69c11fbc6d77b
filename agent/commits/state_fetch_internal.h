/*
 * state_fetch_internal.h: one fetch, from its FETCH to its FETCHED. Private to state_*.c, which
 * call each other downwards only, in the order of README.md.
 *
 * A chunk is written while the lock `writing` is held, and only until the fetch is forgotten: from
 * then on the buffer belongs to the caller of fetch_forget. The sum of a chunk is SUM_NONE while
 * its bytes change, so a fetch that ends in any state leaves a buffer with which the next fetch can
 * go on.
 */
#ifndef AGENT_COMMITS_STATE_FETCH_INTERNAL_H
#define AGENT_COMMITS_STATE_FETCH_INTERNAL_H

#include "agent/commits/state_checkpoint.h"
#include "agent/commits/state_internal.h"

enum chunk_mark { CHUNK_WANTED, CHUNK_ASKED, CHUNK_THERE };

struct fetch_answer {
    int code;
    /* while the fetch runs: why each source was left out, one reason after the other */
    char text[ERR_TEXT_MAX];
    uint64_t bytes;       /* bytes that came from other agents */
    uint64_t local_bytes; /* bytes that were copied on this host */
    bool per_rank;        /* the entries of the rank came too, from a checkpoint */
};

/* Where the commit goes: the worker's snapshot, and the open buffer in that snapshot. */
struct fetch_target {
    struct shared_snapshot *shared;
    struct snapshot *snapshot; /* the snapshot inside `shared` */
    uint8_t *bytes;
    uint64_t chunks;
    uint64_t missing; /* the number of chunks that have not arrived yet */
    uint64_t next;    /* no chunk with a lower index is CHUNK_WANTED */
    uint8_t *marks;   /* enum chunk_mark of each chunk */
    bool no_memory;   /* memory ran out while bytes were received */
};

/* The copy of the commit from a snapshot on this host. */
struct fetch_local {
    /* the snapshot from which chunks are copied now; NULL: no snapshot on this host has the commit,
     * so other agents are asked */
    struct shared_snapshot *from;
    uint64_t next;
    size_t source; /* index of the next entry of FETCH.sources to look at */
};

struct fetch {
    struct list link;
    struct state_thread *thread;
    uint64_t requester; /* the worker connection that asked (see workers_link.h) */
    uint32_t slot;
    struct msg msg; /* a copy of the FETCH message */
    atomic_bool forgotten;
    pthread_mutex_t writing;

    struct reading *reading; /* of a checkpoint; NULL: the sources are workers */
    struct fetch_answer answer;
    struct fetch_target into;
    struct fetch_local local;
    /* fires for the next slice of copying, or for the next tick of the sources */
    struct event *step;
    struct list sources; /* list of struct source: other agents that are asked, or will be asked */
};

/* The state of the connection to one other agent. */
enum source_state { SOURCE_IDLE, SOURCE_DIALLING, SOURCE_OPEN, SOURCE_WAITS, SOURCE_OUT };

/* the most chunks that one source was asked for and has not sent yet */
#define SOURCE_WINDOW 8

struct source_request {
    uint64_t chunk;
    /* the checksum of the bytes that this host already has for the chunk; SUM_NONE: no valid
     * bytes */
    uint64_t known;
};

struct source {
    struct list link;
    struct fetch *fetch;
    const char *address; /* `address` and `member` point into fetch->msg */
    const struct msg_source *member;
    enum source_state state;
    struct conn *conn;
    int64_t heard_us; /* time of its last message; in state WAITS: time of the next dial */
    unsigned dials;   /* number of dials that have failed */
    /* ring buffer of requests, in the order in which answers arrive */
    struct source_request asked[SOURCE_WINDOW];
    size_t at;
    size_t waiting;
};

/* state_progress.c */

/* Copies the bytes of a chunk into the worker's buffer. HVD_E_CORRUPT: the bytes do not have this
 * checksum; HVD_E_NOMEM: no memory is left; HVD_E_REVOKED: the worker awaits no fetch any more. */
int fetch_take(struct fetch *fetch, uint64_t chunk, const uint8_t *bytes, uint64_t sum) MUST_CHECK;
/* Marks a chunk as done although the commit never wrote it: its bytes have no meaning. */
void fetch_leave(struct fetch *fetch, uint64_t chunk);
/* marks the chunk as arrived; the fetch may end here */
void fetch_there(struct fetch *fetch, uint64_t chunk);
void fetch_note(struct fetch *fetch, const struct msg_source *source, const char *why);
/* true: the fetch has ended, because all chunks have arrived, or because the fetch cannot or must
 * not go on */
bool fetch_is_over(struct fetch *fetch);
/* Ends the fetch with its answer. On return the agent's loop may have freed the fetch. */
void fetch_end(struct fetch *fetch, int code, const char *text);

/* true: `source` is a slot of this host */
bool fetch_is_here(const struct fetch *fetch, const struct msg_source *source);

/* the address at which the agent of this member serves commits; NULL: it has none */
const char *source_address_of(const struct msg_source *member);

/* state_source.c */
void sources_begin(struct fetch *fetch); /* ends the fetch if no source is left */
void sources_tick(struct fetch *fetch);

#endif
