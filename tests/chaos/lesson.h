/*
 * lesson.h: what an apprentice learns, so that at each moment it is known what it has to know. Each
 * sample brings whole numbers that follow from its own number; they are added up over all samples.
 * So within an epoch the members can only compare, but at its end every sum is known beforehand: it
 * is right if each sample was used exactly once, in this epoch and in all before it.
 *
 * Sums stay exact: 24 bits of each sample, and a double holds 53. An epoch of 65536 samples may be
 * gone through some 8000 times, one of 1024 half a million times.
 */
#ifndef TESTS_CHAOS_LESSON_H
#define TESTS_CHAOS_LESSON_H

#include "base/err.h"

#define LESSON_WEIGHTS 256

struct lesson {
    uint64_t samples;             /* of an epoch */
    double whole[LESSON_WEIGHTS]; /* what an epoch adds to each weight */
    int64_t whole_tally;
    size_t pages; /* of ballast */
    uint64_t *ballast;

    /* the state: the same on all ranks after each step */
    int64_t step;
    int64_t epoch;                  /* those that are over */
    int64_t used;                   /* samples of this one, */
    int64_t tally;                  /* and the sum of their numbers' hashes */
    double weights[LESSON_WEIGHTS]; /* of all epochs */
};

int lesson_init(struct lesson *lesson, uint64_t samples, uint64_t ballast_kib) MUST_CHECK;
void lesson_release(struct lesson *lesson);
size_t lesson_ballast_bytes(const struct lesson *lesson);

/* What one sample brings is added. */
void lesson_look(uint64_t sample, double gradient[LESSON_WEIGHTS], int64_t *tally);

/* A step is done, of so many samples, whose sums over all ranks these are. */
void lesson_learn(struct lesson *lesson, const double gradient[LESSON_WEIGHTS], int64_t tally,
                  int64_t used);

/* The epoch is over: the sums are what they must be, or HVD_E_MISMATCH with what is wrong. */
int lesson_end_epoch(struct lesson *lesson, struct hvd_err *err) MUST_CHECK;

/* What is known at each moment: HVD_E_MISMATCH with what is wrong. */
int lesson_verify(const struct lesson *lesson, struct hvd_err *err) MUST_CHECK;

/* Of the whole state. */
uint64_t lesson_digest(const struct lesson *lesson);

#endif
