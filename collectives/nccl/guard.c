#include "collectives/nccl/life.h"

#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

/* How often it looks while something ends. */
#define LOOK_US (100 * TIME_MS)

/* What a kernel has still to do with the program: until it has ended nobody may be left alone with
 * it. */
static bool something_ends(const struct hand *hand)
{
    LIST_EACH (it, &hand->comms) {
        const struct comm *comm = CONTAINER_OF(it, struct comm, among);

        if (comm->ran && comm->failed && !comm->ended && !comm->stuck)
            return true;
    }
    return false;
}

static void look(struct hand *hand)
{
    int64_t look_us = clock_now_us() + LOOK_US;
    int64_t due_us = hand_next_due(hand);

    if (hand_is_held_up(hand))
        pthread_cond_signal(&hand->feed);
    (void)thread_cond_wait(&hand->alarm, &hand->mutex, due_us < look_us ? due_us : look_us);
}

/* Who waits in comm_settle sees for itself that the hand, or the aborter, does not come back from a
 * call. But the program may hang in the driver, too: in one that waits for the device, and keeps
 * out all others, while the kernel that is to be revoked waits for a dead peer. Then nobody gets to
 * settle anything: the aborter revokes it. Here nothing of the driver's is called. */
void *guard_run(void *arg)
{
    struct hand *hand = arg;

    pthread_mutex_lock(&hand->mutex);
    while (!hand->closing) {
        if (hand->told || !something_ends(hand))
            pthread_cond_wait(&hand->alarm, &hand->mutex);
        else if (!hand_is_overdue(hand))
            look(hand);
    }
    pthread_mutex_unlock(&hand->mutex);
    return NULL;
}
