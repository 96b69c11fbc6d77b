/*
 * state.h: functions of a training state that other files of the library call.
 */
#ifndef WORKER_STATE_H
#define WORKER_STATE_H

#include "proto/msg.h"

/* Gives the object to the state: hvd_state_free calls free_object for the object. The training
 * thread calls `commits` when a commit begins: the bytes of the state may be copied later, when the
 * object has changed already. HVD_E_NOMEM: the object still belongs to the caller. */
int state_own(hvd_state *state, void *object, void (*free_object)(void *object),
              void (*commits)(void *object)) MUST_CHECK;

/* Adds a custom entry that consists of `count` numbers of 64 bits: `save` writes all of them.
 * `call` is the function of hvd.h, for errors. */
int state_add_numbers(hvd_state *state, const char *call, const char *name, size_t count,
                      hvd_save_fn *save, hvd_load_fn *load, void *arg) MUST_CHECK;

/* PROTOCOL.md, "Checkpoints": true: no worker has the commit with which the round begins, and an
 * agent reads it from a checkpoint. */
bool state_reads_checkpoint(const struct msg_round *round);

/* Checks that the API function with the name `call` may be called: only by the training thread
 * while train runs. HVD_E_STATE: it may not; hvd_last_error has the text. */
int state_in_train(const hvd_state *state, const char *call) MUST_CHECK;

/* Checks the same as state_in_train, and that the round goes on: HVD_E_STATE after a commit or
 * check has told train to return, HVD_E_REVOKED after a failure of the round. */
int state_goes_on(const hvd_state *state, const char *call) MUST_CHECK;

#endif
