/*
 * judge.h: is the job whole again after a fault, and is nothing broken?
 *
 * Whole: the driver lives; every slot that is listed has one worker, which trains, in one round
 * that the driver, the steps and the processes agree on; a step was done in it; nothing else runs
 * than one driver, and an agent with its keeper on each host. Nothing broken: the trainers have
 * found nothing wrong (each step they compare their parameters and, at the end of an epoch, the sum
 * over all samples with what it has to be), steps only come back to one that may have been lost,
 * the journal agrees with itself, and nothing has leaked: processes, descriptors, memory, sockets,
 * files.
 */
#ifndef TESTS_CHAOS_JUDGE_H
#define TESTS_CHAOS_JUDGE_H

#include "tests/chaos/annals.h"
#include "tests/chaos/fault.h"

struct judge {
    struct annals annals;
    uint32_t driver_files, agent_files, worker_files, worker_memories; /* the most in peace */
    uint64_t sockets;         /* Unix sockets of the job in peace */
    size_t steps;             /* that were looked at */
    uint64_t step;            /* the last one, */
    int64_t step_us;          /* and when it was done */
    uint64_t round;           /* in which it was done */
    pid_t workers[SIGHT_MAX]; /* who trained before the fault */
    uint32_t worker_count;
    uint64_t rounds; /* that had begun before the fault */
};

/* Before there is a job, and once it trains in peace. */
void judge_open(struct judge *judge, const struct chaos *chaos);
int judge_settle(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;
void judge_close(struct judge *judge);

/* Before a fault: who trains now. */
void judge_look(struct judge *judge, struct chaos *chaos);

/* Until the job is whole, and a step was done after `since_us`; HVD_E_TIMEOUT with what is missing:
 * it hangs. HVD_E_LOST: its driver has ended. HVD_E_STATE: the campaign was broken off. */
int judge_whole(struct judge *judge, struct chaos *chaos, int64_t since_us, int64_t deadline_us,
                struct hvd_err *err) MUST_CHECK;

/* Once it is whole: HVD_E_MISMATCH with what is broken. With FAULT_COSTS_NOTHING also if anybody
 * was started anew, or a round was made. */
int judge_right(struct judge *judge, struct chaos *chaos, enum fault_cost cost,
                struct hvd_err *err) MUST_CHECK;

/* When the job has ended: nothing of it is left, and the audit of all samples says so too. */
int judge_end(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

#endif
