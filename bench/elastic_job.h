/*
 * elastic_job.h: a job of the real hvd-elastic on hosts of this machine. Its workers (board_worker)
 * write their steps on a board, which is read here.
 */
#ifndef BENCH_ELASTIC_JOB_H
#define BENCH_ELASTIC_JOB_H

#include "bench/board.h"

#include <sys/types.h>

#define ELASTIC_JOB_WORKERS 64

struct elastic_plan {
    uint32_t hosts; /* 127.0.0.1 and the addresses after it */
    uint32_t slots; /* of each host */
    uint32_t state_mib;
    uint32_t step_us; /* how long a worker rests in each step */
    uint32_t boot_ms; /* how long it boots */
    /* what a worker does in its steps: a MODE of board_worker.c ("commit", "check", "time",
     * "device", "compute", "device-report", "compute-report") */
    const char *mode;
    /* more options of hvd-elastic, ended by NULL; NULL: none */
    const char *const *options;
};

#define ELASTIC_JOB_OPTIONS 16

struct elastic_job {
    struct elastic_plan plan;
    char folder[64];
    struct board *board;
    pid_t driver;
    uint64_t round; /* the last one that was awaited */
    size_t count;   /* workers that train in it */
    uint64_t incarnations[ELASTIC_JOB_WORKERS];
};

/* Starts the job and waits until all workers train. elastic_job_end is called after a failure too.
 */
int elastic_job_begin(struct elastic_job *job, const struct elastic_plan *plan,
                      struct hvd_err *err) MUST_CHECK;

/* Stops the job, waits for its end, removes the folder. Again: nothing. */
void elastic_job_end(struct elastic_job *job);

/* Changes the number of hosts that the job may use. */
int elastic_job_hosts(struct elastic_job *job, uint32_t hosts, struct hvd_err *err) MUST_CHECK;

/* Waits for a round after the last awaited one, of so many workers (0: of any number), in which
 * each worker has done a step. */
int elastic_job_await(struct elastic_job *job, size_t count, struct hvd_err *err) MUST_CHECK;

/* Waits until the first worker has done so many more blocks (board.h), and adds up their time. */
int elastic_job_blocks(const struct elastic_job *job, uint64_t count, int64_t *ret_us,
                       struct hvd_err *err) MUST_CHECK;

/* Runs `hvd-elastic VERB` for the job, and waits for its end. An exit code other than 0 is
 * HVD_E_STATE. */
int elastic_job_ask(const struct elastic_job *job, const char *verb,
                    struct hvd_err *err) MUST_CHECK;

/* Returns how many lines of the driver's log have this text. */
size_t elastic_job_logged(const struct elastic_job *job, const char *text);

/* Finds in the driver's log the address behind this text: HOST:PORT of "TEXTHOST:PORT/...". */
int elastic_job_address(const struct elastic_job *job, const char *text, char *address, size_t size,
                        struct hvd_err *err) MUST_CHECK;

/* Returns the processor time that the driver and the process in front of it have used so far. */
int64_t elastic_job_driver_us(const struct elastic_job *job);

struct board_round *elastic_job_round(const struct elastic_job *job, uint64_t incarnation,
                                      uint64_t number);

#endif
