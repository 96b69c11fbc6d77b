/*
 * test_recorder.c: the flight recorder in a worker's page: the newest activities are kept in their
 * order; one that is half written is not read, also of a worker that died there; threads share it;
 * rubbish is left out.
 */
#include "base/err.h"
#include "base/limits.h"
#include "proto/page.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct page page;
static struct recorder *const recorder = &page.recorder;
static struct recorded recorded;

static uint64_t begin_one(const char *name, uint64_t number)
{
    struct activity activity = { .round = 2, .number = number, .bytes = 8, .began_us = 100 };

    memcpy(activity.name, name, strnlen(name, RECORDER_NAME_BYTES));
    return recorder_begin(recorder, &activity);
}

static void read_all(void)
{
    recorder_read(recorder, &recorded);
}

TEST(the_newest_are_kept_in_their_order)
{
    uint64_t numbers[3 * RECORDER_SLOTS];

    memset(&page, 0, sizeof(page));
    read_all();
    CHECK_INT(t, recorded.count, ==, 0);
    CHECK_INT(t, recorded.size, ==, 0);
    for (uint64_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        numbers[i] = begin_one("allreduce", i + 1);
        CHECK_INT(t, numbers[i], ==, i + 1);
        read_all();
        CHECK_INT(t, recorded.count, ==, i < RECORDER_SLOTS ? i + 1 : RECORDER_SLOTS);
        CHECK_INT(t, recorded.items[recorded.count - 1].number, ==, i + 1);
    }
    for (size_t i = 0; i < recorded.count; i++)
        CHECK_INT(t, recorded.items[i].number, ==, 2 * RECORDER_SLOTS + i + 1);
    /* an end that comes after its slot was taken changes nothing */
    recorder_end(recorder, numbers[0], 200, HVD_E_LOST);
    recorder_end(recorder, numbers[ARRAY_SIZE(numbers) - 1], 300, HVD_E_REVOKED);
    read_all();
    for (size_t i = 0; i + 1 < recorded.count; i++)
        CHECK_INT(t, recorded.items[i].ended_us, ==, 0);
    CHECK_INT(t, recorded.items[recorded.count - 1].ended_us, ==, 300);
    CHECK_INT(t, recorded.items[recorded.count - 1].code, ==, HVD_E_REVOKED);
    CHECK_TEXT(t, recorded.items[0].name, "allreduce");
    CHECK_INT(t, recorded.items[0].round, ==, 2);
    CHECK_INT(t, recorded.items[0].bytes, ==, 8);
    CHECK_INT(t, recorded.items[0].began_us, ==, 100);
out:;
}

TEST(place_and_step_are_there)
{
    memset(&page, 0, sizeof(page));
    recorder_set_place(recorder, 9, 3, 4);
    recorder_set_step(recorder, 17);
    read_all();
    CHECK_INT(t, recorded.rank, ==, 3);
    CHECK_INT(t, recorded.size, ==, 4);
    CHECK_INT(t, recorded.round, ==, 9);
    CHECK_INT(t, recorded.step, ==, 17);
    recorder_set_place(recorder, 9, 4, 4); /* no rank of that size */
    read_all();
    CHECK_INT(t, recorded.rank, ==, 0);
    CHECK_INT(t, recorded.size, ==, 0);
    recorder_set_place(recorder, 9, 0, LIMIT_WORKERS + 1);
    read_all();
    CHECK_INT(t, recorded.size, ==, 0);
    recorder_set_place(NULL, 9, 1, 2);
    recorder_set_step(NULL, 1);
    CHECK_INT(t, recorder_begin(NULL, &(struct activity){ .name = "x" }), ==, 0);
    recorder_end(NULL, 1, 1, 0);
out:;
}

/* A worker that dies while it writes a slot leaves an odd turn behind. No thread takes the slot
 * from a thread that may go on, and all others are used. */
TEST(a_half_written_activity_is_not_read)
{
    memset(&page, 0, sizeof(page));
    for (uint64_t i = 1; i <= 3; i++)
        CHECK_INT(t, begin_one("commit", i), ==, i);
    atomic_store(&recorder->slots[2].turn, 3);
    read_all();
    CHECK_INT(t, recorded.count, ==, 2);
    CHECK_INT(t, recorded.items[0].number, ==, 1);
    CHECK_INT(t, recorded.items[1].number, ==, 3);
    for (uint64_t i = 4; i <= 3 * RECORDER_SLOTS; i++)
        CHECK_INT(t, begin_one("commit", i), ==, i % RECORDER_SLOTS == 2 ? 0 : i);
    read_all();
    CHECK_INT(t, recorded.count, ==, RECORDER_SLOTS - 1);
out:;
}

TEST(rubbish_is_left_out)
{
    static const char *const bad[] = { "", "\x1b[31mred", "a\nb", "\xff",
                                       "123456789012345678901234" };

    memset(&page, 0, sizeof(page));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct activity activity = { .round = 1 };
        uint64_t words[ACTIVITY_WORDS];

        /* recorder_begin ends each name: a hostile worker writes as it likes */
        memcpy(activity.name, bad[i], strnlen(bad[i], sizeof(activity.name)));
        memcpy(words, &activity, sizeof(words));
        for (size_t k = 0; k < ACTIVITY_WORDS; k++)
            atomic_store(&recorder->slots[i].words[k], words[k]);
        atomic_store(&recorder->slots[i].turn, 2);
    }
    read_all();
    CHECK_INT(t, recorded.count, ==, 0);
    CHECK_INT(t, begin_one("step one", 1), ==, 1);
    read_all();
    CHECK_INT(t, recorded.count, ==, 1);
out:;
}

static void *record_many(void *name)
{
    for (uint64_t i = 1; i <= 20000; i++)
        recorder_end(recorder, begin_one(name, i), 200, 0);
    return NULL;
}

/* Each activity that is read while two threads write is whole: the number fits the name's thread,
 * and never falls. */
TEST_FLAGS(threads_share_it, TEST_NO_TORTURE)
{
    char names[2][8] = { "one", "two" };
    pthread_t threads[2];
    uint64_t newest[2] = { 0, 0 };

    memset(&page, 0, sizeof(page));
    for (int i = 0; i < 2; i++)
        CHECK_INT(t, pthread_create(&threads[i], NULL, record_many, names[i]), ==, 0);
    for (bool wrong = false; !wrong && (newest[0] < 20000 || newest[1] < 20000);) {
        bool ended = atomic_load(&recorder->count) == 40000;

        read_all();
        for (size_t i = 0; i < recorded.count; i++) {
            int which = !strcmp(recorded.items[i].name, "two");

            wrong |=
                strcmp(recorded.items[i].name, names[which]) != 0 || recorded.items[i].bytes != 8;
            if (recorded.items[i].number > newest[which])
                newest[which] = recorded.items[i].number;
        }
        if (wrong || ended)
            break;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    read_all();
    CHECK_INT(t, atomic_load(&recorder->count), ==, 40000);
    for (size_t i = 0; i < recorded.count; i++) {
        CHECK(t, !strcmp(recorded.items[i].name, "one") || !strcmp(recorded.items[i].name, "two"));
        CHECK_INT(t, recorded.items[i].bytes, ==, 8);
    }
    CHECK_INT(t, recorded.count, >, 0);
out:;
}
