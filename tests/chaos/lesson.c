#include "tests/chaos/lesson.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define PAGE_BYTES 4096
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))
#define HASH_BITS  24 /* of a sample: see the header */

/* splitmix64: the same on all machines. */
static uint64_t mix(uint64_t word)
{
    word += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

void lesson_look(uint64_t sample, double gradient[LESSON_WEIGHTS], int64_t *tally)
{
    const uint64_t seed = mix(sample);

    for (size_t i = 0; i < LESSON_WEIGHTS; i++)
        gradient[i] += (double)(mix(seed ^ i) >> (64 - HASH_BITS));
    *tally += (int64_t)(seed >> (64 - HASH_BITS));
}

int lesson_init(struct lesson *lesson, uint64_t samples, uint64_t ballast_kib)
{
    *lesson = (struct lesson){ .samples = samples };
    lesson->pages = (size_t)(ballast_kib * 1024 / PAGE_BYTES);
    lesson->ballast = mem_zalloc_array(lesson->pages * PAGE_WORDS, sizeof(uint64_t));
    if (!lesson->ballast)
        return HVD_E_NOMEM;
    for (uint64_t sample = 0; sample < samples; sample++)
        lesson_look(sample, lesson->whole, &lesson->whole_tally);
    return 0;
}

void lesson_release(struct lesson *lesson)
{
    mem_free(lesson->ballast);
    lesson->ballast = NULL;
}

size_t lesson_ballast_bytes(const struct lesson *lesson)
{
    return lesson->pages * PAGE_BYTES;
}

/* ---- ballast: step s writes s all over page s modulo their number ------------------------------
 */

static uint64_t ballast_word(int64_t step, size_t word)
{
    return step > 0 ? mix((uint64_t)step) + word : 0;
}

static void write_page(struct lesson *lesson)
{
    uint64_t *page;

    if (!lesson->pages)
        return;
    page = lesson->ballast + ((size_t)lesson->step % lesson->pages) * PAGE_WORDS;
    for (size_t i = 0; i < PAGE_WORDS; i++)
        page[i] = ballast_word(lesson->step, i);
}

/* The last step that has written that page; 0: none. */
static int64_t writer_of(const struct lesson *lesson, size_t page)
{
    int64_t pages = (int64_t)lesson->pages;
    int64_t back = (lesson->step % pages - (int64_t)page + pages) % pages;

    return lesson->step - back;
}

static int verify_ballast(const struct lesson *lesson, struct hvd_err *err)
{
    for (size_t page = 0; page < lesson->pages; page++) {
        const uint64_t *words = lesson->ballast + page * PAGE_WORDS;
        int64_t writer = writer_of(lesson, page);

        for (size_t i = 0; i < PAGE_WORDS; i++)
            if (words[i] != ballast_word(writer, i))
                return err_set(err, HVD_E_MISMATCH,
                               "page %zu of the ballast is not what step %" PRId64 " wrote", page,
                               writer);
    }
    return 0;
}

/* ---- what is known -----------------------------------------------------------------------------
 */

void lesson_learn(struct lesson *lesson, const double gradient[LESSON_WEIGHTS], int64_t tally,
                  int64_t used)
{
    for (size_t i = 0; i < LESSON_WEIGHTS; i++)
        lesson->weights[i] += gradient[i];
    lesson->tally += tally;
    lesson->used += used;
    lesson->step++;
    write_page(lesson);
}

static int verify_weights(const struct lesson *lesson, struct hvd_err *err)
{
    for (size_t i = 0; i < LESSON_WEIGHTS; i++) {
        double right = lesson->whole[i] * (double)lesson->epoch;

        if (lesson->weights[i] < right || lesson->weights[i] > right)
            return err_set(err, HVD_E_MISMATCH,
                           "after %" PRId64 " epochs weight %zu is %.0f, not %.0f", lesson->epoch,
                           i, lesson->weights[i], right);
    }
    return 0;
}

int lesson_end_epoch(struct lesson *lesson, struct hvd_err *err)
{
    if (lesson->used != (int64_t)lesson->samples || lesson->tally != lesson->whole_tally)
        return err_set(err, HVD_E_MISMATCH,
                       "epoch %" PRId64 " had %" PRId64 " samples with tally %" PRId64
                       ", not %" PRIu64 " with %" PRId64,
                       lesson->epoch, lesson->used, lesson->tally, lesson->samples,
                       lesson->whole_tally);
    lesson->epoch++;
    lesson->used = 0;
    lesson->tally = 0;
    return verify_weights(lesson, err);
}

int lesson_verify(const struct lesson *lesson, struct hvd_err *err)
{
    int rc = verify_ballast(lesson, err);

    if (rc)
        return rc;
    if (lesson->step < 0 || lesson->epoch < 0 || lesson->used < 0 ||
        lesson->used > (int64_t)lesson->samples)
        return err_set(err, HVD_E_MISMATCH,
                       "step %" PRId64 ", epoch %" PRId64 ", %" PRId64
                       " samples used: no such state",
                       lesson->step, lesson->epoch, lesson->used);
    return lesson->used ? 0 : verify_weights(lesson, err);
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

uint64_t lesson_digest(const struct lesson *lesson)
{
    const int64_t numbers[] = { lesson->step, lesson->epoch, lesson->used, lesson->tally };
    uint64_t digest = digest_of(1, numbers, sizeof(numbers));

    digest = digest_of(digest, lesson->weights, sizeof(lesson->weights));
    return mix(digest_of(digest, lesson->ballast, lesson_ballast_bytes(lesson)));
}
