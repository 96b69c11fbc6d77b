/*
 * state_fetch.h: one fetch, from its FETCH to its FETCHED. Private to state_*.c.
 *
 * A chunk is written under `writing`, and only as long as nobody has forgotten the fetch: whoever
 * does that has the buffer for itself from then on. Its sum is SUM_NONE while its bytes change, so
 * that whatever ends the fetch leaves a buffer that the next one can go on with.
 */
#ifndef AGENT_IO_STATE_FETCH_H
#define AGENT_IO_STATE_FETCH_H

#include "agent/io/state_inside.h"

enum chunk_mark { CHUNK_WANTED, CHUNK_ASKED, CHUNK_THERE };

struct fetch {
    struct list link;
    struct state_thread *thread;
    uint64_t who;
    uint32_t slot;
    struct msg msg; /* the FETCH, copied */
    atomic_bool forgotten;
    pthread_mutex_t writing;

    int code; /* what is answered */
    char text[ERR_TEXT_MAX];
    uint64_t bytes;
    uint64_t local_bytes;

    struct shared_snapshot *shared; /* of the worker, */
    struct snapshot *into;          /* the same */
    uint8_t *to;                    /* and its buffer that is open */
    uint64_t chunks;
    uint64_t missing; /* chunks that are not there */
    uint64_t next;    /* below it none is wanted */
    uint8_t *marks;   /* of each chunk */
    bool no_memory;   /* for what comes */
    struct event *turn;

    struct shared_snapshot *from; /* here on this host; NULL: others are asked */
    uint64_t from_next;
    size_t from_source; /* which source is looked at next */

    struct list sources; /* that are asked, or will be */
    size_t dialled;
};

/* state_fetch.c */

/* The bytes of a chunk. HVD_E_CORRUPT: the sum says otherwise; HVD_E_NOMEM, HVD_E_REVOKED: it is
 * over. */
int fetch_take(struct fetch *fetch, uint64_t chunk, const uint8_t *bytes, uint64_t sum) MUST_CHECK;
/* One that the commit never wrote: its bytes are whatever they are. */
void fetch_leave(struct fetch *fetch, uint64_t chunk);
void fetch_there(struct fetch *fetch, uint64_t chunk); /* may be the last one */
void fetch_note(struct fetch *fetch, const struct msg_source *source, const char *why);
/* True: all that was wanted is there, or it can or must not go on, and it has ended. */
bool fetch_is_over(struct fetch *fetch);
/* It is answered, and the agent's loop may have freed it on return. */
void fetch_end(struct fetch *fetch, int code, const char *text);
void fetch_end_lost(struct fetch *fetch); /* nobody is left to fetch from */
bool fetch_is_here(const struct fetch *fetch, const struct msg_source *source); /* this host's */

/* state_source.c: other agents */
void sources_begin(struct fetch *fetch); /* ends it when there is none */
void sources_tick(struct fetch *fetch);
void sources_end(struct fetch *fetch);

#endif
