#include "collectives/nccl/life.h"

#include "os/clock.h"

void aborter_add(struct comm *comm)
{
    comm->stage = STAGE_DYING;
    list_append(&comm->hand->dying, &comm->dying);
    pthread_cond_signal(&comm->hand->feed);
}

/* All at once: one by one, each could wait for kernels of the next. Without the lock: nobody else
 * touches what is dying. */
static int abort_them(const struct nccl *nccl, const struct list *them)
{
    int code = nccl->group_start();
    int ended;

    LIST_EACH (it, them) {
        int one = nccl->comm_abort(CONTAINER_OF(it, struct comm, dying)->nccl);

        if (one != NCCL_OK && one != NCCL_IN_PROGRESS)
            code = one;
    }
    ended = nccl->group_end();
    if (code != NCCL_OK)
        return code;
    return ended == NCCL_IN_PROGRESS ? NCCL_OK : ended;
}

/* Where it has not been revoked before, an abort that fails may have left it running. */
static void note(struct hand *hand, struct comm *comm, const struct hvd_err *why)
{
    list_remove(&comm->dying);
    if (comm->ran && !comm->ended && why->code)
        hand_tell_stuck(hand, comm, "%s", why->text);
    else
        life_aborted(comm);
}

static void take_turn(struct hand *hand)
{
    struct hvd_err why = { .code = 0 };
    struct list them;

    list_init(&them);
    while (!list_empty(&hand->dying)) {
        struct list *it = hand->dying.next;

        list_remove(it);
        list_append(&them, it);
    }
    hand->aborting_us = clock_now_us();
    hand_kick(hand); /* it sees to it that we come back */
    pthread_mutex_unlock(&hand->mutex);
    why.code = nccl_judge(hand->nccl, abort_them(hand->nccl, &them), "an abort", &why);
    pthread_mutex_lock(&hand->mutex);
    hand->aborting_us = 0;
    while (!list_empty(&them))
        note(hand, CONTAINER_OF(them.next, struct comm, dying), &why);
}

/* NULL: there is none. */
static struct comm *first_to_revoke(const struct hand *hand)
{
    if (!hand->nccl->comm_revoke || !hand_is_held_up(hand))
        return NULL;
    LIST_EACH (it, &hand->comms) {
        struct comm *comm = CONTAINER_OF(it, struct comm, among);

        if (comm->failed && comm->stage == STAGE_RUNS && !comm->tried)
            return comm;
    }
    return NULL;
}

/* The hand is kept from it by the driver: some other call has its lock, perhaps one that waits for
 * the very kernel. If this fails the hand tries it again, once it is back. */
static void revoke(struct hand *hand, struct comm *comm)
{
    int code;

    life_begin_revoke(comm);
    comm->tried = true;
    hand->elsewhere = true;
    hand->aborting_us = clock_now_us();
    pthread_mutex_unlock(&hand->mutex);
    code = hand->nccl->comm_revoke(comm->nccl, 0);
    pthread_mutex_lock(&hand->mutex);
    hand->aborting_us = 0;
    hand->elsewhere = false;
    if (!life_is_revoked(code))
        comm->stage = STAGE_RUNS;
    pthread_cond_broadcast(&hand->changed);
}

void *aborter_run(void *arg)
{
    struct hand *hand = arg;
    bool entered = !gpu_enter(hand->options.device, NULL); /* if not, the calls say so */
    struct comm *comm;

    pthread_mutex_lock(&hand->mutex);
    for (;;) {
        if (!list_empty(&hand->dying))
            take_turn(hand);
        else if ((comm = first_to_revoke(hand)))
            revoke(hand, comm);
        else if (hand->closing && (hand->thread_done || hand->stuck))
            break;
        else
            pthread_cond_wait(&hand->feed, &hand->mutex);
    }
    hand->aborter_done = true;
    pthread_cond_broadcast(&hand->changed);
    pthread_mutex_unlock(&hand->mutex);
    if (entered)
        gpu_leave(hand->options.device);
    return NULL;
}
