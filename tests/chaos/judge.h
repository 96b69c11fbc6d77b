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

#include "tests/chaos/fault.h"

struct judge {
    uint32_t driver_files, agent_files, worker_files, worker_memories; /* the most in peace */
    uint64_t round; /* the last one in which all was well */
    size_t events;  /* bytes of the events that were read */
};

/* Of a job that has come up in peace. */
int judge_begin(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* Until it is whole, or HVD_E_TIMEOUT with what is missing: it hangs. */
int judge_whole(struct judge *judge, struct chaos *chaos, int64_t deadline_us,
                struct hvd_err *err) MUST_CHECK;

/* Once it is whole: HVD_E_MISMATCH with what is broken. */
int judge_right(struct judge *judge, struct chaos *chaos, const struct fault *fault,
                struct hvd_err *err) MUST_CHECK;

/* When the job has ended: nothing of it is left, and the audit of all samples says so too. */
int judge_end(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

#endif
