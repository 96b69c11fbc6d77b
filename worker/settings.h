/*
 * settings.h: what the environment says about a worker's collectives and commits. hvd-elastic sets
 * these variables, from its options of the same names.
 *
 *     HVD_CPU_OPERATIONS       auto, gloo or tcp
 *     HVD_DATA_SECURITY        auto, encrypted, authenticated or none
 *     HVD_FIXED_ORDER          0 or 1
 *     HVD_FUSION_THRESHOLD_MB  how much of several buffers travels as one message; 0: nothing
 *     HVD_GPU_OPERATIONS       auto, nccl or cpu
 *     HVD_GPU_TIMEOUT          how long a GPU may take to end work that was cancelled: "10s"
 *     HVD_COMMIT_TO            both, host or device
 *     HVD_THREAD_AFFINITY      the core of the session's thread, "3"; or one for each slot, "0,8"
 *     HVD_DISABLE_NVTX_RANGES  0 or 1
 *
 * The variables of other launchers (mpirun, srun ...) say whether one of them started this process
 * as one of several.
 */
#ifndef WORKER_SETTINGS_H
#define WORKER_SETTINGS_H

#include "collectives/coll.h"

/* Reads all options of the collectives except `host`, which the caller sets. HVD_E_INVAL: the err
 * names the variable, its value, and the allowed values. */
int settings_read(struct coll_options *ret_options, struct hvd_err *err) MUST_CHECK;

/* Reads HVD_THREAD_AFFINITY; of a list of cores it takes the item with the number HVD_SLOT.
 * *ret_core is -1 if no core is given. HVD_E_INVAL: the err names the variable, its value, and
 * the allowed values. */
int settings_read_core(int *ret_core, struct hvd_err *err) MUST_CHECK;

/* Where a commit of entries in device memory is stored. */
enum commit_to {
    /* both: the commit is first a copy on the device, and a thread copies it to the host while the
     * training goes on */
    COMMIT_TO_BOTH,
    COMMIT_TO_HOST, /* the commit goes directly to host memory, and needs no device memory */
    /* the commit stays in one of two copies on the device, and is copied to host memory when the
     * round ends */
    COMMIT_TO_DEVICE
};
/* Reads HVD_COMMIT_TO. HVD_E_INVAL: the err names the variable, its value, and the allowed
 * values. */
int settings_read_commit_to(enum commit_to *ret_to, struct hvd_err *err) MUST_CHECK;

/* Reads HVD_DISABLE_NVTX_RANGES. *ret_ranges is true: a running profiler is shown the worker's
 * rounds, steps, commits and collectives. HVD_E_INVAL: the err names the variable and its value. */
int settings_read_ranges(bool *ret_ranges, struct hvd_err *err) MUST_CHECK;

/* Checks that a process without an agent may train. HVD_E_INVAL: mpirun, horovodrun, srun,
 * torchrun, blaunch, pbsdsh or a similar launcher started this process as one of several, and
 * HVD_ALONE is not 1: each process would train as a job of its own. */
int settings_check_alone(struct hvd_err *err) MUST_CHECK;

#endif
