#include "tests/chaos/lesson.h"
#include "tests/lib/test.h"

#include <string.h>

#define SAMPLES 64
#define BATCH   16
#define KIB     20 /* five pages: not every step of an epoch writes one of its own */

/* One step on one rank: from that sample on, as many as a batch has. */
static void step(struct lesson *lesson, uint64_t first, uint64_t count)
{
    double gradient[LESSON_WEIGHTS] = { 0 };
    int64_t tally = 0;

    for (uint64_t sample = first; sample < first + count; sample++)
        lesson_look(sample, gradient, &tally);
    lesson_learn(lesson, gradient, tally, (int64_t)count);
}

static void epoch(struct lesson *lesson)
{
    for (uint64_t first = 0; first < SAMPLES; first += BATCH)
        step(lesson, first, BATCH);
}

static void an_epoch_in_any_order_is_right(struct test *t)
{
    struct lesson lesson = { .ballast = NULL };
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, lesson_init(&lesson, SAMPLES, KIB));
    for (int i = 0; i < 3; i++) {
        for (uint64_t first = SAMPLES; first > 0; first -= BATCH) {
            CHECK_OK(t, lesson_verify(&lesson, &err));
            step(&lesson, first - BATCH, BATCH);
        }
        CHECK_OK(t, lesson_end_epoch(&lesson, &err));
        epoch(&lesson);
        CHECK_OK(t, lesson_end_epoch(&lesson, &err));
    }
    CHECK_INT(t, lesson.epoch, ==, 6);
    CHECK_INT(t, lesson.step, ==, 6 * SAMPLES / BATCH);
    CHECK_OK(t, lesson_verify(&lesson, &err));
out:
    lesson_release(&lesson);
}

static void a_sample_that_is_missing_or_comes_twice_is_found(struct test *t)
{
    struct lesson lesson = { .ballast = NULL };
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, lesson_init(&lesson, SAMPLES, 0));
    step(&lesson, 0, SAMPLES - 1);
    CHECK_CODE(t, lesson_end_epoch(&lesson, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "epoch 0 had 63 samples");
    step(&lesson, 0, 1); /* as many as it should be, and the wrong one */
    CHECK_CODE(t, lesson_end_epoch(&lesson, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "epoch 0 had 64 samples with tally");
out:
    lesson_release(&lesson);
}

/* As if the weights of an epoch were there, and how far it has come was not. */
static void weights_of_another_moment_are_found(struct test *t)
{
    struct lesson lesson = { .ballast = NULL };
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, lesson_init(&lesson, SAMPLES, 0));
    step(&lesson, 0, BATCH);
    lesson.used = lesson.tally = 0;
    CHECK_CODE(t, lesson_verify(&lesson, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "after 0 epochs weight 0 is ");
    epoch(&lesson);
    CHECK_CODE(t, lesson_end_epoch(&lesson, &err), HVD_E_MISMATCH);
    lesson.used = -1;
    CHECK_CODE(t, lesson_verify(&lesson, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "no such state");
out:
    lesson_release(&lesson);
}

static void each_page_is_known(struct test *t)
{
    struct lesson lesson = { .ballast = NULL };
    struct hvd_err err = { .text = "" };
    const size_t words = KIB * 1024 / sizeof(uint64_t);

    CHECK_OK(t, lesson_init(&lesson, SAMPLES, KIB));
    CHECK_INT(t, lesson_ballast_bytes(&lesson), ==, KIB * 1024);
    for (int steps = 0; steps < 12; steps++) {
        CHECK_OK(t, lesson_verify(&lesson, &err));
        for (size_t word = 0; word < words; word += 511) {
            lesson.ballast[word] ^= 1;
            CHECK_CODE(t, lesson_verify(&lesson, &err), HVD_E_MISMATCH);
            CHECK_HAS(t, err.text, "of the ballast is not what step ");
            lesson.ballast[word] ^= 1;
        }
        step(&lesson, 0, 0);
    }
    lesson.step--; /* the ballast of a later step */
    CHECK_CODE(t, lesson_verify(&lesson, &err), HVD_E_MISMATCH);
out:
    lesson_release(&lesson);
}

static void a_digest_is_of_all_of_it(struct test *t)
{
    struct lesson lesson = { .ballast = NULL };
    uint64_t digest;

    CHECK_OK(t, lesson_init(&lesson, SAMPLES, KIB));
    epoch(&lesson);
    digest = lesson_digest(&lesson);
    CHECK(t, digest == lesson_digest(&lesson));
    lesson.ballast[KIB * 1024 / sizeof(uint64_t) - 1] ^= 1;
    CHECK(t, digest != lesson_digest(&lesson));
    lesson.ballast[KIB * 1024 / sizeof(uint64_t) - 1] ^= 1;
    lesson.weights[LESSON_WEIGHTS - 1] += 1;
    CHECK(t, digest != lesson_digest(&lesson));
    lesson.weights[LESSON_WEIGHTS - 1] -= 1;
    lesson.tally++;
    CHECK(t, digest != lesson_digest(&lesson));
    lesson.tally--;
    CHECK(t, digest == lesson_digest(&lesson));
out:
    lesson_release(&lesson);
}

TESTS(CASE(an_epoch_in_any_order_is_right), CASE(a_sample_that_is_missing_or_comes_twice_is_found),
      CASE(weights_of_another_moment_are_found), CASE(each_page_is_known),
      CASE(a_digest_is_of_all_of_it))
