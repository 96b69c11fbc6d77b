/*
 * report.c: the slots of reported values in a worker's page. worker/report.c writes them, and
 * agent/processes reads them. Invariant: a reader gets either one value that the worker has written
 * as a whole, or nothing.
 */
#include "proto/report.h"

#include "base/err.h"

#include <stdatomic.h>
#include <string.h>

#define READS 4 /* how often a slot is read again if the worker writes it meanwhile */

_Static_assert(sizeof(struct report) % sizeof(uint64_t) == 0, "a report is made of whole words");

bool report_name_is_good(const char *name)
{
    size_t length = strnlen(name, LIMIT_REPORT_NAME_BYTES + 1);

    for (size_t i = 0; i < length; i++) {
        char byte = name[i];

        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && !strchr("_-./:@%+", byte))
            return false;
    }
    return length >= 1 && length <= LIMIT_REPORT_NAME_BYTES;
}

uint64_t report_bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

double report_value_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Copies a report out of its slot. The words may belong to two values, if the worker writes
 * meanwhile; the caller compares `turn`. */
static void report_load(const struct report_slot *slot, struct report *ret_report)
{
    uint64_t words[REPORT_WORDS];

    for (size_t i = 0; i < REPORT_WORDS; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    memcpy(ret_report, words, sizeof(words));
}

/* Writes a report to the slot of its name, or to a free slot. A slot with an odd `turn` counts as
 * free: a program that was replaced by another one (exec) has left it half written, so it has no
 * value, and may have any name. */
int report_put(struct report_slot slots[LIMIT_REPORTS], const struct report *report)
{
    struct report_slot *slot = NULL;
    uint64_t words[REPORT_WORDS], turn;
    struct report present;

    for (size_t i = 0; i < LIMIT_REPORTS; i++) {
        bool is_free;

        turn = atomic_load_explicit(&slots[i].turn, memory_order_relaxed);
        is_free = !turn || turn % 2;
        report_load(&slots[i], &present);
        if (!is_free && !memcmp(present.name, report->name, sizeof(present.name))) {
            slot = &slots[i];
            break;
        }
        if (is_free && !slot)
            slot = &slots[i];
    }
    if (!slot)
        return HVD_E_LIMIT;
    turn = atomic_load_explicit(&slot->turn, memory_order_relaxed);
    memcpy(words, report, sizeof(words));
    atomic_store_explicit(&slot->turn, turn | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < REPORT_WORDS; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->turn, (turn | 1) + 1, memory_order_release);
    return 0;
}

/* Reads the report in a slot, which the worker may be writing, and returns how often its name was
 * reported. 0: there is no report, it is still being written after READS attempts, or the worker
 * has filled the slot with anything else. */
uint64_t report_get(const struct report_slot *slot, struct report *ret_report)
{
    struct report report;
    size_t length;

    for (int i = 0; i < READS; i++) {
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);

        if (!turn)
            return 0;
        report_load(slot, &report);
        atomic_thread_fence(memory_order_acquire);
        if (turn % 2 || atomic_load_explicit(&slot->turn, memory_order_relaxed) != turn)
            continue;
        length = strnlen(report.name, sizeof(report.name));
        if (length == sizeof(report.name) || !report_name_is_good(report.name))
            return 0;
        memset(report.name + length, 0, sizeof(report.name) - length);
        *ret_report = report;
        return turn / 2;
    }
    return 0;
}
