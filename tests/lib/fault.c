/*
 * fault.c: counts allocations and store writes, and makes the k-th of them fail. Torture runs a
 * case once for every k. Threads of the product ask too, so each field is atomic.
 */
#include "tests/lib/fault.h"

#include <stdatomic.h>

static struct {
    _Atomic uint64_t count;
    _Atomic uint64_t fail_at;
    atomic_bool held;
} faults[FAULT_KINDS];

const char *fault_name(enum fault_kind kind)
{
    static const char *const names[FAULT_KINDS] = { "allocation", "store write" };

    return names[kind];
}

void fault_arm(enum fault_kind kind, uint64_t k)
{
    faults[kind].count = 0;
    faults[kind].fail_at = k;
}

bool fault_hold(enum fault_kind kind, bool held)
{
    bool before = faults[kind].held;

    faults[kind].held = held;
    return before;
}

bool fault_now(enum fault_kind kind)
{
    if (faults[kind].held)
        return false;
    return ++faults[kind].count == faults[kind].fail_at;
}

uint64_t fault_count(enum fault_kind kind)
{
    return faults[kind].count;
}

bool fault_delivered(enum fault_kind kind)
{
    return faults[kind].fail_at && faults[kind].count >= faults[kind].fail_at;
}
