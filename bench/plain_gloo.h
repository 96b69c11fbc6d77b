/*
 * plain_gloo.h: Gloo as it comes: its store's keys, its full mesh, its device's thread, its
 * algorithms. Only what it publishes goes through memory that the processes share, so that the way
 * to a store costs nothing. Every failure here ends the process.
 */
#ifndef BENCH_PLAIN_GLOO_H
#define BENCH_PLAIN_GLOO_H

#include "base/base.h"

#define PLAIN_GLOO_MAX 32 /* processes */

#ifdef __cplusplus
extern "C" {
#endif

struct plain_gloo_store; /* shared with all processes that are forked after its creation */
struct plain_gloo_store *plain_gloo_store_create(void);
void plain_gloo_store_free(struct plain_gloo_store *store);

struct plain_gloo_device; /* one of a process: listens, and has a thread */
struct plain_gloo_device *plain_gloo_device_open(void);
void plain_gloo_device_close(struct plain_gloo_device *device);

/* A context of these processes. round: larger each time. */
struct plain_gloo;
struct plain_gloo *plain_gloo_connect(struct plain_gloo_device *device,
                                      struct plain_gloo_store *store, uint32_t round, uint32_t rank,
                                      uint32_t size);
void plain_gloo_free(struct plain_gloo *gloo);

/* In place, the sum. */
void plain_gloo_allreduce(struct plain_gloo *gloo, bool bcube, float *numbers, size_t count);

#ifdef __cplusplus
}
#endif
#endif
