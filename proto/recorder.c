/*
 * recorder.c: the flight recorder in a worker's page. worker/, through timeline/, writes it, and
 * agent/processes reads it. Invariants: at most one thread writes a slot at a time; an activity
 * that was read is one that a worker has begun, and its name is printable ASCII, also if a hostile
 * worker has filled the page.
 */
#include "proto/recorder.h"

#include "base/limits.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define READS          4 /* attempts to read a slot that is being written */

#define WORD_OF(field) (offsetof(struct activity, field) / sizeof(uint64_t))

_Static_assert(sizeof(struct activity) % sizeof(uint64_t) == 0, "an activity is whole words");

/* A thread that was held up for RECORDER_SLOTS activities still owns its slot, so the slot is
 * left to it, and the new activity is not recorded. */
uint64_t recorder_begin(struct recorder *recorder, const struct activity *activity)
{
    struct activity fresh = *activity;
    uint64_t words[ACTIVITY_WORDS];
    struct recorder_slot *slot;
    uint64_t number, turn;

    if (!recorder)
        return 0;
    number = atomic_fetch_add_explicit(&recorder->count, 1, memory_order_relaxed) + 1;
    slot = &recorder->slots[number % RECORDER_SLOTS];
    turn = atomic_load_explicit(&slot->turn, memory_order_relaxed);
    if (turn % 2 ||
        !atomic_compare_exchange_strong_explicit(&slot->turn, &turn, 2 * number - 1,
                                                 memory_order_relaxed, memory_order_relaxed))
        return 0;
    atomic_thread_fence(memory_order_release);
    fresh.name[RECORDER_NAME_BYTES] = '\0';
    fresh.ended_us = 0;
    fresh.code = 0;
    memcpy(words, &fresh, sizeof(words));
    for (size_t i = 0; i < ACTIVITY_WORDS; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->turn, 2 * number, memory_order_release);
    return number;
}

/* `ended_us` is stored last and alone makes the activity an ended one, so the slot is whole at each
 * moment, and `turn` stays even: a worker that dies here loses nothing. */
void recorder_end(struct recorder *recorder, uint64_t number, int64_t now_us, int code)
{
    struct recorder_slot *slot;

    if (!recorder || !number)
        return;
    slot = &recorder->slots[number % RECORDER_SLOTS];
    if (atomic_load_explicit(&slot->turn, memory_order_relaxed) != 2 * number)
        return;
    atomic_store_explicit(&slot->words[WORD_OF(code)], (uint64_t)(int64_t)code,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->words[WORD_OF(ended_us)], (uint64_t)now_us, memory_order_release);
}

void recorder_set_place(struct recorder *recorder, uint64_t round, uint32_t rank, uint32_t size)
{
    if (!recorder)
        return;
    atomic_store_explicit(&recorder->round, round, memory_order_relaxed);
    atomic_store_explicit(&recorder->place, (uint64_t)rank << 32 | size, memory_order_relaxed);
}

void recorder_set_step(struct recorder *recorder, uint64_t step)
{
    if (recorder)
        atomic_store_explicit(&recorder->step, step, memory_order_relaxed);
}

/* Reads a slot. Returns the number of its activity; 0: it has none, or it is being written, or its
 * contents are not an activity. */
static uint64_t recorder_get(const struct recorder_slot *slot, struct activity *ret_activity)
{
    uint64_t words[ACTIVITY_WORDS];
    size_t length;

    for (int reads = 0; reads < READS; reads++) {
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);

        for (size_t i = 0; i < ACTIVITY_WORDS; i++)
            words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (turn % 2 || atomic_load_explicit(&slot->turn, memory_order_relaxed) != turn)
            continue;
        memcpy(ret_activity, words, sizeof(words));
        length = strnlen(ret_activity->name, sizeof(ret_activity->name));
        for (size_t i = 0; i < length; i++)
            if (ret_activity->name[i] < ' ' || ret_activity->name[i] > '~')
                return 0;
        memset(ret_activity->name + length, 0, sizeof(ret_activity->name) - length);
        return length >= 1 && length <= RECORDER_NAME_BYTES ? turn / 2 : 0;
    }
    return 0;
}

/* Sorts by insertion: the slots are in order but for the place where the newest one follows the
 * oldest, unless a hostile worker has filled them. */
void recorder_read(const struct recorder *recorder, struct recorded *ret_recorded)
{
    uint64_t place = atomic_load_explicit(&recorder->place, memory_order_relaxed);
    uint64_t numbers[RECORDER_SLOTS], number;
    struct activity activity;

    *ret_recorded = (struct recorded){
        .rank = (uint32_t)(place >> 32),
        .size = (uint32_t)place,
        .round = atomic_load_explicit(&recorder->round, memory_order_relaxed),
        .step = atomic_load_explicit(&recorder->step, memory_order_relaxed),
    };
    if (ret_recorded->size > LIMIT_WORKERS || ret_recorded->rank >= ret_recorded->size)
        ret_recorded->rank = ret_recorded->size = 0;
    for (size_t i = 0; i < RECORDER_SLOTS; i++) {
        size_t at = ret_recorded->count;

        number = recorder_get(&recorder->slots[i], &activity);
        if (!number)
            continue;
        for (; at > 0 && numbers[at - 1] > number; at--) {
            numbers[at] = numbers[at - 1];
            ret_recorded->items[at] = ret_recorded->items[at - 1];
        }
        numbers[at] = number;
        ret_recorded->items[at] = activity;
        ret_recorded->count++;
    }
}
