/*
 * test_mem.c: base/mem: zeroed blocks, overflow of sizes, texts that are copied, and the
 * operations that a test may put in place.
 */
#include "base/mem.h"
#include "tests/lib/heap.h"
#include "tests/lib/test.h"

#include <string.h>

TEST(gives_zeroed_blocks)
{
    static const char zeroes[64];
    char *block = mem_zalloc(sizeof(zeroes));
    char *array = mem_zalloc_array(8, 8);

    CHECK(t, block && array);
    CHECK(t, !memcmp(block, zeroes, sizeof(zeroes)));
    CHECK(t, !memcmp(array, zeroes, sizeof(zeroes)));
out:
    mem_free(block);
    mem_free(array);
}

TEST(no_bytes_are_a_block_too)
{
    void *blocks[5] = { NULL };
    void *resized;

    blocks[0] = mem_alloc(0);
    blocks[1] = mem_zalloc(0);
    blocks[2] = mem_zalloc_array(0, 8);
    blocks[3] = mem_zalloc_array(8, 0);
    blocks[4] = mem_alloc(10);
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        CHECK(t, blocks[i]);
    resized = mem_resize(blocks[4], 0);
    CHECK(t, resized);
    blocks[4] = resized;
out:
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        mem_free(blocks[i]);
}

TEST(resize_keeps_the_bytes)
{
    char *block = mem_resize(NULL, 4);
    char *bigger;

    CHECK(t, block);
    memcpy(block, "abc", 4);
    bigger = mem_resize(block, 4000);
    CHECK(t, bigger);
    block = bigger;
    CHECK_TEXT(t, block, "abc");
out:
    mem_free(block);
}

TEST(array_refuses_what_overflows)
{
    CHECK(t, !mem_zalloc_array(SIZE_MAX / 2 + 1, 2));
    CHECK(t, !mem_zalloc_array(2, SIZE_MAX / 2 + 1));
    CHECK(t, !mem_zalloc_array(SIZE_MAX, SIZE_MAX));
out:;
}

TEST(copies_are_terminated)
{
    char *whole = mem_strdup("slot");
    char *part = mem_strndup("slot", 2);
    char *binary = mem_strndup("a\0b", 3);
    char *empty = mem_strdup("");

    CHECK(t, whole && part && binary && empty);
    CHECK_TEXT(t, whole, "slot");
    CHECK_TEXT(t, part, "sl");
    CHECK(t, !memcmp(binary, "a\0b", 4));
    CHECK_TEXT(t, empty, "");
out:
    mem_free(whole);
    mem_free(part);
    mem_free(binary);
    mem_free(empty);
}

TEST(nothing_can_be_copied_too)
{
    char *copy = mem_strndup(NULL, 0);

    CHECK_TEXT(t, copy, "");
    CHECK(t, !mem_strndup("x", SIZE_MAX));
out:
    mem_free(copy);
}

struct counter {
    size_t allocs;
    size_t frees;
    char block[16];
};

static void *count_alloc(void *arg, size_t bytes)
{
    struct counter *counter = arg;

    counter->allocs++;
    return bytes <= sizeof(counter->block) ? counter->block : NULL;
}

static void *count_resize(void *arg, void *block, size_t bytes)
{
    (void)block;
    return count_alloc(arg, bytes);
}

static void count_free(void *arg, void *block)
{
    struct counter *counter = arg;

    if (block == counter->block)
        counter->frees++;
}

TEST(operations_are_swapped_and_copied)
{
    struct counter counter = { 0 };
    struct mem_ops ops = { count_alloc, count_resize, count_free, &counter, NULL };
    void *block;

    mem_set_ops(&ops);
    memset(&ops, 0, sizeof(ops));
    block = mem_alloc(10);
    CHECK(t, block == counter.block);
    CHECK(t, mem_resize(block, 16) == block);
    CHECK(t, !mem_zalloc(17));
    CHECK(t, !mem_strndup("much too long for it", 20));
    CHECK_INT(t, counter.allocs, ==, 4);
    mem_free(NULL);
    CHECK_INT(t, counter.frees, ==, 0);
    mem_free(block);
    CHECK_INT(t, counter.frees, ==, 1);
out:
    heap_use();
}

TEST(null_brings_libc_back)
{
    size_t before = heap_blocks();
    char *block;
    char *bigger;

    mem_set_ops(NULL);
    block = mem_strdup("from libc");
    CHECK(t, block);
    CHECK_INT(t, heap_blocks(), ==, before);
    bigger = mem_resize(block, 100000);
    CHECK(t, bigger);
    block = bigger;
    CHECK_TEXT(t, block, "from libc");
out:
    mem_free(block);
    heap_use();
}
