/*
 * store_mem.h: a blacklist store in memory, whose writes fail when fault.h (FAULT_STORE) says so.
 * Closing keeps what is stored, as a disk would, until the store is released.
 */
#ifndef TESTS_LIB_STORE_MEM_H
#define TESTS_LIB_STORE_MEM_H

#include "base/vec.h"
#include "blacklist/store.h"

struct store_mem {
    struct blacklist_store store;
    struct VEC(struct blacklist_record) records;
    struct VEC(struct blacklist_event) events; /* oldest first */
    size_t writes;                             /* that succeeded */
};

void store_mem_init(struct store_mem *mem);
void store_mem_release(struct store_mem *mem);

#endif
