/*
 * rounds_internal.h: struct rounds (rounds.h), which seven files share. A file calls only functions
 * of the files that stand below it in this list:
 *     rounds.c           enters, cancels, settles and leaves a round; answers questions about it
 *     requests.c         makes the collective calls, also those that hvd_start began (requests.h)
 *     transfers.c        makes the sends and receives (transfers.h)
 *     fusion.c           decides which started calls become one operation (fusion.h)
 *     rounds_prepare.c   connects the next round while the running round still goes on
 *     ticket.c           decides which thread may be inside a collective
 *     news.c             keeps what the program is told of the round (news.h)
 */
#ifndef WORKER_ROUNDS_INTERNAL_H
#define WORKER_ROUNDS_INTERNAL_H

#include "worker/groups.h"
#include "worker/news.h"
#include "worker/requests.h"
#include "worker/rounds_reach.h"

#include <pthread.h>
#include <stdatomic.h>

/* The collectives of the next round, from PREPARE until the round is entered or given up. */
struct next_round {
    uint64_t round, incarnation;
    struct msg prepare; /* the message, which lists the members; released with the struct */
    struct roll *roll;
    struct coll *coll; /* made by the connecting thread, which also makes `roll` */
    bool taken;        /* the connecting thread works on this round */
    bool done;         /* the collectives are connected */
    /* true: given up; the connecting thread frees the struct when its work on the round is done */
    bool abandoned;
};

/*
 * Only one thread at a time may be in a collective: the thread that has the ticket. A thread takes
 * the ticket before the call and gives it back after the call. While TICKET_SHUT is not set, both
 * cost one atomic operation and need no lock. While TICKET_SHUT is set, a thread must first take
 * the lock and look at the other fields. TICKET_SHUT changes only with the lock held.
 *
 *     0 ──take──► TAKEN ──give──► 0         TAKEN | SHUT ──give, with the lock held──► SHUT
 *
 * While requests are pending, their queue orders the calls, and the ticket stays taken.
 */
#define TICKET_TAKEN 1U
#define TICKET_SHUT  2U

struct rounds {
    const struct groups *groups;
    struct coll_engine *engine;
    struct gpu_use *gpu;       /* NULL: calls on GPU memory are not possible */
    struct timeline *timeline; /* NULL: collectives are not shown */
    size_t fusion_bytes;       /* the fusion threshold; 0: no requests are fused */
    rounds_prepared_fn *prepared;
    rounds_reach_fn *reach; /* connects a joiner's agent to those that have the state; or NULL */
    void *arg;
    atomic_uint ticket;
    atomic_uint_fast64_t calls; /* ended collectives; written by the thread with the ticket */

    pthread_mutex_t lock;
    /* signalled when the next round has changed, or when the ticket was given back */
    pthread_cond_t changed;
    pthread_t thread; /* connects the next rounds */
    bool threaded;
    bool closing;
    /* the next round, while it is being prepared or is prepared; NULL: there is none */
    struct next_round *next;
    struct coll *coll; /* of the running round; read by a thread with the ticket or the lock */
    struct roll *roll; /* of the running round; read by a thread with the ticket or the lock */
    uint64_t round;
    uint64_t cancelled; /* this round and all earlier rounds are cancelled */
    bool open;          /* true: the program may call, because train is running */
    int news;           /* the code that a commit or check has told train to return; 0: none */
    _Atomic int failed; /* the code of the round's first failure; 0: none */
    struct hvd_err why; /* the text of the failure in `failed` */
    struct hvd_err unsettled; /* code not 0: a GPU may still write for a collective that has ended,
                                 so no round can begin */
    struct news about;
    struct requests requests;
    struct transfers transfers;
};

/* ---- ticket.c: the caller does not hold rounds->lock ---- */

void rounds_lock(struct rounds *rounds);
void rounds_unlock(struct rounds *rounds);
/* tries to take the ticket; true: the ticket was free, and the caller has it now */
bool ticket_try(struct rounds *rounds);
/* notes the result of the collective that has ended, and gives the ticket back */
void ticket_end(struct rounds *rounds, int code);

/* ---- ticket.c: the caller holds rounds->lock ---- */

/* Checks whether a collective may be called now, without looking whether the ticket is free.
 * inside: see rounds_get. Fails with HVD_E_STATE, HVD_E_REVOKED. */
int ticket_allow(const struct rounds *rounds, bool inside, struct hvd_err *err) MUST_CHECK;
int ticket_take(struct rounds *rounds, struct hvd_err *err) MUST_CHECK; /* HVD_E_BUSY */
void ticket_give(struct rounds *rounds);
/* sets or clears TICKET_SHUT; called after a change of a field on which TICKET_SHUT depends */
void ticket_update(struct rounds *rounds);
/* waits until no thread has the ticket; TICKET_SHUT must be set */
void ticket_await(struct rounds *rounds);
/* Notes how a collective ended: the first failure becomes the failure of the round. */
void ticket_note(struct rounds *rounds, int code, const struct hvd_err *why);

/* ---- rounds_prepare.c: the caller holds rounds->lock ---- */

void prepare_give_up(struct rounds *rounds); /* gives up the next round, if there is one */
/* Returns the prepared collectives of this round, if they are connected. Otherwise the function
 * returns NULL and gives up the next round. */
struct coll *prepare_take(struct rounds *rounds, uint64_t round, struct roll **ret_roll);

/* ---- rounds_prepare.c: the caller does not hold rounds->lock ---- */

/* Makes the collectives of a round, not connected yet: the caller connects them. The function
 * calls the program's `belongs` functions. */
int prepare_make(struct rounds *rounds, const struct rounds_order *order, struct coll **ret_coll,
                 struct roll **ret_roll, struct hvd_err *err) MUST_CHECK;

#endif
