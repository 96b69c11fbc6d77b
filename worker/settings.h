/*
 * settings.h: what the environment says to the worker of its collectives. hvd-elastic sets it, by
 * its options of the same names.
 *
 *     HVD_CPU_OPERATIONS       auto, gloo or tcp
 *     HVD_FIXED_ORDER          0 or 1
 *     HVD_FUSION_THRESHOLD_MB  how much of several buffers travels as one; 0: the least
 */
#ifndef WORKER_SETTINGS_H
#define WORKER_SETTINGS_H

#include "collectives/coll.h"

/* All but the host. What is not set, or empty, is as it is without hvd-elastic. HVD_E_INVAL: names
 * the variable, its value, and what it may be. */
int settings_read(struct coll_options *ret_options, struct hvd_err *err) MUST_CHECK;

#endif
