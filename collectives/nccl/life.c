#include "collectives/nccl/life.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"

static const struct cuda *cuda_of(const struct comm *comm)
{
    return comm->hand->cuda;
}

static const struct nccl *nccl_of(const struct comm *comm)
{
    return comm->hand->nccl;
}

static bool has_been(const struct comm *comm, int64_t us)
{
    return clock_now_us() - comm->failed_us >= us;
}

void life_fail(struct comm *comm, const struct hvd_err *why)
{
    if (comm->failed)
        return;
    comm->failed = true;
    comm->failed_us = clock_now_us();
    comm->why = *why;
    if (why->code == HVD_E_IO)
        comm->blind = true; /* is the device still there? */
    hand_kick(comm->hand);
    pthread_cond_signal(&comm->hand->alarm);
    pthread_cond_broadcast(&comm->hand->changed);
}

/* ---- posts ---- */

void life_put_back(struct comm *comm, struct post *post)
{
    if (post->owned || post->held)
        return;
    list_remove(&post->link);
    list_append(&comm->idle, &post->link);
}

static void let_go(struct comm *comm, struct post *post)
{
    list_remove(&post->link);
    post->held = false;
    life_put_back(comm, post);
    pthread_cond_broadcast(&comm->hand->changed);
}

static void drop_taken(struct comm *comm)
{
    struct post *post = comm->taken;

    comm->taken = NULL;
    if (post)
        let_go(comm, post);
}

static void drop_posted(struct comm *comm)
{
    struct post *post = comm->posted;

    comm->posted = NULL;
    if (post)
        let_go(comm, post);
}

static void drop_flying(struct comm *comm)
{
    while (!list_empty(&comm->flying))
        let_go(comm, CONTAINER_OF(comm->flying.next, struct post, link));
}

/* ---- what NCCL and the driver say; without the lock on the way ---- */

static int look(struct comm *comm)
{
    int asked;
    int code = NCCL_OK;

    hand_away(comm->hand);
    asked = nccl_of(comm)->async_error(comm->nccl, &code);
    hand_back(comm->hand);
    return asked != NCCL_OK ? asked : code;
}

static enum turn failed_by_nccl(struct comm *comm, int code, const char *what)
{
    struct hvd_err why = { .code = 0 };
    int rc;

    hand_away(comm->hand);
    rc = nccl_judge(nccl_of(comm), code, what, &why);
    hand_back(comm->hand);
    if (rc)
        life_fail(comm, &why);
    return TURN_MOVED;
}

static enum turn failed_by_driver(struct comm *comm, int code, const char *what)
{
    struct hvd_err why = { .code = 0 };
    int rc;

    hand_away(comm->hand);
    rc = cuda_judge(cuda_of(comm), code, what, &why);
    hand_back(comm->hand);
    if (rc)
        life_fail(comm, &why);
    return TURN_MOVED;
}

/* ---- what has ended, and what has not ---- */

/* The driver may keep us for as long as another call has its lock. */
static int ask_event(struct comm *comm, struct CUevent_st *event)
{
    struct hand *hand = comm->hand;
    int code;

    hand->asking = true;
    hand_away(hand);
    code = cuda_of(comm)->event_query(event);
    hand_back(hand);
    hand->asking = false;
    while (hand->elsewhere)
        pthread_cond_wait(&hand->changed, &hand->mutex);
    return code;
}

/* TURN_WAITS: the first of what flies has not landed. */
static enum turn land(struct comm *comm, int *ret_code)
{
    enum turn turn = TURN_IDLE;

    *ret_code = CUDA_OK;
    while (!list_empty(&comm->flying)) {
        struct post *post = CONTAINER_OF(comm->flying.next, struct post, link);

        *ret_code = ask_event(comm, post->event);
        if (*ret_code)
            return turn == TURN_IDLE ? TURN_WAITS : turn;
        post->done = !comm->failed; /* else it was ended, and there is no result */
        atomic_fetch_add_explicit(&comm->progress, 1, memory_order_relaxed);
        let_go(comm, post);
        turn = TURN_MOVED;
    }
    return turn;
}

/* What is about to be ended may have ended by itself, so the driver is asked first: else commits
 * would not count that hold nothing wrong, and a step is lost with each. While it does not answer,
 * as it does not when a call of the program waits for the kernel with the driver's lock taken, the
 * aborter ends the kernel: then all that has not been seen to land counts as cut, as a process that
 * cannot settle is replaced, which costs more than a step. Usually that question is one that the
 * hand had asked before anything failed, so to revoke first, here, would not do. */
static void look_once_more(struct comm *comm)
{
    int code;

    (void)land(comm, &code);
}

static void cut(struct comm *comm)
{
    comm->cut = comm->cut || comm->taken || !list_empty(&comm->flying);
    drop_posted(comm);
    drop_taken(comm);
}

void life_begin_revoke(struct comm *comm)
{
    cut(comm);
    comm->stage = STAGE_ENDS;
}

bool life_is_revoked(int code)
{
    return code == NCCL_OK || code == NCCL_IN_PROGRESS || code == NCCL_REMOTE_ERROR;
}

static enum turn die(struct comm *comm)
{
    look_once_more(comm);
    cut(comm);
    if (comm->nccl)
        aborter_add(comm);
    else
        comm->stage = STAGE_GONE;
    return TURN_MOVED;
}

static void end_launch(struct comm *comm)
{
    if (comm->hand->launching == comm)
        comm->hand->launching = NULL;
}

/* ---- being made ---- */

static enum turn turn_new(struct comm *comm)
{
    struct nccl_config config = { .size = sizeof(config),
                                  .magic = NCCL_CONFIG_MAGIC,
                                  .version = NCCL_CONFIG_VERSION,
                                  .blocking = 0 };
    struct hand *hand = comm->hand;
    struct hvd_err why = { .code = 0 };
    int code;

    if (comm->failed)
        return die(comm);
    hand_away(hand);
    /* Where there is no current device NCCL takes the first one of the machine. */
    hand->entered = hand->entered || !gpu_enter(hand->options.device, &why);
    hand_back(hand);
    if (!hand->entered) {
        life_fail(comm, &why);
        return TURN_MOVED;
    }
    comm->stage = STAGE_STARTING;
    hand_away(hand);
    code = nccl_of(comm)->comm_init(&comm->nccl, (int)comm->spec.size, comm->spec.id,
                                    (int)comm->spec.rank, &config);
    hand_back(hand);
    return failed_by_nccl(comm, code, "a new communicator");
}

static enum turn turn_starting(struct comm *comm)
{
    int code;

    if (comm->failed)
        return die(comm);
    code = look(comm);
    if (code == NCCL_IN_PROGRESS)
        return TURN_WAITS;
    if (code != NCCL_OK)
        return failed_by_nccl(comm, code, "a new communicator");
    if (!comm->failed) {
        comm->stage = STAGE_RUNS;
        comm->ran = true;
        pthread_cond_broadcast(&comm->hand->changed);
    }
    return TURN_MOVED;
}

/* ---- at work ---- */

static enum turn launch(struct comm *comm)
{
    struct hand *hand = comm->hand;
    struct post *post = comm->posted;
    int code;

    if (hand->launching)
        return TURN_WAITS;
    hand->launching = comm;
    comm->posted = NULL;
    comm->taken = post;
    comm->blind = true;
    hand_away(hand);
    code = cuda_of(comm)->stream_wait(hand->stream, post->event, 0);
    hand_back(hand);
    if (code) {
        drop_taken(comm);
        return failed_by_driver(comm, code, "waiting for the data of a collective");
    }
    hand_away(hand);
    code = calls_issue(&post->calls, nccl_of(comm), comm->nccl, hand->stream);
    hand_back(hand);
    return failed_by_nccl(comm, code, post->calls.name);
}

/* An event behind all that is in the stream knows of all of it. */
static enum turn launched(struct comm *comm)
{
    struct hand *hand = comm->hand;
    struct post *post = comm->taken;
    int forgotten, code;

    hand_away(hand);
    forgotten = calls_forget_op(&post->calls, nccl_of(comm), comm->nccl);
    code = cuda_of(comm)->event_record(post->event, hand->stream);
    hand_back(hand);
    if (code || forgotten) {
        drop_taken(comm);
        return code ? failed_by_driver(comm, code, "noting a collective")
                    : failed_by_nccl(comm, forgotten, "forgetting a scale");
    }
    comm->blind = false;
    comm->taken = NULL;
    post->launched = true;
    list_append(&comm->flying, &post->link);
    pthread_cond_broadcast(&hand->changed);
    return TURN_MOVED;
}

static enum turn turn_launching(struct comm *comm)
{
    int code = look(comm);

    if (code == NCCL_IN_PROGRESS)
        return TURN_WAITS;
    if (code != NCCL_OK)
        return failed_by_nccl(comm, code, comm->taken->calls.name);
    end_launch(comm);
    return comm->failed ? TURN_MOVED : launched(comm);
}

/* Events that cannot be asked say nothing: the stream is asked then. */
static void blind(struct comm *comm)
{
    comm->blind = true;
    comm->cut = comm->cut || !list_empty(&comm->flying);
    drop_flying(comm);
}

static enum turn turn_flying(struct comm *comm)
{
    int code;
    enum turn turn = land(comm, &code);

    if (code != CUDA_OK && code != CUDA_NOT_READY) {
        blind(comm);
        return failed_by_driver(comm, code, "waiting for a collective");
    }
    if (turn != TURN_WAITS)
        return turn;
    code = look(comm);
    if (code != NCCL_OK && code != NCCL_IN_PROGRESS)
        return failed_by_nccl(comm, code, "a collective in progress");
    return TURN_WAITS;
}

/* ---- being ended ---- */

static bool may_die(const struct comm *comm)
{
    return comm->freed && comm->spec.round < comm->hand->agreed;
}

/* The one call, but for an abort, that may be made in the middle of a launch: it ends that, too. */
static enum turn revoke(struct comm *comm)
{
    int code;

    if (may_die(comm) || !nccl_of(comm)->comm_revoke)
        return die(comm);
    look_once_more(comm);
    if (comm->stage != STAGE_RUNS) /* the aborter has done it */
        return TURN_MOVED;
    life_begin_revoke(comm);
    hand_away(comm->hand);
    code = nccl_of(comm)->comm_revoke(comm->nccl, 0);
    hand_back(comm->hand);
    return life_is_revoked(code) ? TURN_MOVED : die(comm);
}

static enum turn turn_running(struct comm *comm)
{
    enum turn turn;

    if (comm->failed)
        return revoke(comm);
    if (may_die(comm)) { /* it has been at rest since it was freed */
        comm->ended = true;
        return die(comm);
    }
    if (comm->taken)
        return turn_launching(comm);
    turn = turn_flying(comm);
    return comm->posted && !comm->failed ? launch(comm) : turn;
}

/* What no event tells of: 0; CUDA_NOT_READY; or nobody knows any more what runs there. */
static int ask_stream(struct comm *comm, struct hvd_err *ret_why)
{
    int code;

    hand_away(comm->hand);
    code = cuda_of(comm)->stream_query(comm->hand->stream);
    if (code != CUDA_NOT_READY)
        ret_why->code = cuda_judge(cuda_of(comm), code, "what has been revoked", ret_why);
    hand_back(comm->hand);
    return code;
}

static bool is_empty(struct comm *comm, struct hvd_err *ret_why)
{
    int code;

    (void)land(comm, &code);
    if (code != CUDA_OK && code != CUDA_NOT_READY)
        blind(comm);
    if (comm->blind)
        code = ask_stream(comm, ret_why);
    if (code == CUDA_OK)
        comm->blind = false;
    return code == CUDA_OK;
}

/* That a peer is gone NCCL says for ever, so any end of "in progress" is that of the revoke. If it
 * is no good one, the stream has to say so, too. */
static enum turn turn_ending(struct comm *comm)
{
    struct hvd_err why = { .code = 0 };
    char bound[TIME_TEXT_MAX];
    int code = look(comm);

    if (code != NCCL_IN_PROGRESS)
        end_launch(comm);
    if (code != NCCL_OK && code != NCCL_IN_PROGRESS)
        comm->blind = true;
    if (code != NCCL_IN_PROGRESS && is_empty(comm, &why)) {
        comm->stage = STAGE_ENDED;
        comm->ended = true;
        pthread_cond_broadcast(&comm->hand->changed);
        return TURN_MOVED;
    }
    if (why.code)
        hand_tell_stuck(comm->hand, comm, "%s", why.text);
    else if (has_been(comm, comm->hand->options.bound_us))
        hand_tell_stuck(comm->hand, comm, "what has been revoked does not end within %s",
                        time_format(comm->hand->options.bound_us, bound));
    return TURN_WAITS;
}

/* ---- */

enum turn life_turn(struct comm *comm)
{
    if (comm->stuck)
        return TURN_IDLE;
    switch (comm->stage) {
    case STAGE_NEW: return turn_new(comm);
    case STAGE_STARTING: return turn_starting(comm);
    case STAGE_RUNS: return turn_running(comm);
    case STAGE_ENDS: return turn_ending(comm);
    case STAGE_ENDED: return may_die(comm) ? die(comm) : TURN_IDLE;
    case STAGE_DYING:
    case STAGE_GONE: return TURN_IDLE;
    }
    return TURN_IDLE;
}

void life_aborted(struct comm *comm)
{
    comm->nccl = NULL;
    comm->stage = STAGE_GONE;
    comm->ended = true;
    end_launch(comm);
    drop_flying(comm);
    hand_kick(comm->hand);
    pthread_cond_broadcast(&comm->hand->changed);
}

bool life_is_over(const struct comm *comm)
{
    return comm->stage == STAGE_GONE && comm->freed && !comm->stuck;
}

void life_free(struct comm *comm)
{
    LIST_EACH_SAFE (it, after, &comm->idle) {
        struct post *post = CONTAINER_OF(it, struct post, link);

        (void)cuda_of(comm)->event_destroy(post->event);
        calls_release(&post->calls);
        mem_free(post);
    }
    mem_free(comm);
}
