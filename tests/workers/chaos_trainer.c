/*
 * chaos_trainer: the training program of a job under attack. Its state follows exactly from its
 * step and epoch (chaos_model.h). So it notices by itself when a step, a sample or a byte was lost,
 * used twice, or differs from that of other ranks. Each error is a line of $CHAOS_ARENA/wrong,
 *
 *     INCARNATION ROUND STEP: WHAT
 *
 * and ends the program with 9. Rank 0 writes the steps (steps.h), and looks for $CHAOS_ARENA/stop.
 * All ranks learn of that file by the sums of a step, so all end at the same step.
 */
#include "base/buf.h"
#include "os/clock.h"
#include "tests/chaos/slip.h"
#include "tests/workers/chaos_model.h"
#include "tests/workers/chaos_trainer_options.h"
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 640
#define PATH_BYTES 512
#define SEED       7

/* The sums over all ranks, beside the gradient. */
enum { SUM_TALLY, SUM_USED, SUM_STOP, SUMS };

struct chaos_trainer {
    struct chaos_trainer_options options;
    struct chaos_model model;
    hvd_state *state;
    hvd_sampler *sampler;
    double gradient[CHAOS_MODEL_WEIGHTS];
    struct buf done; /* lines of steps that are not committed yet */
    const char *folder;
    const char *steps;
    bool stop;
    uint64_t rounds; /* rounds that this process has been in */
};

static void in_folder(const struct chaos_trainer *own, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", own->folder, name);
}

NORETURN PRINTF_LIKE(2, 3) static void wrong(const struct chaos_trainer *own, const char *format,
                                             ...)
{
    char path[PATH_BYTES], what[LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    in_folder(own, "wrong", path);
    worker_append(path, "%s %" PRIu64 " %" PRId64 ": %s\n", worker_incarnation(), hvd_round(),
                  own->model.step, what);
    worker_wrong("in step %" PRId64 ": %s", own->model.step, what);
}

static int suspect(const struct chaos_trainer *own, const char *call, int rc)
{
    /* No outside fault can cause these codes, so the product has a bug. */
    if (rc == HVD_E_MISMATCH || rc == HVD_E_CORRUPT || rc == HVD_E_INTERNAL || rc == HVD_E_INVAL ||
        rc == HVD_E_STATE || rc == HVD_E_PROTO || rc == HVD_E_VERSION)
        wrong(own, "%s: %s: %s", call, hvd_strerror(rc), hvd_last_error());
    return rc;
}

static bool slips(const struct chaos_trainer *own, enum slip slip)
{
    return own->options.slip == slip && own->rounds > 1;
}

/* ---- a step ---- */

static bool is_to_stop(const struct chaos_trainer *own)
{
    char path[PATH_BYTES];

    in_folder(own, "stop", path);
    return hvd_rank() == 0 && access(path, F_OK) == 0;
}

/* The next batch. At the end of an epoch the sums of the epoch are checked. */
static int next_batch(struct chaos_trainer *own, hvd_batch *ret_batch)
{
    struct hvd_err err;
    int rc = hvd_sampler_next(own->sampler, ret_batch);

    if (rc != HVD_EPOCH_END)
        return rc;
    if (chaos_model_end_epoch(&own->model, &err))
        wrong(own, "%s", err.text);
    return hvd_sampler_next(own->sampler, ret_batch);
}

static int add_up(struct chaos_trainer *own, const hvd_batch *batch, int64_t sums[SUMS])
{
    int rc;

    memset(own->gradient, 0, sizeof(own->gradient));
    for (size_t i = 0; i < batch->count; i++)
        chaos_model_add_sample(batch->samples[slips(own, SLIP_SAMPLE) ? 0 : i], own->gradient,
                               &sums[SUM_TALLY]);
    sums[SUM_USED] = (int64_t)batch->count;
    sums[SUM_STOP] = is_to_stop(own);
    rc = hvd_allreduce(own->gradient, own->gradient, CHAOS_MODEL_WEIGHTS, HVD_FLOAT64, HVD_SUM);
    return rc ? rc : hvd_allreduce(sums, sums, SUMS, HVD_INT64, HVD_SUM);
}

/* Is the state equal on all ranks? It is, if the minimum of a digest and the minimum of its
 * complement belong together. */
static int compare(const struct chaos_trainer *own)
{
    const uint64_t digest = chaos_model_digest(&own->model);
    int64_t both[2], least[2];
    int rc;

    memcpy(&both[0], &digest, sizeof(digest));
    both[1] = ~both[0];
    rc = hvd_allreduce(both, least, 2, HVD_INT64, HVD_MIN);
    if (!rc && (least[0] != both[0] || least[1] != both[1]))
        wrong(own, "rank %d of %d has another state than the others", hvd_rank(), hvd_size());
    return rc;
}

/* Makes a step, checks its batch and sums, and compares the state with the other ranks. */
static int make_step(struct chaos_trainer *own)
{
    int64_t sums[SUMS] = { 0 };
    hvd_batch batch;
    int rc = next_batch(own, &batch);

    if (rc)
        return suspect(own, "hvd_sampler_next", rc);
    if (batch.epoch != (uint64_t)own->model.epoch || batch.first != (uint64_t)own->model.used)
        wrong(own,
              "a batch of epoch %" PRIu64 " from %" PRIu64 ", not of epoch %" PRId64
              " from %" PRId64,
              batch.epoch, batch.first, own->model.epoch, own->model.used);
    worker_pass(own->options.step_ms);
    rc = add_up(own, &batch, sums);
    if (rc)
        return suspect(own, "hvd_allreduce", rc);
    if (sums[SUM_USED] != (int64_t)batch.total)
        wrong(own, "the ranks had %" PRId64 " samples of a batch of %zu", sums[SUM_USED],
              batch.total);
    chaos_model_step(&own->model, own->gradient, sums[SUM_TALLY], sums[SUM_USED]);
    own->model.weights[0] += slips(own, SLIP_STATE) && hvd_rank() == 1;
    own->stop = sums[SUM_STOP] != 0;
    /* Takes the time of the step before the ranks compare, so that no rank can be further by then:
     * see steps.h. */
    if (own->steps && hvd_rank() == 0 &&
        buf_printf(&own->done, "%" PRId64 " %" PRIu64 " %" PRId64 " %d\n", clock_now_us(),
                   hvd_round(), own->model.step, hvd_size()))
        worker_give_up(1, "memory");
    return suspect(own, "comparing", compare(own));
}

/* ---- commits ---- */

/* Ends a step. News that a commit returns come after the commit, so the commit counts. */
static int end_step(struct chaos_trainer *own)
{
    int rc;

    if (!own->stop && (uint64_t)own->model.step % own->options.commit_every)
        return suspect(own, "hvd_state_check", hvd_state_check(own->state));
    rc = own->options.slip == SLIP_COMMIT && own->model.step % 3 ? hvd_state_check(own->state)
                                                                 : hvd_state_commit(own->state);
    if (rc >= 0) {
        worker_append_text(own->done.length ? own->steps : NULL, buf_text(&own->done),
                           own->done.length);
        buf_clear(&own->done);
    }
    return suspect(own, "hvd_state_commit", rc);
}

static int train(hvd_state *state, void *arg)
{
    struct chaos_trainer *own = arg;
    struct hvd_err err;
    int rc = 0;

    (void)state;
    own->stop = false;
    buf_clear(&own->done);
    own->rounds++;
    if (own->rounds > 1)
        slip_leave((enum slip)own->options.slip);
    if (chaos_model_verify(&own->model, &err))
        wrong(own, "a round begins with a wrong state: %s", err.text);
    while (!rc && !own->stop) {
        rc = make_step(own);
        if (!rc)
            rc = end_step(own);
    }
    return rc;
}

/* ---- the program ---- */

static void build(struct chaos_trainer *own)
{
    struct chaos_model *model = &own->model;
    hvd_state *state = own->state;

    if (!state || chaos_model_init(model, own->options.samples, own->options.state_kib))
        worker_give_up(1, "memory");
    if (hvd_state_add_scalar(state, "step", &model->step, HVD_INT64) ||
        hvd_state_add_scalar(state, "epoch", &model->epoch, HVD_INT64) ||
        hvd_state_add_scalar(state, "used", &model->used, HVD_INT64) ||
        hvd_state_add_scalar(state, "tally", &model->tally, HVD_INT64) ||
        hvd_state_add(state, "weights", model->weights, sizeof(model->weights)) ||
        hvd_state_add(state, "ballast", model->ballast, chaos_model_ballast_bytes(model)) ||
        hvd_sampler_create(state, "model", own->options.samples, (size_t)own->options.batch,
                           HVD_BATCH_GLOBAL, SEED, &own->sampler))
        worker_give_up(1, "the state");
    worker_pass(own->options.boot_ms);
}

static int live(struct chaos_trainer *own)
{
    int rc;

    if (hvd_init())
        worker_give_up(1, "hvd_init");
    own->state = hvd_state_create();
    build(own);
    rc = suspect(own, "hvd_elastic_run", hvd_elastic_run(own->state, train, own));
    rc = worker_status(rc);
    hvd_state_free(own->state);
    hvd_shutdown();
    chaos_model_release(&own->model);
    return rc;
}

int main(int argc, char **argv)
{
    static struct chaos_trainer own;
    int status;

    own.folder = getenv("CHAOS_ARENA");
    own.steps = getenv("HVD_CHAOS_STEPS");
    buf_init(&own.done, (size_t)CHAOS_TRAINER_EVERY_MAX * 128);
    if (!own.folder)
        own.folder = ".";
    if (chaos_trainer_options_read(&own.options, argc, argv, &status))
        status = live(&own);
    opt_release(&own.options.set);
    buf_release(&own.done);
    return status;
}
