#include "collectives/nccl/life.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

/* What is waited for is looked at all the time at first, then after these times. */
#define SPIN_US      50
#define LOOK_US      200
#define LOOK_MOST_US TIME_MS

/* Of a call that takes a microsecond otherwise. */
#define HELD_UP_US (100 * TIME_MS)

void hand_kick(struct hand *hand)
{
    hand->kicked = true;
    pthread_cond_signal(&hand->wake);
}

/* ---- calls that take too long ---- */

void hand_away(struct hand *hand)
{
    hand->inside_us = clock_now_us();
    pthread_mutex_unlock(&hand->mutex);
}

void hand_back(struct hand *hand)
{
    pthread_mutex_lock(&hand->mutex);
    hand->inside_us = 0;
}

/* Who waits for this one must not go on before the other side has heard of it. */
static void tell(struct hand *hand, const char *why)
{
    while (hand->told && !hand->stuck)
        pthread_cond_wait(&hand->changed, &hand->mutex);
    if (hand->told)
        return;
    hand->told = true;
    pthread_mutex_unlock(&hand->mutex);
    hand->options.stuck(hand->options.arg, why);
    pthread_mutex_lock(&hand->mutex);
    hand->stuck = true;
    hand_kick(hand);
    pthread_cond_broadcast(&hand->changed);
}

void hand_tell_stuck(struct hand *hand, struct comm *comm, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    int used = snprintf(why, sizeof(why), "%s: ", hand->options.device->name);
    va_list values;

    va_start(values, format);
    vsnprintf(why + used, sizeof(why) - (size_t)used, format, values);
    va_end(values);
    tell(hand, why);
    if (comm)
        comm->stuck = true;
    pthread_cond_broadcast(&hand->changed);
}

static bool is_late(const struct hand *hand, int64_t since_us)
{
    return since_us && clock_now_us() - since_us >= hand->options.bound_us;
}

bool hand_is_overdue(struct hand *hand)
{
    char bound[TIME_TEXT_MAX];
    bool hand_is_late = is_late(hand, hand->inside_us);

    if (!hand_is_late && !is_late(hand, hand->aborting_us))
        return false;
    hand_tell_stuck(hand, NULL, "%s does not return within %s",
                    hand_is_late ? "a call of NCCL" : "the abort of a communicator",
                    time_format(hand->options.bound_us, bound));
    return true;
}

bool hand_is_held_up(const struct hand *hand)
{
    return hand->asking && clock_now_us() - hand->inside_us >= HELD_UP_US;
}

static int64_t first_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t due_of(const struct hand *hand, int64_t since_us)
{
    return since_us ? since_us + hand->options.bound_us : TIME_NEVER;
}

int64_t hand_next_due(const struct hand *hand)
{
    int64_t due_us = first_of(due_of(hand, hand->inside_us), due_of(hand, hand->aborting_us));

    return first_of(due_us, clock_now_us() + hand->options.bound_us);
}

void hand_wait(struct hand *hand, int64_t until_us)
{
    (void)thread_cond_wait(&hand->changed, &hand->mutex, first_of(hand_next_due(hand), until_us));
}

/* ---- its turns ---- */

static bool may_end(const struct hand *hand)
{
    if (!hand->closing)
        return false;
    LIST_EACH (it, &hand->comms)
        if (!hand->stuck || !CONTAINER_OF(it, struct comm, among)->freed)
            return false;
    return true;
}

static void bury(struct hand *hand, struct comm *comm)
{
    list_remove(&comm->among);
    hand_away(hand);
    life_free(comm);
    hand_back(hand);
}

/* What all of them together have come to. Others are added behind the last one only. */
static enum turn turn_of_all(struct hand *hand)
{
    enum turn turn = TURN_IDLE;

    LIST_EACH_SAFE (it, after, &hand->comms) {
        struct comm *comm = CONTAINER_OF(it, struct comm, among);
        enum turn one = life_turn(comm);

        if (one > turn)
            turn = one;
        after = it->next; /* which may have come while the lock was free */
        if (life_is_over(comm))
            bury(hand, comm);
    }
    return turn;
}

/* Whoever waits is woken by what we do; we are by what others ask for, and must look at the rest.
 */
static void pause_for(struct hand *hand, enum turn turn, int64_t moved_us)
{
    int64_t now_us = clock_now_us();
    int64_t quiet_us = now_us - moved_us;
    int64_t look_us = quiet_us / 8 < LOOK_US ? LOOK_US : first_of(quiet_us / 8, LOOK_MOST_US);

    if (turn == TURN_IDLE && (hand->stuck || !hand->aborting_us)) {
        pthread_cond_wait(&hand->wake, &hand->mutex);
    } else if (turn == TURN_IDLE) {
        (void)thread_cond_wait(&hand->wake, &hand->mutex, due_of(hand, hand->aborting_us));
    } else if (quiet_us < SPIN_US) {
        pthread_mutex_unlock(&hand->mutex);
        sched_yield();
        pthread_mutex_lock(&hand->mutex);
    } else {
        (void)thread_cond_wait(&hand->wake, &hand->mutex, now_us + look_us);
    }
}

static void *work(void *arg)
{
    struct hand *hand = arg;
    int64_t moved_us = clock_now_us();

    hand->entered =
        !gpu_enter(hand->options.device, NULL); /* if not, a new communicator tries it */
    pthread_mutex_lock(&hand->mutex);
    while (!may_end(hand)) {
        enum turn turn;

        hand->kicked = false;
        turn = turn_of_all(hand);
        (void)hand_is_overdue(hand);
        if (turn == TURN_MOVED || hand->kicked)
            moved_us = clock_now_us();
        else if (!may_end(hand))
            pause_for(hand, turn, moved_us);
    }
    hand->thread_done = true;
    pthread_cond_broadcast(&hand->changed);
    pthread_mutex_unlock(&hand->mutex);
    if (hand->entered)
        gpu_leave(hand->options.device);
    return NULL;
}

void hand_agreed(struct hand *hand, uint64_t round)
{
    pthread_mutex_lock(&hand->mutex);
    if (round > hand->agreed)
        hand->agreed = round;
    hand_kick(hand);
    pthread_mutex_unlock(&hand->mutex);
}

/* ---- life ---- */

static int make_stream(struct hand *hand, struct hvd_err *err)
{
    int least = 0, greatest = 0;
    int rc = gpu_enter(hand->options.device, err);

    if (rc)
        return rc;
    rc = cuda_judge(hand->cuda, hand->cuda->stream_priorities(&least, &greatest), "its priorities",
                    err);
    if (!rc)
        rc =
            cuda_judge(hand->cuda,
                       hand->cuda->stream_create(&hand->stream, CUDA_STREAM_NON_BLOCKING, greatest),
                       "a stream for collectives", err);
    gpu_leave(hand->options.device);
    return rc;
}

static void release(struct hand *hand)
{
    if (hand->stream && !gpu_enter(hand->options.device, NULL)) {
        (void)hand->cuda->stream_destroy(hand->stream);
        gpu_leave(hand->options.device);
    }
    pthread_cond_destroy(&hand->changed);
    pthread_cond_destroy(&hand->alarm);
    pthread_cond_destroy(&hand->feed);
    pthread_cond_destroy(&hand->wake);
    pthread_mutex_destroy(&hand->mutex);
    mem_free(hand);
}

static int make(const struct hand_options *options, const struct nccl *nccl, struct hand **ret_hand)
{
    struct hand *hand = mem_zalloc(sizeof(*hand));

    if (!hand)
        return HVD_E_NOMEM;
    hand->options = *options;
    hand->cuda = options->device->cuda;
    hand->nccl = nccl;
    list_init(&hand->comms);
    list_init(&hand->dying);
    if (thread_cond_init(&hand->wake))
        goto no_wake;
    if (thread_cond_init(&hand->feed))
        goto no_feed;
    if (thread_cond_init(&hand->alarm))
        goto no_alarm;
    if (thread_cond_init(&hand->changed))
        goto no_changed;
    pthread_mutex_init(&hand->mutex, NULL);
    *ret_hand = hand;
    return 0;

no_changed:
    pthread_cond_destroy(&hand->alarm);
no_alarm:
    pthread_cond_destroy(&hand->feed);
no_feed:
    pthread_cond_destroy(&hand->wake);
no_wake:
    mem_free(hand);
    return HVD_E_NOMEM;
}

/* Wakes a thread that is to end, and waits for its end. */
static bool end_thread(struct hand *hand, pthread_cond_t *wake, pthread_t thread, const bool *done)
{
    pthread_cond_broadcast(wake);
    while (!*done && !hand_is_overdue(hand))
        hand_wait(hand, TIME_NEVER);
    if (!*done) {
        (void)pthread_detach(thread);
        return false;
    }
    pthread_mutex_unlock(&hand->mutex);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&hand->mutex);
    return true;
}

/* It waits for nobody. */
static void end_guard(struct hand *hand)
{
    pthread_mutex_lock(&hand->mutex);
    hand->closing = true;
    pthread_cond_signal(&hand->alarm);
    pthread_mutex_unlock(&hand->mutex);
    pthread_join(hand->guard, NULL);
}

static int start_others(struct hand *hand)
{
    int rc = thread_start(&hand->aborter, 0, aborter_run, hand);

    if (rc)
        return rc;
    rc = thread_start(&hand->thread, 0, work, hand);
    if (rc) {
        pthread_mutex_lock(&hand->mutex);
        hand->closing = hand->thread_done = true;
        (void)end_thread(hand, &hand->feed, hand->aborter, &hand->aborter_done);
        pthread_mutex_unlock(&hand->mutex);
    }
    return rc;
}

static int start_threads(struct hand *hand)
{
    int rc = thread_start(&hand->guard, 0, guard_run, hand);

    if (rc)
        return rc;
    rc = start_others(hand);
    if (rc)
        end_guard(hand);
    return rc;
}

int hand_open(const struct hand_options *options, struct hand **ret_hand, struct hvd_err *err)
{
    const struct nccl *nccl = NULL;
    struct hand *hand;
    int rc = nccl_open(&nccl, err);

    if (rc)
        return rc;
    rc = make(options, nccl, &hand);
    if (rc)
        return err_set(err, rc, "out of memory");
    rc = make_stream(hand, err);
    if (rc)
        goto fail;
    rc = start_threads(hand);
    if (rc) {
        (void)err_set(err, rc, "cannot start a thread; raise the limit of processes (ulimit -u)");
        goto fail;
    }
    *ret_hand = hand;
    return 0;

fail:
    release(hand);
    return rc;
}

/* What a hand that is stuck has left: its threads may come back to it. */
static struct hand *_Atomic left_behind;

void hand_close(struct hand *hand)
{
    bool clean;

    if (!hand)
        return;
    end_guard(hand);
    pthread_mutex_lock(&hand->mutex);
    LIST_EACH (it, &hand->comms)
        ASSERT(CONTAINER_OF(it, struct comm, among)->freed);
    hand->agreed = UINT64_MAX;
    clean = end_thread(hand, &hand->wake, hand->thread, &hand->thread_done);
    clean = end_thread(hand, &hand->feed, hand->aborter, &hand->aborter_done) && clean;
    clean = clean && list_empty(&hand->comms);
    pthread_mutex_unlock(&hand->mutex);
    if (clean)
        release(hand);
    else
        hand->left = atomic_exchange(&left_behind, hand);
}
