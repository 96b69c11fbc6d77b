/*
 * chaos_model.h: the model that the chaos trainer trains, made so that its right values are known.
 * Each sample is a set of whole numbers that follow from the sample's number; the model adds them
 * up over all samples. Within an epoch the members can only compare their sums. At the end of an
 * epoch every sum is known beforehand: it is right if each sample was used exactly once, in this
 * epoch and in all epochs before it.
 *
 * The sums stay exact: a sample has 24 bits, and a double holds 53. So a training may have some
 * 8000 epochs of 65536 samples, or half a million epochs of 1024 samples.
 */
#ifndef TESTS_WORKERS_CHAOS_MODEL_H
#define TESTS_WORKERS_CHAOS_MODEL_H

#include "base/err.h"

#define CHAOS_MODEL_WEIGHTS 256

struct chaos_model {
    uint64_t samples;                  /* samples of an epoch */
    double whole[CHAOS_MODEL_WEIGHTS]; /* what one epoch adds to each weight */
    int64_t whole_tally;
    size_t pages; /* pages of memory that only makes the state larger */
    uint64_t *ballast;

    /* The state: equal on all ranks after each step. */
    int64_t step;
    int64_t epoch;                       /* the number of epochs that are over */
    int64_t used;                        /* samples used in this epoch */
    int64_t tally;                       /* the sum of the hashes of their numbers */
    double weights[CHAOS_MODEL_WEIGHTS]; /* sums over all epochs */
};

int chaos_model_init(struct chaos_model *model, uint64_t samples, uint64_t ballast_kib) MUST_CHECK;
void chaos_model_release(struct chaos_model *model);
size_t chaos_model_ballast_bytes(const struct chaos_model *model);

/* Adds the numbers of one sample. */
void chaos_model_add_sample(uint64_t sample, double gradient[CHAOS_MODEL_WEIGHTS], int64_t *tally);

/* Ends a step of `used` samples; gradient and tally are the sums over all ranks. */
void chaos_model_step(struct chaos_model *model, const double gradient[CHAOS_MODEL_WEIGHTS],
                      int64_t tally, int64_t used);

/* Ends the epoch: 0 when all sums are right; HVD_E_MISMATCH with the sum that is wrong. */
int chaos_model_end_epoch(struct chaos_model *model, struct hvd_err *err) MUST_CHECK;

/* Verifies what can be known at any moment: 0, or HVD_E_MISMATCH with what is wrong. */
int chaos_model_verify(const struct chaos_model *model, struct hvd_err *err) MUST_CHECK;

/* A digest of the whole state. */
uint64_t chaos_model_digest(const struct chaos_model *model);

#endif
