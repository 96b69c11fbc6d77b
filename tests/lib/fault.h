/*
 * fault.h: the one object that makes things fail on purpose. Each kind of operation counts down
 * its own fault; the torture runner walks that countdown through every value.
 */
#ifndef TESTS_LIB_FAULT_H
#define TESTS_LIB_FAULT_H

#include "base/base.h"

enum fault_kind {
    FAULT_ALLOC, /* an allocation through base/mem.h */
    FAULT_STORE, /* a write, sync, truncate, rename or delete of a database file */
    FAULT_KINDS
};

const char *fault_name(enum fault_kind kind);

/* The k-th operation of this kind from now fails (1 = the next one); 0: none does. */
void fault_arm(enum fault_kind kind, uint64_t k);

/* While it is held, an operation of this kind neither fails nor counts. Returns what was. */
bool fault_hold(enum fault_kind kind, bool held);

/* Called by the faked operation: true when it is to fail now. */
bool fault_now(enum fault_kind kind);

/* Operations of this kind since it was last armed, and whether the fault was delivered. */
uint64_t fault_count(enum fault_kind kind);
bool fault_delivered(enum fault_kind kind);

#endif
