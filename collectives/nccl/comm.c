#include "collectives/nccl/life.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

/* Calls of a communicator that have been launched and have not ended; who makes another waits. */
#define POSTS_MAX 256

/* The caller's thread, as ncclGetUniqueId is of no communicator: what it has to load the first time
 * should not keep a communicator waiting that is at work. */
int comm_make_id(struct hand *hand, struct nccl_id *ret_id, struct hvd_err *err)
{
    struct nccl_id id;
    int rc = nccl_judge(hand->nccl, hand->nccl->unique_id(&id), "an id for a communicator", err);

    if (!rc)
        *ret_id = id;
    return rc;
}

int comm_begin(struct hand *hand, const struct comm_spec *spec, struct comm **ret_comm,
               struct hvd_err *err)
{
    struct comm *comm = mem_zalloc(sizeof(*comm));

    if (!comm)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    comm->hand = hand;
    comm->spec = *spec;
    comm->stage = STAGE_NEW;
    list_init(&comm->dying);
    list_init(&comm->flying);
    list_init(&comm->idle);
    pthread_mutex_lock(&hand->mutex);
    list_append(&hand->comms, &comm->among);
    hand_kick(hand);
    pthread_mutex_unlock(&hand->mutex);
    *ret_comm = comm;
    return 0;
}

/* ---- looking at it ---- */

static enum comm_state state_of(const struct comm *comm)
{
    if (comm->failed)
        return COMM_FAILED;
    return comm->stage == STAGE_RUNS ? COMM_READY : COMM_STARTING;
}

enum comm_state comm_look(struct comm *comm, struct hvd_err *ret_why)
{
    enum comm_state state;

    pthread_mutex_lock(&comm->hand->mutex);
    state = state_of(comm);
    if (ret_why && state == COMM_FAILED)
        *ret_why = comm->why;
    pthread_mutex_unlock(&comm->hand->mutex);
    return state;
}

enum comm_state comm_await(struct comm *comm, int64_t until_us)
{
    enum comm_state state;

    pthread_mutex_lock(&comm->hand->mutex);
    while (state_of(comm) == COMM_STARTING)
        if (thread_cond_wait(&comm->hand->changed, &comm->hand->mutex, until_us))
            break;
    state = state_of(comm);
    pthread_mutex_unlock(&comm->hand->mutex);
    return state;
}

bool comm_is_whole(struct comm *comm)
{
    bool whole;

    pthread_mutex_lock(&comm->hand->mutex);
    whole = !comm->cut;
    pthread_mutex_unlock(&comm->hand->mutex);
    return whole;
}

uint64_t comm_progress(const struct comm *comm)
{
    return atomic_load_explicit(&comm->progress, memory_order_relaxed);
}

/* ---- a call; the lock is held ---- */

static int failure(const struct comm *comm, struct hvd_err *err)
{
    int code = comm->revoked ? HVD_E_REVOKED : comm->why.code;

    return err_set(err, code, "%s", comm->why.text);
}

static struct post *new_post(const struct cuda *cuda, struct hvd_err *err)
{
    struct post *post = mem_zalloc(sizeof(*post));

    if (!post) {
        (void)err_set(err, HVD_E_NOMEM, "out of memory");
        return NULL;
    }
    if (cuda_judge(cuda, cuda->event_create(&post->event, CUDA_EVENT_UNTIMED),
                   "an event for a collective", err)) {
        mem_free(post);
        return NULL;
    }
    calls_init(&post->calls);
    list_init(&post->link);
    return post;
}

/* Lets go of the lock: it takes the driver's time. */
static struct post *make_post(struct comm *comm, struct hvd_err *err)
{
    struct post *post;

    comm->posts++;
    pthread_mutex_unlock(&comm->hand->mutex);
    post = new_post(comm->hand->cuda, err);
    pthread_mutex_lock(&comm->hand->mutex);
    if (!post)
        comm->posts--;
    return post;
}

/* NULL: the err says why. */
static struct post *take_post(struct comm *comm, struct hvd_err *err)
{
    struct post *post;

    while (!comm->failed && list_empty(&comm->idle) && comm->posts >= POSTS_MAX)
        pthread_cond_wait(&comm->hand->changed, &comm->hand->mutex);
    if (comm->failed) {
        (void)failure(comm, err);
        return NULL;
    }
    if (list_empty(&comm->idle)) {
        post = make_post(comm, err);
    } else {
        post = CONTAINER_OF(comm->idle.next, struct post, link);
        list_remove(&post->link);
    }
    if (post) {
        post->owned = true;
        post->launched = post->done = false;
    }
    return post;
}

/* Revoked, it returns at once, whatever the hand is about. */
static int await_post(struct comm *comm, struct post *post, bool streamed, struct hvd_err *err)
{
    struct hand *hand = comm->hand;

    if (comm->failed)
        return failure(comm, err);
    ASSERT(!comm->posted && !comm->taken);
    post->held = true;
    comm->posted = post;
    hand_kick(hand);
    while (!comm->failed && !(streamed ? post->launched : post->done))
        pthread_cond_wait(&hand->changed, &hand->mutex);
    return (streamed ? post->launched : post->done) ? 0 : failure(comm, err);
}

/* ---- the same without it ---- */

static int order_before(const struct comm *comm, const struct post *post, struct CUstream_st *after,
                        struct hvd_err *err)
{
    const struct cuda *cuda = comm->hand->cuda;

    return cuda_judge(cuda, cuda->event_record(post->event, after), "the data of a collective",
                      err);
}

static int order_behind(const struct comm *comm, const struct post *post, struct CUstream_st *after,
                        struct hvd_err *err)
{
    const struct cuda *cuda = comm->hand->cuda;

    return cuda_judge(cuda, cuda->stream_wait(after, post->event, 0), "the result of a collective",
                      err);
}

static int run_post(struct comm *comm, struct post *post, const struct coll_call *call,
                    struct CUstream_st *after, bool streamed, struct hvd_err *err)
{
    int rc = calls_plan(&post->calls, call, comm->spec.rank, comm->spec.size);

    if (rc)
        return err_set(err, rc, "out of memory");
    if (!post->calls.count)
        return 0;
    rc = order_before(comm, post, after, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&comm->hand->mutex);
    rc = await_post(comm, post, streamed, err);
    pthread_mutex_unlock(&comm->hand->mutex);
    return rc || !streamed ? rc : order_behind(comm, post, after, err);
}

static int run(struct comm *comm, const struct coll_call *call, struct CUstream_st *after,
               bool streamed, struct hvd_err *err)
{
    struct post *post;
    int rc;

    pthread_mutex_lock(&comm->hand->mutex);
    post = take_post(comm, err);
    pthread_mutex_unlock(&comm->hand->mutex);
    if (!post)
        return err->code;
    rc = run_post(comm, post, call, after, streamed, err);
    pthread_mutex_lock(&comm->hand->mutex);
    post->owned = false;
    life_put_back(comm, post);
    pthread_mutex_unlock(&comm->hand->mutex);
    return rc;
}

/* What has gone wrong on this side is the end of it, too: the others wait for us. */
static void give_up(struct comm *comm, const struct hvd_err *why)
{
    pthread_mutex_lock(&comm->hand->mutex);
    life_fail(comm, why);
    pthread_mutex_unlock(&comm->hand->mutex);
}

int comm_run(struct comm *comm, const struct coll_call *call, struct CUstream_st *after,
             bool streamed, struct hvd_err *err)
{
    const struct gpu_device *device = comm->hand->options.device;
    struct hvd_err why = { .code = 0 };
    int rc = gpu_enter(device, &why);

    if (!rc) {
        rc = run(comm, call, after, streamed, &why);
        gpu_leave(device);
    }
    if (rc) {
        give_up(comm, &why);
        (void)err_set(err, rc, "%s", why.text);
    }
    return rc;
}

/* ---- its end ---- */

static void revoke(struct comm *comm)
{
    struct hvd_err why;

    (void)err_set(&why, HVD_E_REVOKED, "the communicator was revoked");
    life_fail(comm, &why);
    comm->revoked = true;
}

void comm_revoke(struct comm *comm)
{
    pthread_mutex_lock(&comm->hand->mutex);
    revoke(comm);
    pthread_mutex_unlock(&comm->hand->mutex);
}

/* Before it runs, NCCL has nothing of ours in its hands. */
static bool is_settled(const struct comm *comm)
{
    if (!comm->ran)
        return true;
    if (comm->failed)
        return comm->ended;
    return !comm->posted && !comm->taken && list_empty(&comm->flying);
}

/* At rest it is left as it is: what a neighbour's kernel still waits for may be in our buffers, or
 * on its way by threads of NCCL, which a revoke would stop. */
void comm_free(struct comm *comm)
{
    if (!comm)
        return;
    pthread_mutex_lock(&comm->hand->mutex);
    comm->freed = true;
    if (!comm->ran || !is_settled(comm))
        revoke(comm);
    hand_kick(comm->hand);
    pthread_mutex_unlock(&comm->hand->mutex);
}

int comm_settle(struct comm *comm, struct hvd_err *err)
{
    struct hand *hand = comm->hand;
    bool settled;

    pthread_mutex_lock(&hand->mutex);
    while (!is_settled(comm) && !comm->stuck && !hand_is_overdue(hand))
        hand_wait(hand, TIME_NEVER);
    settled = is_settled(comm);
    pthread_mutex_unlock(&hand->mutex);
    if (settled)
        return 0;
    return err_set(err, HVD_E_TIMEOUT, "%s: what has been revoked has not ended",
                   hand->options.device->name);
}
