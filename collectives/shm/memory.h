/*
 * memory.h: shared memory without a name. Other processes of this machine open it through its
 * creator's file descriptor, so nothing stays behind, however the processes end. The memory is
 * sealed against shrinking: memory that has been mapped can always be read.
 */
#ifndef COLLECTIVES_SHM_MEMORY_H
#define COLLECTIVES_SHM_MEMORY_H

#include "base/err.h"

struct memory {
    uint8_t *at;
    size_t bytes;
    int fd; /* the creator's descriptor; -1: none: another process has created the memory */
};

/* How another process finds the memory. The process number and the descriptor may have been reused
 * since; device and inode show whether it is still the same file. */
struct memory_place {
    int32_t pid, fd;
    uint64_t device, inode;
};

/* Creates memory: zeroed and page-aligned; a page takes memory of the machine at its first use.
 * HVD_E_NOMEM: no memory is left; HVD_E_LIMIT: too many files are open; HVD_E_UNSUPPORTED: the
 * kernel refuses such memory. */
int memory_create(const char *name, size_t bytes, struct memory *ret_memory,
                  struct memory_place *ret_place, struct hvd_err *err) MUST_CHECK;

/* Maps memory that another process has created. HVD_E_LOST: the memory no longer exists;
 * HVD_E_DENIED: this process may not open it; HVD_E_PROTO: the file was not made by
 * memory_create. */
int memory_open(const struct memory_place *place, bool writable, struct memory *ret_memory,
                struct hvd_err *err) MUST_CHECK;

/* Called by the creator: gives the pages from offset `from` on back to the machine, even if other
 * processes have mapped them; these processes then read zeros from these pages. */
void memory_empty(const struct memory *memory, size_t from);

/* Closes the memory. Processes that have mapped it keep their mapping; no other process can open it
 * any more. */
void memory_release(struct memory *memory);

#endif
