/*
 * plan.h: what ./dev chaos was asked for.
 */
#ifndef TESTS_CHAOS_PLAN_H
#define TESTS_CHAOS_PLAN_H

#include "base/opt.h"

enum plan_where { PLAN_LOOPBACK, PLAN_NETWORKS };

struct chaos_plan {
    uint64_t faults;     /* so many, or */
    int64_t duration_us; /* for so long, whichever ends first; 0: only by count */
    uint64_t seed;       /* 0: made up, and said */
    unsigned where;      /* enum plan_where */
    uint64_t hosts;      /* 127.0.0.1 and those after it, or namespaces */
    uint64_t slots;      /* of each */
    uint64_t step_ms;
    uint64_t state_kib;  /* ballast beside what the trainer verifies */
    unsigned slip;       /* enum slip: what the trainers do wrong on purpose */
    char *only;          /* names of faults, with commas; NULL: all that can be done here */
    char *report;        /* the folder of report.json and report.html */
    int64_t patience_us; /* a job that is not whole so long after a fault hangs */
    bool list;           /* say what faults there are, and end */
    bool keep;           /* the job's folder, in any case; after a violation it is kept anyway */

    char *trace;        /* replay this instead */
    uint64_t speed;     /* so many times as fast */
    char *command;      /* a shell command that is a launcher, instead of hvd-elastic */
    uint64_t max_hosts; /* hosts of the trace that are used at most */
    int64_t notice_us;  /* a host that goes is drained so long before (hvd-elastic only) */
    bool help;

    struct opt_set set; /* what follows is not in the table */
};

/* False: it has been refused or answered, and the process ends with *ret_status. To be released
 * either way. */
bool chaos_plan_read(struct chaos_plan *plan, int argc, char **argv, int *ret_status);
void chaos_plan_release(struct chaos_plan *plan);

#endif
