/*
 * worker.h: the one worker that this process is, from hvd_init to hvd_shutdown.
 *
 * Alone means: not started by hvd-elastic. Then there is no session, and one round of one.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "worker/gpu.h"
#include "worker/io/session_thread.h"
#include "worker/rounds.h"
#include "worker/settings.h"
#include "worker/shown.h"

#include <stdatomic.h>

/* Where the loop is, for the watchdog. */
enum worker_doing {
    WORKER_RESTS, /* not in a round */
    WORKER_CONNECTS,
    WORKER_RESETS,
    WORKER_FETCHES,
    WORKER_TRAINS
};

struct worker {
    struct session_thread *session; /* NULL: alone */
    struct coll_engine *engine;     /* NULL: alone */
    struct coll_options options;    /* of the environment */
    struct gpu_use gpu;             /* which it works with */
    enum commit_to commit_to;       /* likewise */
    struct groups *groups;
    struct rounds *rounds;
    struct shown shown;
    uint64_t incarnation;
    struct msg welcome;     /* released with it */
    _Atomic bool running;   /* hvd_elastic_run is being called */
    _Atomic unsigned doing; /* enum worker_doing */
    /* of the library by train, besides collectives: what grows does not stand still */
    _Atomic uint64_t calls;

    /* of the session's thread: what the watchdog saw last */
    struct {
        uint64_t calls, round, number, progress;
        int64_t since_us;
    } seen;
};

/* NULL, and the reason noted: hvd_init was not called, or this process is a fork. */
struct worker *worker_get(void);

/* Is this process a child of the worker? Then the reason is noted; one load. */
bool worker_is_fork(void);

/* For hvd_elastic_run, which then sets running to false. HVD_E_STATE, with the reason noted. */
int worker_begin_run(struct worker **ret_worker) MUST_CHECK;

/* The loop, from now on: the watchdog begins anew. */
void worker_begins(struct worker *worker, enum worker_doing doing);

/* Any thread: this process will never be of use again, whatever its loop hangs in, and it is to be
 * replaced. It is killed at any moment from now on. Said once, the rest changes nothing. Alone
 * there is nobody who could replace it, and in hvd_shutdown nobody who would: nothing happens. */
void worker_is_useless(struct worker *worker, const char *why);

/* As the world sees it from now on. */
void worker_set_place(uint64_t round, const struct place *place);

bool worker_is_alone(const struct worker *worker);

#endif
