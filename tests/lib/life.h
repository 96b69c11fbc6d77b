/*
 * life.h: runs a process that works on a database and dies at the k-th point at which a file
 * changes, for every k. It dies by a kill, and by a power failure, after which bytes that were not
 * synced are lost, all of them or some sectors.
 */
#ifndef TESTS_LIB_LIFE_H
#define TESTS_LIB_LIFE_H

#include "tests/lib/files.h"
#include "tests/lib/temp_db.h"

#define LIFE_ACKS_MAX 4096

/* One kind of process, and what must be true after its death. */
struct life {
    const char *name;
    /* Runs in a process of its own, on FAULT_VFS. Calls life_acknowledge for each thing that is
     * durable. 0 at its end. */
    int (*run)(const struct life *life, int ack_fd);
    /* Is everything there that was acknowledged? */
    bool (*holds)(const struct life *life, size_t acknowledged);
    const struct file_bytes *start; /* the database at the beginning; NULL: there is none */
    const void *own;
    size_t operations; /* how many there are, for the report */
    int checkpoint_pages;
};

void life_acknowledge(int fd);

/* Runs the process once for each point of death, and returns how often it has died. Ends the
 * program at the first death that loses something. */
unsigned life_die_everywhere(const struct life *life);

#endif
