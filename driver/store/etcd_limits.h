/*
 * etcd_limits.h: the maxima of a job's store in etcd; those of all other parts are in
 * base/limits.h.
 */
#ifndef DRIVER_STORE_ETCD_LIMITS_H
#define DRIVER_STORE_ETCD_LIMITS_H

#define LIMIT_ETCD_SERVERS     16
#define LIMIT_ETCD_VALUE_BYTES (512 * 1024)  /* etcd takes 1.5 MiB in one transaction */
#define LIMIT_ETCD_BASE_BYTES  (1024 * 1024) /* a journal that was compacted is one value */
#define LIMIT_ETCD_CHANGES     100           /* etcd takes 128 operations in one transaction */
/* the text of the writes that belong to one step */
#define LIMIT_ETCD_STEP_BYTES   (64 * 1024 * 1024)
#define LIMIT_ETCD_ANSWER_BYTES (16 * 1024 * 1024)

#endif
