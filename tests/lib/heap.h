/*
 * heap.h: base/mem.h on a heap that counts its blocks and fails when fault.h says so.
 */
#ifndef TESTS_LIB_HEAP_H
#define TESTS_LIB_HEAP_H

#include "base/base.h"

void heap_use(void);      /* from here on every mem_alloc uses this heap */
size_t heap_blocks(void); /* blocks that are not freed yet */

#endif
