/*
 * circle.h: groups that their members alone open in a running round. coll_run then makes the
 * operations of such a group, as of every other group.
 */
#ifndef COLLECTIVES_CIRCLE_H
#define COLLECTIVES_CIRCLE_H

#include "collectives/coll.h"

/* Opens a group of these ranks, this rank among them, in the running round. Only the members call
 * this; they find each other by the ranks and the tag. The call waits for no member: the group's
 * first operation does, for as long as it takes, and coll_wait_look names the member that is
 * missing. The group's number is what coll_group_count returned before the call; it may differ
 * between the members. One thread at a time may call coll_open_group, also while another thread is
 * in coll_run. HVD_E_EXISTS: this group was opened in this round already; HVD_E_LIMIT: more than
 * LIMIT_OPENED groups, those of COLL_OPEN included; HVD_E_NOMEM. Each of them ends the round. */
int coll_open_group(struct coll *coll, const struct coll_ranks *ranks, uint64_t tag,
                    struct hvd_err *err) MUST_CHECK;

#endif
