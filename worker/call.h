/*
 * call.h: checks a collective call of the training program and translates it to a struct coll_call.
 */
#ifndef WORKER_CALL_H
#define WORKER_CALL_H

#include "worker/groups.h"

/* Returns true if the two pieces of memory have no byte in common. */
bool call_are_apart(const void *left, size_t left_bytes, const void *right, size_t right_bytes);

/* true: a send or a receive, which is no collective. call may be NULL. */
bool call_is_transfer(const hvd_call *call);

/* Checks *call and translates it to *ret_call. HVD_E_INVAL: the err says what is wrong and how to
 * correct it. The buffers that the call points to are not copied. groups NULL: the program has
 * created no groups. The addresses of the buffers decide whether *ret_call is for the host or for a
 * GPU (`device`); the caller of call_read then sets the stream. */
int call_read(const hvd_call *call, const struct groups *groups, const struct roll *roll,
              struct coll_call *ret_call, struct hvd_err *err) MUST_CHECK;

#endif
