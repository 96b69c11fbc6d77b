/*
 * fuzz_steps.c: lines of steps that a trainer may write, read at once and cut into two parts. The
 * first byte says where the cut is.
 */
#include "base/panic.h"
#include "tests/chaos/steps.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct steps *steps)
{
    size_t firsts[] = { 0, steps->count / 2, steps->count, steps->count + 1 };

    for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
        ASSERT(steps_longest_us(steps, firsts[i]) >= 0);
        ASSERT(steps_usual_us(steps, firsts[i]) >= 0);
        ASSERT(steps_usual_us(steps, firsts[i]) <= steps_longest_us(steps, firsts[i]));
        ASSERT(steps_repeated(steps, firsts[i]) <= steps->count);
    }
}

static bool same(const struct steps *a, const struct steps *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const struct step *one = &a->list[i];
        const struct step *other = &b->list[i];

        if (one->at_us != other->at_us || one->round != other->round ||
            one->number != other->number || one->size != other->size)
            return false;
    }
    return a->count == b->count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct steps whole = { .fd = -1 };
    struct steps parts = { .fd = -1 };
    struct hvd_err err = { .text = "" };
    const char *text = (const char *)data + 1;
    size_t cut;
    int rc;

    if (size < 1)
        return 0;
    size--;
    cut = size * data[0] / 255;
    rc = steps_take(&whole, text, size, &err);
    ASSERT(rc == 0 || (rc == HVD_E_CORRUPT && strstr(err.text, "mend the trainer")));
    rc = steps_take(&parts, text, cut, NULL);
    if (!rc)
        rc = steps_take(&parts, text + cut, size - cut, NULL);
    ASSERT(rc == err.code && same(&whole, &parts));
    check(&whole);
    steps_close(&whole);
    steps_close(&parts);
    return 0;
}
