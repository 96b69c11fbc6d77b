/* sampler.c: hvd_sampler_*: state/sampler.h for a program's state, with its log. */
#include "state/sampler.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "worker/fail.h"
#include "worker/sample_log.h"
#include "worker/state.h"

#include <stdlib.h>
#include <string.h>

struct hvd_sampler {
    hvd_state *state;
    struct sampler dealer;
    struct sampler_progress committed; /* its progress as the newest commit began */
    struct sample_log log;
};

static void free_sampler(void *object)
{
    struct hvd_sampler *sampler = object;

    sampler_release(&sampler->dealer);
    sample_log_release(&sampler->log);
    mem_free(sampler);
}

/* The loop asks for the next batch while the commit of the last step may still be copied. */
static void begin_commit(void *object)
{
    struct hvd_sampler *sampler = object;

    sampler->committed = sampler->dealer.progress;
}

static int64_t save_progress(void *arg, void *into, size_t room)
{
    const struct hvd_sampler *sampler = arg;

    ASSERT(room == sizeof(sampler->committed));
    memcpy(into, &sampler->committed, room);
    return (int64_t)room;
}

static int load_progress(void *arg, const void *from, size_t bytes)
{
    struct hvd_sampler *sampler = arg;

    if (bytes != sizeof(sampler->dealer.progress))
        return HVD_E_CORRUPT;
    memcpy(&sampler->dealer.progress, from, bytes);
    return 0;
}

/* Each start of a worker has a log of its own; a program of its own is number 0. */
static uint64_t own_incarnation(void)
{
    const char *text = getenv("HVD_INCARNATION");
    uint64_t incarnation;

    if (!text ||
        text_parse_u64((struct span){ text, strlen(text) }, 0, UINT64_MAX, "", &incarnation, NULL))
        return 0;
    return incarnation;
}

static int create(hvd_state *state, const char *name, uint64_t samples, size_t batch,
                  hvd_batch_mode mode, uint64_t seed, hvd_sampler **ret_sampler)
{
    struct hvd_sampler *sampler = mem_zalloc(sizeof(*sampler));
    int rc;

    if (!sampler)
        return err_set(fail_err(), HVD_E_NOMEM, "sampler: %s", err_text(HVD_E_NOMEM));
    sampler->state = state;
    sampler->log.fd = -1;
    rc = sampler_init(&sampler->dealer, samples, batch, mode, seed, fail_err());
    if (!rc) {
        rc = sample_log_init(&sampler->log, getenv("HVD_SAMPLE_LOG"), own_incarnation(), name,
                             samples);
        if (rc)
            err_set(fail_err(), rc, "sampler: %s", err_text(rc));
    }
    /* Owned before it is registered: what the state points to must live as long as the state. */
    if (!rc)
        rc = state_own(state, sampler, free_sampler, begin_commit);
    if (rc) {
        free_sampler(sampler);
        return rc;
    }
    rc = hvd_state_add_custom(state, name, sizeof(sampler->dealer.progress), save_progress,
                              load_progress, sampler);
    if (!rc)
        *ret_sampler = sampler;
    return rc;
}

int hvd_sampler_create(hvd_state *state, const char *name, uint64_t samples, size_t batch,
                       hvd_batch_mode mode, uint64_t seed, hvd_sampler **ret_sampler)
{
    if (!state || !name || !ret_sampler)
        return err_set(fail_err(), HVD_E_INVAL,
                       "hvd_sampler_create: %s is NULL; it needs a state, a name and a place for "
                       "the sampler",
                       !state  ? "state"
                       : !name ? "name"
                               : "ret_sampler");
    return create(state, name, samples, batch, mode, seed, ret_sampler);
}

/* What is dealt but not written down was not dealt. */
static int next(struct hvd_sampler *sampler, hvd_batch *ret_batch)
{
    struct sampler_place place = { (uint32_t)hvd_rank(), (uint32_t)hvd_size(),
                                   (uint32_t)hvd_max_np() };
    struct sample_place shown = { hvd_round(), place.rank, place.size };
    struct sampler_progress before = sampler->dealer.progress;
    hvd_batch batch;
    int rc = sampler_next(&sampler->dealer, &place, &batch);

    if (rc == HVD_E_CORRUPT)
        return err_set(
            fail_err(), rc,
            "sampler: the restored state has used %llu of %llu samples; it is of another "
            "data set",
            (unsigned long long)before.used, (unsigned long long)sampler->dealer.samples);
    if (rc < 0)
        return err_set(fail_err(), rc, "sampler: %s", err_text(rc));
    if (rc)
        return rc;
    rc = sample_log_write(&sampler->log, &shown, &batch, fail_err());
    if (rc)
        sampler->dealer.progress = before;
    else
        *ret_batch = batch;
    return rc;
}

int hvd_sampler_next(hvd_sampler *sampler, hvd_batch *ret_batch)
{
    int rc;

    if (!sampler || !ret_batch)
        return err_set(fail_err(), HVD_E_INVAL, "hvd_sampler_next: %s is NULL",
                       sampler ? "ret_batch" : "sampler");
    rc = state_goes_on(sampler->state, "hvd_sampler_next");
    return rc ? rc : next(sampler, ret_batch);
}

uint64_t hvd_sampler_epoch(const hvd_sampler *sampler)
{
    return sampler ? sampler->dealer.progress.epoch : 0;
}
