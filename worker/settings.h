/*
 * settings.h: what the environment says to the worker of its collectives and its commits.
 * hvd-elastic sets it, by its options of the same names.
 *
 *     HVD_CPU_OPERATIONS       auto, gloo or tcp
 *     HVD_FIXED_ORDER          0 or 1
 *     HVD_FUSION_THRESHOLD_MB  how much of several buffers travels as one; 0: the least
 *     HVD_GPU_OPERATIONS       auto, nccl or cpu
 *     HVD_GPU_TIMEOUT          how long a GPU may take to end what it was told to end: "10s"
 *     HVD_COMMIT_TO            both, host or device
 */
#ifndef WORKER_SETTINGS_H
#define WORKER_SETTINGS_H

#include "collectives/coll.h"

/* All but the host. What is not set, or empty, is as it is without hvd-elastic. HVD_E_INVAL: names
 * the variable, its value, and what it may be. */
int settings_read(struct coll_options *ret_options, struct hvd_err *err) MUST_CHECK;

/* Where a commit of entries in device memory goes. */
enum commit_to {
    COMMIT_TO_BOTH,  /* to a copy on the device, and from there to the host beside the training */
    COMMIT_TO_HOST,  /* straight to the host, which takes no memory on the device */
    COMMIT_TO_DEVICE /* to one of two copies there; to the host when a round ends */
};
/* Likewise. */
int settings_read_commit_to(enum commit_to *ret_to, struct hvd_err *err) MUST_CHECK;

#endif
