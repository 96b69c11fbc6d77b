/*
 * state.h: what the library's other files need of a program's state.
 */
#ifndef WORKER_STATE_H
#define WORKER_STATE_H

#include "base/err.h"

/* The object is given: free_object is called for it by hvd_state_free. commits: by the loop, as
 * each commit begins, which may be copied later than that. HVD_E_NOMEM: it is not given. */
int state_own(hvd_state *state, void *object, void (*free_object)(void *object),
              void (*commits)(void *object)) MUST_CHECK;

/* 0, or HVD_E_STATE with the reason noted: only the loop may call, and only while train runs. */
int state_in_train(const hvd_state *state, const char *call) MUST_CHECK;

/* The same, and nothing has been told that train is to return: HVD_E_STATE after news,
 * HVD_E_REVOKED when the round is known to be dead. */
int state_goes_on(const hvd_state *state, const char *call) MUST_CHECK;

/* May entries be added, callbacks be registered? */
int state_open(const hvd_state *state, const char *call) MUST_CHECK;

#endif
