/*
 * worker.c: the one worker that this process is: hvd_init, hvd_shutdown, and its place in the job.
 *
 * Called by the program; worker_get is the first call of nearly every function of hvd.h. Invariant:
 * a struct worker that worker_get has returned lives until hvd_shutdown, which does nothing while
 * hvd_elastic_run is being called; and in a forked child no function touches the worker.
 */
#include "worker/worker.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/clock.h"
#include "worker/addresses.h"
#include "worker/fail.h"
#include "worker/news.h"
#include "worker/persist.h"
#include "worker/rounds_reach.h"
#include "worker/settings.h"
#include "worker/store_calls.h"
#include "worker/watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOPBACK "127.0.0.1"

/* All global variables of the library, except the data of each thread (fail.c, watch.c) and the
 * counters of handles. `place` has its own lock, because any thread may read it while the
 * training loop enters a round. */
static struct {
    /* a thread holds it in hvd_init and hvd_shutdown, and when a run begins */
    pthread_mutex_t life_lock;
    struct worker *_Atomic worker;
    bool forks_are_noted;
    _Atomic bool is_fork;

    pthread_mutex_t place_lock; /* protects place and round */
    struct place place;
    uint64_t round;
} process = { .life_lock = PTHREAD_MUTEX_INITIALIZER,

              .place_lock = PTHREAD_MUTEX_INITIALIZER };

/* Notes that this process is a forked child: it has neither the threads nor the commits, and any
 * lock may be locked in it for ever. */
static void worker_note_fork(void)
{
    atomic_store_explicit(&process.is_fork, true, memory_order_relaxed);
}

bool worker_is_fork(void)
{
    if (!atomic_load_explicit(&process.is_fork, memory_order_relaxed))
        return false;
    fail(HVD_E_STATE, "this process is a fork of the worker process; call the library only in the "
                      "worker process itself");
    return true;
}

/* Returns the worker of this process. NULL: there is none, or this process is a forked child;
 * hvd_last_error has the text. */
struct worker *worker_get(void)
{
    struct worker *worker = atomic_load(&process.worker);

    if (worker_is_fork())
        return NULL;
    if (!worker)
        fail(HVD_E_STATE, "hvd_init has not been called, or has failed; call hvd_init first");
    return worker;
}

struct worker *worker_enter(void)
{
    fail_begin();
    return worker_get();
}

/* Notes what the training loop does from now on. The call also counts as progress of the loop,
 * which the watchdog looks for. */
void worker_begins(struct worker *worker, enum worker_doing doing)
{
    atomic_store(&worker->doing, doing);
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
}

bool worker_is_alone(const struct worker *worker)
{
    return !worker->session;
}

/* Called when a GPU does not end its work: the session sends UNUSABLE, and this process must be
 * replaced. */
void worker_is_unusable(void *worker_at, const char *why)
{
    const struct session_event event = { .kind = SESSION_UNUSABLE, .text = why };
    const struct worker *worker = worker_at;

    if (worker->session)
        session_thread_say(worker->session, &event);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* The functions up to worker_on_stored are hooks: the session's thread calls them
 * (session_thread.h). */

/* Hook: the round is revoked, or the agent is gone (UINT64_MAX): calls of this round and of earlier
 * rounds end. */
static void worker_on_cancel(void *arg, uint64_t round)
{
    struct worker *worker = arg;

    timeline_events_news(&worker->events);
    rounds_cancel(worker->rounds, round);
    store_cancel(worker->store, round);
}

/* Hook for PREPARE: begins to connect to the members of the next round, while this round goes
 * on. */
static void worker_on_prepare(void *arg, const struct msg *prepare)
{
    struct worker *worker = arg;

    rounds_prepare(worker->rounds, worker->incarnation, prepare);
}

/* Hook for ABANDON: the round that was being prepared will not begin. */
static void worker_on_abandon(void *arg, uint64_t round)
{
    struct worker *worker = arg;

    rounds_abandon(worker->rounds, round);
}

/* Hook: a new round is planned (`coming` true), so hvd_news tells the program to come to a check;
 * or no longer. */
static void worker_on_watch(void *arg, bool coming)
{
    const struct worker *worker = arg;

    rounds_watch(worker->rounds, coming);
}

/* Hook for PERSISTED: the requests for a checkpoint of a commit up to this number have ended, with
 * this code. */
static void worker_on_persisted(void *arg, uint64_t commit, int code, const char *text)
{
    const struct worker *worker = arg;

    requests_persisted(worker->rounds, commit, code, text);
}

/* Hook for STORED, the answer to a call of hvd/store.h; NULL: the agent is gone, and no answer
 * comes any more. */
static void worker_on_stored(void *arg, const struct msg_stored *stored)
{
    const struct worker *worker = arg;

    if (stored)
        store_answer(worker->store, stored);
    else
        store_cancel(worker->store, UINT64_MAX);
}

/* The functions up to worker_on_tried are callbacks that threads of the collectives call. */

/* Callback of the collectives: sends a text to the log of the driver. */
static void worker_on_remark(void *arg, const char *text)
{
    const struct worker *worker = arg;

    session_thread_say(worker->session,
                       &(struct session_event){ .kind = SESSION_REMARK, .text = text });
}

/* Callback of the collectives: an algorithm was timed, and gets a line in the file of
 * --autotune-log-file. */
static void worker_on_tried(void *arg, const struct coll_tried *tried)
{
    struct worker *worker = arg;
    struct hvd_err err;

    if (tuning_log_write(&worker->tuning, tried, &err))
        worker_on_remark(arg, err.text);
}

/* Tells the session how the preparation of a round has ended. The connecting thread of rounds makes
 * this call; without memory for the round, rounds_prepare makes it. */
static void worker_on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    struct worker *worker = arg;

    session_thread_say(worker->session, &(struct session_event){ .kind = SESSION_PREPARED,
                                                                 .round = round,
                                                                 .code = outcome->code,
                                                                 .text = outcome->text });
}

/* Lets the agent of this host connect to the agents of the other members, before this worker joins
 * their round: the fetch of the state will then find a connection. */
static int worker_on_reach(void *arg, const struct msg *prepare, struct hvd_err *err)
{
    const struct msg_member_list *members = &prepare->u.prepare.members;
    struct worker *worker = arg;
    struct msg_source *sources = mem_zalloc_array(members->count, sizeof(*sources));
    struct msg_source_list list = { sources, 0 };
    int rc;

    if (!sources)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the list of the %zu members of a round; free memory on this host",
            members->count);
    for (size_t i = 0; i < members->count; i++) {
        const struct msg_member *member = &members->items[i];

        if (member->incarnation != worker->incarnation)
            sources[list.count++] = (struct msg_source){ member->incarnation, member->host,
                                                         member->slot, member->addresses };
    }
    rc = list.count ? session_thread_reach(worker->session, prepare->round, &list, err) : 0;
    mem_free(sources);
    return rc;
}

/* ---- hvd_init -------------------------------------------------------------------------------- */

/* Ends and frees the worker, or what hvd_init has made of it before it failed. Threads end first,
 * and each object outlives those that call it. */
static void free_worker(struct worker *worker)
{
    rounds_close(worker->rounds); /* ends the thread that passes events to the session */
    session_thread_stop(worker->session);
    rounds_free(worker->rounds);
    groups_free(worker->groups);
    store_free(worker->store);
    /* closed before the session is freed, because the engine may call worker_is_unusable, which
     * uses the session */
    coll_engine_close(worker->engine);
    timeline_events_close(&worker->events); /* it has a part of the session's page */
    session_thread_free(worker->session);
    gpu_use_release(&worker->gpu);
    tuning_log_release(&worker->tuning);
    msg_release(&worker->welcome);
    pthread_mutex_destroy(&worker->reports.lock);
    mem_free(worker);
}

/* Starts the session and the collectives. Without HVD_AGENT and HVD_INCARNATION this process is a
 * job of its own. If only one of the two is set, the process is a worker of a job whose environment
 * was damaged: it must not train alone, so that is an error. */
static int join_job(struct worker *worker, struct hvd_err *err)
{
    const struct session_hooks hooks = { worker_on_cancel,    worker_on_prepare,
                                         worker_on_abandon,   worker_on_watch,
                                         worker_on_persisted, worker_on_stored,
                                         watch_stalled,       worker };
    const struct msg_welcome_worker *welcome = &worker->welcome.u.welcome_worker;
    const char *agent = getenv("HVD_AGENT");
    const char *text = getenv("HVD_INCARNATION");
    char host[LIMIT_HOST_NAME_BYTES + 1], told[LIMIT_HOST_NAME_BYTES + 1];
    const char *state, *here;
    struct page *page;
    int rc;

    if (!agent || !agent[0])
        return !text ? settings_check_alone(err)
                     : err_set(err, HVD_E_INVAL,
                               "HVD_INCARNATION is set and HVD_AGENT is not; start the program "
                               "with hvd-elastic, or unset HVD_INCARNATION");
    if (!text)
        return err_set(err, HVD_E_INVAL,
                       "HVD_AGENT is set and HVD_INCARNATION is not; start the program with "
                       "hvd-elastic, or unset HVD_AGENT");
    if (text_parse_u64((struct span){ text, strlen(text) }, 1, UINT64_MAX, "HVD_INCARNATION",
                       &worker->incarnation, err))
        return err_set(
            err, HVD_E_INVAL,
            "HVD_INCARNATION is \"%.32s\", which is not an incarnation that hvd-elastic has set; "
            "start the program with hvd-elastic, or unset HVD_AGENT and HVD_INCARNATION",
            text);
    rc = session_thread_start(agent, worker->incarnation, &hooks, &worker->session,
                              &worker->welcome, err);
    if (!rc && worker->core >= 0)
        rc = session_thread_pin(worker->session, (unsigned)worker->core, err);
    if (rc)
        return rc;
    /* The page that an agent of an older release has made has no room for the flight recorder. */
    page = session_thread_page(worker->session);
    worker->events.recorder = page->bytes >= sizeof(*page) ? &page->recorder : NULL;
    /* The agent's address "state" has the address of this host, under which peers reach it: this
     * worker listens there too, or, behind NAT, at the address "here" of the agent. */
    state = addresses_find(&welcome->addresses, "state");
    here = addresses_find(&welcome->addresses, "here");
    if (!state || addresses_host(state, told, sizeof(told)))
        snprintf(told, sizeof(told), "%s", LOOPBACK);
    if (!here || addresses_host(here, host, sizeof(host)))
        snprintf(host, sizeof(host), "%s", told);
    worker->options.host = host;
    worker->options.told = told;
    worker->options.stuck = worker_is_unusable;
    worker->options.remark = worker_on_remark;
    worker->options.tried = worker_on_tried;
    worker->options.arg = worker;
    worker->options.slow_us = welcome->stall_warning_us;
    rc = coll_engine_open(&worker->options, &worker->engine, err);
    worker->options.host = worker->options.told = NULL;
    worker->gpu.engine = worker->engine;
    return rc ? rc : rounds_use_engine(worker->rounds, worker->engine, err);
}

#define NO_WORKER "no memory for the data of this worker; free memory on this host"

/* Makes the worker of this process. Every further call does nothing and returns 0. */
int hvd_init(void)
{
    const struct msg_welcome_worker *welcome = NULL;
    struct place place = { .size = 1, .local_size = 1, .cross_size = 1 };
    struct hvd_err *err = fail_err();
    struct worker *worker;
    bool ranges = false;
    int rc = 0;

    fail_begin();
    if (worker_is_fork())
        return HVD_E_STATE;
    pthread_mutex_lock(&process.life_lock);
    if (!process.forks_are_noted)
        (void)pthread_atfork(NULL, NULL, worker_note_fork);
    process.forks_are_noted = true;
    if (atomic_load(&process.worker))
        goto done;
    worker = mem_zalloc(sizeof(*worker));
    if (!worker) {
        rc = err_set(err, HVD_E_NOMEM, NO_WORKER);
        goto done;
    }
    pthread_mutex_init(&worker->reports.lock, NULL);
    worker->seen.since_us = clock_now_us();
    gpu_use_init(&worker->gpu);
    if (tuning_log_init(&worker->tuning, getenv("HVD_AUTOTUNE_LOG_FILE")))
        rc = err_set(err, HVD_E_NOMEM, NO_WORKER);
    if (!rc)
        rc = settings_read(&worker->options, err);
    if (!rc)
        rc = settings_read_commit_to(&worker->commit_to, err);
    if (!rc)
        rc = settings_read_core(&worker->core, err);
    if (!rc)
        rc = settings_read_ranges(&ranges, err);
    if (!rc && (groups_create(&worker->groups) || store_create(&worker->store)))
        rc = err_set(err, HVD_E_NOMEM, NO_WORKER);
    if (!rc)
        rc = rounds_create(worker->groups, worker_on_prepared, worker, &worker->rounds, err);
    if (!rc) {
        rounds_use_reach(worker->rounds, worker_on_reach);
        rc = join_job(worker, err);
    }
    if (rc) {
        free_worker(worker);
        goto done;
    }
    if (worker->session) { /* the place that the driver expects, until the first ROUND */
        welcome = &worker->welcome.u.welcome_worker;
        place = (struct place){ welcome->rank,       welcome->size,       welcome->local_rank,
                                welcome->local_size, welcome->cross_rank, welcome->cross_size };
    }
    if (timeline_events_open(&worker->events, welcome, worker->incarnation, ranges)) {
        rc = err_set(err, HVD_E_NOMEM, NO_WORKER);
        free_worker(worker);
        goto done;
    }
    worker_set_place(0, &place);
    rounds_use(worker->rounds, &worker->gpu, worker->events.timeline);
    if (!worker->options.unfused)
        rounds_use_fusion(worker->rounds, worker->options.fusion_bytes
                                              ? worker->options.fusion_bytes
                                              : COLL_FUSION_BYTES);
    atomic_store(&process.worker, worker);

done:
    pthread_mutex_unlock(&process.life_lock);
    return rc;
}

/* Ends the worker of this process. While hvd_elastic_run is running, nothing happens. */
void hvd_shutdown(void)
{
    struct worker *worker;

    if (worker_is_fork())
        return;
    pthread_mutex_lock(&process.life_lock);
    worker = atomic_load(&process.worker);
    if (worker && !atomic_load(&worker->running)) {
        atomic_store(&process.worker, NULL);
        free_worker(worker);
    }
    pthread_mutex_unlock(&process.life_lock);
}

int hvd_is_initialized(void)
{
    return !atomic_load_explicit(&process.is_fork, memory_order_relaxed) &&
           atomic_load(&process.worker) != NULL;
}

int hvd_timeline_start(const char *path)
{
    struct worker *worker = worker_enter();

    if (!worker)
        return HVD_E_STATE;
    if (!path || !path[0])
        return fail(HVD_E_INVAL,
                    "hvd_timeline_start: the path is missing; pass the path of the file to write");
    return timeline_events_start(&worker->events, path, fail_err());
}

int hvd_timeline_stop(void)
{
    const struct worker *worker = worker_enter();

    return worker ? timeline_stop(worker->events.timeline, fail_err()) : HVD_E_STATE;
}

/* Notes that hvd_elastic_run begins: from now on a second run is refused, and no group is added.
 * The lock makes sure that hvd_shutdown either comes first, or finds that the worker is running. */
int worker_begin_run(struct worker **ret_worker)
{
    struct worker *worker;
    int rc = 0;

    if (worker_is_fork())
        return HVD_E_STATE;
    pthread_mutex_lock(&process.life_lock);
    worker = worker_get();
    if (!worker)
        rc = HVD_E_STATE;
    else if (atomic_exchange(&worker->running, true))
        rc = fail(HVD_E_STATE,
                  "hvd_elastic_run is running already; call hvd_elastic_run in one thread only");
    else
        groups_seal(worker->groups);
    pthread_mutex_unlock(&process.life_lock);
    if (!rc)
        *ret_worker = worker;
    return rc;
}

/* ---- the place of this worker in the round --------------------------------------------------- */

void worker_set_place(uint64_t round, const struct place *place)
{
    pthread_mutex_lock(&process.place_lock);
    process.place = *place;
    process.round = round;
    pthread_mutex_unlock(&process.place_lock);
}

/* Writes the place of this worker in the running round. HVD_E_STATE before the first round, when
 * the place is only what the driver expects. */
int worker_place(struct place *ret_place)
{
    bool known;

    if (!worker_get())
        return HVD_E_STATE;
    pthread_mutex_lock(&process.place_lock);
    *ret_place = process.place;
    known = process.round != 0;
    pthread_mutex_unlock(&process.place_lock);
    return known ? 0
                 : fail(HVD_E_STATE, "a rank or size is asked before the first round; ask in "
                                     "train, after hvd_elastic_run has begun a round");
}

/* Returns one of the six numbers of struct place, given by its offset. */
static int place_number(size_t offset)
{
    uint32_t value;

    if (!worker_get())
        return HVD_E_STATE;
    pthread_mutex_lock(&process.place_lock);
    memcpy(&value, (const uint8_t *)&process.place + offset, sizeof(value));
    pthread_mutex_unlock(&process.place_lock);
    return (int)value;
}

int hvd_rank(void)
{
    return place_number(offsetof(struct place, rank));
}

int hvd_size(void)
{
    return place_number(offsetof(struct place, size));
}

int hvd_local_rank(void)
{
    return place_number(offsetof(struct place, local_rank));
}

int hvd_local_size(void)
{
    return place_number(offsetof(struct place, local_size));
}

int hvd_cross_rank(void)
{
    return place_number(offsetof(struct place, cross_rank));
}

int hvd_cross_size(void)
{
    return place_number(offsetof(struct place, cross_size));
}

int hvd_slot(void)
{
    const struct worker *worker = worker_get();

    if (!worker)
        return HVD_E_STATE;
    return worker_is_alone(worker) ? 0 : (int)worker->welcome.u.welcome_worker.slot;
}

/* Returns --max-np (largest true) or --min-np (largest false) of the job; 1 for a worker that is
 * alone. */
static int np_bound(bool largest)
{
    struct worker *worker = worker_get();
    const struct msg_welcome_worker *welcome;

    if (!worker)
        return HVD_E_STATE;
    if (worker_is_alone(worker))
        return 1;
    welcome = &worker->welcome.u.welcome_worker;
    return (int)(largest ? welcome->max_np : welcome->min_np);
}

int hvd_min_np(void)
{
    return np_bound(false);
}

int hvd_max_np(void)
{
    return np_bound(true);
}

uint64_t hvd_round(void)
{
    uint64_t round;

    if (worker_is_fork())
        return 0;
    pthread_mutex_lock(&process.place_lock);
    round = process.round;
    pthread_mutex_unlock(&process.place_lock);
    return round;
}
