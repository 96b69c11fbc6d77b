/*
 * memory.h: memory without a name, which other processes of this machine open by the descriptor
 * that its maker keeps: nothing of it is left behind, however its users end.
 *
 * It never shrinks (a seal): what has been mapped can be read.
 */
#ifndef COLLECTIVES_SHM_MEMORY_H
#define COLLECTIVES_SHM_MEMORY_H

#include "base/err.h"

struct memory {
    uint8_t *at;
    size_t bytes;
    int fd; /* the maker's; -1 */
};

/* How another process finds it. A process number can have been taken by another since, and so can a
 * descriptor: device and inode tell. */
struct memory_place {
    int32_t pid, fd;
    uint64_t device, inode;
};

/* Zeroed, page-aligned; no page of it is touched. HVD_E_NOMEM, HVD_E_LIMIT, HVD_E_UNSUPPORTED. */
int memory_create(const char *name, size_t bytes, struct memory *ret_memory,
                  struct memory_place *ret_place, struct hvd_err *err) MUST_CHECK;

/* HVD_E_LOST: it is not there any more; HVD_E_DENIED; HVD_E_PROTO: it is not of memory_create. */
int memory_open(const struct memory_place *place, bool writable, struct memory *ret_memory,
                struct hvd_err *err) MUST_CHECK;

/* By its maker: what it holds from there on, in whole pages, is given back to the machine, whoever
 * has it mapped. They read zeros. */
void memory_empty(const struct memory *memory, size_t from);

/* Those who have mapped it keep it; nobody can open it any more. */
void memory_release(struct memory *memory);

#endif
