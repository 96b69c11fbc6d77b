/*
 * state_fetch_internal.h: one fetch, from its FETCH to its FETCHED. Private to state_*.c, which
 * call each other downwards only, in the order of README.md.
 *
 * A chunk (STATE_CHUNK_BYTES of a commit) is written while the lock `writing` is held, and only
 * until the fetch is forgotten: from then on the buffer belongs to the caller of fetch_forget. The
 * checksum of a chunk is SUM_NONE while its bytes change. So a fetch may end at any moment: the
 * next fetch keeps the chunks of the buffer whose checksums are right.
 */
#ifndef AGENT_COMMITS_STATE_FETCH_INTERNAL_H
#define AGENT_COMMITS_STATE_FETCH_INTERNAL_H

#include "agent/commits/state_checkpoint.h"
#include "agent/commits/state_internal.h"

/* WANTED: a source must be asked for the chunk; ASKED: a source was; THERE: the bytes are right. */
enum chunk_mark { CHUNK_WANTED, CHUNK_ASKED, CHUNK_THERE };

struct fetch_answer {
    int code;
    /* while the fetch runs: why each source was left out, one reason after the other */
    char text[ERR_TEXT_MAX];
    uint64_t bytes;       /* bytes that came from other agents */
    uint64_t local_bytes; /* bytes that were copied on this host */
    bool per_rank;        /* a checkpoint has also given the entries per rank */
};

/* Where the commit goes: the worker's snapshot, and the open buffer in that snapshot. */
struct fetch_target {
    struct shared_snapshot *shared;
    struct snapshot *snapshot; /* the snapshot inside `shared` */
    uint8_t *bytes;            /* the open buffer */
    uint64_t chunks;           /* how many chunks are fetched: those of the replicated entries */
    uint64_t missing;          /* the number of chunks that have not arrived yet */
    uint64_t next;             /* no chunk with a lower index is CHUNK_WANTED */
    uint8_t *marks;            /* enum chunk_mark of each chunk */
    bool no_memory;            /* memory ran out while bytes were received */
};

/* The copy of the commit from a snapshot on this host. */
struct fetch_local {
    /* the snapshot from which chunks are copied now; NULL: no snapshot on this host has the commit,
     * so other agents are asked */
    struct shared_snapshot *from;
    uint64_t next; /* the chunk to copy next */
    size_t source; /* index of the next entry of FETCH.sources to look at */
};

struct fetch {
    struct list link;
    struct state_thread *thread;
    uint64_t requester;      /* the worker connection that asked (see workers_link.h) */
    uint32_t slot;           /* the slot of that worker */
    struct msg msg;          /* a copy of the FETCH message */
    atomic_bool forgotten;   /* the worker no longer awaits the commit */
    pthread_mutex_t writing; /* held while bytes are written into the worker's buffer */

    struct reading *reading; /* reads the commit from a checkpoint; NULL: workers are the sources */
    struct fetch_answer answer;
    struct fetch_target into;
    struct fetch_local local;
    /* timer: the next slice of copying, or the next tick of the sources */
    struct event *step;
    struct list sources; /* list of struct source: other agents that are asked, or will be asked */
};

/* Of an agent that is a source. IDLE: may be dialled; WAITS: dialled again later; OUT: not used. */
enum source_state { SOURCE_IDLE, SOURCE_DIALLING, SOURCE_OPEN, SOURCE_WAITS, SOURCE_OUT };

/* the most chunks that one source was asked for and has not sent yet */
#define SOURCE_WINDOW 8

struct source_request {
    uint64_t chunk;
    uint64_t known; /* checksum of the bytes that this host has for the chunk; SUM_NONE: none */
};

struct source {
    struct list link;
    struct fetch *fetch;
    const char *address; /* `address` and `member` point into fetch->msg */
    const struct msg_source *member;
    enum source_state state;
    struct conn *conn;
    int64_t heard_us; /* time of the source's last message; WAITS: time of the next dial */
    unsigned dials;   /* number of dials that have failed */
    /* ring buffer of `waiting` requests, in the order in which answers arrive; `at`: the first */
    struct source_request asked[SOURCE_WINDOW];
    size_t at;
    size_t waiting;
};

/* state_progress.c: what happens to one fetch and its chunks */

/* Copies the bytes of a chunk into the worker's buffer. HVD_E_CORRUPT: the bytes do not have this
 * checksum; HVD_E_NOMEM: no memory is left; HVD_E_REVOKED: the worker awaits no fetch any more. */
int fetch_take(struct fetch *fetch, uint64_t chunk, const uint8_t *bytes, uint64_t sum) MUST_CHECK;
/* Marks a chunk as done although the commit never wrote it: its bytes have no meaning. */
void fetch_leave(struct fetch *fetch, uint64_t chunk);
/* Marks the chunk as arrived. The caller then asks fetch_is_over. */
void fetch_there(struct fetch *fetch, uint64_t chunk);
/* Notes why this source is not used: for the log, and for the text of a failed fetch. */
void fetch_note(struct fetch *fetch, const struct msg_source *source, const char *why);
/* true: the fetch has ended, because all chunks have arrived, or because the fetch cannot or must
 * not go on */
bool fetch_is_over(struct fetch *fetch);
/* Ends the fetch with its answer. On return the agent's loop may have freed the fetch. */
void fetch_end(struct fetch *fetch, int code, const char *text);

/* true: `source` is a slot of this host, whose snapshot can be copied */
bool fetch_is_here(const struct fetch *fetch, const struct msg_source *source);

/* the address at which the agent of this member serves commits; NULL: it has none */
const char *source_address_of(const struct msg_source *member);

/* state_source.c: the other agents that are asked for chunks */
void sources_begin(struct fetch *fetch); /* asks other agents; ends the fetch if there are none */
void sources_tick(struct fetch *fetch);  /* called in steps while other agents are asked */

#endif
