/*
 * people.h: a worker, the seat it is in, and the host that the seat belongs to. Private to this
 * folder.
 */
#ifndef DRIVER_CORE_PEOPLE_H
#define DRIVER_CORE_PEOPLE_H

#include "base/sm.h"
#include "base/time.h"
#include "driver/core/notes.h"
#include "proto/place.h"

#define RANK_NONE UINT32_MAX

/* It is killed when it takes longer than that, for what `late` says: see clock.h. */
struct worker_limit {
    int64_t since_us;
    int64_t in_us; /* TIME_NEVER: there is none */
    const char *late;
};

struct worker {
    struct worker *next_gone; /* see roster_bury */
    uint64_t incarnation;
    struct core_host *host;
    uint32_t slot;
    struct sm sm; /* enum worker_state */
    int64_t since_us;
    int64_t launched_us;
    struct worker_limit limit;
    uint32_t rank; /* in the current round, or RANK_NONE */
    uint32_t next_rank;
    bool joined;    /* it has said READY */
    bool newcomer;  /* the current round is its first one */
    bool has_to_go; /* its seat is to be given up; it stays until the round can spare it */
    bool entered;   /* trains in the current round */
    bool prepared;  /* its connections of the next round are open */
    bool at;        /* it has said AT for the next round */
    bool left;      /* it has said LEFT */
    bool tied;      /* LEAVING, but the others may not be past the agreed check yet */
    struct worker_wait wait;
    bool blamed; /* of the verdict that is being made: somebody waits for it */
    struct worker *next_blamed;
    uint32_t failed_prepares;
    uint32_t gave_up; /* rounds in a row that it has ended for want of what only it lacks */
    struct msg_held held[LIMIT_COMMITS_HELD];
    size_t held_count;
    struct msg_texts addresses; /* one block, owned */
    char *complaint;            /* what its training has failed with; NULL; owned */
};

struct seat {
    struct worker *worker;
    bool draining;
    bool done; /* a command that never joined ended with 0 here */
    bool told; /* until somebody joins, whoever is started here is told this place: its work may be
                  the part of this rank */
    struct place place;
    int64_t drain_us;
    uint32_t boots_in_vain; /* in a row: who was started here failed before it joined */
    uint64_t commit;        /* its agent may hold this one; 0: none that is known of */
};

/* Something newer is kept there than was known. */
static inline void seat_note_commit(struct seat *seat, uint64_t commit)
{
    if (seat->commit < commit)
        seat->commit = commit;
}

struct core_host {
    struct core_host *next_gone;
    char *name;
    bool listed;
    uint32_t place; /* among those that are listed */
    uint32_t slots; /* 0 when it is not listed */
    struct seat *seats;
    uint32_t seat_count; /* at least slots, and one for each that is taken */
    uint32_t taken;
    enum agent_state agent;
    uint64_t agent_id;
    bool ending; /* its agent starts nothing any more; until another says hello */
    uint32_t peer;
    int64_t heard_us;
    int64_t spared_us;  /* not heard by this driver yet, and not missed until then; 0 */
    int64_t back_us;    /* when its agent last came back to those it has; 0: it was never away */
    int64_t hung_up_us; /* when its agent's connection broke; 0: it did not */
    int64_t said_us;
    int64_t started_us; /* when its agent was asked for */
    int64_t again_us;   /* not before that again: the last time it could not be started */
    uint64_t sequence_heard;
    struct msg_texts addresses; /* of whoever was last ready there: where its agent is, too */
    bool draining;
    bool noticed; /* by the machine's own word: it is over some time after drain_us */
    int64_t drain_us;
    uint64_t stamp; /* of the last thing told to all: see tell.c */
};

static inline enum worker_state worker_state(const struct worker *worker)
{
    return (enum worker_state)worker->sm.state;
}

/* "a:1#7": host, slot and incarnation, as traces name a worker. */
#define WORKER_NAME_MAX (LIMIT_HOST_NAME_BYTES + 40)
const char *worker_name(const struct worker *worker, char text[WORKER_NAME_MAX]);

#endif
