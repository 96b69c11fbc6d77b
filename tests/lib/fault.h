/*
 * fault.h: makes operations fail on purpose. Each kind of operation has a counter of its own; the
 * torture runner makes the k-th operation fail, for every k.
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

/* While held is true, an operation of this kind neither fails nor counts. Returns the value before.
 */
bool fault_hold(enum fault_kind kind, bool held);

/* Called by the faked operation; true: it must fail now. */
bool fault_now(enum fault_kind kind);

/* Operations of this kind since fault_arm; and whether the armed fault has happened. */
uint64_t fault_count(enum fault_kind kind);
bool fault_delivered(enum fault_kind kind);

#endif
