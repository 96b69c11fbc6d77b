/*
 * sum_trainer: a training program for tests, on the real library. In step s each rank contributes
 * s, the average over all ranks is s, and every weight grows by s. So after s steps each weight is
 * exactly s(s+1)/2, also if workers have died or joined meanwhile. A worker that finds another
 * value ends with 9.
 */
#include "tests/workers/sum_trainer_options.h"
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_ROOM  4096
#define SLOW_MS    200  /* the first slow step computes so much longer */
#define SLOWER_MS  20   /* each slow step than the one before it */
#define SLOWEST_MS 1000 /* less than any limit of a test for a step */
#define LOOK_MS    10   /* between two looks for a file */

struct sum_trainer {
    struct sum_trainer_options options;
    int64_t step;
    double *weights;
    double *sums;
    uint8_t *ballast;
    int64_t own_steps; /* steps of this rank; an entry that stays with its slot */
    int64_t other;
    char note[NOTE_ROOM]; /* custom state: one letter for each step, in rotation */
    size_t note_length;
    hvd_group *halves; /* opened in train, for each round anew */
    void *received;    /* of the ragged collective in progress */
    bool first_reset;
};

/* ---- what it does wrong ---------------------------------------------------------------------- */

/* Does the wrong thing, if it is due at this place. Returns the code that the caller must return.
 */
static int do_wrong(const struct sum_trainer *self, enum sum_trainer_place place)
{
    const struct sum_trainer_options *options = &self->options;

    if (!options->misbehaves || options->place != place || (uint64_t)self->step < options->at)
        return 0;
    if (options->wrong == SUM_TRAINER_DIE)
        kill(getpid(), SIGKILL);
    while (options->wrong == SUM_TRAINER_HANG)
        pause();
    return WORKER_OWN_CODE;
}

static void *call_from_outside(void *arg)
{
    hvd_state *state = arg;
    if (hvd_state_check(state) != HVD_E_STATE || hvd_state_commit(state) != HVD_E_STATE ||
        hvd_state_restore(state) != HVD_E_STATE || hvd_state_fence(state) != HVD_E_STATE)
        worker_give_up(WORKER_WRONG, "a call from another thread was not refused");
    return NULL;
}

/* ---- state ----------------------------------------------------------------------------------- */

static int64_t save_note(void *arg, void *into, size_t room)
{
    struct sum_trainer *self = arg;
    int rc = do_wrong(self, SUM_TRAINER_COMMIT);

    if (!rc)
        rc = do_wrong(self, SUM_TRAINER_ASYNC);
    if (rc)
        return rc;
    if (self->note_length > room)
        return HVD_E_LIMIT;
    memcpy(into, self->note, self->note_length);
    return (int64_t)self->note_length;
}

static int load_note(void *arg, const void *from, size_t bytes)
{
    struct sum_trainer *self = arg;
    int rc = do_wrong(self, SUM_TRAINER_LOAD);

    if (rc)
        return rc;
    memcpy(self->note, from, bytes);
    self->note_length = bytes;
    return 0;
}

static void verify(const struct sum_trainer *self)
{
    const double right = (double)self->step * (double)(self->step + 1) / 2;

    for (uint64_t i = 0; i < self->options.elements; i++)
        if (self->weights[i] != right)
            worker_wrong("after step %" PRId64 " weight %" PRIu64 " is %.0f, not %.0f", self->step,
                         i, self->weights[i], right);
    if (self->note_length != (size_t)self->step % NOTE_ROOM)
        worker_wrong("after step %" PRId64 " there is a note of %zu", self->step,
                     self->note_length);
}

static int on_reset(hvd_state *state, void *arg)
{
    struct sum_trainer *self = arg;
    bool first = self->first_reset;

    (void)state;
    self->first_reset = false;
    worker_say_round(self->options.say);
    return first ? 0 : do_wrong(self, SUM_TRAINER_RESET);
}

/* ---- its timeline ---------------------------------------------------------------------------- */

/* Turns the timeline on or off where the options say so, and does it twice: the second time is
 * refused. A timeline that cannot be written is reported and disturbs nothing else. */
static void switch_timeline(const struct sum_trainer *self)
{
    const struct sum_trainer_options *options = &self->options;
    uint64_t step = (uint64_t)self->step;
    bool is_ours =
        options->timeline_rank == UINT64_MAX || options->timeline_rank == (uint64_t)hvd_rank();

    if (!options->timeline || !is_ours)
        return;
    if (step == options->timeline_from) {
        if (hvd_timeline_start(options->timeline))
            worker_append("/dev/stderr", "sum_trainer: %s\n", hvd_last_error());
        else if (hvd_timeline_start(options->timeline) != HVD_E_STATE)
            worker_wrong("a second hvd_timeline_start was not refused");
    }
    if (step == options->timeline_to && step) {
        if (hvd_timeline_stop())
            worker_append("/dev/stderr", "sum_trainer: %s\n", hvd_last_error());
        if (hvd_timeline_stop() != HVD_E_STATE)
            worker_wrong("a second hvd_timeline_stop was not refused");
    }
}

/* ---- training -------------------------------------------------------------------------------- */

/* On a busy machine a test may come late with what it does to a training. So the training does not
 * end before the file is there, which the test makes when it has done all: the last quarter of the
 * steps is slow until then, and slower the longer the file does not come. All ranks are slow alike,
 * so no rank waits for another one. */
static void pass_slowly(const struct sum_trainer *self)
{
    const struct sum_trainer_options *options = &self->options;
    const uint64_t step = (uint64_t)self->step, from = options->steps - options->steps / 4;
    uint64_t slow_ms;

    if (!options->slow_until || !options->steps || step < from)
        return;
    slow_ms = SLOW_MS + SLOWER_MS * (step - from);
    if (slow_ms > SLOWEST_MS)
        slow_ms = SLOWEST_MS;
    for (uint64_t ms = 0; ms < slow_ms && access(options->slow_until, F_OK); ms += LOOK_MS)
        worker_pass(LOOK_MS);
}

static int commit(hvd_state *state, struct sum_trainer *self)
{
    int rc;

    if (self->options.misbehaves && self->options.lie && (uint64_t)self->step >= self->options.at)
        self->other++;
    if (!self->options.async)
        return hvd_state_commit(state);
    rc = hvd_state_commit_async(state);
    return rc ? rc : hvd_state_check(state);
}

static int end_step(hvd_state *state, struct sum_trainer *self)
{
    int rc = do_wrong(self, SUM_TRAINER_CHECK);

    if (!rc && self->options.extra_check && self->options.misbehaves)
        rc = hvd_state_check(state);
    if (rc)
        return rc;
    return (uint64_t)self->step % self->options.commit_every ? hvd_state_check(state)
                                                             : commit(state, self);
}

/* Asks for a checkpoint of the commit that was just made, and waits until it is complete. Each
 * second time only rank 0 asks, otherwise all ranks ask. */
static int ask_for_checkpoint(hvd_state *state, const struct sum_trainer *self)
{
    const uint64_t step = (uint64_t)self->step, every = self->options.ask_every;
    hvd_request *request;
    int rc;

    if (!every || step % every || (step / every % 2 && hvd_rank()))
        return 0;
    rc = hvd_checkpoint(state, &request);
    if (!rc)
        rc = hvd_wait(request);
    if (!rc)
        worker_append(self->options.asked, "%" PRIu64 " %d\n", step, hvd_rank());
    else
        worker_append("/dev/stderr", "sum_trainer: %s\n", hvd_last_error());
    return rc;
}

static int add_up(struct sum_trainer *self)
{
    size_t count = (size_t)self->options.elements;

    for (size_t i = 0; i < count; i++)
        self->sums[i] = (double)(self->step + 1);
    return hvd_allreduce(self->sums, self->sums, count, HVD_FLOAT64, HVD_AVERAGE);
}

/* ---- ragged collectives --- */

#define RAGGED_MAX 5 /* numbers from one rank to another */

static size_t ragged_count(const struct sum_trainer *self, int from, int to)
{
    return (size_t)(self->step + from * 3 + to) % RAGGED_MAX;
}

static int64_t ragged_number(const struct sum_trainer *self, int from, int to)
{
    return self->step * 1000000 + from * 1000 + to;
}

/* Here the other ranks have learnt the sizes already, and wait for the numbers. */
static void *ragged_memory(void *arg, size_t bytes)
{
    struct sum_trainer *self = arg;

    self->received = do_wrong(self, SUM_TRAINER_RAGGED) ? NULL : malloc(bytes);
    return self->received;
}

/* One of both ragged collectives: what each rank gives follows from the step and the two ranks. */
static int tell_ragged(struct sum_trainer *self, bool each)
{
    int rank = hvd_rank(), size = hvd_size();
    size_t *to = calloc((size_t)size, sizeof(*to)), *from = calloc((size_t)size, sizeof(*from));
    int64_t *in = calloc((size_t)size * RAGGED_MAX, sizeof(*in));
    hvd_received received = { .memory = ragged_memory, .arg = self, .counts = from };
    hvd_call call = { .kind = each ? HVD_ALLTOALL_RAGGED : HVD_ALLGATHER_RAGGED,
                      .type = HVD_INT64,
                      .in = in,
                      .counts = each ? to : NULL,
                      .received = &received };
    const int64_t *got;
    size_t count = 0;
    int rc;

    if (!to || !from || !in)
        worker_give_up(1, "memory");
    for (int i = 0; i < (each ? size : 1); i++) {
        to[i] = ragged_count(self, rank, i);
        for (size_t k = 0; k < to[i]; k++)
            in[count++] = ragged_number(self, rank, i);
    }
    call.count = each ? 0 : count;
    rc = hvd_run(&call);
    got = received.data;
    count = 0;
    for (int i = 0; i < size && !rc; i++) {
        int there = each ? rank : 0;

        if (from[i] != ragged_count(self, i, there))
            worker_wrong("step %" PRId64 ": %zu numbers came from rank %d", self->step, from[i], i);
        for (size_t k = 0; k < from[i]; k++, count++)
            if (got[count] != ragged_number(self, i, there))
                worker_wrong("step %" PRId64 ": %" PRId64 " came from rank %d", self->step,
                             got[count], i);
    }
    free(self->received); /* also after a failure: the memory stays the program's */
    self->received = NULL;
    free(in);
    free(from);
    free(to);
    return rc;
}

/* ---- groups --- */

static int half_of(const hvd_place *place, void *arg)
{
    /* the other ranks are in the opening already, or come to it */
    if (do_wrong(arg, SUM_TRAINER_OPEN))
        return -2;
    return place->rank % 2;
}

/* Adds up the ranks of this rank's half. */
static int add_up_half(hvd_group *half)
{
    int64_t sum = hvd_rank(), right = 0;
    hvd_call call = {
        .kind = HVD_ALLREDUCE, .group = half, .type = HVD_INT64, .in = &sum, .out = &sum, .count = 1
    };
    int rc = hvd_run(&call);

    for (int i = hvd_rank() % 2; i < hvd_size(); i += 2)
        right += i;
    if (!rc && sum != right)
        worker_wrong("the sum of a half is %" PRId64 ", not %" PRId64, sum, right);
    if (!rc && hvd_group_size(half) != (hvd_size() + (hvd_rank() + 1) % 2) / 2)
        worker_wrong("a half has %d of %d ranks", hvd_group_size(half), hvd_size());
    return rc;
}

/* A group that lives through the round, and every few steps one for that step. */
static int regroup(struct sum_trainer *self)
{
    hvd_group *group;
    int rc = self->halves ? 0 : hvd_group_create(half_of, self, &self->halves);

    if (!rc)
        rc = add_up_half(self->halves);
    if (rc || self->step % 4)
        return rc;
    rc = hvd_group_create(half_of, self, &group);
    if (!rc)
        rc = add_up_half(group);
    return rc ? rc : hvd_group_close(group);
}

static int make_step(hvd_state *state, struct sum_trainer *self)
{
    const bool two_threads = self->options.two_threads;
    pthread_t thread;
    int rc = do_wrong(self, SUM_TRAINER_STEP);

    if (rc)
        return rc;
    switch_timeline(self);
    pass_slowly(self);
    worker_pass(self->options.step_ms +
                (self->options.late_rank == (uint64_t)hvd_rank() ? self->options.late_ms : 0));
    if (two_threads && pthread_create(&thread, NULL, call_from_outside, state))
        worker_give_up(1, "a second thread");
    rc = add_up(self);
    if (!rc && self->options.ragged)
        rc = tell_ragged(self, false);
    if (!rc && self->options.ragged)
        rc = tell_ragged(self, true);
    if (!rc && self->options.regroup)
        rc = regroup(self);
    if (two_threads)
        pthread_join(thread, NULL);
    if (rc)
        return rc;
    rc = hvd_state_fence(state);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < self->options.elements; i++)
        self->weights[i] += self->sums[i];
    self->step++;
    self->own_steps++;
    self->note_length = (size_t)self->step % NOTE_ROOM;
    memset(self->note, 'a' + (int)(self->step % 26), self->note_length);
    verify(self);
    worker_append(self->options.made, "%" PRIu64 " %d %" PRId64 " %s\n", hvd_round(), hvd_rank(),
                  self->step, worker_incarnation());
    return 0;
}

static int train(hvd_state *state, void *arg)
{
    struct sum_trainer *self = arg;
    int rc = 0;

    self->halves = NULL;
    verify(self);
    while (!rc && (!self->options.steps || (uint64_t)self->step < self->options.steps)) {
        rc = make_step(state, self);
        if (!rc)
            rc = end_step(state, self);
        if (!rc)
            rc = ask_for_checkpoint(state, self);
    }
    if (self->options.drop_news && (rc > 0 || rc == HVD_E_REVOKED))
        return 0;
    return rc;
}

static void build(struct sum_trainer *self, hvd_state *state)
{
    size_t bytes = (size_t)self->options.elements * sizeof(double);
    size_t more = (size_t)self->options.state_mib << 20;

    self->weights = calloc(1, bytes);
    self->sums = calloc(1, bytes);
    self->ballast = more ? malloc(more) : NULL;
    if (!state || !self->weights || !self->sums || (more && !self->ballast))
        worker_give_up(1, "memory");
    if (more)
        memset(self->ballast, 0x5a, more);
    if (hvd_state_add_scalar(state, "step", &self->step, HVD_INT64) ||
        hvd_state_add(state, "weights", self->weights, bytes) ||
        hvd_state_add(state, "ballast", self->ballast, more) ||
        hvd_state_add(state, "other", &self->other, sizeof(self->other)) ||
        hvd_state_add_per_rank(state, "own steps", &self->own_steps, sizeof(self->own_steps)) ||
        hvd_state_add_custom(state, "note", NOTE_ROOM, save_note, load_note, self) ||
        hvd_state_on_reset(state, on_reset, self))
        worker_give_up(1, "the state");
    if (self->options.misbehaves && self->options.other_state &&
        hvd_state_add(state, "one too many", &self->other, sizeof(self->other)))
        worker_give_up(1, "the state");
}

/* Boots for as long as the test wants: for a time, or until the file of the test is there. */
static void boot(const struct sum_trainer *self)
{
    worker_pass(self->options.boot_ms);
    while (self->options.boot_until && access(self->options.boot_until, F_OK))
        worker_pass(LOOK_MS);
}

static int finish(const struct sum_trainer *self, int rc)
{

    if (rc < 0)
        return worker_status(rc);
    if (rc == 0)
        worker_append(self->options.final, "%s %d %" PRId64 " %.0f\n", worker_incarnation(),
                      hvd_rank(), self->step, self->weights[0]);
    do_wrong(self, SUM_TRAINER_END);
    return 0;
}

static int live(struct sum_trainer *self)
{
    hvd_state *state;
    int status;

    do_wrong(self, SUM_TRAINER_INIT);
    if (hvd_init())
        worker_give_up(1, "hvd_init");
    state = hvd_state_create();
    build(self, state);
    boot(self);
    do_wrong(self, SUM_TRAINER_BUILT);
    status = finish(self, hvd_elastic_run(state, train, self));
    hvd_state_free(state);
    hvd_shutdown();
    free(self->weights);
    free(self->sums);
    free(self->ballast);
    return status;
}

int main(int argc, char **argv)
{
    static struct sum_trainer self = { .first_reset = true };
    int status;

    if (sum_trainer_options_read(&self.options, argc, argv, &status))
        status = live(&self);
    opt_release(&self.options.set);
    return status;
}
