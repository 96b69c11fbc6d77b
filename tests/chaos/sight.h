/*
 * sight.h: the processes of the arena at this moment, and what they hold. From /proc, by the mark
 * in their environment.
 */
#ifndef TESTS_CHAOS_SIGHT_H
#define TESTS_CHAOS_SIGHT_H

#include "tests/chaos/arena.h"

#define SIGHT_MAX 1024

enum sight_kind { SIGHT_DRIVER, SIGHT_KEEPER, SIGHT_AGENT, SIGHT_WORKER, SIGHT_OTHER };

struct sight_process {
    enum sight_kind kind;
    pid_t pid, parent;
    int host;             /* index in the arena; -1: none, or unknown */
    uint32_t slot;        /* of a worker, */
    uint64_t incarnation; /* and its incarnation */
    char state;           /* as in /proc: R S D T Z; a zombie counts as gone */
    uint32_t files;       /* open descriptors */
    uint32_t memories;    /* memfds that it maps */
    uint32_t unreaped;    /* children that have ended and were not waited for */
    char name[16];        /* comm */
};

struct sight {
    struct sight_process processes[SIGHT_MAX];
    uint32_t count;
};

/* Processes that end while one looks are left out. */
void sight_take(struct sight *sight, const struct arena *arena);

uint32_t sight_count(const struct sight *sight, enum sight_kind kind);

/* One of that kind by chance, on that host (-1: any), or NULL. */
struct rng;
const struct sight_process *sight_pick(const struct sight *sight, enum sight_kind kind, int host,
                                       struct rng *rng);

/* For people: a line for each. */
struct buf;
void sight_show(const struct sight *sight, struct buf *out);

#endif
