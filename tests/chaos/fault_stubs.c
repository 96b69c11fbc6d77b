/*
 * Tables of faults that have no file yet. Whoever writes one takes its two lines out here.
 */
#include "tests/chaos/fault.h"

const struct fault network_faults[1];
const size_t network_fault_count;
