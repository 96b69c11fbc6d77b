/*
 * fault.h: the faults that a campaign can cause. A fault strikes, lasts for a time that it chooses,
 * and relents; then the job has to become whole again (judge.h).
 */
#ifndef TESTS_CHAOS_FAULT_H
#define TESTS_CHAOS_FAULT_H

#include "base/rng.h"
#include "tests/chaos/arena.h"
#include "tests/chaos/blame.h"
#include "tests/chaos/checkpoints.h"
#include "tests/chaos/proc_scan.h"
#include "tests/chaos/steps.h"

#define FAULT_VICTIMS 8
#define FAULT_TEXT    160

/* The cost that a fault may have for the job. */
enum fault_cost {
    FAULT_COSTS_A_ROUND, /* one round or more: a process dies, or a host comes or goes */
    FAULT_COSTS_NOTHING  /* no new round and no new worker: the training continues */
};

/* A fault that costs nothing only if it is over in time. On a busy machine the program that undoes
 * the fault may be late; then the fault may cost a round. */
enum fault_over {
    FAULT_OVER_ANY_TIME,
    FAULT_OVER_BEFORE_LEASE, /* before the lease, with a margin */
    FAULT_OVER_BEFORE_STALL  /* before --stall-shutdown, with TCP's delay */
};

struct chaos {
    struct arena arena;
    struct steps steps;
    struct proc_scan scan; /* the processes before the fault */
    struct rng rng;
    bool hurried;       /* the job is not whole yet after the fault before */
    struct blame blame; /* the victims of this fault and of the one before */

    /* When a fault has killed all processes that had commits; 0: none has. `kept` was the newest
     * complete checkpoint then. Cleared by the judge, after the fault. */
    int64_t lost_us;
    struct checkpoint_seen kept;

    /* The fields below belong to the present fault and are cleared before each. */
    char deed[FAULT_TEXT];        /* the victims as text: "127.0.0.2:1#17, 127.0.0.3:0#9" */
    int64_t lasts_us;             /* from the strike until relent; set by strike */
    pid_t victims[FAULT_VICTIMS]; /* frozen or starved processes, which relent has to restore */
    uint32_t victim_count;
    int hosts[FAULT_VICTIMS]; /* hosts that are cut off or not listed */
    uint32_t cut_count;
    uint64_t looks; /* runs of the discovery script before the fault (arena_looks) */
    void *own;      /* data of the fault; relent frees it */
};

struct fault {
    const char *name; /* "worker-kill" */
    const char *what; /* a phrase for --list and docs/chaos.md */
    enum fault_cost cost;
    enum fault_over over; /* for FAULT_COSTS_NOTHING */
    uint32_t weight;      /* how often the fault is chosen, compared with other faults */

    /* Each fault has one of both. `names`: what a warning or error of the driver's log has to say,
     * with the victims (blame.h). `quiet`: the reason why no operator has to hear of the fault;
     * then no warning or error may name a part of the job that was not hit. */
    const char *names;
    const char *quiet;
    const char *names_etcd; /* in place of `names` for a job that is kept in etcd; NULL: `names` */
    /* A line that the driver says once a minute: it may be older than the fault. */
    bool names_each_minute;

    /* NULL: the fault is possible here. Else the reason why not: "only root can ..." */
    const char *(*missing)(const struct chaos *chaos);

    /* HVD_DONE: there is no victim now; the campaign picks another fault. */
    int (*strike)(struct chaos *chaos, struct hvd_err *err);

    /* Undoes the fault; NULL: there is nothing to undo. Also called when the campaign is broken
     * off. */
    int (*relent)(struct chaos *chaos, struct hvd_err *err);
};

/* A fault of the catalog and, as its body, its strike. The linker collects the entries of the
 * section, so a faults_*.c belongs to the sources of the program itself. */
#define FAULT(function, title, ...)                                         \
    static int function(struct chaos *chaos, struct hvd_err *err);          \
    static const struct fault function##_fault = { .name = (title),         \
                                                   .strike = function,      \
                                                   __VA_ARGS__ };           \
    static const struct fault *const function##_entry                       \
        __attribute__((section("chaos_faults"), used)) = &function##_fault; \
    static int function(__attribute__((unused)) struct chaos *chaos,        \
                        __attribute__((unused)) struct hvd_err *err)

size_t fault_count(void);
const struct fault *fault_at(size_t index);
const struct fault *fault_named(const char *name, size_t length);

/* For strikes: fault_note adds a victim to the text ("127.0.0.2:1#17") and remembers the victim,
 * which the log has to name. fault_note_harmed: the log has to name the process only if it ends.
 * fault_note_host adds a host. fault_blame adds a victim only for the judge, and fault_say only
 * text. fault_allow: the log may name this, and need not. */
void fault_note(struct chaos *chaos, const struct proc_info *process);
void fault_note_harmed(struct chaos *chaos, const struct proc_info *process);
void fault_note_host(struct chaos *chaos, int host);
void fault_blame(struct chaos *chaos, enum blame_kind kind, const char *name);
void fault_allow(struct chaos *chaos, enum blame_kind kind, const char *name);
PRINTF_LIKE(2, 3) void fault_say(struct chaos *chaos, const char *format, ...);

/* The cost that the fault may have when it has lasted for so long. */
enum fault_cost fault_cost_of(const struct chaos *chaos, const struct fault *fault,
                              int64_t lasted_us);

/* Sends SIGCONT to the victims that still live. */
void fault_wake(struct chaos *chaos);

#endif
