/*
 * coll_inside.h: a round's object, as the files of coll share it.
 *
 *     coll.c          made, cancelled, failed, looked at, freed     engine.c     what a process has
 *     connect.c       meets its peers, connects its link            opening.c    do all mean the
 * same? traffic.c       messages of the operation in progress         allreduce.c, broadcast.c, ...
 */
#ifndef COLLECTIVES_COLL_INSIDE_H
#define COLLECTIVES_COLL_INSIDE_H

#include "collectives/coll.h"
#include "collectives/link/link.h"
#include "collectives/meet/meet.h"
#include "collectives/link/reaper.h"

#include <pthread.h>
#include <stdatomic.h>

#define PARTNERS_MAX  64 /* two for each power of two below the size */
#define PENDING_MAX   16
#define OPENING_MAX   4096 /* that an operation may send along with its first message */
#define SEGMENT_BYTES ((size_t)1024 * 1024)

struct coll_engine {
    struct meet *meet;
    struct gloo_device *device;
    struct reaper *reaper;
    char host[64];

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    size_t colls;
};

struct coll_member {
    uint64_t incarnation;
    char *contact; /* NULL: it has none */
};

enum coll_kind { COLL_ALLREDUCE = 1, COLL_BROADCAST, COLL_ALLGATHER, COLL_BARRIER };

/* What all members must agree about. */
struct coll_call {
    uint64_t number;
    uint32_t kind, type, op, root;
    uint64_t count; /* of an allgather: a sum of its counts */
};

struct coll_opening {
    struct coll_call call;
    uint8_t payload[OPENING_MAX];
};

struct coll_pending {
    struct link_request *request; /* NULL: free */
    uint32_t rank;
    size_t length;
};

struct coll_partner {
    uint32_t rank;
    bool met, connecting; /* under the mutex */
    uint8_t address[LINK_ADDRESS_MAX];
    size_t address_length;
};

struct coll {
    struct coll_engine *engine;
    uint64_t round;
    uint32_t rank, size;
    struct coll_member *members;
    uint64_t roster; /* a sum of it */
    struct coll_partner partners[PARTNERS_MAX];
    size_t partner_count;
    struct reaper_job freeing;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct link *link;
    struct meet_party *party;
    bool failed, reported;
    bool finished;          /* it has said bye */
    struct hvd_err failure; /* the first one */

    struct coll_call call; /* of the operation in progress, and its messages: the owner's */
    uint64_t fingerprint;
    struct coll_pending pending[PENDING_MAX];
    size_t next_pending;
    struct coll_opening said, heard;

    _Atomic(const char *) operation; /* for who looks */
    atomic_uint_fast64_t number, progress;
    atomic_uint_fast32_t awaited; /* a rank, or MEET_NOBODY */
};

/* coll.c. The first failure counts: it ends whatever is in progress, and the peers are told. Any
 * thread. Returns its own code. rank: whose fault it is. */
int coll_fail(struct coll *coll, int code, uint32_t rank, const char *format, ...)
    PRINTF_LIKE(4, 5);
int coll_failure(struct coll *coll, struct hvd_err *err); /* as the owner is told of it; or 0 */

void coll_release(struct coll *coll); /* all but the link and the party */

/* connect.c */
void coll_choose_partners(struct coll *coll);

#endif
