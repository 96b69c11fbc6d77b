/*
 * apprentice: the training of a job under attack. What it knows follows exactly from how far it has
 * come (lesson.h), so it sees by itself whether a step, a sample or a byte was lost, taken twice,
 * or is another one than the others'. Whatever it finds is a line of $CHAOS_ARENA/wrong,
 *
 *     INCARNATION ROUND STEP: WHAT
 *
 * and it ends with 9. Rank 0 writes the steps down (steps.h), and looks for $CHAOS_ARENA/stop; all
 * hear of it in the sums of a step, and so end with the same one.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "os/clock.h"
#include "tests/chaos/apprentice_options.h"
#include "tests/chaos/lesson.h"
#include "tests/chaos/slip.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WRONG      9
#define LINE_BYTES 640
#define PATH_BYTES 512
#define SEED       7

/* What the members add up beside the gradient. */
enum { SUM_TALLY, SUM_USED, SUM_STOP, SUMS };

struct apprentice {
    struct apprentice_options options;
    struct lesson lesson;
    hvd_state *state;
    hvd_sampler *sampler;
    double gradient[LESSON_WEIGHTS];
    struct buf done; /* lines of steps that are not committed yet */
    const char *folder;
    const char *steps;
    bool stop;
    uint64_t rounds; /* that it has been in */
};

NORETURN static void give_up(int status, const char *what)
{
    fprintf(stderr, "apprentice: %s: %s\n", what, hvd_last_error());
    exit(status);
}

/* One write, so that lines of several processes stay whole. */
static bool append(const char *path, const char *text, size_t length)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text, length) == (ssize_t)length;

    if (fd >= 0)
        close(fd);
    return written;
}

static void in_folder(const struct apprentice *own, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", own->folder, name);
}

NORETURN PRINTF_LIKE(2, 3) static void wrong(const struct apprentice *own, const char *format, ...)
{
    const char *incarnation = getenv("HVD_INCARNATION");
    char path[PATH_BYTES], what[LINE_BYTES], line[LINE_BYTES + 128];
    va_list args;
    int length;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    length = snprintf(line, sizeof(line), "%s %" PRIu64 " %" PRId64 ": %s\n",
                      incarnation ? incarnation : "0", hvd_round(), own->lesson.step, what);
    fputs(line, stderr);
    in_folder(own, "wrong", path);
    if (!append(path, line, (size_t)length))
        give_up(1, path);
    exit(WRONG);
}

/* What nobody can do to a job from outside: then it is ours. */
static bool is_never_right(int rc)
{
    return rc == HVD_E_MISMATCH || rc == HVD_E_CORRUPT || rc == HVD_E_INTERNAL ||
           rc == HVD_E_INVAL || rc == HVD_E_STATE || rc == HVD_E_PROTO || rc == HVD_E_VERSION;
}

static int suspect(const struct apprentice *own, const char *call, int rc)
{
    if (is_never_right(rc))
        wrong(own, "%s: %s: %s", call, hvd_strerror(rc), hvd_last_error());
    return rc;
}

static void compute(uint64_t ms)
{
    struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

    while (ms && nanosleep(&left, &left) && errno == EINTR)
        continue;
}

static bool slips(const struct apprentice *own, enum slip slip)
{
    return own->options.slip == slip && own->rounds > 1;
}

/* ---- a step ------------------------------------------------------------------------------------
 */

static bool is_to_stop(const struct apprentice *own)
{
    char path[PATH_BYTES];

    in_folder(own, "stop", path);
    return hvd_rank() == 0 && access(path, F_OK) == 0;
}

/* The next batch that there is: at the end of an epoch its sums are judged. */
static int next_batch(struct apprentice *own, hvd_batch *ret_batch)
{
    struct hvd_err err;
    int rc = hvd_sampler_next(own->sampler, ret_batch);

    if (rc != HVD_EPOCH_END)
        return rc;
    if (lesson_end_epoch(&own->lesson, &err))
        wrong(own, "%s", err.text);
    return hvd_sampler_next(own->sampler, ret_batch);
}

static int add_up(struct apprentice *own, const hvd_batch *batch, int64_t sums[SUMS])
{
    int rc;

    memset(own->gradient, 0, sizeof(own->gradient));
    for (size_t i = 0; i < batch->count; i++)
        lesson_look(batch->samples[slips(own, SLIP_SAMPLE) ? 0 : i], own->gradient,
                    &sums[SUM_TALLY]);
    sums[SUM_USED] = (int64_t)batch->count;
    sums[SUM_STOP] = is_to_stop(own);
    rc = hvd_allreduce(own->gradient, own->gradient, LESSON_WEIGHTS, HVD_FLOAT64, HVD_SUM);
    return rc ? rc : hvd_allreduce(sums, sums, SUMS, HVD_INT64, HVD_SUM);
}

/* Have all the same? The least of a number and the least of its complement tell. */
static int compare(const struct apprentice *own)
{
    const uint64_t digest = lesson_digest(&own->lesson);
    int64_t both[2], least[2];
    int rc;

    memcpy(&both[0], &digest, sizeof(digest));
    both[1] = ~both[0];
    rc = hvd_allreduce(both, least, 2, HVD_INT64, HVD_MIN);
    if (!rc && (least[0] != both[0] || least[1] != both[1]))
        wrong(own, "rank %d of %d has another state than the others", hvd_rank(), hvd_size());
    return rc;
}

/* Before the ranks compare, so that nobody can be further by then: see steps.h. */
static void note_step(struct apprentice *own)
{
    if (own->steps && hvd_rank() == 0 &&
        buf_printf(&own->done, "%" PRId64 " %" PRIu64 " %" PRId64 " %d\n", clock_now_us(),
                   hvd_round(), own->lesson.step, hvd_size()))
        give_up(1, "memory");
}

static int make_step(struct apprentice *own)
{
    int64_t sums[SUMS] = { 0 };
    hvd_batch batch;
    int rc = next_batch(own, &batch);

    if (rc)
        return suspect(own, "hvd_sampler_next", rc);
    if (batch.epoch != (uint64_t)own->lesson.epoch || batch.first != (uint64_t)own->lesson.used)
        wrong(own,
              "a batch of epoch %" PRIu64 " from %" PRIu64 ", not of epoch %" PRId64
              " from %" PRId64,
              batch.epoch, batch.first, own->lesson.epoch, own->lesson.used);
    compute(own->options.step_ms);
    rc = add_up(own, &batch, sums);
    if (rc)
        return suspect(own, "hvd_allreduce", rc);
    if (sums[SUM_USED] != (int64_t)batch.total)
        wrong(own, "the ranks had %" PRId64 " samples of a batch of %zu", sums[SUM_USED],
              batch.total);
    lesson_learn(&own->lesson, own->gradient, sums[SUM_TALLY], sums[SUM_USED]);
    own->lesson.weights[0] += slips(own, SLIP_STATE) && hvd_rank() == 1;
    own->stop = sums[SUM_STOP] != 0;
    note_step(own);
    return suspect(own, "comparing", compare(own));
}

/* ---- commits -----------------------------------------------------------------------------------
 */

static void say_steps(struct apprentice *own)
{
    if (own->done.length && !append(own->steps, buf_text(&own->done), own->done.length))
        give_up(1, own->steps);
    buf_clear(&own->done);
}

/* News of a commit come after it: it counts. */
static int end_step(struct apprentice *own)
{
    int rc;

    if (!own->stop && (uint64_t)own->lesson.step % own->options.commit_every)
        return suspect(own, "hvd_state_check", hvd_state_check(own->state));
    rc = own->options.slip == SLIP_COMMIT && own->lesson.step % 3 ? hvd_state_check(own->state)
                                                                  : hvd_state_commit(own->state);
    if (rc >= 0)
        say_steps(own);
    return suspect(own, "hvd_state_commit", rc);
}

static int train(hvd_state *state, void *arg)
{
    struct apprentice *own = arg;
    struct hvd_err err;
    int rc = 0;

    (void)state;
    own->stop = false;
    buf_clear(&own->done);
    own->rounds++;
    if (own->rounds > 1)
        slip_leave((enum slip)own->options.slip);
    if (lesson_verify(&own->lesson, &err))
        wrong(own, "a round begins with it: %s", err.text);
    while (!rc && !own->stop) {
        rc = make_step(own);
        if (!rc)
            rc = end_step(own);
    }
    return rc;
}

/* ---- the program -------------------------------------------------------------------------------
 */

static void build(struct apprentice *own)
{
    struct lesson *lesson = &own->lesson;
    hvd_state *state = own->state;

    if (!state || lesson_init(lesson, own->options.samples, own->options.state_kib))
        give_up(1, "memory");
    if (hvd_state_add_scalar(state, "step", &lesson->step, HVD_INT64) ||
        hvd_state_add_scalar(state, "epoch", &lesson->epoch, HVD_INT64) ||
        hvd_state_add_scalar(state, "used", &lesson->used, HVD_INT64) ||
        hvd_state_add_scalar(state, "tally", &lesson->tally, HVD_INT64) ||
        hvd_state_add(state, "weights", lesson->weights, sizeof(lesson->weights)) ||
        hvd_state_add(state, "ballast", lesson->ballast, lesson_ballast_bytes(lesson)) ||
        hvd_sampler_create(state, "lesson", own->options.samples, (size_t)own->options.batch,
                           HVD_BATCH_GLOBAL, SEED, &own->sampler))
        give_up(1, "the state");
    compute(own->options.boot_ms);
}

static int live(struct apprentice *own)
{
    int rc;

    if (hvd_init())
        give_up(1, "hvd_init");
    own->state = hvd_state_create();
    build(own);
    rc = suspect(own, "hvd_elastic_run", hvd_elastic_run(own->state, train, own));
    if (rc < 0)
        fprintf(stderr, "apprentice: %s: %s\n", hvd_strerror(rc), hvd_last_error());
    hvd_state_free(own->state);
    hvd_shutdown();
    lesson_release(&own->lesson);
    return rc < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct apprentice own;
    int status;

    own.folder = getenv("CHAOS_ARENA");
    own.steps = getenv("HVD_CHAOS_STEPS");
    buf_init(&own.done, (size_t)APPRENTICE_EVERY_MAX * 128);
    if (!own.folder)
        own.folder = ".";
    if (apprentice_options_read(&own.options, argc, argv, &status))
        status = live(&own);
    apprentice_options_release(&own.options);
    buf_release(&own.done);
    return status;
}
