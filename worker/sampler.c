/*
 * sampler.c: hvd_sampler_*: deals the samples of an epoch to the ranks (state/sampler.h has the
 * arithmetic). The progress is an entry of the program's state, so a restore also takes it back.
 * Each batch is written to the sample log.
 *
 * Called by the program from train. Invariant: a commit has the progress of the moment when the
 * commit began, even if the program asks for the next batch while the commit is being copied.
 */
#include "state/sampler.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "worker/fail.h"
#include "worker/sample_log.h"
#include "worker/state.h"
#include "worker/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct hvd_sampler {
    hvd_state *state;
    struct sampler dealer;
    struct sampler_progress committed; /* the progress when the newest commit began */
    pthread_mutex_t lock;
    struct sampler_progress shown; /* a copy of the progress for other threads, under the lock */
    struct sample_log log;
};

static void free_sampler(void *object)
{
    struct hvd_sampler *sampler = object;

    sampler_release(&sampler->dealer);
    pthread_mutex_destroy(&sampler->lock);
    sample_log_release(&sampler->log);
    mem_free(sampler);
}

/* Shows the present progress to hvd_sampler_at. */
static void show_progress(struct hvd_sampler *sampler)
{
    pthread_mutex_lock(&sampler->lock);
    sampler->shown = sampler->dealer.progress;
    pthread_mutex_unlock(&sampler->lock);
}

/* Called when a commit begins: keeps the progress for save_progress, which may be called later,
 * when the program has asked for the next batch already. */
static void note_progress(void *object)
{
    struct hvd_sampler *sampler = object;

    sampler->committed = sampler->dealer.progress;
}

/* The save callback of the sampler's entry: writes the progress that note_progress has kept. */
static int64_t save_progress(void *arg, void *into, size_t room)
{
    const struct hvd_sampler *sampler = arg;

    ASSERT(room == sizeof(sampler->committed));
    memcpy(into, &sampler->committed, room);
    return (int64_t)room;
}

/* The load callback of the sampler's entry: a restore sets the progress to that of the commit. */
static int load_progress(void *arg, const void *from, size_t bytes)
{
    struct hvd_sampler *sampler = arg;

    if (bytes != sizeof(sampler->dealer.progress))
        return HVD_E_CORRUPT;
    memcpy(&sampler->dealer.progress, from, bytes);
    show_progress(sampler);
    return 0;
}

/* Creates a sampler whose progress is an entry of the state. After the call of state_own the
 * sampler belongs to the state, which frees it at its own end, also if this function then fails. */
int hvd_sampler_create(hvd_state *state, const char *name, uint64_t samples, size_t batch,
                       hvd_batch_mode mode, uint64_t seed, hvd_sampler **ret_sampler)
{
    const char *text = getenv("HVD_INCARNATION");
    uint64_t incarnation = 0;
    struct hvd_sampler *sampler;
    int rc;

    if (!state || !name || !ret_sampler)
        return err_set(fail_err(), HVD_E_INVAL,
                       "hvd_sampler_create: the argument %s is NULL; pass a state, a name, and a "
                       "pointer that gets the sampler",
                       !state  ? "state"
                       : !name ? "name"
                               : "ret_sampler");
    sampler = mem_zalloc(sizeof(*sampler));
    if (!sampler)
        return err_set(fail_err(), HVD_E_NOMEM,
                       "hvd_sampler_create: no memory for a sampler; free memory on this host");
    sampler->state = state;
    sampler->log.fd = -1;
    pthread_mutex_init(&sampler->lock, NULL);
    rc = sampler_init(&sampler->dealer, samples, batch, mode, seed, fail_err());
    if (!rc) {
        /* Each start of a worker writes its own log; a program without hvd-elastic has the
         * number 0. */
        if (text)
            (void)text_parse_u64((struct span){ text, strlen(text) }, 0, UINT64_MAX, "",
                                 &incarnation, NULL);
        rc = sample_log_init(&sampler->log, getenv("HVD_SAMPLE_LOG"), incarnation, name, samples);
        if (rc)
            err_set(fail_err(), rc,
                    "hvd_sampler_create: no memory for a sampler; free memory on this host");
    }
    /* The state owns the sampler before it has an entry that points to it: the sampler must live as
     * long as the state. If the entry is refused, hvd_state_free frees the sampler. */
    if (!rc)
        rc = state_own(state, sampler, free_sampler, note_progress);
    if (rc) {
        free_sampler(sampler);
        return rc;
    }
    rc = state_add_numbers(state, "hvd_sampler_create", name,
                           sizeof(sampler->dealer.progress) / sizeof(int64_t), save_progress,
                           load_progress, sampler);
    if (!rc)
        *ret_sampler = sampler;
    return rc;
}

/* Deals this rank's share of the next batch, and logs it before the program gets it. HVD_EPOCH_END,
 * which is no error: the epoch has no more samples. */
int hvd_sampler_next(hvd_sampler *sampler, hvd_batch *ret_batch)
{
    struct sampler_place place;
    struct sample_place shown;
    struct sampler_progress before;
    hvd_batch batch;
    int rc;

    if (!sampler || !ret_batch)
        return err_set(fail_err(), HVD_E_INVAL,
                       "hvd_sampler_next: the argument %s is NULL; pass a sampler, and a pointer "
                       "that gets the batch",
                       sampler ? "ret_batch" : "sampler");
    rc = state_goes_on(sampler->state, "hvd_sampler_next");
    if (rc)
        return rc;
    place = (struct sampler_place){ (uint32_t)hvd_rank(), (uint32_t)hvd_size(),
                                    (uint32_t)hvd_max_np() };
    shown = (struct sample_place){ hvd_round(), place.rank, place.size };
    before = sampler->dealer.progress;
    rc = sampler_next(&sampler->dealer, &place, &batch);
    if (rc == HVD_E_CORRUPT)
        return err_set(fail_err(), rc,
                       "hvd_sampler_next: the restored state has used %llu samples, and the data "
                       "set has %llu; the state is of another data set, so load a checkpoint of "
                       "this data set, or train without a checkpoint",
                       (unsigned long long)before.used,
                       (unsigned long long)sampler->dealer.samples);
    if (rc < 0)
        return err_set(fail_err(), rc,
                       "hvd_sampler_next: no memory for a batch; free memory on this host");
    if (rc) { /* HVD_EPOCH_END: there is no batch */
        show_progress(sampler);
        return rc;
    }
    rc = sample_log_write(&sampler->log, &shown, &batch, fail_err());
    if (rc) /* a batch that cannot be logged is not used: the next call deals it again */
        sampler->dealer.progress = before;
    else
        *ret_batch = batch;
    show_progress(sampler);
    return rc;
}

/* Computes a later batch from the progress that the training thread has shown last (show_progress);
 * the progress does not change. `ahead` 0: the batch that hvd_sampler_next gives next. Returns 0;
 * HVD_EPOCH_END, which is above 0: the epoch has no such batch; or the code of an error. */
int hvd_sampler_at(hvd_sampler *sampler, uint64_t ahead, uint64_t *samples, size_t room,
                   hvd_batch *ret_batch)
{
    struct sampler_progress progress;
    struct sampler_place at;
    struct place place;
    int rc;

    fail_begin();
    if (!sampler || !ret_batch || (room && !samples))
        return err_set(fail_err(), HVD_E_INVAL,
                       "hvd_sampler_at: the argument %s is NULL; pass a sampler, memory for the "
                       "samples, and a pointer that gets the batch",
                       !sampler     ? "sampler"
                       : !ret_batch ? "ret_batch"
                                    : "samples");
    rc = worker_place(&place);
    if (rc)
        return rc;
    at = (struct sampler_place){ place.rank, place.size, (uint32_t)hvd_max_np() };
    pthread_mutex_lock(&sampler->lock);
    progress = sampler->shown;
    pthread_mutex_unlock(&sampler->lock);
    rc = sampler_look(&sampler->dealer, &progress, &at, ahead, samples, room, ret_batch);
    if (rc == HVD_E_FULL)
        return err_set(fail_err(), rc,
                       "hvd_sampler_at: this rank has %zu samples of the batch, but \"room\" is "
                       "%zu; pass memory for more samples",
                       ret_batch->count, room);
    if (rc < 0)
        return err_set(fail_err(), rc,
                       "hvd_sampler_at: the restored state is of another data set; load a "
                       "checkpoint of this data set, or train without a checkpoint");
    return rc;
}

uint64_t hvd_sampler_epoch(const hvd_sampler *sampler)
{
    return sampler ? sampler->dealer.progress.epoch : 0;
}
