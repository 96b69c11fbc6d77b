/*
 * s3_storage.h: checkpoints in S3, behind state/checkpoint/storage.h.
 */
#ifndef STATE_REMOTE_S3_STORAGE_H
#define STATE_REMOTE_S3_STORAGE_H

#include "state/checkpoint/storage.h"
#include "state/remote/s3_call.h"

/* Opens "s3://BUCKET/PREFIX". `test` true: one request finds out whether the bucket can be used;
 * false: no request is sent. No bucket is ever made. */
int s3_storage_open(const char *where, bool test, struct checkpoint_store **ret_store,
                    struct hvd_err *err) MUST_CHECK;

/* As s3_storage_open, with other times and sizes; for tests. */
int s3_storage_open_with(const char *where, bool test, const struct s3_limits *limits,
                         struct checkpoint_store **ret_store, struct hvd_err *err) MUST_CHECK;

#endif
