/*
 * test_arena.c: base/arena: memory is zeroed and aligned, a cap is a cap, and a full arena is told
 * from a machine without memory.
 */
#include "base/arena.h"
#include "tests/lib/fixture.h"

#include <string.h>

static struct arena own;

static void end(struct test *t)
{
    (void)t;
    arena_release(&own);
    arena_release(NULL);
}
FIXTURE(NULL, end)

TEST(gives_zeroed_aligned_memory)
{
    arena_init(&own, 100000);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *block = arena_alloc(&own, bytes);

        CHECK(t, block);
        CHECK_INT(t, (uintptr_t)block % _Alignof(max_align_t), ==, 0);
        for (size_t i = 0; i < bytes; i++)
            CHECK_INT(t, block[i], ==, 0);
        memset(block, 0xff, bytes);
    }
    CHECK(t, arena_alloc_array(&own, 1000, 8));
}

TEST(stops_at_its_cap)
{
    arena_init(&own, 10000);
    CHECK(t, arena_alloc(&own, 4000));
    CHECK(t, arena_alloc(&own, 5800));
    CHECK(t, !own.full);
    CHECK(t, !arena_alloc(&own, 1000));
    CHECK(t, own.full && !own.starved);
    CHECK(t, own.taken <= 10000);
    arena_release(&own);
    CHECK(t, !own.full);
    CHECK(t, arena_alloc(&own, 10000));
}

TEST(tells_full_from_starved)
{
    bool got;

    arena_init(&own, 1000000);
    got = arena_alloc(&own, 10) != NULL;
    CHECK(t, got == !own.starved && !own.full);
    CHECK(t, got);
    CHECK(t, !arena_alloc(&own, SIZE_MAX));
    CHECK(t, own.full);
    own.full = false;
    CHECK(t, !arena_alloc_array(&own, SIZE_MAX / 2, 4));
    CHECK(t, own.full && !own.starved);
}

PRINTF_LIKE(3, 4)
static const char *line_in(struct arena *arena, size_t max, const char *format, ...)
{
    const char *line;
    va_list args;

    va_start(args, format);
    line = arena_line(arena, max, format, args);
    va_end(args);
    return line;
}

TEST(a_line_lives_in_the_arena)
{
    const char *line;

    arena_init(&own, 1000000);
    line = line_in(&own, 100, "%s\n%d", "two", 2);
    CHECK(t, line);
    CHECK_TEXT(t, line, "two 2");
    line = line_in(&own, 8, "%s", "much too long");
    CHECK(t, line);
    CHECK_TEXT(t, line, "much...");
}
