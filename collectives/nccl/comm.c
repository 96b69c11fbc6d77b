/*
 * comm.c: what other threads ask of a communicator; called by device.c and device_group.c. A caller
 * plans its call in a post (a call with its event), hands the post to the NCCL thread, and waits
 * for the post. The caller never calls NCCL itself, except for the id.
 */
#include "collectives/nccl/comm_state.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/thread.h"

/* The most calls of a communicator that may be launched and not ended; the next call waits. */
#define POSTS_MAX 256

/* Makes the id of a communicator (nccl_thread.h). This runs on the caller's thread:
 * ncclGetUniqueId belongs to no communicator, and the libraries that it loads the first time should
 * not delay a running communicator. */
int comm_make_id(struct nccl_thread *thread, struct nccl_id *ret_id, struct hvd_err *err)
{
    return nccl_judge(thread->nccl, thread->nccl->unique_id(ret_id), "an id for a communicator",
                      err);
}

/* Begins to make a communicator (nccl_thread.h): gives it to the NCCL thread, which makes it in the
 * background. */
int comm_begin(struct nccl_thread *thread, const struct comm_spec *spec, struct comm **ret_comm,
               struct hvd_err *err)
{
    struct comm *comm = mem_zalloc(sizeof(*comm));

    if (!comm)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for a communicator of NCCL; free memory on this host");
    comm->thread = thread;
    comm->spec = *spec;
    list_init(&comm->dying);
    list_init(&comm->in_flight);
    list_init(&comm->idle);
    pthread_mutex_lock(&thread->mutex);
    list_append(&thread->comms, &comm->among);
    nccl_thread_kick(thread);
    pthread_mutex_unlock(&thread->mutex);
    *ret_comm = comm;
    return 0;
}

/* Returns the state that callers see, made from the phases of comm_state.h. */
static enum comm_state state_of(const struct comm *comm)
{
    if (comm->failed)
        return COMM_FAILED;
    return comm->phase == PHASE_RUNS ? COMM_READY : COMM_STARTING;
}

/* Returns the state of the communicator at once. ret_why: gets the reason of a failure; may be
 * NULL. */
enum comm_state comm_look(struct comm *comm, struct hvd_err *ret_why)
{
    enum comm_state state;

    pthread_mutex_lock(&comm->thread->mutex);
    state = state_of(comm);
    if (ret_why && state == COMM_FAILED)
        *ret_why = comm->why;
    pthread_mutex_unlock(&comm->thread->mutex);
    return state;
}

/* Waits while the state is STARTING, at most until until_us. The NCCL thread wakes this thread at
 * each change of the state. Returns the state. */
enum comm_state comm_await(struct comm *comm, int64_t until_us)
{
    pthread_mutex_lock(&comm->thread->mutex);
    while (state_of(comm) == COMM_STARTING)
        if (thread_cond_wait(&comm->thread->changed, &comm->thread->mutex, until_us))
            break;
    pthread_mutex_unlock(&comm->thread->mutex);
    return comm_look(comm, NULL);
}

/* true: no call was ended early by a revoke (`cut`); calls may still run (nccl_thread.h). */
bool comm_is_whole(struct comm *comm)
{
    bool whole;

    pthread_mutex_lock(&comm->thread->mutex);
    whole = !comm->cut;
    pthread_mutex_unlock(&comm->thread->mutex);
    return whole;
}

/* Returns how many calls have ended on the device so far. */
uint64_t comm_progress(const struct comm *comm)
{
    return atomic_load_explicit(&comm->progress, memory_order_relaxed);
}

/* Writes why a call of the failed communicator cannot be made, and returns the code. After a revoke
 * the code is HVD_E_REVOKED, also if NCCL had failed before. */
static int comm_failure(const struct comm *comm, struct hvd_err *err)
{
    int code = comm->revoked ? HVD_E_REVOKED : comm->why.code;

    return err_set(err, code, "%s", comm->why.text);
}

/* Takes an idle post (a call of NCCL with its event), or makes one; waits while POSTS_MAX posts are
 * in use. The caller holds the lock. NULL: `err` says why. */
static struct post *take_post(struct comm *comm, struct hvd_err *err)
{
    struct nccl_thread *thread = comm->thread;
    struct post *post;

    while (!comm->failed && list_empty(&comm->idle) && comm->posts >= POSTS_MAX)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    if (comm->failed) {
        (void)comm_failure(comm, err);
        return NULL;
    }
    if (!list_empty(&comm->idle)) {
        post = CONTAINER_OF(comm->idle.next, struct post, link);
        list_remove(&post->link);
    } else {
        /* without the lock, because this calls the CUDA driver */
        comm->posts++;
        pthread_mutex_unlock(&thread->mutex);
        post = mem_zalloc(sizeof(*post));
        if (!post)
            (void)err_set(err, HVD_E_NOMEM,
                          "no memory for a call of NCCL; free memory on this host");
        else if (cuda_judge(thread->cuda,
                            thread->cuda->event_create(&post->event, CUDA_EVENT_UNTIMED),
                            "an event for a collective", err)) {
            mem_free(post);
            post = NULL;
        }
        pthread_mutex_lock(&thread->mutex);
        if (!post) {
            comm->posts--;
            return NULL;
        }
        calls_init(&post->calls);
        list_init(&post->link);
    }
    post->owned = true;
    post->launched = post->done = false;
    return post;
}

/* Hands a planned call to the NCCL thread and waits: for a streamed call until it is launched,
 * else until its result is ready. One event orders the two CUDA streams, in two steps. First the
 * event is recorded in the caller's stream `after`, behind the data, and NCCL's stream waits for
 * it. After the launch the event is recorded in NCCL's stream, behind the call, and for a streamed
 * call `after` waits for it. */
static int run_post(struct comm *comm, struct post *post, const struct coll_call *call,
                    struct CUstream_st *after, bool streamed, struct hvd_err *err)
{
    struct nccl_thread *thread = comm->thread;
    const struct cuda *cuda = thread->cuda;
    int rc = calls_plan(&post->calls, call, comm->spec.rank, comm->spec.size);

    if (rc)
        return err_set(err, rc,
                       "no memory for the plan of a call of NCCL; free memory on this host");
    if (!post->calls.count)
        return 0;
    rc = cuda_judge(cuda, cuda->event_record(post->event, after), "the data of a collective", err);
    if (rc)
        return rc;

    /* from now on the NCCL thread runs the call; a revoke ends the wait below at once */
    pthread_mutex_lock(&thread->mutex);
    if (!comm->failed) {
        ASSERT(!comm->posted && !comm->taken);
        post->held = true;
        comm->posted = post;
        nccl_thread_kick(thread);
    }
    while (!comm->failed && !(streamed ? post->launched : post->done))
        pthread_cond_wait(&thread->changed, &thread->mutex);
    if (!(streamed ? post->launched : post->done))
        rc = comm_failure(comm, err);
    pthread_mutex_unlock(&thread->mutex);
    if (rc || !streamed)
        return rc;
    return cuda_judge(cuda, cuda->stream_wait(after, post->event, 0), "the result of a collective",
                      err);
}

/* Runs a call of a collective through NCCL (nccl_thread.h). Takes a post for the call, runs the
 * call, and gives the post back. */
int comm_run(struct comm *comm, const struct coll_call *call, struct CUstream_st *after,
             bool streamed, struct hvd_err *err)
{
    struct nccl_thread *thread = comm->thread;
    const struct gpu_device *device = thread->options.device;
    struct hvd_err why = { .code = 0 };
    struct post *post;
    int rc = gpu_enter(device, &why);

    if (!rc) {
        pthread_mutex_lock(&thread->mutex);
        post = take_post(comm, &why);
        pthread_mutex_unlock(&thread->mutex);
        rc = post ? run_post(comm, post, call, after, streamed, &why) : why.code;
        if (post) {
            pthread_mutex_lock(&thread->mutex);
            post->owned = false;
            comm_state_put_back(comm, post);
            pthread_mutex_unlock(&thread->mutex);
        }
        gpu_leave(device);
    }
    /* a failure of this member ends the communicator too, because the other members wait for this
     * one */
    if (rc) {
        pthread_mutex_lock(&thread->mutex);
        comm_state_fail(comm, &why);
        pthread_mutex_unlock(&thread->mutex);
        (void)err_set(err, rc, "%s", why.text);
    }
    return rc;
}

/* Marks the communicator as failed because this process revokes it. After an earlier failure `why`
 * stays that failure's text. */
static void fail_as_revoked(struct comm *comm)
{
    struct hvd_err why;

    (void)err_set(&why, HVD_E_REVOKED, "the communicator was revoked");
    comm_state_fail(comm, &why);
    comm->revoked = true;
}

/* Revokes the communicator (nccl_thread.h): marks it as failed, and the NCCL thread does the rest.
 */
void comm_revoke(struct comm *comm)
{
    pthread_mutex_lock(&comm->thread->mutex);
    fail_as_revoked(comm);
    pthread_mutex_unlock(&comm->thread->mutex);
}

/* true: the communicator is settled: none of its kernels runs. A communicator that has never
 * reached PHASE_RUNS has launched none. */
static bool is_settled(const struct comm *comm)
{
    if (!comm->ran)
        return true;
    if (comm->failed)
        return comm->ended;
    return !comm->posted && !comm->taken && list_empty(&comm->in_flight);
}

/* Marks a communicator as not used any more; the NCCL thread frees it later. If calls were made and
 * all have ended (it is settled), it is not revoked: a slower member may still read from buffers of
 * this member, and a revoke would stop the threads of NCCL that serve that member. */
void comm_free(struct comm *comm)
{
    if (!comm)
        return;
    pthread_mutex_lock(&comm->thread->mutex);
    comm->freed = true;
    if (!comm->ran || !is_settled(comm))
        fail_as_revoked(comm);
    nccl_thread_kick(comm->thread);
    pthread_mutex_unlock(&comm->thread->mutex);
}

/* Waits until no kernel of the communicator runs (nccl_thread.h). HVD_E_TIMEOUT: the device is
 * stuck, or a call of NCCL does not return in time. */
int comm_settle(struct comm *comm, struct hvd_err *err)
{
    struct nccl_thread *thread = comm->thread;
    bool settled;

    pthread_mutex_lock(&thread->mutex);
    while (!is_settled(comm) && !comm->stuck && !watchdog_is_overdue(thread))
        watchdog_wait(thread, TIME_NEVER);
    settled = is_settled(comm);
    pthread_mutex_unlock(&thread->mutex);
    if (settled)
        return 0;
    return err_set(err, HVD_E_TIMEOUT,
                   "%s: operations of NCCL that were cancelled have not ended in time, so the GPU "
                   "may hang; this worker must end",
                   thread->options.device->name);
}
