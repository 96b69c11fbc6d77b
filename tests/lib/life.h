/*
 * life.h: a process that works on a database and dies at the k-th point where a file changes, for
 * every k of its life: killed, and killed by a power failure, after which what was not synced is
 * gone wholly, or in parts and sectors.
 */
#ifndef TESTS_LIB_LIFE_H
#define TESTS_LIB_LIFE_H

#include "tests/lib/files.h"

#define LIFE_ACKS_MAX 4096

/* The database: a name in a directory of its own, which life_begin makes and life_end removes. */
extern char life_path[128];
void life_begin(void);
void life_end(void);

/* A way to live, and what must be found afterwards. */
struct life {
    const char *name;
    /* In a process of its own, on FAULT_VFS. Says each thing that is acknowledged. 0 at its end. */
    int (*run)(const struct life *life, int ack_fd);
    bool (*holds)(const struct life *life, size_t acknowledged);
    const struct file_bytes *start; /* NULL: without a file */
    const void *own;
    size_t operations; /* for the report */
    int checkpoint_pages;
};

void life_acknowledge(int fd);

/* Removes the database and all that is beside it. */
void life_remove_files(void);

/* All deaths of one life; how many were died. Ends the program at the first that loses something.
 */
unsigned life_die_everywhere(const struct life *life);

#endif
