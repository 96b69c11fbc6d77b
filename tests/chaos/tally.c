/*
 * tally.c: computes what the faults of each kind have cost: median, 90 % and 99 %, maximum and sum
 * of the pauses, the rounds, and the repeated steps.
 */
#include "tests/chaos/tally.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 1024

static int by_time(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct tally_kind *)left)->name,
                  ((const struct tally_kind *)right)->name);
}

/* The least time that `percent` of a hundred times do not exceed. */
static int64_t rank(const int64_t *sorted, size_t count, size_t percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}

struct tally_times tally_times(int64_t *times, size_t count)
{
    struct tally_times of = { .sum_us = 0 };

    if (count == 0)
        return of;
    qsort(times, count, sizeof(*times), by_time);
    for (size_t i = 0; i < count; i++)
        of.sum_us += times[i];
    of.median_us = rank(times, count, 50);
    of.p90_us = rank(times, count, 90);
    of.p99_us = rank(times, count, 99);
    of.most_us = times[count - 1];
    return of;
}

/* Adds up the costs of the faults of this kind (all: of every fault). times: memory for their
 * times. */
static void add_up(struct tally_kind *kind, const struct record *record, bool all, int64_t *times)
{
    size_t whole = 0;
    size_t count = 0;

    for (size_t i = 0; i < record->fault_count; i++) {
        const struct record_fault *fault = &record->faults[i];

        if (!all && strcmp(fault->name, kind->name) != 0)
            continue;
        times[count++] = fault->pause_us > 0 ? fault->pause_us : 0;
        kind->hangs += fault->hung;
        kind->violations += fault->violation[0] && !fault->hung;
        kind->repeated += fault->repeated;
        kind->rounds += fault->rounds;
        kind->named += fault->named;
        kind->quiet |= fault->quiet;
    }
    kind->count = count;
    kind->pause = tally_times(times, count);
    for (size_t i = 0; i < record->fault_count; i++) {
        const struct record_fault *fault = &record->faults[i];

        if (!fault->hung && (all || !strcmp(fault->name, kind->name)))
            times[whole++] = fault->whole_us;
    }
    kind->whole = tally_times(times, whole);
}

static bool is_known(const struct tally *tally, const char *name)
{
    for (size_t i = 0; i < tally->count; i++)
        if (!strcmp(tally->kinds[i].name, name))
            return true;
    return false;
}

static int name_kinds(struct tally *tally, const struct record *record)
{
    for (size_t i = 0; i < record->fault_count; i++) {
        const char *name = record->faults[i].name;
        int rc;

        if (is_known(tally, name))
            continue;
        rc = vec_reserve(&tally->kinds, &tally->room, tally->count, 1, KINDS_MAX,
                         sizeof(*tally->kinds));
        if (rc)
            return rc;
        tally->kinds[tally->count] = (struct tally_kind){ .count = 0 };
        snprintf(tally->kinds[tally->count].name, sizeof(tally->kinds->name), "%s", name);
        tally->count++;
    }
    if (tally->count > 0)
        qsort(tally->kinds, tally->count, sizeof(*tally->kinds), by_name);
    return 0;
}

int tally_take(struct tally *tally, const struct record *record)
{
    int64_t *times = mem_zalloc_array(record->fault_count + 1, sizeof(*times));
    int rc;

    memset(tally, 0, sizeof(*tally));
    if (!times)
        return HVD_E_NOMEM;
    rc = name_kinds(tally, record);
    if (!rc) {
        for (size_t i = 0; i < tally->count; i++)
            add_up(&tally->kinds[i], record, false, times);
        add_up(&tally->all, record, true, times);
    }
    mem_free(times);
    return rc;
}

size_t tally_find(const struct tally *tally, const char *name)
{
    size_t at = 0;

    while (at + 1 < tally->count && strcmp(tally->kinds[at].name, name) != 0)
        at++;
    return at;
}

void tally_release(struct tally *tally)
{
    if (!tally)
        return;
    mem_free(tally->kinds);
    memset(tally, 0, sizeof(*tally));
}
