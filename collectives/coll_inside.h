/*
 * coll_inside.h: a round's object, as the files of coll share it.
 *
 *     coll.c      made, cancelled, failed, looked at, freed   engine.c    what a process has
 *     connect.c   meets its peers, connects its link          mesh.c      with all, when needed
 *     run.c       begins and ends an operation                opening.c   do all mean the same?
 *     allreduce.c, broadcast.c, ...                           stages.c    in chunks, over a board
 *     device.c    on memory of a device (device.h)
 */
#ifndef COLLECTIVES_COLL_INSIDE_H
#define COLLECTIVES_COLL_INSIDE_H

#include "collectives/coll.h"
#include "collectives/engine_inside.h"
#include "collectives/group.h"
#include "collectives/lane/lane.h"
#include "collectives/shm/board.h"
#include "collectives/shm/pool.h"
#include "collectives/ways.h"

#include <pthread.h>
#include <stdatomic.h>

struct coll_member {
    uint64_t incarnation;
    char *contact; /* NULL: it has none */
};

/* A member that this one meets, and why. */
struct coll_partner {
    uint32_t rank;
    bool linked;          /* their links are connected */
    bool leads;           /* it has made the segment of our host */
    bool met, connecting; /* under the mutex */
    uint8_t address[MEET_ADDRESS_MAX];
    size_t address_length;
};

/* A group, with what its members work with. */
struct coll_group {
    struct group group;
    struct board *board;  /* NULL: all its members are apart, each on a host of its own */
    size_t board_index;   /* in the segment; SIZE_MAX: it has none there */
    struct lane lane;     /* of size 1 when there is none, or we are in none */
    uint64_t number;      /* of its operations so far */
    uint64_t turn;        /* of the board's memory: the next to be written */
    const void **sources; /* room for one of each member here */
    struct trials trials;
    bool no_comm; /* it will have none in this round */
    struct hvd_err no_comm_why;
    int64_t awaited_us;          /* since when calls go through the host as it is not ready; 0 */
    bool remarked;               /* on that, or there is nothing to remark on */
    _Atomic(struct comm *) comm; /* of NCCL; NULL: none yet. Written once, under the mutex */
    atomic_bool used;            /* something was called by it: its failure is one of the round */

    struct traffic mesh;    /* with everybody: made when it is needed first */
    struct link *mesh_link; /* under the mutex */
    struct lane mesh_lane;
};

struct coll {
    struct coll_engine *engine;
    uint64_t round;
    uint32_t rank, size;
    struct coll_member *members;
    uint32_t *hosts; /* a number for each member's host */
    uint64_t roster; /* a sum of it */
    struct coll_group *groups;
    size_t group_count; /* the first one is of all */
    struct coll_partner *partners;
    size_t partner_count, partner_room;
    uint8_t locator[SEGMENT_LOCATOR_BYTES]; /* of the segment, if we have made it */
    struct reaper_job freeing;
    struct timeline *timeline; /* NULL: nothing is shown */
    bool connected;
    bool devices_told; /* all members have told of one */
    bool by_nccl;      /* something was called by it; of the owner */
    bool agreed;       /* see device_agreed */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct link *link; /* NULL: not needed, or not yet */
    struct segment *segment;
    struct meet_party *party;
    bool finished;          /* it has said bye */
    struct hvd_err failure; /* the first one */
    bool reported;
    atomic_bool failed;

    struct traffic traffic;   /* the owner's, as all that follows */
    uint32_t *everybody;      /* the ranks of all */
    struct pool_views *views; /* of the others' memory; NULL: none has been seen yet */
    struct staging *staging;  /* of the engine, or, without one, its own; NULL: not used yet */
    uint8_t *scratch;
    size_t scratch_bytes;

    _Atomic(const char *) operation; /* for who looks */
    _Atomic(struct coll_group *) current;
    atomic_uint_fast64_t number;
};

/* coll.c. The first failure counts: it ends whatever is in progress, and the peers are told. Any
 * thread. Returns its own code. rank: whose fault it is. */
int coll_fail(struct coll *coll, int code, uint32_t rank, const char *format, ...)
    PRINTF_LIKE(4, 5);
int coll_failure(struct coll *coll, struct hvd_err *err); /* as the owner is told of it; or 0 */
bool coll_has_failed(const struct coll *coll);

void coll_release(struct coll *coll); /* all but the links and the party */

/* Memory for the operation in progress; NULL: out of memory. The last one that was given is gone.
 */
void *coll_scratch(struct coll *coll, size_t bytes);

/* connect.c */
void coll_await_reason(struct coll *coll); /* a peer's, that is gone: so long as it may take */
int coll_choose_partners(struct coll *coll) MUST_CHECK; /* HVD_E_NOMEM */
int coll_lost(void *arg, uint32_t rank);                /* of traffic.h */

#endif
