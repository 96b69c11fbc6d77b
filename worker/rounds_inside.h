/*
 * rounds_inside.h: the collectives of this process, as the files of rounds share them.
 *
 *     rounds.c      prepared, entered, cancelled, left      turns.c   who is in a collective now
 *     requests.c    what waits for its turn, and the thread that carries it out
 */
#ifndef WORKER_ROUNDS_INSIDE_H
#define WORKER_ROUNDS_INSIDE_H

#include "worker/groups.h"
#include "worker/requests.h"
#include "worker/rounds.h"

#include <pthread.h>
#include <stdatomic.h>

/* The collectives of one round, from PREPARE until they are entered or given up. */
struct opening {
    uint64_t round, incarnation;
    struct msg prepare; /* whose members it is for; released with it */
    struct roll *roll;
    struct coll *coll; /* both are made by the connecting thread */
    bool taken;        /* the connecting thread has it */
    bool done;         /* it is connected */
    bool abandoned;    /* whoever has it then frees it */
};

/*
 * Whose turn it is. The word is 0 when the program may go in; whoever makes it TURN_TAKEN is in.
 * TURN_SHUT: there is something to be looked at under the lock, before one goes in or when one has
 * come out. Set and cleared under the lock, so that going in and out costs an atomic each.
 *
 *     0 ──take──► TAKEN ──give──► 0         TAKEN | SHUT ──give, under the lock──► SHUT
 */
#define TURN_TAKEN 1U
#define TURN_SHUT  2U

struct rounds {
    const struct groups *groups;
    struct coll_engine *engine;
    struct gpu_use *gpu;       /* NULL: none can be used */
    struct timeline *timeline; /* NULL: none is wanted */
    rounds_prepared_fn *prepared;
    void *arg;
    atomic_uint turn;
    atomic_uint_fast64_t calls; /* that have ended; of whoever has the turn */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* an opening, or somebody has come out */
    pthread_t thread;       /* that connects */
    bool threaded;
    bool closing;
    struct opening *next; /* what is, or was, prepared */
    struct coll *coll;    /* of the running round; for who has the turn, without the lock */
    struct roll *roll;    /* likewise; of the round before until there is the next */
    uint64_t round;
    uint64_t cancelled; /* this round and all before it */
    bool open;
    int news;                 /* that train has been told; 0 */
    _Atomic int failed;       /* the code of the first that did; 0 */
    struct hvd_err why;       /* that one did */
    struct hvd_err unsettled; /* its code is not 0: a GPU may still write what a round has begun */

    struct requests requests;
};

/* ---- turns.c: the lock is held --------------------------------------------------------------- */

/* May the program use them? Says nothing of whose turn it is. HVD_E_STATE, HVD_E_REVOKED. */
int turns_allow(const struct rounds *rounds, bool inside, struct hvd_err *err) MUST_CHECK;
int turns_take(struct rounds *rounds, struct hvd_err *err) MUST_CHECK; /* HVD_E_BUSY */
void turns_give(struct rounds *rounds);
void turns_settle(struct rounds *rounds); /* after a change of what decides whether it is shut */
void turns_await(struct rounds *rounds);  /* until nobody is in; shut */
void turns_note(struct rounds *rounds, int code,
                const struct hvd_err *why); /* how a collective has gone */

/* Without the lock: is it free, and was it taken? */
bool turns_try(struct rounds *rounds);
void turns_end(struct rounds *rounds, int code);

#endif
