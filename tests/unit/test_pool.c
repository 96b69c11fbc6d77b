/*
 * Memory of one process that other processes read (hvd_alloc): where the memory is, that the
 * readers see its bytes, and that neither an old nor a wrong locator does harm. A locator tells a
 * reader where the memory is; a view is a reader's mapping.
 */
#include "base/rng.h"
#include "collectives/shm/memory.h"
#include "collectives/shm/pool.h"
#include "os/thread.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 60000 /* nothing here takes that long */
#define MANY    100

TEST(is_zeroed_and_aligned)
{
    uint8_t *memory[4] = { 0 };
    const size_t bytes[4] = { 0, 1, 4096, 100000 };

    for (size_t i = 0; i < 4; i++) {
        memory[i] = pool_alloc(bytes[i], NULL);
        CHECK(t, memory[i]);
        CHECK_INT(t, (uintptr_t)memory[i] % 4096, ==, 0);
        for (size_t k = 0; k < bytes[i]; k++)
            CHECK_INT(t, memory[i][k], ==, 0);
        memset(memory[i], 0xff, bytes[i]);
    }
out:
    for (size_t i = 0; i < 4; i++)
        pool_free(memory[i]);
}

TEST(refuses_too_much)
{
    struct hvd_err err = { .text = "" };
    void *memory = NULL;

    memory = pool_alloc(SIZE_MAX, &err);
    CHECK(t, !memory);
    CHECK_INT(t, err.code, ==, HVD_E_NOMEM);
    memory = pool_alloc(SIZE_MAX / 2, &err);
    CHECK(t, !memory);
    CHECK_INT(t, err.code, ==, HVD_E_NOMEM);
    memory = pool_alloc((size_t)1 << 60, &err);
    CHECK(t, !memory);
    CHECK_INT(t, err.code, ==, HVD_E_NOMEM);
    CHECK_HAS(t, err.text, "HVD_CPU_OPERATIONS=tcp");
out:
    pool_free(memory);
}

TEST(locates_ranges)
{
    struct pool_locator locator;
    uint8_t *memory = NULL, other = 0;

    CHECK(t, !pool_locate(&other, 1, &locator)); /* the pool is empty */
    memory = pool_alloc(8192, NULL);
    CHECK(t, memory);
    CHECK(t, pool_locate(memory, 8192, &locator));
    CHECK(t, locator.at == 0 && locator.bytes == 8192 && locator.pid == getpid());
    CHECK(t, pool_locate(memory + 100, 92, &locator));
    CHECK(t, locator.at == 100 && locator.bytes == 92);
    CHECK(t, pool_locate(memory + 8192, 0, &locator));
    CHECK(t, !pool_locate(memory + 8191, 2, &locator));
    CHECK(t, !pool_locate(memory + 1, SIZE_MAX, &locator));
    CHECK(t, !pool_locate(memory - 1, 2, &locator));
    CHECK(t, !pool_locate(&other, 1, &locator));
    CHECK(t, !pool_locate(NULL, 0, &locator));
out:
    pool_free(memory);
}

/* The blocks are found in any order of their addresses; freed blocks are not found. */
TEST(finds_the_right_block_of_many)
{
    uint8_t *memory[MANY] = { 0 };
    struct pool_locator locators[MANY], locator;
    struct rng rng;

    rng_seed(&rng, 1);
    for (size_t i = 0; i < MANY; i++) {
        memory[i] = pool_alloc(4096 + 4096 * (i % 7), NULL);
        CHECK(t, memory[i]);
        CHECK(t, pool_locate(memory[i], 1, &locators[i]));
    }
    for (size_t turn = 0; turn < (size_t)4 * MANY; turn++) {
        size_t i = rng_below(&rng, MANY);

        if (memory[i]) {
            CHECK(t, pool_locate(memory[i] + 4095, 1, &locator));
            CHECK_INT(t, locator.at, ==, 4095);
            CHECK(t, locator.inode == locators[i].inode && locator.fd == locators[i].fd);
            if (turn % 3 == 0) {
                uint8_t *freed = memory[i];

                pool_free(freed);
                memory[i] = NULL;
                CHECK(t, !pool_locate(freed, 1, &locator));
            }
        }
    }
out:
    for (size_t i = 0; i < MANY; i++)
        pool_free(memory[i]);
}

TEST_FLAGS(free_panics_on_foreign_memory, TEST_NO_TORTURE)
{
    uint8_t *memory = pool_alloc(8192, NULL);
    uint8_t other = 0;

    CHECK(t, memory);
    CHECK_PANICS(t, "is not an address that hvd_alloc", pool_free(&other));
    CHECK_PANICS(t, "is not an address that hvd_alloc", pool_free(memory + 4096));
out:
    pool_free(memory);
}

/* ---- views ---- */

TEST(views_see_and_do_not_write)
{
    struct pool_views *views = NULL;
    uint8_t *memory = pool_alloc(10000, NULL);
    struct pool_locator locator;
    const void *seen = NULL, *again = NULL;

    CHECK(t, memory);
    CHECK_OK(t, pool_views_create(&views, NULL));
    CHECK(t, pool_locate(memory + 5000, 6, &locator));
    CHECK_OK(t, pool_view(views, &locator, &seen, NULL));
    memcpy(memory + 5000, "hello", 6);
    CHECK_TEXT(t, seen, "hello");
    CHECK(t, seen != memory + 5000);
    CHECK_OK(t, pool_view(views, &locator, &again, NULL));
    CHECK(t, again == seen);
    CHECK(t, pool_locate(memory, 1, &locator));
    CHECK_OK(t, pool_view(views, &locator, &again, NULL));
    CHECK(t, (const uint8_t *)again + 5000 == seen);
    CHECK(t,
          mprotect((uint8_t *)(uintptr_t)again, 4096, PROT_READ | PROT_WRITE) && errno == EACCES);
out:
    pool_views_free(views);
    pool_free(memory);
}

TEST(lying_locators)
{
    struct pool_views *views = NULL;
    uint8_t *memory = pool_alloc(4096, NULL);
    struct pool_locator locator, lie;
    struct hvd_err err = { .text = "" };
    const void *seen = NULL;
    struct memory other = { .fd = -1 };
    struct memory_place place;

    CHECK(t, memory);
    CHECK_OK(t, pool_views_create(&views, NULL));
    CHECK(t, pool_locate(memory, 4096, &locator));
    for (int pass = 0; pass < 2; pass++) { /* before and after it has been mapped */
        lie = locator;
        lie.at = 1;
        CHECK_CODE(t, pool_view(views, &lie, &seen, &err), HVD_E_PROTO);
        lie.at = UINT64_MAX;
        CHECK_CODE(t, pool_view(views, &lie, &seen, &err), HVD_E_PROTO);
        lie.at = 4096;
        lie.bytes = UINT64_MAX - 4095;
        CHECK_CODE(t, pool_view(views, &lie, &seen, &err), HVD_E_PROTO);
        CHECK_OK(t, pool_view(views, &locator, &seen, &err));
    }
    lie = locator;
    lie.inode++;
    CHECK_CODE(t, pool_view(views, &lie, &seen, &err), HVD_E_LOST);
    lie = locator;
    lie.pid = 0;
    CHECK_CODE(t, pool_view(views, &lie, &seen, &err), HVD_E_PROTO);
    for (size_t bytes = 100; bytes <= 8192; bytes += 8092) {
        CHECK_OK(t, memory_create("other", bytes, &other, &place, NULL));
        lie = (struct pool_locator){ place.pid, place.fd, place.device, place.inode, 0, 1 };
        CHECK_CODE(t, pool_view(views, &lie, &seen, &err), HVD_E_PROTO);
        CHECK_HAS(t, err.text, "not made by hvd_alloc");
        memory_release(&other);
    }
out:
    memory_release(&other);
    pool_views_free(views);
    pool_free(memory);
}

/* The owner frees memory that a view shows: the view reads zeros, and later locators work. */
TEST(freed_while_a_view_shows_the_memory)
{
    struct pool_views *views = NULL;
    uint8_t *memory = pool_alloc(4096, NULL), *next = NULL;
    struct pool_locator old, locator;
    const void *seen = NULL, *next_seen = NULL;

    CHECK(t, memory);
    CHECK_OK(t, pool_views_create(&views, NULL));
    CHECK(t, pool_locate(memory, 6, &old));
    CHECK_OK(t, pool_view(views, &old, &seen, NULL));
    memcpy(memory, "hello", 6);
    pool_free(memory);
    memory = NULL;
    CHECK_TEXT(t, seen, ""); /* there is something to be read, but no memory is taken by it */
    next = pool_alloc(4096, NULL);
    CHECK(t, next);
    memcpy(next, "there", 6);
    CHECK(t, pool_locate(next, 6, &locator));
    CHECK_OK(t, pool_view(views, &locator, &next_seen, NULL));
    CHECK_TEXT(t, next_seen, "there");
    CHECK_TEXT(t, seen, "");
    pool_views_trim(views);
    CHECK_OK(t, pool_view(views, &locator, &seen, NULL));
    CHECK(t, seen == next_seen);
    CHECK_CODE(t, pool_view(views, &old, &seen, NULL), HVD_E_LOST);
    pool_views_trim(views);
    CHECK_TEXT(t, next_seen, "there");
out:
    pool_views_free(views);
    pool_free(next);
    pool_free(memory);
}

TEST(many_views)
{
    struct pool_views *views = NULL;
    uint8_t *memory[MANY] = { 0 };
    struct pool_locator locator;
    const void *seen;

    CHECK_OK(t, pool_views_create(&views, NULL));
    for (size_t i = 0; i < MANY; i++) {
        memory[i] = pool_alloc(4096, NULL);
        CHECK(t, memory[i]);
        memory[i][7] = (uint8_t)i;
    }
    for (size_t turn = 0; turn < (size_t)3 * MANY; turn++) {
        size_t i = turn * 7 % MANY;

        if (turn == (size_t)2 * MANY) {
            for (size_t k = 0; k < MANY; k += 2) {
                pool_free(memory[k]);
                memory[k] = NULL;
            }
            pool_views_trim(views);
        }
        if (!memory[i])
            continue;
        CHECK(t, pool_locate(&memory[i][7], 1, &locator));
        CHECK_OK(t, pool_view(views, &locator, &seen, NULL));
        CHECK_INT(t, *(const uint8_t *)seen, ==, i);
    }
out:
    pool_views_free(views);
    for (size_t i = 0; i < MANY; i++)
        pool_free(memory[i]);
}

/* ---- between processes ---- */

/* Allocates memory, writes its locator to `out`, and waits to be killed. */
static void own(int out)
{
    uint8_t *memory = pool_alloc(100000, NULL);
    struct pool_locator locator;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!memory || !pool_locate(memory + 50000, 6, &locator))
        _exit(1);
    memcpy(memory + 50000, "hello", 6);
    if (write(out, &locator, sizeof(locator)) != (ssize_t)sizeof(locator))
        _exit(1);
    for (;;)
        (void)pause();
}

static bool told(int from, struct pool_locator *ret_locator)
{
    struct pollfd readable = { .fd = from, .events = POLLIN };

    return poll(&readable, 1, LONG_MS) == 1 &&
           read(from, ret_locator, sizeof(*ret_locator)) == (ssize_t)sizeof(*ret_locator);
}

TEST_FLAGS(views_outlive_a_killed_owner, TEST_NO_TORTURE)
{
    struct pool_views *views = NULL, *late = NULL;
    struct pool_locator locator;
    struct hvd_err err = { .text = "" };
    const void *seen = NULL, *again = NULL;
    int ends[2] = { -1, -1 };
    pid_t pid = -1;

    CHECK_OK(t, pool_views_create(&views, NULL));
    CHECK_OK(t, pool_views_create(&late, NULL));
    CHECK_INT(t, pipe(ends), ==, 0);
    pid = fork();
    if (pid == 0)
        own(ends[1]);
    CHECK(t, pid > 0);
    CHECK(t, told(ends[0], &locator));
    CHECK_OK(t, pool_view(views, &locator, &seen, &err));
    CHECK_TEXT(t, seen, "hello");
    (void)kill(pid, SIGKILL);
    CHECK_INT(t, waitpid(pid, NULL, 0), ==, pid);
    pid = -1;
    CHECK_TEXT(t, seen, "hello");
    CHECK_OK(t, pool_view(views, &locator, &again, &err));
    CHECK_CODE(t, pool_view(late, &locator, &again, &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "has ended");
out:
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    close(ends[1]);
    pool_views_free(views);
    pool_views_free(late);
}

/* ---- threads ---- */

static void *use(void *arg)
{
    uint64_t *wrong = arg;

    for (int i = 0; i < MANY; i++) {
        uint8_t *memory = pool_alloc(4096, NULL);
        struct pool_locator locator;

        *wrong += !memory || !pool_locate(memory, 4096, &locator);
        if (memory)
            memory[4095] = 1;
        pool_free(memory);
    }
    return NULL;
}

TEST_FLAGS(threads_may_use_the_pool, TEST_NO_TORTURE)
{
    uint64_t wrong[4] = { 0 };
    pthread_t threads[4];
    size_t started = 0;

    while (started < 4 && !thread_start(&threads[started], 0, use, &wrong[started]))
        started++;
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
    CHECK_INT(t, started, ==, 4);
    CHECK_INT(t, wrong[0] + wrong[1] + wrong[2] + wrong[3], ==, 0);
out:
    return;
}
