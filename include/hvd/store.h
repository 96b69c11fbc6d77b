/*
 * store.h: small values that the workers of a job share, each under a key: addresses, counters,
 * ids. The driver keeps them, so a value outlives the worker that has set it, and the driver too:
 * a change is durable before any worker is told of it. A call takes one message to the driver and
 * back, and waits while the job has no driver. For tensors there are the collectives of hvd.h,
 * whose words and rules this header shares.
 *
 * Any thread may call these functions at any time after hvd_init; a change by several threads of
 * one worker is made one after the other.
 *
 *     HVD_E_STATE    HVD_STORE_ROUND before the first round
 *     HVD_E_REVOKED  HVD_STORE_ROUND: the round is over
 *     HVD_E_LOST     the agent of this host is gone
 *     HVD_E_INVAL    a key or value is missing, too long, or the key has control characters
 *     HVD_E_LIMIT    the values of the job would take more than HVD_STORE_BYTES
 *     HVD_E_UNSUPPORTED  the driver or the agent is older than this library
 * After HVD_E_REVOKED or HVD_E_LOST the change may have been made, or not.
 */
#ifndef HVD_STORE_H
#define HVD_STORE_H

#include "hvd/hvd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HVD_STORE_KEY_BYTES   255  /* longest key, without its NUL */
#define HVD_STORE_VALUE_BYTES 8192 /* of one value */
/* of all values of a job: each counts its bytes, its key and 64 bytes */
#define HVD_STORE_BYTES (1 << 20)

/* How long a value lives. The same key may have a value in both. */
typedef enum hvd_store_scope {
    /* the value lives until it is deleted or the job ends; a driver that takes the job over knows
     * the value */
    HVD_STORE_JOB = 0,
    /* the value lives until the present round ends, as it does at each change of the members */
    HVD_STORE_ROUND = 1
} hvd_store_scope;

HVD_API int hvd_store_set(hvd_store_scope scope, const char *key, const void *value, size_t bytes);

/* Copies the value into `value`, which has room for `room` bytes (NULL and 0: the value is not
 * copied). *ret_bytes is its length; ret_bytes may be NULL. HVD_E_NOTFOUND: the key has no value.
 * HVD_E_FULL: the room is too small, and nothing is copied. */
HVD_API int hvd_store_get(hvd_store_scope scope, const char *key, void *value, size_t room,
                          size_t *ret_bytes);

/* Waits until the key has a value, then does what hvd_store_get does. HVD_E_TIMEOUT: it has none
 * after timeout_us; below 0: no limit. Seven threads of a worker can wait at the same time; an
 * eighth one waits for its turn first. */
HVD_API int hvd_store_wait(hvd_store_scope scope, const char *key, int64_t timeout_us, void *value,
                           size_t room, size_t *ret_bytes);

/* Adds to a value, which is a decimal number ("-17"); a key without a value counts as 0. *ret_sum
 * is the new value; ret_sum may be NULL. HVD_E_INVAL: the value is no number. */
HVD_API int hvd_store_add(hvd_store_scope scope, const char *key, int64_t amount, int64_t *ret_sum);

/* Sets the value if the present one is `expected`; expected NULL: if the key has none.
 * HVD_E_MISMATCH: the key has another value. HVD_E_NOTFOUND: the key has none. */
HVD_API int hvd_store_compare_set(hvd_store_scope scope, const char *key, const void *expected,
                                  size_t expected_bytes, const void *value, size_t bytes);

/* HVD_E_NOTFOUND: the key has no value. */
HVD_API int hvd_store_delete(hvd_store_scope scope, const char *key);

#ifdef __cplusplus
}
#endif
#endif
