#include "state/snapshot/stream.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE  ((size_t)64)
#define LANES ((size_t)4) /* read and written side by side: memory likes several pages */
#define LANE  ((size_t)16 * 1024)
#define BLOCK (LANES * LANE) /* stays in the second cache until its checksum is made */

#ifdef __SSE2__

static void stream_line(uint8_t *to, const uint8_t *from)
{
    __m128i a = _mm_loadu_si128((const void *)from);
    __m128i b = _mm_loadu_si128((const void *)(from + 16));
    __m128i c = _mm_loadu_si128((const void *)(from + 32));
    __m128i d = _mm_loadu_si128((const void *)(from + 48));

    _mm_stream_si128((void *)to, a);
    _mm_stream_si128((void *)(to + 16), b);
    _mm_stream_si128((void *)(to + 32), c);
    _mm_stream_si128((void *)(to + 48), d);
}

/* to is aligned to a line. */
static void copy_block(uint8_t *to, const uint8_t *from)
{
    for (size_t i = 0; i < LANE; i += LINE)
        for (size_t lane = 0; lane < BLOCK; lane += LANE)
            stream_line(to + lane + i, from + lane + i);
}

static void settle(void)
{
    _mm_sfence();
}

#else

static void copy_block(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from, BLOCK);
}

static void settle(void)
{
}

#endif

/* So many bytes lie before the first line of to. */
static size_t before_line(const uint8_t *to, size_t bytes)
{
    size_t before = (LINE - (uintptr_t)to % LINE) % LINE;

    return before < bytes ? before : bytes;
}

static void copy_few(uint8_t *to, const uint8_t *from, size_t bytes, struct sum *sum)
{
    if (bytes == 0)
        return;
    memcpy(to, from, bytes);
    sum_add(sum, to, bytes);
}

void stream_copy(void *to_at, const void *from_at, size_t bytes, bool much, struct sum *sum)
{
    uint8_t *to = to_at;
    const uint8_t *from = from_at;
    size_t done = before_line(to, bytes);

    if (!much || bytes - done < BLOCK) {
        copy_few(to, from, bytes, sum);
        return;
    }
    copy_few(to, from, done, sum);
    for (; bytes - done >= BLOCK; done += BLOCK) {
        copy_block(to + done, from + done);
        sum_add(sum, from + done, BLOCK);
    }
    settle();
    copy_few(to + done, from + done, bytes - done, sum);
}
