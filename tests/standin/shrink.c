/* shrink.c: makes a communicator of the members that are left of another; the caller knows which
 * are left. */
#include "tests/standin/comm.h"

#ifndef STANDIN_OLD_NCCL

#define SHRINK_ABORT 1

static bool is_excluded(int rank, const int *excluded, int count)
{
    for (int i = 0; i < count; i++)
        if (excluded[i] == rank)
            return true;
    return false;
}

int nc_comm_shrink(struct ncclComm *comm, int *excluded, int excluded_count,
                   struct ncclComm **ret_comm, struct nccl_config *config, int flags)
{
    int before = 0; /* members that are left and have a lower rank */
    int left = 0;
    int first = -1;

    comm_enter(comm, false, "ncclCommShrink");
    if (flags & SHRINK_ABORT)
        comm_quiet(comm);
    for (int i = 0; i < comm->size; i++) {
        if (is_excluded(i, excluded, excluded_count))
            continue;
        if (first < 0)
            first = i;
        left++;
        before += i < comm->rank;
    }
    if (is_excluded(comm->rank, excluded, excluded_count))
        standin_misuse("ncclCommShrink by a member that is excluded");
    *ret_comm = comm_make_child(comm, first, left, before, config);
    comm_leave(comm, false);
    return NCCL_IN_PROGRESS;
}

#endif
