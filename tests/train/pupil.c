/*
 * pupil: a training program for tests, on the real library. In step s each rank brings s, the
 * average over all ranks is s again, and every weight grows by it: after s steps each is
 * s(s+1)/2, exactly, whatever died or joined in between. Who finds anything else ends with 9.
 */
#include "tests/train/pupil_options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WRONG_SUM 9
#define OWN_CODE  (-77) /* what train returns when it is to fail by itself */
#define NOTE_ROOM 4096

struct pupil {
    struct pupil_options options;
    int64_t step;
    double *weights;
    double *sums;
    uint8_t *ballast;
    int64_t own_steps; /* of this rank: an entry that stays with its slot */
    int64_t other;
    char note[NOTE_ROOM]; /* of custom state: as many letters as there were steps, in turns */
    size_t note_length;
    bool first_reset;
};

NORETURN static void give_up(int status, const char *what)
{
    fprintf(stderr, "pupil: %s: %s\n", what, hvd_last_error());
    exit(status);
}

static void pass(uint64_t ms)
{
    struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

    while (ms && nanosleep(&left, &left) && errno == EINTR)
        continue;
}

/* One write, so that lines of several processes stay whole. */
static void append(const char *path, const char *line)
{
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (path && (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line)))
        give_up(1, path);
    if (fd >= 0)
        close(fd);
}

static const char *incarnation(void)
{
    const char *text = getenv("HVD_INCARNATION");

    return text ? text : "0";
}

/* ---- wrong ----------------------------------------------------------------------------------- */

/* What this place returns then: 0, or a code of its own. */
static int do_wrong(const struct pupil *pupil, enum pupil_place place)
{
    const struct pupil_options *options = &pupil->options;

    if (!options->misbehaves || options->place != place || (uint64_t)pupil->step < options->at)
        return 0;
    if (options->wrong == PUPIL_DIE)
        kill(getpid(), SIGKILL);
    while (options->wrong == PUPIL_HANG)
        pause();
    return OWN_CODE;
}

static void *call_from_outside(void *arg)
{
    hvd_state *state = arg;
    if (hvd_state_check(state) != HVD_E_STATE || hvd_state_commit(state) != HVD_E_STATE ||
        hvd_state_restore(state) != HVD_E_STATE || hvd_state_fence(state) != HVD_E_STATE)
        give_up(WRONG_SUM, "a call from another thread was not refused");
    return NULL;
}

/* ---- state ----------------------------------------------------------------------------------- */

static int64_t save_note(void *arg, void *into, size_t room)
{
    struct pupil *pupil = arg;
    int rc = do_wrong(pupil, PUPIL_COMMIT);

    if (!rc)
        rc = do_wrong(pupil, PUPIL_ASYNC);
    if (rc)
        return rc;
    if (pupil->note_length > room)
        return HVD_E_LIMIT;
    memcpy(into, pupil->note, pupil->note_length);
    return (int64_t)pupil->note_length;
}

static int load_note(void *arg, const void *from, size_t bytes)
{
    struct pupil *pupil = arg;
    int rc = do_wrong(pupil, PUPIL_LOAD);

    if (rc)
        return rc;
    memcpy(pupil->note, from, bytes);
    pupil->note_length = bytes;
    return 0;
}

static void verify(const struct pupil *pupil)
{
    const double right = (double)pupil->step * (double)(pupil->step + 1) / 2;

    for (uint64_t i = 0; i < pupil->options.elements; i++)
        if (pupil->weights[i] != right) {
            fprintf(stderr, "pupil: after step %" PRId64 " weight %" PRIu64 " is %.0f, not %.0f\n",
                    pupil->step, i, pupil->weights[i], right);
            exit(WRONG_SUM);
        }
    if (pupil->note_length != (size_t)pupil->step % NOTE_ROOM) {
        fprintf(stderr, "pupil: after step %" PRId64 " there is a note of %zu\n", pupil->step,
                pupil->note_length);
        exit(WRONG_SUM);
    }
}

static int on_reset(hvd_state *state, void *arg)
{
    struct pupil *pupil = arg;
    char line[96];
    bool first = pupil->first_reset;

    (void)state;
    pupil->first_reset = false;
    snprintf(line, sizeof(line), "%s %" PRIu64 " %d %d\n", incarnation(), hvd_round(), hvd_rank(),
             hvd_size());
    append(pupil->options.say, line);
    return first ? 0 : do_wrong(pupil, PUPIL_RESET);
}

/* ---- training -------------------------------------------------------------------------------- */

static int commit(hvd_state *state, struct pupil *pupil)
{
    int rc;

    if (pupil->options.misbehaves && pupil->options.lie &&
        (uint64_t)pupil->step >= pupil->options.at)
        pupil->other++;
    if (!pupil->options.async)
        return hvd_state_commit(state);
    rc = hvd_state_commit_async(state);
    return rc ? rc : hvd_state_check(state);
}

static int end_step(hvd_state *state, struct pupil *pupil)
{
    int rc = do_wrong(pupil, PUPIL_CHECK);

    if (!rc && pupil->options.extra_check && pupil->options.misbehaves)
        rc = hvd_state_check(state);
    if (rc)
        return rc;
    return (uint64_t)pupil->step % pupil->options.commit_every ? hvd_state_check(state)
                                                               : commit(state, pupil);
}

static int add_up(struct pupil *pupil)
{
    size_t count = (size_t)pupil->options.elements;

    for (size_t i = 0; i < count; i++)
        pupil->sums[i] = (double)(pupil->step + 1);
    return hvd_allreduce(pupil->sums, pupil->sums, count, HVD_FLOAT64, HVD_AVERAGE);
}

static void say_made(const struct pupil *pupil)
{
    char line[96];

    snprintf(line, sizeof(line), "%" PRIu64 " %d %" PRId64 " %s\n", hvd_round(), hvd_rank(),
             pupil->step, incarnation());
    append(pupil->options.made, line);
}

static int make_step(hvd_state *state, struct pupil *pupil)
{
    const bool two_threads = pupil->options.two_threads;
    pthread_t thread;
    int rc = do_wrong(pupil, PUPIL_STEP);

    if (rc)
        return rc;
    pass(pupil->options.step_ms);
    if (two_threads && pthread_create(&thread, NULL, call_from_outside, state))
        give_up(1, "a second thread");
    rc = add_up(pupil);
    if (two_threads)
        pthread_join(thread, NULL);
    if (rc)
        return rc;
    rc = hvd_state_fence(state);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < pupil->options.elements; i++)
        pupil->weights[i] += pupil->sums[i];
    pupil->step++;
    pupil->own_steps++;
    pupil->note_length = (size_t)pupil->step % NOTE_ROOM;
    memset(pupil->note, 'a' + (int)(pupil->step % 26), pupil->note_length);
    verify(pupil);
    say_made(pupil);
    return 0;
}

static int train(hvd_state *state, void *arg)
{
    struct pupil *pupil = arg;
    int rc = 0;

    verify(pupil);
    while (!rc && (!pupil->options.steps || (uint64_t)pupil->step < pupil->options.steps)) {
        rc = make_step(state, pupil);
        if (!rc)
            rc = end_step(state, pupil);
    }
    if (pupil->options.drop_news && (rc > 0 || rc == HVD_E_REVOKED))
        return 0;
    return rc;
}

static void build(struct pupil *pupil, hvd_state *state)
{
    size_t bytes = (size_t)pupil->options.elements * sizeof(double);
    size_t more = (size_t)pupil->options.state_mib << 20;

    pupil->weights = calloc(1, bytes);
    pupil->sums = calloc(1, bytes);
    pupil->ballast = more ? malloc(more) : NULL;
    if (!state || !pupil->weights || !pupil->sums || (more && !pupil->ballast))
        give_up(1, "memory");
    if (more)
        memset(pupil->ballast, 0x5a, more);
    if (hvd_state_add_scalar(state, "step", &pupil->step, HVD_INT64) ||
        hvd_state_add(state, "weights", pupil->weights, bytes) ||
        hvd_state_add(state, "ballast", pupil->ballast, more) ||
        hvd_state_add(state, "other", &pupil->other, sizeof(pupil->other)) ||
        hvd_state_add_per_rank(state, "own steps", &pupil->own_steps, sizeof(pupil->own_steps)) ||
        hvd_state_add_custom(state, "note", NOTE_ROOM, save_note, load_note, pupil) ||
        hvd_state_on_reset(state, on_reset, pupil))
        give_up(1, "the state");
    if (pupil->options.misbehaves && pupil->options.other_state &&
        hvd_state_add(state, "one too many", &pupil->other, sizeof(pupil->other)))
        give_up(1, "the state");
    pass(pupil->options.boot_ms);
}

static int finish(const struct pupil *pupil, int rc)
{
    char line[128];

    if (rc < 0) {
        fprintf(stderr, "pupil: %s: %s\n", hvd_strerror(rc), hvd_last_error());
        return 1;
    }
    if (rc == 0) {
        snprintf(line, sizeof(line), "%s %d %" PRId64 " %.0f\n", incarnation(), hvd_rank(),
                 pupil->step, pupil->weights[0]);
        append(pupil->options.final, line);
    }
    do_wrong(pupil, PUPIL_END);
    return 0;
}

static int live(struct pupil *pupil)
{
    hvd_state *state;
    int status;

    do_wrong(pupil, PUPIL_INIT);
    if (hvd_init())
        give_up(1, "hvd_init");
    state = hvd_state_create();
    build(pupil, state);
    do_wrong(pupil, PUPIL_BUILT);
    status = finish(pupil, hvd_elastic_run(state, train, pupil));
    hvd_state_free(state);
    hvd_shutdown();
    free(pupil->weights);
    free(pupil->sums);
    free(pupil->ballast);
    return status;
}

int main(int argc, char **argv)
{
    static struct pupil pupil = { .first_reset = true };
    int status;

    if (pupil_options_read(&pupil.options, argc, argv, &status))
        status = live(&pupil);
    pupil_options_release(&pupil.options);
    return status;
}
