/*
 * loop_trainer: a training program whose main loop is its own: it calls hvd_elastic_begin and
 * hvd_elastic_next. Every other round a new thread has the loop, and between two rounds the program
 * does work of its own. In step s the ranks average s + 1, so after s steps the weight is exactly
 * s(s + 1) / 2, also if workers have died meanwhile. A worker that finds another value ends with 9.
 *
 *     loop_trainer STEPS DEATHS SAY
 *
 * In each of the first DEATHS rounds one rank kills itself, in the middle of a collective of the
 * others.
 */
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct trainer {
    hvd_state *state;
    const char *say;
    int64_t steps, deaths;
    int64_t step;
    double weight;
    int next;    /* what hvd_elastic_next has returned */
    int trained; /* what the training of the round has come to */
};

static bool is_my_death(const struct trainer *self, int64_t steps_of_round)
{
    return hvd_round() <= (uint64_t)self->deaths && steps_of_round == 3 && hvd_size() > 1 &&
           hvd_rank() == (int)hvd_round() % hvd_size();
}

/* Trains in the running round; returns its code. */
static int train(struct trainer *self)
{
    double average;
    int rc = 0;

    for (int64_t done = 0; !rc && self->step < self->steps; done++) {
        double number = (double)self->step + 1;

        if (is_my_death(self, done))
            kill(getpid(), SIGKILL);
        rc = hvd_allreduce(&number, &average, 1, HVD_FLOAT64, HVD_AVERAGE);
        if (rc)
            break;
        self->weight += average;
        self->step++;
        if (self->weight != (double)self->step * (double)(self->step + 1) / 2)
            worker_wrong("after step %" PRId64 " the weight is %.1f", self->step, self->weight);
        rc = hvd_state_commit(self->state);
    }
    return rc;
}

/* One turn of the loop: from the end of the last round to the end of the next one. */
static void *turn(void *arg)
{
    struct trainer *self = arg;

    self->next = hvd_elastic_next(self->state, self->trained);
    if (!self->next) {
        worker_say_round(self->say);
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

    if (argc != 4 || hvd_init())
        worker_give_up(2, "loop_trainer STEPS DEATHS SAY");
    self.steps = strtoll(argv[1], NULL, 10);
    self.deaths = strtoll(argv[2], NULL, 10);
    self.say = argv[3];
    self.state = hvd_state_create();
    if (!self.state || hvd_state_add_scalar(self.state, "step", &self.step, HVD_INT64) ||
        hvd_state_add_scalar(self.state, "weight", &self.weight, HVD_FLOAT64))
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
