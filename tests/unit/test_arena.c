#include "base/arena.h"
#include "tests/lib/test.h"

#include <string.h>

static void gives_zeroed_aligned_memory(struct test *t)
{
    struct arena arena;

    arena_init(&arena, 100000);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *block = arena_alloc(&arena, bytes);

        CHECK(t, block);
        CHECK_INT(t, (uintptr_t)block % _Alignof(max_align_t), ==, 0);
        for (size_t i = 0; i < bytes; i++)
            CHECK_INT(t, block[i], ==, 0);
        memset(block, 0xff, bytes);
    }
    CHECK(t, arena_alloc_array(&arena, 1000, 8));
out:
    arena_release(&arena);
    arena_release(NULL);
}

static void stops_at_its_cap(struct test *t)
{
    struct arena arena;

    arena_init(&arena, 10000);
    CHECK(t, arena_alloc(&arena, 4000));
    CHECK(t, arena_alloc(&arena, 5800));
    CHECK(t, !arena.full);
    CHECK(t, !arena_alloc(&arena, 1000));
    CHECK(t, arena.full && !arena.starved);
    CHECK(t, arena.taken <= 10000);
    arena_release(&arena);
    CHECK(t, !arena.full);
    CHECK(t, arena_alloc(&arena, 10000));
out:
    arena_release(&arena);
}

static void tells_full_from_starved(struct test *t)
{
    struct arena arena;
    bool got;

    arena_init(&arena, 1000000);
    got = arena_alloc(&arena, 10) != NULL;
    CHECK(t, got == !arena.starved && !arena.full);
    CHECK(t, got);
    CHECK(t, !arena_alloc(&arena, SIZE_MAX));
    CHECK(t, arena.full);
    arena.full = false;
    CHECK(t, !arena_alloc_array(&arena, SIZE_MAX / 2, 4));
    CHECK(t, arena.full && !arena.starved);
out:
    arena_release(&arena);
}

TESTS(CASE(gives_zeroed_aligned_memory), CASE(stops_at_its_cap), CASE(tells_full_from_starved))
