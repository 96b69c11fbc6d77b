/*
 * test_chaos_model.c: what the chaos trainer learns: an epoch in any order is right, and a sample
 * that is missing or taken twice, a wrong weight or a wrong page is found.
 */
#include "tests/lib/fixture.h"
#include "tests/workers/chaos_model.h"

#define SAMPLES 64
#define BATCH   16
#define KIB     20 /* five pages: not every step of an epoch writes one of its own */

/* One step on one rank: from that sample on, as many as a batch has. */
static void step(struct chaos_model *model, uint64_t first, uint64_t count)
{
    double gradient[CHAOS_MODEL_WEIGHTS] = { 0 };
    int64_t tally = 0;

    for (uint64_t sample = first; sample < first + count; sample++)
        chaos_model_add_sample(sample, gradient, &tally);
    chaos_model_step(model, gradient, tally, (int64_t)count);
}

static void epoch(struct chaos_model *model)
{
    for (uint64_t first = 0; first < SAMPLES; first += BATCH)
        step(model, first, BATCH);
}

static struct chaos_model model;

static void end_case(struct test *t)
{
    (void)t;
    chaos_model_release(&model);
}
FIXTURE(NULL, end_case)

TEST(an_epoch_in_any_order_is_right)
{
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, chaos_model_init(&model, SAMPLES, KIB));
    for (int i = 0; i < 3; i++) {
        for (uint64_t first = SAMPLES; first > 0; first -= BATCH) {
            CHECK_OK(t, chaos_model_verify(&model, &err));
            step(&model, first - BATCH, BATCH);
        }
        CHECK_OK(t, chaos_model_end_epoch(&model, &err));
        epoch(&model);
        CHECK_OK(t, chaos_model_end_epoch(&model, &err));
    }
    CHECK_INT(t, model.epoch, ==, 6);
    CHECK_INT(t, model.step, ==, 6 * SAMPLES / BATCH);
    CHECK_OK(t, chaos_model_verify(&model, &err));
}

TEST(a_sample_that_is_missing_or_comes_twice_is_found)
{
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, chaos_model_init(&model, SAMPLES, 0));
    step(&model, 0, SAMPLES - 1);
    CHECK_CODE(t, chaos_model_end_epoch(&model, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "epoch 0 had 63 samples");
    step(&model, 0, 1); /* as many as it should be, and the wrong one */
    CHECK_CODE(t, chaos_model_end_epoch(&model, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "epoch 0 had 64 samples with tally");
}

/* As if the weights of an epoch were there, and how far it has come was not. */
TEST(weights_of_another_moment_are_found)
{
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, chaos_model_init(&model, SAMPLES, 0));
    step(&model, 0, BATCH);
    model.used = model.tally = 0;
    CHECK_CODE(t, chaos_model_verify(&model, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "after 0 epochs weight 0 is ");
    epoch(&model);
    CHECK_CODE(t, chaos_model_end_epoch(&model, &err), HVD_E_MISMATCH);
    model.used = -1;
    CHECK_CODE(t, chaos_model_verify(&model, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "no such state");
}

TEST(each_page_is_known)
{
    struct hvd_err err = { .text = "" };
    const size_t words = KIB * 1024 / sizeof(uint64_t);

    CHECK_OK(t, chaos_model_init(&model, SAMPLES, KIB));
    CHECK_INT(t, chaos_model_ballast_bytes(&model), ==, KIB * 1024);
    for (int steps = 0; steps < 12; steps++) {
        CHECK_OK(t, chaos_model_verify(&model, &err));
        for (size_t word = 0; word < words; word += 511) {
            model.ballast[word] ^= 1;
            CHECK_CODE(t, chaos_model_verify(&model, &err), HVD_E_MISMATCH);
            CHECK_HAS(t, err.text, "of the ballast is not what step ");
            model.ballast[word] ^= 1;
        }
        step(&model, 0, 0);
    }
    model.step--; /* the ballast of a later step */
    CHECK_CODE(t, chaos_model_verify(&model, &err), HVD_E_MISMATCH);
}

TEST(a_digest_covers_the_whole_model)
{
    uint64_t digest;

    CHECK_OK(t, chaos_model_init(&model, SAMPLES, KIB));
    epoch(&model);
    digest = chaos_model_digest(&model);
    CHECK(t, digest == chaos_model_digest(&model));
    model.ballast[KIB * 1024 / sizeof(uint64_t) - 1] ^= 1;
    CHECK(t, digest != chaos_model_digest(&model));
    model.ballast[KIB * 1024 / sizeof(uint64_t) - 1] ^= 1;
    model.weights[CHAOS_MODEL_WEIGHTS - 1] += 1;
    CHECK(t, digest != chaos_model_digest(&model));
    model.weights[CHAOS_MODEL_WEIGHTS - 1] -= 1;
    model.tally++;
    CHECK(t, digest != chaos_model_digest(&model));
    model.tally--;
    CHECK(t, digest == chaos_model_digest(&model));
}
