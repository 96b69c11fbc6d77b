/*
 * s3_storage.h: checkpoints in S3, behind state/checkpoint/storage.h.
 */
#ifndef STATE_REMOTE_S3_STORAGE_H
#define STATE_REMOTE_S3_STORAGE_H

#include "state/checkpoint/storage.h"
#include "state/remote/s3_call.h"

/* Opens "s3://BUCKET/PREFIX". make: one request finds out whether the bucket can be used. */
int s3_storage_open(const char *where, bool make, struct checkpoint_store **ret_store,
                    struct hvd_err *err) MUST_CHECK;

/* The same with other limits, for tests. */
int s3_storage_open_with(const char *where, bool make, const struct s3_limits *limits,
                         struct checkpoint_store **ret_store, struct hvd_err *err) MUST_CHECK;

#endif
