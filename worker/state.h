/*
 * state.h: what the library's other files need of a program's state.
 */
#ifndef WORKER_STATE_H
#define WORKER_STATE_H

#include "base/err.h"

/* The object is given: free_object is called for it by hvd_state_free. HVD_E_NOMEM: it is not. */
int state_own(hvd_state *state, void *object, void (*free_object)(void *)) MUST_CHECK;

/* Is this the loop, inside train? */
bool state_is_training(const hvd_state *state);

#endif
