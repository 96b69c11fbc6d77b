/*
 * worker.h: the one worker of this process, from hvd_init to hvd_shutdown. A worker that was
 * started without hvd-elastic is alone: it has no session with an agent, and a single round with
 * itself as the only member.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "worker/gpu.h"
#include "worker/io/session_thread.h"
#include "worker/rounds.h"
#include "worker/settings.h"
#include "worker/timeline_events.h"
#include "worker/tuning_log.h"

#include <pthread.h>
#include <stdatomic.h>

/* The present activity of the training loop, for the watchdog. */
enum worker_doing {
    WORKER_RESTS, /* the loop is between two rounds */
    WORKER_CONNECTS,
    WORKER_RESETS,
    WORKER_FETCHES,
    WORKER_TRAINS
};

struct worker {
    struct session_thread *session; /* NULL: the worker is alone, without an agent */
    struct coll_engine *engine;     /* NULL: the worker is alone, without other members */
    /* the settings of the collectives, read from the environment (settings.h) */
    struct coll_options options;
    struct gpu_use gpu;       /* the GPU that this process works with */
    enum commit_to commit_to; /* read from the environment */
    int core; /* the core on which the session's thread runs; -1: any core; read from the
                 environment */
    struct groups *groups;
    struct rounds *rounds;
    struct store *store; /* the calls of hvd/store.h */
    struct timeline_events events;
    struct tuning_log tuning; /* HVD_AUTOTUNE_LOG_FILE; used by the thread that makes a call */
    uint64_t incarnation;
    struct {                     /* what hvd_report needs */
        pthread_mutex_t lock;    /* one thread at a time writes to the page */
        _Atomic bool refused;    /* a value was refused, and the driver's log was told so */
        _Atomic uint64_t commit; /* the newest commit; 0: none yet */
    } reports;
    struct msg welcome;     /* the agent's welcome; released with the worker */
    _Atomic bool running;   /* true: hvd_elastic_run is running */
    _Atomic unsigned doing; /* what the training loop does now, an enum worker_doing */
    /* number of calls of the library that train has made, except collectives; the watchdog
     * counts them as progress */
    _Atomic uint64_t calls;

    /* what the watchdog saw when it was asked last; used by the session's thread only */
    struct {
        uint64_t calls, round, number, progress;
        int64_t since_us; /* when the watchdog last saw progress */
    } seen;
};

/* Returns the worker of this process. NULL, and hvd_last_error has the text: hvd_init was not
 * called, or this process is a forked child. */
struct worker *worker_get(void);

/* Does what worker_get does, and clears the last error of the thread (fail_begin): for functions of
 * hvd.h that may fail. */
struct worker *worker_enter(void);

/* Returns true if this process is a forked child of the worker; hvd_last_error then says so. The
 * call costs one atomic load. */
bool worker_is_fork(void);

/* Sets `running` to true and forbids new groups; hvd_elastic_run sets `running` to false at its
 * end. HVD_E_STATE: hvd_elastic_run is running already, or there is no worker; hvd_last_error
 * has the text. */
int worker_begin_run(struct worker **ret_worker) MUST_CHECK;

/* Notes what the training loop does from now on. The training loop calls it; the watchdog counts
 * the call as progress. */
void worker_begins(struct worker *worker, enum worker_doing doing);

/* Tells the agent that this process can never train again and must be replaced, even if its
 * training loop hangs: the agent may kill the process at any moment from now on. Any thread may
 * make this call; only the first one counts. Without an agent, and during hvd_shutdown, nothing
 * happens. */
void worker_is_unusable(void *worker, const char *why);

/* Notes the running round and this worker's ranks and sizes in it: hvd_round, hvd_rank, hvd_size
 * and similar functions return these numbers from now on. */
void worker_set_place(uint64_t round, const struct place *place);
/* Writes the place in the running round. HVD_E_STATE: there has been no round yet, or no hvd_init;
 * hvd_last_error has the text. */
int worker_place(struct place *ret_place) MUST_CHECK;

/* Notes the newest commit of this worker, which goes with each value that the program reports. */
void worker_note_commit(struct worker *worker, uint64_t commit);

bool worker_is_alone(const struct worker *worker);

#endif
