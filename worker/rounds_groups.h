/*
 * rounds_groups.h: groups that the program opens and closes while a round runs; collective.c calls
 * these functions.
 */
#ifndef WORKER_ROUNDS_GROUPS_H
#define WORKER_ROUNDS_GROUPS_H

#include "worker/rounds.h"

/* Opens a group until the running round ends. All members of the round make the same call.
 * HVD_E_BUSY: this rank has requests for which it has not waited. */
int rounds_open_group(struct rounds *rounds, const struct group_rule *rule, hvd_group **ret_group,
                      struct hvd_err *err) MUST_CHECK;
/* Opens a group of the listed ranks. Only these ranks make this call (coll_open_group). */
int rounds_open_apart(struct rounds *rounds, const int *ranks, size_t count, uint64_t tag,
                      hvd_group **ret_group, struct hvd_err *err) MUST_CHECK;
/* Closes a group that was opened in this round. All members make this call for a group that all
 * have opened; a group that its members alone have opened is closed on this rank. */
int rounds_close_group(struct rounds *rounds, const hvd_group *group,
                       struct hvd_err *err) MUST_CHECK;

#endif
