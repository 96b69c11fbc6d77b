/*
 * plan.h: the options of ./dev chaos.
 */
#ifndef TESTS_CHAOS_PLAN_H
#define TESTS_CHAOS_PLAN_H

#include "base/opt.h"

enum plan_where { PLAN_LOOPBACK, PLAN_NETWORKS };
enum plan_store { PLAN_FILE, PLAN_ETCD };
enum plan_checkpoints { PLAN_DIRECTORY, PLAN_S3 };

struct chaos_plan {
    uint64_t faults; /* the number of faults */
    /* the time of the campaign; it ends with whichever is first. 0: only the number counts */
    int64_t duration_us;
    uint64_t seed;        /* 0: drawn, and printed */
    unsigned where;       /* enum plan_where */
    unsigned store;       /* enum plan_store */
    unsigned checkpoints; /* enum plan_checkpoints */
    uint64_t hosts;       /* loopback addresses from 127.0.0.1 on, or namespaces */
    uint64_t slots;       /* on each host */
    uint64_t step_ms;
    uint64_t state_kib; /* size of state beside the part that the trainer verifies */
    unsigned slip;      /* enum slip: an error that the trainers make on purpose */
    /* names of faults, separated by commas; NULL: all faults that are possible here */
    char *only;
    char *report;        /* the folder for report.json and report.html */
    int64_t patience_us; /* a job that is not whole after this time hangs */
    int64_t leak_us;     /* what is still open after this time is a leak; 0: patience_us */
    int64_t lease_us;    /* the driver's --lease; faults that have to exceed it last longer */
    bool list;           /* only list the faults */
    bool keep;           /* keep the job's folder; after a violation it is always kept */

    char *trace;        /* a trace to replay, instead of faults */
    uint64_t speed;     /* the trace is replayed this many times as fast */
    char *command;      /* a shell command that is a launcher, used instead of hvd-elastic */
    uint64_t max_hosts; /* the most hosts of the trace that are used */
    int64_t notice_us;  /* a host that leaves is drained this long before (hvd-elastic only) */
    bool settle;        /* a change waits until the job trains on all hosts that are there */
    bool help;

    struct opt_set set; /* the fields from here on are not in the table */
};

/* false: the options were refused, or help was printed; the process must end with *ret_status.
 * Release the plan in both cases. */
bool chaos_plan_read(struct chaos_plan *plan, int argc, char **argv, int *ret_status);
void chaos_plan_release(struct chaos_plan *plan);

#endif
