/*
 * proc_scan.h: the processes of the arena at this moment, and what each of them holds open. They
 * are found in /proc by the mark in their environment.
 */
#ifndef TESTS_CHAOS_PROC_SCAN_H
#define TESTS_CHAOS_PROC_SCAN_H

#include "tests/chaos/arena.h"

#define PROC_SCAN_MAX 1024

/* PROC_FRONT: the parent of the driver */
enum proc_kind { PROC_FRONT, PROC_DRIVER, PROC_KEEPER, PROC_AGENT, PROC_WORKER, PROC_OTHER };

struct proc_info {
    enum proc_kind kind;
    pid_t pid, parent;
    int host;             /* index in the arena; -1: none, or unknown */
    uint32_t slot;        /* only for a worker */
    uint64_t incarnation; /* only for a worker */
    char state;           /* as in /proc: R S D T Z; a zombie counts as ended */
    uint32_t files;       /* open descriptors */
    uint64_t files_most;  /* how many it may open: the soft limit */
    uint32_t memories;    /* memfds that it maps */
    uint32_t unreaped;    /* children that have ended and were not reaped */
    char name[16];        /* comm */
};

struct proc_scan {
    struct proc_info processes[PROC_SCAN_MAX];
    uint32_t count;
};

/* Scans /proc. A process that ends during the scan is left out. */
void proc_scan_take(struct proc_scan *scan, const struct arena *arena);

uint32_t proc_scan_count(const struct proc_scan *scan, enum proc_kind kind);

/* A random process of this kind on this host (-1: any host), or NULL. */
struct rng;
const struct proc_info *proc_scan_pick(const struct proc_scan *scan, enum proc_kind kind, int host,
                                       struct rng *rng);

/* Appends a line for each process, for the reader of a log. */
struct buf;
void proc_scan_show(const struct proc_scan *scan, struct buf *out);

#endif
