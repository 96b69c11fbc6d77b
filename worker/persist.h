/*
 * persist.h: requests for a checkpoint (hvd_checkpoint) among the requests of requests.h. Such a
 * request is in no queue: it ends by a message of the driver, or at the end of its round, of the
 * run or of the agent.
 */
#ifndef WORKER_PERSIST_H
#define WORKER_PERSIST_H

#include "worker/rounds.h"

/* Makes a request for a checkpoint of this commit; it is done when requests_persisted says so. */
int requests_persist(struct rounds *rounds, uint64_t commit, hvd_request **ret_request,
                     struct hvd_err *err) MUST_CHECK;
/* Ends the requests for a checkpoint of a commit up to this number, with this result (code 0: the
 * checkpoint is complete). The caller does not hold the lock. */
void requests_persisted(struct rounds *rounds, uint64_t commit, int code, const char *text);

/* Ends the requests for a checkpoint of this round and of all before it: the round was revoked.
 * Round UINT64_MAX: the agent is gone. The caller holds the lock. */
void requests_cancel_persists(struct rounds *rounds, uint64_t round);

/* true: a thread waits for a checkpoint for which it has asked itself. Only the training thread can
 * ask, so the training thread waits for the driver, and the watchdog must not report it. */
bool rounds_persist(struct rounds *rounds);

#endif
