/*
 * loop_trainer: a training program whose main loop is its own: it calls hvd_elastic_begin and
 * hvd_elastic_next. Every other round a new thread has the loop, and between two rounds the program
 * does work of its own. In step s the ranks average s + 1, so after s steps the weight is exactly
 * s(s + 1) / 2, also if workers have died meanwhile. A worker that finds another value ends with 9.
 * A custom entry of each rank has the number of its slot, which a worker in the place of a dead one
 * must find there. The weight lies in another place in each round (hvd_state_move).
 *
 *     loop_trainer STEPS MODE TIMES SAY
 *
 * In each of the first TIMES rounds one rank does what MODE says, while the others are in a
 * collective:
 *     die      kills itself
 *     revoke   revokes the round; the others wait for the news by poll
 *     fail     fails, with a reason in words
 */
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct trainer {
    hvd_state *state;
    const char *mode, *say;
    int64_t steps, times;
    int64_t step;
    double weights[2], *weight; /* the weight is in one of the two */
    int64_t slot;               /* what load_slot has found */
    int next;                   /* what hvd_elastic_next has returned */
    int trained;                /* what the training of the round has come to */
};

/* Does what MODE says, on the rank whose turn it is; 0: this rank trains on. */
static int misbehave(const struct trainer *self)
{
    int fd = hvd_news_fd();
    struct pollfd news = { .fd = fd, .events = POLLIN };
    bool mine = hvd_rank() == (int)hvd_round() % hvd_size();

    if (hvd_round() > (uint64_t)self->times || hvd_size() < 2)
        return 0;
    if (!strcmp(self->mode, "die") && mine)
        kill(getpid(), SIGKILL);
    if (!strcmp(self->mode, "fail") && mine) {
        (void)hvd_fail("ValueError: the loss\nis not a number");
        return WORKER_OWN_CODE;
    }
    if (strcmp(self->mode, "revoke") != 0)
        return 0;
    if (mine && hvd_revoke("the loss is not a number"))
        worker_wrong("revoke: %s", hvd_last_error());
    if (poll(&news, 1, -1) != 1 || hvd_news() != HVD_E_REVOKED)
        worker_wrong("the news are %d", hvd_news());
    worker_append(self->say, "revoked %" PRIu64 "\n", hvd_round());
    return hvd_barrier();
}

/* Trains in the running round; returns its code. */
static int train(struct trainer *self)
{
    double average;
    int rc = 0;

    for (int64_t done = 0; !rc && self->step < self->steps; done++) {
        double number = (double)self->step + 1;

        if (done == 3)
            rc = misbehave(self);
        if (rc)
            break;
        rc = hvd_allreduce(&number, &average, 1, HVD_FLOAT64, HVD_AVERAGE);
        if (rc)
            break;
        *self->weight += average;
        self->step++;
        if (*self->weight != (double)self->step * (double)(self->step + 1) / 2)
            worker_wrong("after step %" PRId64 " the weight is %.1f", self->step, *self->weight);
        rc = hvd_state_commit(self->state);
    }
    return rc;
}

static int64_t save_slot(void *arg, void *into, size_t room)
{
    const int64_t slot = hvd_slot();

    (void)arg;
    (void)room;
    memcpy(into, &slot, sizeof(slot));
    return sizeof(slot);
}

static int load_slot(void *arg, const void *from, size_t bytes)
{
    struct trainer *self = arg;

    if (bytes != sizeof(self->slot))
        return HVD_E_CORRUPT;
    memcpy(&self->slot, from, bytes);
    if (self->slot != hvd_slot())
        worker_wrong("slot %d has the bytes of slot %" PRId64, hvd_slot(), self->slot);
    worker_append(self->say, "slot %" PRId64 " is found\n", self->slot);
    return 0;
}

/* Moves the weight to the other place, and spoils the old one. */
static void move_weight(struct trainer *self)
{
    double *to = &self->weights[self->weight == self->weights];

    *to = *self->weight;
    if (hvd_state_move(self->state, "weight", to))
        worker_wrong("hvd_state_move: %s", hvd_last_error());
    *self->weight = -1;
    self->weight = to;
}

/* One turn of the loop: from the end of the last round to the end of the next one. */
static void *turn(void *arg)
{
    struct trainer *self = arg;

    self->next = hvd_elastic_next(self->state, self->trained);
    if (!self->next) {
        worker_say_round(self->say);
        move_weight(self);
        self->trained = train(self);
    } else if (self->next < 0) { /* the text belongs to this thread */
        worker_append(self->say, "error %s\n", hvd_last_error());
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct trainer self;
    pthread_t thread;
    int rc;

    if (argc != 5 || hvd_init())
        worker_give_up(2, "loop_trainer STEPS die|revoke|fail TIMES SAY");
    hvd_shutdown(); /* before its first run a worker may begin again */
    if (hvd_init())
        worker_give_up(1, "a second hvd_init");
    self.steps = strtoll(argv[1], NULL, 10);
    self.mode = argv[2];
    self.times = strtoll(argv[3], NULL, 10);
    self.say = argv[4];
    self.weight = self.weights;
    self.state = hvd_state_create();
    if (!self.state || hvd_state_add_scalar(self.state, "step", &self.step, HVD_INT64) ||
        hvd_state_add_scalar(self.state, "weight", self.weight, HVD_FLOAT64) ||
        hvd_state_add_custom_per_rank(self.state, "slot", 64, save_slot, load_slot, &self))
        worker_give_up(1, "the state");
    rc = hvd_elastic_begin(self.state);
    for (unsigned turns = 0; !rc; turns++, rc = self.next) {
        /* no round is running now, or this thread is not the one that trains in it */
        if (turns % 2 && (pthread_create(&thread, NULL, turn, &self) || pthread_join(thread, NULL)))
            worker_give_up(1, "a thread");
        else if (turns % 2 == 0)
            (void)turn(&self);
    }
    if (rc == HVD_FINISHED)
        worker_append(self.say, "done %d %d %" PRId64 "\n", hvd_rank(), hvd_size(), self.step);
    hvd_state_free(self.state);
    return worker_status(rc == HVD_FINISHED ? 0 : rc);
}
