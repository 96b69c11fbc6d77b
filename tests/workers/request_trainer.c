/*
 * request_trainer: a training program for tests of requests and their fusion. In step s request i
 * of MANY averages (s + 1) * (i + 1) over all ranks, which is that number again, and weight i grows
 * by it. So after s steps weight i is exactly (i + 1) * s(s + 1) / 2, also if workers have died
 * meanwhile, and a request that got the number of another one is found at once. A worker that finds
 * another value ends with 9.
 *
 *     request_trainer STEPS MODE SAY
 *
 * MODE, besides that:
 *     plain   nothing
 *     die     in each of the first rounds one rank kills itself, between a start and a wait
 *     early   in the first round rank 0 waits for a request before it starts the next ones
 *     join    ranks run out of data after different numbers of requests, and join
 *     same    the same numbers again by calls with pieces: the bits must be equal
 */
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY        200
#define DEATHS      8
#define JOINED_EACH 7 /* requests of a rank between two looks at its data */
#define FIRST_WAIT  5 /* of mode early: the place of a request in the middle of a batch */

struct trainer {
    const char *mode, *say;
    int64_t steps;
    int64_t step;
    double weights[MANY];
    double numbers[MANY], averages[MANY];
    float single[MANY], fused[MANY], pieces[MANY];
    hvd_request *requests[MANY];
    int joined[64][JOINED_EACH];
    int64_t steps_of_round;
};

static bool is(const struct trainer *self, const char *mode)
{
    return !strcmp(self->mode, mode);
}

static int start(struct trainer *self, int i)
{
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .in = &self->numbers[i],
                            .out = &self->averages[i],
                            .count = 1,
                            .type = HVD_FLOAT64,
                            .op = HVD_AVERAGE };

    self->numbers[i] = (double)(self->step + 1) * (i + 1);
    self->averages[i] = -1;
    return hvd_start(&call, &self->requests[i]);
}

/* Where a rank of this round dies: before this request is started, or at a wait. */
static int place_of_death(const struct trainer *self)
{
    static const int places[DEATHS] = { 0, 1, 3, 21, 84, 199, MANY, MANY + 90 };

    if (!is(self, "die") || hvd_round() > DEATHS || self->steps_of_round != 1 ||
        hvd_rank() != (int)hvd_round() % hvd_size())
        return -1;
    return places[(hvd_round() - 1) % DEATHS];
}

static int add_up(struct trainer *self)
{
    int dies = place_of_death(self);
    int rc = 0;

    for (int i = 0; i < MANY && !rc; i++) {
        if (i == dies)
            kill(getpid(), SIGKILL);
        rc = start(self, i);
        if (!rc && i == FIRST_WAIT && is(self, "early") && hvd_round() == 1 && hvd_rank() == 0)
            rc = hvd_wait(self->requests[i]);
    }
    for (int i = 0; i < MANY && !rc; i++) {
        if (i + MANY == dies)
            kill(getpid(), SIGKILL);
        if (i != FIRST_WAIT || !is(self, "early") || hvd_round() != 1 || hvd_rank() != 0)
            rc = hvd_wait(self->requests[i]);
    }
    for (int i = 0; i < MANY && !rc; i++) {
        if (self->averages[i] != (double)(self->step + 1) * (i + 1))
            worker_wrong("step %" PRId64 ", request %d: %.0f", self->step, i, self->averages[i]);
        self->weights[i] += self->averages[i];
    }
    if (rc == HVD_E_MISMATCH)
        worker_append(self->say, "mismatch: %s\n", hvd_last_error());
    return rc;
}

/* Rank r has data for r + 1 turns. The requests of the last turn are not waited for before the
 * join, so ranks have left unequal numbers of them when all go on together. */
static int run_out(struct trainer *self)
{
    int turns = hvd_rank() + 1;
    int rc = 0;
    int last = -1;

    for (int turn = 0; turn < turns && !rc; turn++) {
        for (int i = 0; i < JOINED_EACH && !rc; i++) {
            hvd_call call = { .kind = HVD_ALLREDUCE,
                              .in = &self->joined[turn][i],
                              .out = &self->joined[turn][i],
                              .count = 1,
                              .type = HVD_INT32,
                              .op = HVD_SUM };

            self->joined[turn][i] = i + 1;
            rc = hvd_start(&call, &self->requests[i]);
        }
        for (int i = 0; i < JOINED_EACH && turn + 1 < turns && !rc; i++)
            rc = hvd_wait(self->requests[i]);
    }
    if (!rc)
        rc = hvd_join(&last);
    for (int i = 0; i < JOINED_EACH && !rc; i++)
        rc = hvd_wait(self->requests[i]);
    for (int turn = 0; turn < turns && !rc; turn++)
        for (int i = 0; i < JOINED_EACH; i++)
            if (self->joined[turn][i] != (i + 1) * (hvd_size() - turn))
                worker_wrong("turn %d, request %d: %d", turn, i, self->joined[turn][i]);
    if (!rc && last != hvd_size() - 1)
        worker_wrong("rank %d has joined last", last);
    return rc;
}

/* The cuts are those of fusion.h. --fixed-order makes the bits depend on nothing else. */
static int compare(struct trainer *self)
{
    static const int cuts[] = { 1, 4, 16, 64, MANY - 85 };
    const void *fused_bits = self->fused, *piece_bits = self->pieces;
    hvd_piece pieces[MANY];
    int from = 0;
    int rc = 0;

    for (int i = 0; i < MANY; i++) {
        self->single[i] = 1.0F / (float)(i + 3 + 7 * hvd_rank() + 11 * (int)self->step);
        pieces[i] = (hvd_piece){ &self->single[i], &self->pieces[i], 1 };
    }
    for (int i = 0; i < MANY && !rc; i++) {
        const hvd_call call = { .kind = HVD_ALLREDUCE,
                                .in = &self->single[i],
                                .out = &self->fused[i],
                                .count = 1,
                                .type = HVD_FLOAT32 };

        rc = hvd_start(&call, &self->requests[i]);
    }
    for (int i = 0; i < MANY && !rc; i++)
        rc = hvd_wait(self->requests[i]);
    for (size_t k = 0; k < ARRAY_SIZE(cuts) && !rc; from += cuts[k++]) {
        const hvd_call call = { .kind = HVD_ALLREDUCE,
                                .pieces = pieces + from,
                                .piece_count = (size_t)cuts[k],
                                .type = HVD_FLOAT32 };

        rc = hvd_run(&call);
    }
    if (!rc && memcmp(fused_bits, piece_bits, sizeof(self->fused)) != 0)
        worker_wrong("step %" PRId64 ": other bits than by pieces", self->step);
    return rc;
}

static int train(hvd_state *state, void *arg)
{
    struct trainer *self = arg;
    int rc = 0;

    self->steps_of_round = 0;
    while (!rc && self->step < self->steps) {
        if (is(self, "join"))
            rc = run_out(self);
        if (!rc && is(self, "same"))
            rc = compare(self);
        if (!rc)
            rc = add_up(self);
        if (rc)
            break;
        self->step++;
        self->steps_of_round++;
        for (int i = 0; i < MANY; i++)
            if (self->weights[i] != (double)self->step * (double)(self->step + 1) / 2 * (i + 1))
                worker_wrong("after step %" PRId64 " weight %d is %.0f", self->step, i,
                             self->weights[i]);
        rc = hvd_state_commit(state);
    }
    return rc;
}

static int on_reset(hvd_state *state, void *arg)
{
    const struct trainer *self = arg;

    (void)state;
    worker_say_round(self->say);
    return 0;
}

int main(int argc, char **argv)
{
    static struct trainer self;
    hvd_state *state;
    int rc;

    if (argc != 4 || hvd_init())
        worker_give_up(2, "request_trainer STEPS plain|die|early|join|same SAY");
    self.steps = strtoll(argv[1], NULL, 10);
    self.mode = argv[2];
    self.say = argv[3];
    state = hvd_state_create();
    if (!state || hvd_state_add_scalar(state, "step", &self.step, HVD_INT64) ||
        hvd_state_add(state, "weights", self.weights, sizeof(self.weights)) ||
        hvd_state_on_reset(state, on_reset, &self))
        worker_give_up(1, "the state");
    rc = hvd_elastic_run(state, train, &self);
    if (!rc)
        worker_append(self.say, "done %d %d %" PRId64 "\n", hvd_rank(), hvd_size(), self.step);
    hvd_state_free(state);
    return worker_status(rc);
}
