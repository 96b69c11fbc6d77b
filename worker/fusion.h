/*
 * fusion.h: automatic fusion of started requests: small allreduces of all ranks, one started after
 * the other, become one batch, and a batch is one operation.
 *
 *     hvd_start ──► open batch ──closed──► queue ──► the thread of requests.c
 *
 * All ranks must cut their requests into the same batches, and no message says how. So a batch is
 * closed only by what all ranks do in the same order, never by a time or by what has arrived:
 *
 *     - the batch is full. When all earlier requests were waited for, the next batch has one
 *       request, so nothing delays it; after each full batch the next batch has room for
 *       FUSION_GROWTH times as many requests;
 *     - the batch has as many bytes as 1/FUSION_SHARE of --fusion-threshold-mb;
 *     - the next request is of another kind, type, op, scale or memory, or above 1/FUSION_SMALL of
 *       the threshold, or uses a buffer of the batch; this request may then be the first of the
 *       next batch;
 *     - the program waits for a request of the batch, or tests it;
 *     - the program makes a collective that waits, a commit, or a check.
 *
 * If two ranks close a batch at different places after all, the fingerprints of the operations
 * differ, as the number of requests and the size of each is part of them: HVD_E_MISMATCH.
 *
 * In a round with groups no requests are fused: a rank outside a group does not see the group's
 * calls, so it could not tell where they close a batch. Groups that their members alone have opened
 * are unknown to the other ranks, which go on fusing; so requests of such a group are made before
 * the open batch, and decide nothing about it.
 */
#ifndef WORKER_FUSION_H
#define WORKER_FUSION_H

#include "worker/requests.h"

/* A batch is closed as soon as it has 1/FUSION_SHARE of --fusion-threshold-mb: a larger batch would
 * gain little, not fit into the processor's caches, and delay numbers that could travel while the
 * program computes. */
#define FUSION_SHARE 64
/* A request above 1/FUSION_SMALL of --fusion-threshold-mb is always alone: to move its numbers
 * takes longer than the fixed costs of an operation, which fusion would save. */
#define FUSION_SMALL 1024
/* after each full batch the next one has room for 4 times as many requests: 1, 4, 16, 64, 256. So
 * hundreds of requests need only a few operations */
#define FUSION_GROWTH 4
/* a bit in the number of a batch. It is set in a batch of one request whose group its members alone
 * have opened, so that the number is none of the batches that all ranks make */
#define FUSION_APART (UINT64_C(1) << 63)

/* The caller of each of these functions holds the lock of struct rounds. */

/* Begins a new count of requests; the next batch has one request. All ranks must do so at the same
 * place in the order of calls: at the beginning of a round, and after each hvd_join, because a rank
 * may call hvd_join after more or fewer requests than the other ranks. Called when no request is
 * pending, and by fusion_append after a join. */
void fusion_begin(struct requests *requests);
/* Appends a request after all pending requests. waits: the caller of hvd_run waits for this
 * call, so it is not fused. */
void fusion_append(struct rounds *rounds, struct request *request, bool waits);
/* Closes the open batch, if there is one: the thread of requests.c may now make its call. */
void fusion_close(struct requests *requests);
/* true: the request must not be made before the open batch. Requests of a group that its members
 * alone have opened are made before it; this one uses memory of the batch. */
bool fusion_is_torn(const struct rounds *rounds, const struct request *request);
/* true: the request is in the open batch, so no thread makes its call yet. */
bool fusion_holds(const struct requests *requests, const struct request *request);
/* Notes that the program waits for this request, and closes the open batch if it has the request.
 * Called once for each request. */
void fusion_await(struct requests *requests, const struct request *request);

/* Lists the requests of the first batch of the queue in requests->batch, and writes into
 * *ret_call one call that makes all of them. Returns the number of these requests. The list and
 * the call stay valid while the batch is in progress. */
size_t fusion_take(struct requests *requests, struct coll_call *ret_call);

#endif
