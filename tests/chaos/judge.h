/*
 * judge.h: decides whether the job is whole again after a fault, and whether anything is broken.
 *
 * The job is whole when the driver lives, each listed slot has one worker that trains in one round,
 * on which the driver, the steps and the processes agree, a step was done in that round, and no
 * other process runs than one driver, and an agent with its supervisor on each host. Nothing is
 * broken when the trainers have found no error (in each step they compare their parameters and, at
 * the end of an epoch, the sum over all samples with the right sum), when only steps were repeated
 * that may have been lost, when the events of the driver agree with each other, and when no
 * process, descriptor, memory, socket or file has leaked.
 */
#ifndef TESTS_CHAOS_JUDGE_H
#define TESTS_CHAOS_JUDGE_H

#include "tests/chaos/fault.h"
#include "tests/chaos/log_check.h"

#define JUDGE_LOGS 128 /* more faults than there are in the time of a line that is repeated */

struct judge {
    struct log_check check;
    /* the highest numbers that were open without faults */
    uint32_t front_files, driver_files, agent_files, worker_files, worker_memories;
    /* the job's Unix sockets without faults */
    uint64_t sockets;
    /* steps that were checked */
    size_t steps;
    /* the number of the last step */
    uint64_t step;
    /* when the last step was done */
    int64_t step_us;
    /* the round in which the last step was done */
    uint64_t round;
    /* the workers that trained before the fault */
    pid_t workers[PROC_SCAN_MAX];
    uint32_t worker_count;
    uint64_t rounds; /* the newest round before the fault */
    /* The length of driver.log before each of the last faults, and when that was. */
    struct {
        int64_t at_us;
        uint64_t length;
    } logs[JUDGE_LOGS];
    uint32_t log_count; /* modulo JUDGE_LOGS the next place */
    bool settled;       /* the fault before can cause no further line */
    /* When all processes with commits were killed, until a step is made; 0: they were not. `kept`
     * is the newest complete checkpoint of that moment. */
    int64_t lost_us;
    struct checkpoint_seen kept;
};

/* judge_open: before the job starts. judge_settle: when the job trains and no fault was struck yet.
 */
void judge_open(struct judge *judge, const struct chaos *chaos);
int judge_settle(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;
void judge_close(struct judge *judge);

/* Before a fault: notes which workers train now, and the end of the log. */
void judge_look(struct judge *judge, struct chaos *chaos);

/* Before a fault that must cost nothing: waits until the job is whole, the driver has handled the
 * present list of hosts, and no change is under way. So no round is charged to the fault that an
 * earlier event has caused. The errors are those of judge_whole and of judge_right. */
int judge_rest(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* Reads the errors that the trainers have found themselves. HVD_E_MISMATCH: there is one. */
int judge_wrong(const struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* The rounds that have begun since judge_look. */
uint64_t judge_rounds_since(const struct judge *judge, const struct chaos *chaos);

/* Waits until the job is whole and a step was done after `since_us`. HVD_E_TIMEOUT: the job hangs;
 * the text says what is missing. HVD_E_LOST: its driver has ended. HVD_E_STATE: the campaign was
 * broken off. */
int judge_whole(struct judge *judge, struct chaos *chaos, int64_t since_us, int64_t deadline_us,
                struct hvd_err *err) MUST_CHECK;

/* When the job is whole: 0, or HVD_E_MISMATCH with what is broken. With FAULT_COSTS_NOTHING a new
 * worker or a new round is an error too. */
int judge_right(struct judge *judge, struct chaos *chaos, enum fault_cost cost,
                struct hvd_err *err) MUST_CHECK;

/* When the job is whole: 0, or HVD_E_MISMATCH if a warning or error of driver.log names no victim
 * of the fault, or, after a quiet fault, accuses a part that was not hit.
 * *ret_named: the names that were found. */
int judge_blame(struct judge *judge, struct chaos *chaos, const struct fault *fault,
                uint32_t *ret_named, struct hvd_err *err) MUST_CHECK;

/* When the job has ended: checks that nothing of the job is left, and that the audit of all samples
 * finds no error. */
int judge_end(struct judge *judge, struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

#endif
