/*
 * chaos_model.c: the model of chaos_trainer: adds up samples, changes a page of the ballast in each
 * step, and verifies at any moment that the state is right for its step and epoch.
 */
#include "tests/workers/chaos_model.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define PAGE_BYTES 4096
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))
#define HASH_BITS  24 /* bits of a sample's number; see the header */

/* splitmix64, which is the same on all machines. */
static uint64_t mix(uint64_t word)
{
    word += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

void chaos_model_add_sample(uint64_t sample, double gradient[CHAOS_MODEL_WEIGHTS], int64_t *tally)
{
    const uint64_t seed = mix(sample);

    for (size_t i = 0; i < CHAOS_MODEL_WEIGHTS; i++)
        gradient[i] += (double)(mix(seed ^ i) >> (64 - HASH_BITS));
    *tally += (int64_t)(seed >> (64 - HASH_BITS));
}

int chaos_model_init(struct chaos_model *model, uint64_t samples, uint64_t ballast_kib)
{
    *model = (struct chaos_model){ .samples = samples };
    model->pages = (size_t)(ballast_kib * 1024 / PAGE_BYTES);
    model->ballast = mem_zalloc_array(model->pages * PAGE_WORDS, sizeof(uint64_t));
    if (!model->ballast)
        return HVD_E_NOMEM;
    for (uint64_t sample = 0; sample < samples; sample++)
        chaos_model_add_sample(sample, model->whole, &model->whole_tally);
    return 0;
}

void chaos_model_release(struct chaos_model *model)
{
    mem_free(model->ballast);
    model->ballast = NULL;
}

size_t chaos_model_ballast_bytes(const struct chaos_model *model)
{
    return model->pages * PAGE_BYTES;
}

/* ---- ballast: step s fills page (s modulo the number of pages) with the number s ---- */

static uint64_t ballast_word(int64_t step, size_t word)
{
    return step > 0 ? mix((uint64_t)step) + word : 0;
}

static void write_page(struct chaos_model *model)
{
    uint64_t *page;

    if (!model->pages)
        return;
    page = model->ballast + ((size_t)model->step % model->pages) * PAGE_WORDS;
    for (size_t i = 0; i < PAGE_WORDS; i++)
        page[i] = ballast_word(model->step, i);
}

/* The last step that has written this page; 0: none has. */
static int64_t writer_of(const struct chaos_model *model, size_t page)
{
    int64_t pages = (int64_t)model->pages;
    int64_t back = (model->step % pages - (int64_t)page + pages) % pages;

    return model->step - back;
}

static int verify_ballast(const struct chaos_model *model, struct hvd_err *err)
{
    for (size_t page = 0; page < model->pages; page++) {
        const uint64_t *words = model->ballast + page * PAGE_WORDS;
        int64_t writer = writer_of(model, page);

        for (size_t i = 0; i < PAGE_WORDS; i++)
            if (words[i] != ballast_word(writer, i))
                return err_set(err, HVD_E_MISMATCH,
                               "page %zu of the ballast is not what step %" PRId64 " wrote", page,
                               writer);
    }
    return 0;
}

/* ---- verification ---- */

void chaos_model_step(struct chaos_model *model, const double gradient[CHAOS_MODEL_WEIGHTS],
                      int64_t tally, int64_t used)
{
    for (size_t i = 0; i < CHAOS_MODEL_WEIGHTS; i++)
        model->weights[i] += gradient[i];
    model->tally += tally;
    model->used += used;
    model->step++;
    write_page(model);
}

static int verify_weights(const struct chaos_model *model, struct hvd_err *err)
{
    for (size_t i = 0; i < CHAOS_MODEL_WEIGHTS; i++) {
        double right = model->whole[i] * (double)model->epoch;

        if (model->weights[i] < right || model->weights[i] > right)
            return err_set(err, HVD_E_MISMATCH,
                           "after %" PRId64 " epochs weight %zu is %.0f, not %.0f", model->epoch, i,
                           model->weights[i], right);
    }
    return 0;
}

int chaos_model_end_epoch(struct chaos_model *model, struct hvd_err *err)
{
    if (model->used != (int64_t)model->samples || model->tally != model->whole_tally)
        return err_set(err, HVD_E_MISMATCH,
                       "epoch %" PRId64 " had %" PRId64 " samples with tally %" PRId64
                       ", not %" PRIu64 " with %" PRId64,
                       model->epoch, model->used, model->tally, model->samples, model->whole_tally);
    model->epoch++;
    model->used = 0;
    model->tally = 0;
    return verify_weights(model, err);
}

int chaos_model_verify(const struct chaos_model *model, struct hvd_err *err)
{
    int rc = verify_ballast(model, err);

    if (rc)
        return rc;
    if (model->step < 0 || model->epoch < 0 || model->used < 0 ||
        model->used > (int64_t)model->samples)
        return err_set(err, HVD_E_MISMATCH,
                       "step %" PRId64 ", epoch %" PRId64 ", %" PRId64
                       " samples used: no such state",
                       model->step, model->epoch, model->used);
    return model->used ? 0 : verify_weights(model, err);
}

static uint64_t digest_of(uint64_t digest, const void *bytes, size_t length)
{
    const char *at = bytes;
    uint64_t word;

    for (size_t i = 0; i + sizeof(word) <= length; i += sizeof(word)) {
        memcpy(&word, at + i, sizeof(word));
        digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        digest ^= digest >> 29;
    }
    return digest;
}

uint64_t chaos_model_digest(const struct chaos_model *model)
{
    const int64_t numbers[] = { model->step, model->epoch, model->used, model->tally };
    uint64_t digest = digest_of(1, numbers, sizeof(numbers));

    digest = digest_of(digest, model->weights, sizeof(model->weights));
    return mix(digest_of(digest, model->ballast, chaos_model_ballast_bytes(model)));
}
