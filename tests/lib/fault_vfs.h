/*
 * fault_vfs.h: a SQLite VFS on top of the system's own, whose steps can fail, or end the process.
 *
 * Each step that changes a file is counted as a point: a write, sync, truncation, deletion or
 * creation, the growth of shared memory, and (through the linker's --wrap) the product's own
 * rename() and fsync(). At each point fault.h (FAULT_STORE) can make the step fail; a write that
 * fails has written its first half. A hook, if set, is called before the step; a crash test ends
 * the process there.
 */
#ifndef TESTS_LIB_FAULT_VFS_H
#define TESTS_LIB_FAULT_VFS_H

#include "base/base.h"

#define FAULT_VFS "hvd-fault"

/* Registers the VFS with SQLite under the name FAULT_VFS. May be called again. */
void fault_vfs_use(void);

/* A step while quiet is set is not a point: it neither fails nor counts. */
void fault_vfs_quiet(bool quiet);

/* The hook is called before each step, with the number of points so far (1: the first) and a name
 * of the step. */
typedef void fault_vfs_hook_fn(void *arg, uint64_t point, const char *what);
void fault_vfs_set_hook(fault_vfs_hook_fn *hook, void *arg);

/* route: SQLite takes its memory from base/mem.h; call it before SQLite is first used. shut_down:
 * SQLite gives all of it back. */
void fault_vfs_route_memory(void);
void fault_vfs_shut_down(void);

#endif
