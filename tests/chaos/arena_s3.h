/*
 * arena_s3.h: the server of S3 to which the arena's job writes its checkpoints (--checkpoints s3).
 * It is moto behind the front of tests/s3/s3_server.py, as two processes: the front checks
 * signatures and makes faults, and may be killed while the objects stay. One server runs at a time.
 */
#ifndef TESTS_CHAOS_ARENA_S3_H
#define TESTS_CHAOS_ARENA_S3_H

#include "base/err.h"

#define ARENA_S3_WHERE  "s3://kept/chaos"
#define ARENA_S3_ID     "AKTEST" /* the front knows this key */
#define ARENA_S3_SECRET "sEcret/+123"

/* Starts the server with an empty bucket. HVD_E_UNSUPPORTED: moto is not installed. */
int arena_s3_open(struct hvd_err *err) MUST_CHECK;
void arena_s3_close(void);

/* "http://127.64.48.57:41234" */
const char *arena_s3_url(void);

/* Sets what the front does wrong from now on with so many of 100 requests; the kinds are those of
 * s3_server.py, with commas. "": nothing. */
int arena_s3_fault(const char *kinds, unsigned percent, uint64_t seed,
                   struct hvd_err *err) MUST_CHECK;

/* The number of faults that the present front has made. */
int arena_s3_faults(uint64_t *ret_count, struct hvd_err *err) MUST_CHECK;

/* Kills the front; starts it again, at the same address. */
void arena_s3_kill(void);
int arena_s3_again(struct hvd_err *err) MUST_CHECK;

/* Makes the folder anew, with the objects of the job. alone: waits first until no client is
 * connected, and all that clients have sent is carried out. */
int arena_s3_copy(const char *folder, bool alone, struct hvd_err *err) MUST_CHECK;

#endif
