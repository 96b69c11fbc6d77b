/*
 * stream.c: copies memory and computes its checksum at the same time; copy.c calls it for each
 * piece of a commit or restore.
 *
 * Large pieces are written by streaming stores, which bypass the caches, in four places side by
 * side (lanes): memory is fastest when several pages are open. The bytes before the first aligned
 * line and after the last block are copied by memcpy. `./dev bench commit` measures this.
 */
#include "state/snapshot/stream.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE  ((size_t)64)        /* bytes of a line of the processor's caches */
#define LANES ((size_t)4)         /* places at which memory is written side by side */
#define LANE  ((size_t)16 * 1024) /* bytes of one lane */
#define BLOCK (LANES * LANE)      /* stays in the second-level cache until its checksum is made */

/* Copies bytes through the caches, and adds them to the checksum. */
static void copy_few(uint8_t *to, const uint8_t *from, size_t bytes, struct sum *sum)
{
    if (bytes == 0)
        return;
    memcpy(to, from, bytes);
    sum_add(sum, to, bytes);
}

/* Copies bytes and adds them to *sum. much: the whole copy is larger than the caches, so large
 * pieces bypass them. */
void stream_copy(void *to_at, const void *from_at, size_t bytes, bool much, struct sum *sum)
{
    uint8_t *to = to_at;
    const uint8_t *from = from_at;
    size_t done = (LINE - (uintptr_t)to % LINE) % LINE; /* bytes before the first aligned line */

    if (!much || bytes < done + BLOCK) {
        copy_few(to, from, bytes, sum);
        return;
    }
    copy_few(to, from, done, sum);
    for (; bytes - done >= BLOCK; done += BLOCK) {
#ifdef __SSE2__
        for (size_t first = done; first < done + LANE; first += LINE) {
            for (size_t line = first; line < done + BLOCK; line += LANE) {
                __m128i a = _mm_loadu_si128((const void *)(from + line));
                __m128i b = _mm_loadu_si128((const void *)(from + line + 16));
                __m128i c = _mm_loadu_si128((const void *)(from + line + 32));
                __m128i d = _mm_loadu_si128((const void *)(from + line + 48));

                _mm_stream_si128((void *)(to + line), a);
                _mm_stream_si128((void *)(to + line + 16), b);
                _mm_stream_si128((void *)(to + line + 32), c);
                _mm_stream_si128((void *)(to + line + 48), d);
            }
        }
#else
        memcpy(to + done, from + done, BLOCK);
#endif
        sum_add(sum, from + done, BLOCK);
    }
#ifdef __SSE2__
    _mm_sfence(); /* streaming stores are not in order with other stores */
#endif
    copy_few(to + done, from + done, bytes - done, sum);
}
