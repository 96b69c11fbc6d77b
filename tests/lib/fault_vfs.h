/*
 * fault_vfs.h: a SQLite VFS over the system's own that can fail, and can die.
 *
 * Each step that changes a file is a point: a write, sync, truncation, deletion or creation, the
 * growth of shared memory, and, through the linker's --wrap, our own rename() and fsync(). At each
 * point fault.h (FAULT_STORE) may make the step fail; of a failing write the first half is done.
 * A hook, if there is one, is called before the step: that is where a crash test dies.
 */
#ifndef TESTS_LIB_FAULT_VFS_H
#define TESTS_LIB_FAULT_VFS_H

#include "base/base.h"

#define FAULT_VFS "hvd-fault"

/* Makes the VFS known to SQLite under that name. May be called again. */
void fault_vfs_use(void);

/* What is done while quiet is no point: it neither fails nor counts. */
void fault_vfs_quiet(bool quiet);

/* Called before each step with the number of points so far (1 = the first) and what it is. */
typedef void fault_vfs_hook_fn(void *arg, uint64_t point, const char *what);
void fault_vfs_set_hook(fault_vfs_hook_fn *hook, void *arg);

/* SQLite's own blocks from base/mem.h, before SQLite is first used; and all of them given back. */
void fault_vfs_route_memory(void);
void fault_vfs_shut_down(void);

#endif
