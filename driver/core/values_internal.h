/*
 * values_internal.h: the part of the core's data that is about the values that workers store in the
 * job. Only core_internal.h includes this file; the rules about owners and units stand in
 * core_internal.h.
 */
#ifndef DRIVER_CORE_VALUES_INTERNAL_H
#define DRIVER_CORE_VALUES_INTERNAL_H

#include "base/vec.h"
#include "proto/value_table.h"

/* The last change of a value that a worker has made: a STORE with this number is only answered.
 * Owner: values.c. */
struct worker_values {
    uint64_t number;            /* the number of the call; 0: the worker has changed no value */
    char sum[VALUE_NUMBER_MAX]; /* the answer to the call if it was a STORE_ADD */
};

/* A STORE call of a worker that waits until its key has a value. If the worker or the round has
 * ended, the wait is removed later. */
struct value_wait {
    uint64_t incarnation, number, round;
    uint32_t channel;
    char *key; /* owned by this struct */
};

/* The values of the job and of its rounds. Owner: values.c. */
struct core_values {
    struct value_table table;
    struct VEC(struct value_wait) waits;
};

#endif
