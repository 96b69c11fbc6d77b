/*
 * call.h: what a program asks for, held against what can be meant, and put as collectives take it.
 */
#ifndef WORKER_CALL_H
#define WORKER_CALL_H

#include "worker/groups.h"

/* HVD_E_INVAL says what makes no sense. What the call points to is not copied. groups may be NULL.
 * Whose memory it is is told by the pointers; in what stream it is ordered is not looked at. */
int call_read(const hvd_call *call, const struct groups *groups, const struct roll *roll,
              struct coll_call *ret_call, struct hvd_err *err) MUST_CHECK;

#endif
