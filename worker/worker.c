/* worker.c: hvd_init, hvd_shutdown, and where this worker stands. */
#include "worker/worker.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/clock.h"
#include "worker/addresses.h"
#include "worker/fail.h"
#include "worker/settings.h"
#include "worker/watch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOPBACK "127.0.0.1"

/* There is one for the life of the process. The place has a lock of its own, as any thread may ask
 * for it while the loop enters a round. */
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *_Atomic the_worker;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool is_fork;

static pthread_mutex_t place_lock = PTHREAD_MUTEX_INITIALIZER;
static struct place the_place;
static uint64_t the_round;

/* A child has neither the threads nor the commits, and any lock may be held in it for ever. */
static void note_fork(void)
{
    atomic_store_explicit(&is_fork, true, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, note_fork);
}

bool worker_is_fork(void)
{
    if (!atomic_load_explicit(&is_fork, memory_order_relaxed))
        return false;
    fail(HVD_E_STATE, "this process is a fork of the worker; only the worker itself may call");
    return true;
}

struct worker *worker_get(void)
{
    struct worker *worker = atomic_load(&the_worker);

    if (worker_is_fork())
        return NULL;
    if (!worker)
        fail(HVD_E_STATE, "hvd_init has not been called, or has failed");
    return worker;
}

void worker_begins(struct worker *worker, enum worker_doing doing)
{
    atomic_store(&worker->doing, doing);
    atomic_fetch_add_explicit(&worker->calls, 1, memory_order_relaxed);
}

bool worker_is_alone(const struct worker *worker)
{
    return !worker->session;
}

void worker_is_useless(struct worker *worker, const char *why)
{
    const struct session_event event = { .kind = SESSION_USELESS, .text = why };

    if (worker->session)
        session_thread_say(worker->session, &event);
}

/* ---- what the session's thread asks for ------------------------------------------------------ */

static void on_cancel(void *arg, uint64_t round)
{
    struct worker *worker = arg;

    shown_news(&worker->shown);
    rounds_cancel(worker->rounds, round);
}

static void on_prepare(void *arg, const struct msg *prepare)
{
    struct worker *worker = arg;

    rounds_prepare(worker->rounds, worker->incarnation, prepare);
}

static void on_abandon(void *arg, uint64_t round)
{
    struct worker *worker = arg;

    rounds_abandon(worker->rounds, round);
}

static bool on_stalled(void *arg, int64_t now_us, struct msg_stalled *ret_stalled)
{
    return watch_stalled(arg, now_us, ret_stalled);
}

static void on_stuck(void *arg, const char *why)
{
    worker_is_useless(arg, why);
}

static void on_remark(void *arg, const char *text)
{
    const struct worker *worker = arg;

    session_thread_say(worker->session,
                       &(struct session_event){ .kind = SESSION_REMARK, .text = text });
}

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    struct worker *worker = arg;

    session_thread_say(worker->session, &(struct session_event){ .kind = SESSION_PREPARED,
                                                                 .round = round,
                                                                 .code = outcome->code,
                                                                 .text = outcome->text });
}

/* ---- hvd_init -------------------------------------------------------------------------------- */

static void free_worker(struct worker *worker)
{
    rounds_close(worker->rounds); /* it calls the session, and is called by it */
    session_thread_stop(worker->session);
    rounds_free(worker->rounds);
    groups_free(worker->groups);
    coll_engine_close(worker->engine); /* its device may still turn out to be stuck */
    session_thread_free(worker->session);
    gpu_use_release(&worker->gpu);
    shown_close(&worker->shown);
    msg_release(&worker->welcome);
    mem_free(worker);
}

/* Where peers find this worker: at the address by which its agent is found. */
static int open_engine(struct worker *worker, struct hvd_err *err)
{
    const char *state = addresses_find(&worker->welcome.u.welcome_worker.addresses, "state");
    char host[LIMIT_HOST_NAME_BYTES + 1];
    int rc;

    if (!state || addresses_host(state, host, sizeof(host)))
        snprintf(host, sizeof(host), "%s", LOOPBACK);
    worker->options.host = host;
    worker->options.stuck = on_stuck;
    worker->options.remark = on_remark;
    worker->options.arg = worker;
    worker->options.slow_us = worker->welcome.u.welcome_worker.stall_warning_us;
    rc = coll_engine_open(&worker->options, &worker->engine, err);
    worker->options.host = NULL;
    worker->gpu.engine = worker->engine;
    return rc ? rc : rounds_use_engine(worker->rounds, worker->engine, err);
}

static int read_incarnation(uint64_t *ret_incarnation, struct hvd_err *err)
{
    const char *text = getenv("HVD_INCARNATION");

    if (!text)
        return err_set(err, HVD_E_INVAL,
                       "HVD_AGENT is set and HVD_INCARNATION is not; start the program with "
                       "hvd-elastic, or with neither");
    if (text_parse_u64((struct span){ text, strlen(text) }, 1, UINT64_MAX, "HVD_INCARNATION",
                       ret_incarnation, err))
        return err_set(err, HVD_E_INVAL,
                       "HVD_INCARNATION is \"%.32s\", which is no number that hvd-elastic gives; "
                       "start the program with it, or without HVD_AGENT",
                       text);
    return 0;
}

static int join(struct worker *worker, const char *agent, struct hvd_err *err)
{
    const struct session_hooks hooks = { on_cancel, on_prepare, on_abandon, on_stalled, worker };
    int rc = read_incarnation(&worker->incarnation, err);

    if (!rc)
        rc = session_thread_start(agent, worker->incarnation, &hooks, &worker->session,
                                  &worker->welcome, err);
    return rc ? rc : open_engine(worker, err);
}

static void set_provisional(const struct worker *worker)
{
    const struct msg_welcome_worker *welcome = &worker->welcome.u.welcome_worker;
    struct place place = { .size = 1, .local_size = 1, .cross_size = 1 };

    if (!worker_is_alone(worker))
        place = (struct place){ welcome->rank,       welcome->size,       welcome->local_rank,
                                welcome->local_size, welcome->cross_rank, welcome->cross_size };
    worker_set_place(0, &place);
}

/* A worker that has lost its agent's name must not train for itself. */
static int read_agent(const char **ret_agent, struct hvd_err *err)
{
    const char *agent = getenv("HVD_AGENT");

    if (agent && !agent[0])
        agent = NULL;
    if (!agent && getenv("HVD_INCARNATION"))
        return err_set(err, HVD_E_INVAL,
                       "HVD_INCARNATION is set and HVD_AGENT is not; start the program with "
                       "hvd-elastic, or with neither");
    *ret_agent = agent;
    return 0;
}

static int begin(struct hvd_err *err)
{
    const char *agent = NULL;
    struct worker *worker;
    int rc = read_agent(&agent, err);

    if (rc)
        return rc;
    worker = mem_zalloc(sizeof(*worker));
    if (!worker)
        return err_set(err, HVD_E_NOMEM, "no memory for a worker");
    worker->seen.since_us = clock_now_us();
    gpu_use_init(&worker->gpu);
    rc = settings_read(&worker->options, err);
    if (!rc)
        rc = settings_read_commit_to(&worker->commit_to, err);
    if (!rc && groups_create(&worker->groups))
        rc = err_set(err, HVD_E_NOMEM, "no memory for a worker");
    if (!rc)
        rc = rounds_create(worker->groups, on_prepared, worker, &worker->rounds, err);
    if (!rc && agent)
        rc = join(worker, agent, err);
    if (rc) {
        free_worker(worker);
        return rc;
    }
    set_provisional(worker);
    rounds_use_gpu(worker->rounds, &worker->gpu);
    shown_open(&worker->shown, agent ? &worker->welcome.u.welcome_worker : NULL,
               worker->incarnation);
    rounds_use_timeline(worker->rounds, worker->shown.timeline);
    atomic_store(&the_worker, worker);
    return 0;
}

int hvd_init(void)
{
    int rc = 0;

    if (worker_is_fork())
        return HVD_E_STATE;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&life_lock);
    if (!atomic_load(&the_worker))
        rc = begin(fail_err());
    pthread_mutex_unlock(&life_lock);
    return rc;
}

void hvd_shutdown(void)
{
    struct worker *worker;

    if (worker_is_fork())
        return;
    pthread_mutex_lock(&life_lock);
    worker = atomic_load(&the_worker);
    if (worker && !atomic_load(&worker->running)) {
        atomic_store(&the_worker, NULL);
        free_worker(worker);
    }
    pthread_mutex_unlock(&life_lock);
}

/* Under the lock: hvd_shutdown either comes before, or finds that it is running. */
int worker_begin_run(struct worker **ret_worker)
{
    struct worker *worker;
    int rc = 0;

    if (worker_is_fork())
        return HVD_E_STATE;
    pthread_mutex_lock(&life_lock);
    worker = worker_get();
    if (!worker)
        rc = HVD_E_STATE;
    else if (atomic_exchange(&worker->running, true))
        rc = fail(HVD_E_STATE, "hvd_elastic_run: it is being called already");
    else
        groups_seal(worker->groups);
    pthread_mutex_unlock(&life_lock);
    if (!rc)
        *ret_worker = worker;
    return rc;
}

/* ---- its place ------------------------------------------------------------------------------- */

void worker_set_place(uint64_t round, const struct place *place)
{
    pthread_mutex_lock(&place_lock);
    the_place = *place;
    the_round = round;
    pthread_mutex_unlock(&place_lock);
}

static int place_now(struct place *ret_place)
{
    if (!worker_get())
        return HVD_E_STATE;
    pthread_mutex_lock(&place_lock);
    *ret_place = the_place;
    pthread_mutex_unlock(&place_lock);
    return 0;
}

#define PLACE(field)                       \
    int hvd_##field(void)                  \
    {                                      \
        struct place place;                \
        int rc = place_now(&place);        \
                                           \
        return rc ? rc : (int)place.field; \
    }

PLACE(rank)
PLACE(size)
PLACE(local_rank)
PLACE(local_size)
PLACE(cross_rank)
PLACE(cross_size)

int hvd_slot(void)
{
    const struct worker *worker = worker_get();

    if (!worker)
        return HVD_E_STATE;
    return worker_is_alone(worker) ? 0 : (int)worker->welcome.u.welcome_worker.slot;
}

static int bound(bool most)
{
    struct worker *worker = worker_get();
    const struct msg_welcome_worker *welcome;

    if (!worker)
        return HVD_E_STATE;
    if (worker_is_alone(worker))
        return 1;
    welcome = &worker->welcome.u.welcome_worker;
    return (int)(most ? welcome->max_np : welcome->min_np);
}

int hvd_min_np(void)
{
    return bound(false);
}

int hvd_max_np(void)
{
    return bound(true);
}

uint64_t hvd_round(void)
{
    uint64_t round;

    if (worker_is_fork())
        return 0;
    pthread_mutex_lock(&place_lock);
    round = the_round;
    pthread_mutex_unlock(&place_lock);
    return round;
}
