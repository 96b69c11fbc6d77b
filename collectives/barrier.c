#include "collectives/operation.h"

/* The opening is all there is to it on one host. Between hosts one member of each waits for the
 * others, and a second step holds back those beside it until then. */
int barrier_go_on(struct operation *operation)
{
    struct coll_group *group = operation->group;
    int rc = 0;

    if (group->group.host_count > 1 && group_local(&group->group) == 0)
        rc = lane_barrier(&group->lane);
    if (group->board && group->group.host_count > 1 && !rc)
        rc = board_step(group->board);
    if (group->board)
        group->turn = operation->turn + 1;
    return rc;
}

int barrier_run(struct operation *operation)
{
    uint32_t last;
    int rc = operation_open(operation, &last);

    return rc ? rc : barrier_go_on(operation);
}
