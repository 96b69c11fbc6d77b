/*
 * comm_state.c: what the NCCL thread does for one communicator in an iteration, and all changes of
 * its state; called by nccl_thread.c, aborter.c and comm.c. A communicator that has failed is
 * revoked or, where a revoke is impossible, aborted; it never works again.
 *
 * All functions hold the lock, and release it around each call of NCCL and the driver: during such
 * a call another thread may mark the communicator as failed.
 */
#include "collectives/nccl/comm_state.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"

/* Records why the communicator failed; only the first failure counts. Wakes the NCCL thread, which
 * revokes the communicator; the watchdog; and all waiting callers. */
void comm_state_fail(struct comm *comm, const struct hvd_err *why)
{
    if (comm->failed)
        return;
    comm->failed = true;
    comm->failed_us = clock_now_us();
    comm->why = *why;
    if (why->code == HVD_E_IO)
        comm->blind = true; /* the device may be lost: then its events tell nothing */
    nccl_thread_kick(comm->thread);
    pthread_cond_signal(&comm->thread->alarm);
    pthread_cond_broadcast(&comm->thread->changed);
}

/* Puts a post into the list of idle posts, from which a later call takes it, unless a thread still
 * needs it. */
void comm_state_put_back(struct comm *comm, struct post *post)
{
    if (post->owned || post->held)
        return;
    list_remove(&post->link);
    list_append(&comm->idle, &post->link);
}

/* The NCCL thread does not need this post any more: a caller that waits for it wakes up. */
static void release_post(struct comm *comm, struct post *post)
{
    list_remove(&post->link);
    post->held = false;
    comm_state_put_back(comm, post);
    pthread_cond_broadcast(&comm->thread->changed);
}

/* Drops the post in *place, which is `posted` or `taken`. */
static void drop_post(struct comm *comm, struct post **place)
{
    struct post *post = *place;

    *place = NULL;
    if (post)
        release_post(comm, post);
}

/* Drops the launched calls, whose ends cannot be seen or do not matter any more. */
static void drop_in_flight(struct comm *comm)
{
    while (!list_empty(&comm->in_flight))
        release_post(comm, CONTAINER_OF(comm->in_flight.next, struct post, link));
}

/* Asks NCCL whether the last call that was made for the communicator is finished: such a call
 * returns before that. Returns a code of NCCL, also when the question itself failed. */
static int ask_nccl(struct comm *comm)
{
    int asked;
    int code = NCCL_OK;

    nccl_call_begin(comm->thread);
    asked = comm->thread->nccl->async_error(comm->nccl, &code);
    nccl_call_end(comm->thread);
    return asked != NCCL_OK ? asked : code;
}

enum code_source { OF_NCCL, OF_DRIVER };

/* Fails the communicator if the code, of NCCL or of the driver, is a failure. `what` names the call
 * that returned the code. Always returns COMM_MOVED, so that the NCCL thread looks at its
 * communicators again at once. */
static enum comm_activity judge_code(struct comm *comm, enum code_source source, int code,
                                     const char *what)
{
    const struct nccl_thread *thread = comm->thread;
    struct hvd_err why = { .code = 0 };
    int rc;

    nccl_call_begin(comm->thread);
    rc = source == OF_NCCL ? nccl_judge(thread->nccl, code, what, &why)
                           : cuda_judge(thread->cuda, code, what, &why);
    nccl_call_end(comm->thread);
    if (rc)
        comm_state_fail(comm, &why);
    return COMM_MOVED;
}

/* Looks at the calls that NCCL has launched, and releases the posts of those whose event shows that
 * they have ended. COMM_MOVED: one has ended; else COMM_WAITS: the oldest one has not ended;
 * COMM_IDLE: none was launched. *ret_code: the last answer of the driver; CUDA_NOT_READY: not
 * ended yet. */
static enum comm_activity collect_ended(struct comm *comm, int *ret_code)
{
    struct nccl_thread *thread = comm->thread;
    enum comm_activity activity = COMM_IDLE;

    *ret_code = CUDA_OK;
    while (!list_empty(&comm->in_flight)) {
        struct post *post = CONTAINER_OF(comm->in_flight.next, struct post, link);

        /* the driver may block this thread while another call has its lock */
        thread->watch.asking = true;
        nccl_call_begin(thread);
        *ret_code = thread->cuda->event_query(post->event);
        nccl_call_end(thread);
        thread->watch.asking = false;
        /* the aborter may have begun a revoke meanwhile; two threads must not call NCCL at once */
        while (thread->watch.elsewhere)
            pthread_cond_wait(&thread->changed, &thread->mutex);

        if (*ret_code)
            return activity == COMM_IDLE ? COMM_WAITS : activity;
        post->done = !comm->failed; /* otherwise the call was ended early and has no result */
        atomic_fetch_add_explicit(&comm->progress, 1, memory_order_relaxed);
        release_post(comm, post);
        activity = COMM_MOVED;
    }
    return activity;
}

/* Called when the driver's answer about an event was an error: from now on the driver is asked
 * about the whole stream, and the launched calls count as cut. */
static void lose_events(struct comm *comm)
{
    comm->blind = true;
    comm->cut = comm->cut || !list_empty(&comm->in_flight);
    drop_in_flight(comm);
}

/* Asks the driver, before a revoke, which calls have ended by themselves. A call that was revoked
 * before its end counts as cut, and a cut call makes a commit invalid, which costs a step of the
 * training: so a call that has ended must not be taken for a cut one.
 *
 * The driver may not answer: a call of the program may hold the driver's lock while it waits for a
 * kernel. Then the aborter revokes meanwhile, and each call whose end was not seen counts as cut.
 * That costs a step. Not to revoke would cost more: the process could not settle, and would be
 * replaced. */
static void ask_once_more(struct comm *comm)
{
    int code;

    (void)collect_ended(comm, &code);
}

/* Drops all calls of the communicator before it is revoked or destroyed. A call that NCCL may run
 * counts as cut; one that is only posted does not. */
static void cut_calls(struct comm *comm)
{
    comm->cut = comm->cut || comm->taken || !list_empty(&comm->in_flight);
    drop_post(comm, &comm->posted);
    drop_post(comm, &comm->taken);
}

/* The NCCL thread or the aborter calls this before it asks NCCL for a revoke (comm_state.h). */
void comm_state_begin_revoke(struct comm *comm)
{
    cut_calls(comm);
    comm->phase = PHASE_ENDS;
}

/* true: NCCL's answer means that the communicator is revoked, or will be. NCCL_REMOTE_ERROR is the
 * death of a peer, which NCCL repeats in each answer. */
bool comm_state_is_revoked(int code)
{
    return code == NCCL_OK || code == NCCL_IN_PROGRESS || code == NCCL_REMOTE_ERROR;
}

/* Ends a communicator that is not needed any more, or that cannot be revoked: gives it to the
 * aborter. A communicator that NCCL has never created is gone at once. */
static enum comm_activity comm_die(struct comm *comm)
{
    ask_once_more(comm);
    cut_calls(comm);
    if (comm->nccl) {
        comm->phase = PHASE_DYING;
        list_append(&comm->thread->dying, &comm->dying);
        pthread_cond_signal(&comm->thread->feed);
    } else {
        comm->phase = PHASE_GONE;
    }
    return COMM_MOVED;
}

/* Lets other communicators launch again, if this one was launching a call. */
static void end_launch(struct comm *comm)
{
    if (comm->thread->launching == comm)
        comm->thread->launching = NULL;
}

/* true: the program has freed the communicator, and all members have left its round, so no
 * member needs it (nccl_thread_agreed) */
static bool may_die(const struct comm *comm)
{
    return comm->freed && comm->spec.round < comm->thread->agreed;
}

/* Step from NEW: creates the communicator, as a call that NCCL finishes in the background
 * (`blocking` 0). */
static enum comm_activity advance_new(struct comm *comm)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION,
                                  .blocking = 0 };
    struct nccl_thread *thread = comm->thread;
    struct hvd_err why = { .code = 0 };
    int code;

    if (comm->failed)
        return comm_die(comm);
    nccl_call_begin(thread);
    /* Without a current device NCCL would use the first device of the machine. */
    thread->entered = thread->entered || !gpu_enter(thread->options.device, &why);
    nccl_call_end(thread);
    if (!thread->entered) {
        comm_state_fail(comm, &why);
        return COMM_MOVED;
    }
    comm->phase = PHASE_STARTING;
    nccl_call_begin(thread);
    code = thread->nccl->comm_init(&comm->nccl, (int)comm->spec.size, comm->spec.id,
                                   (int)comm->spec.rank, &config);
    nccl_call_end(thread);
    return judge_code(comm, OF_NCCL, code, "a new communicator");
}

/* Called for a call that was issued to NCCL (`taken`): asks whether NCCL has launched it.
 * COMM_WAITS: not yet. After the launch the post is in flight: its event is recorded behind the
 * call in NCCL's stream. */
static enum comm_activity finish_launch(struct comm *comm)
{
    struct nccl_thread *thread = comm->thread;
    struct post *post = comm->taken;
    int forget_code, code = ask_nccl(comm);

    if (code == NCCL_IN_PROGRESS)
        return COMM_WAITS;
    if (code != NCCL_OK)
        return judge_code(comm, OF_NCCL, code, post->calls.name);
    end_launch(comm);
    if (comm->failed)
        return COMM_MOVED;

    /* an event behind all work in the stream shows the end of the work */
    nccl_call_begin(thread);
    forget_code = calls_forget_op(&post->calls, thread->nccl, comm->nccl);
    code = thread->cuda->event_record(post->event, thread->stream);
    nccl_call_end(thread);
    if (code || forget_code) {
        drop_post(comm, &comm->taken);
        return code ? judge_code(comm, OF_DRIVER, code, "an event behind a collective")
                    : judge_code(comm, OF_NCCL, forget_code, "freeing the scale of a collective");
    }
    comm->blind = false;
    comm->taken = NULL;
    post->launched = true;
    list_append(&comm->in_flight, &post->link);
    pthread_cond_broadcast(&thread->changed);
    return COMM_MOVED;
}

/* Does what is next for a communicator in PHASE_RUNS, one of four things: if the program has freed
 * the communicator, it dies; a call that NCCL is launching is finished; calls that have ended are
 * released, and the next one is issued; after a failure the communicator is revoked. */
static enum comm_activity advance_running(struct comm *comm)
{
    struct nccl_thread *thread = comm->thread;
    const struct nccl *nccl = thread->nccl;
    enum comm_activity activity;
    struct post *post;
    int code;

    if (!comm->failed && may_die(comm)) { /* the communicator was idle since it was freed */
        comm->ended = true;
        return comm_die(comm);
    }
    if (!comm->failed && comm->taken)
        return finish_launch(comm);
    if (!comm->failed) {
        activity = collect_ended(comm, &code);
        if (code != CUDA_OK && code != CUDA_NOT_READY) {
            lose_events(comm);
            activity = judge_code(comm, OF_DRIVER, code, "waiting for a collective");
        } else if (activity == COMM_WAITS) {
            code = ask_nccl(comm);
            if (code != NCCL_OK && code != NCCL_IN_PROGRESS)
                activity = judge_code(comm, OF_NCCL, code, "a collective in progress");
        }
        if (!comm->posted || comm->failed)
            return activity;
        /* Issues the posted call to NCCL, if no other launch is in progress. */
        if (thread->launching)
            return COMM_WAITS;
        thread->launching = comm;
        comm->taken = post = comm->posted;
        comm->posted = NULL;
        comm->blind = true;
        nccl_call_begin(thread);
        code = thread->cuda->stream_wait(thread->stream, post->event, 0 /* no flags */);
        nccl_call_end(thread);
        if (code) {
            drop_post(comm, &comm->taken);
            return judge_code(comm, OF_DRIVER, code, "waiting for the data of a collective");
        }
        nccl_call_begin(thread);
        code = calls_issue(&post->calls, nccl, comm->nccl, thread->stream);
        nccl_call_end(thread);
        return judge_code(comm, OF_NCCL, code, post->calls.name);
    }

    /* The communicator has failed: revoke it. A revoke and an abort are the only calls that are
     * allowed during a launch; a revoke ends the launch too. */
    if (may_die(comm) || !nccl->revoke_comm)
        return comm_die(comm);
    ask_once_more(comm);
    if (comm->phase != PHASE_RUNS) /* the aborter has revoked the communicator meanwhile */
        return COMM_MOVED;
    comm_state_begin_revoke(comm);
    nccl_call_begin(thread);
    code = nccl->revoke_comm(comm->nccl, 0 /* no flags */);
    nccl_call_end(thread);
    return comm_state_is_revoked(code) ? COMM_MOVED : comm_die(comm);
}

/* Does what is next for a revoked communicator: asks NCCL whether the revoke is over. After the
 * death of a peer NCCL returns that error for ever, so any code but "in progress" means that the
 * revoke is over. If the code is an error, or the driver cannot be asked about the events, it is
 * asked whether the whole stream has ended. */
static enum comm_activity advance_ending(struct comm *comm)
{
    struct nccl_thread *thread = comm->thread;
    struct hvd_err why = { .code = 0 };
    char bound[TIME_TEXT_MAX];
    int code = ask_nccl(comm);

    if (code != NCCL_IN_PROGRESS) {
        end_launch(comm);
        comm->blind = comm->blind || code != NCCL_OK;
        (void)collect_ended(comm, &code);
        if (code != CUDA_OK && code != CUDA_NOT_READY)
            lose_events(comm);
        if (comm->blind) {
            nccl_call_begin(thread);
            code = thread->cuda->stream_query(thread->stream);
            if (code != CUDA_NOT_READY)
                why.code = cuda_judge(thread->cuda, code, "the end of revoked operations", &why);
            nccl_call_end(thread);
        }
        if (code == CUDA_OK) {
            comm->blind = false;
            comm->phase = PHASE_ENDED;
            comm->ended = true;
            pthread_cond_broadcast(&thread->changed);
            return COMM_MOVED;
        }
    }
    if (why.code) /* the driver no longer knows what runs on the device */
        watchdog_tell_stuck(thread, comm, "%s", why.text);
    else if (clock_now_us() - comm->failed_us >= thread->options.bound_us)
        watchdog_tell_stuck(thread, comm,
                            "operations of NCCL that were cancelled do not end within %s, so the "
                            "GPU may hang; check "
                            "the GPU with nvidia-smi, or give a longer --gpu-timeout",
                            time_format(thread->options.bound_us, bound));
    return COMM_WAITS;
}

/* Does for the communicator what is possible now, by its phase (comm_state.h). Called by the NCCL
 * thread in each iteration. A stuck communicator is left as it is. */
enum comm_activity comm_state_advance(struct comm *comm)
{
    int code;

    if (comm->stuck)
        return COMM_IDLE;
    switch (comm->phase) {
    case PHASE_NEW: return advance_new(comm);
    case PHASE_STARTING: /* has NCCL finished the communicator? */
        if (comm->failed)
            return comm_die(comm);
        code = ask_nccl(comm);
        if (code == NCCL_IN_PROGRESS)
            return COMM_WAITS;
        if (code != NCCL_OK)
            return judge_code(comm, OF_NCCL, code, "a new communicator");
        if (!comm->failed) {
            comm->phase = PHASE_RUNS;
            comm->ran = true;
            pthread_cond_broadcast(&comm->thread->changed);
        }
        return COMM_MOVED;
    case PHASE_RUNS: return advance_running(comm);
    case PHASE_ENDS: return advance_ending(comm);
    case PHASE_ENDED: return may_die(comm) ? comm_die(comm) : COMM_IDLE;
    case PHASE_DYING:
    case PHASE_GONE: return COMM_IDLE;
    }
    return COMM_IDLE;
}

/* Called when the aborter has destroyed the communicator: none of its kernels runs any more, so the
 * posts of its launched calls are released. */
void comm_state_aborted(struct comm *comm)
{
    comm->nccl = NULL;
    comm->phase = PHASE_GONE;
    comm->ended = true;
    end_launch(comm);
    drop_in_flight(comm);
    nccl_thread_kick(comm->thread);
    pthread_cond_broadcast(&comm->thread->changed);
}

/* Frees the communicator and its posts, which are all idle by now. */
void comm_state_free(struct comm *comm)
{
    LIST_EACH_SAFE (it, after, &comm->idle) {
        struct post *post = CONTAINER_OF(it, struct post, link);

        (void)comm->thread->cuda->event_destroy(post->event);
        calls_release(&post->calls);
        mem_free(post);
    }
    mem_free(comm);
}
