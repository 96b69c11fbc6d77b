/*
 * Tables of faults that have no file yet. Whoever writes one takes its two lines out here.
 */
#include "tests/chaos/fault.h"

const struct fault discovery_faults[1], machine_faults[1];
const size_t discovery_fault_count, machine_fault_count;
