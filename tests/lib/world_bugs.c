/* Bugs that are planted between the cores and the world. */
#include "proto/commit.h"
#include "tests/lib/world_state.h"

#define LOSE_EVERY 50

/* An exit of one worker is taken for that of its successor. */
void bug_up(struct world *world, struct world_host *host, struct msg *msg)
{
    const struct world_worker *successor;

    if (world->shape.bug != BUG_STALE_EXIT || msg->type != MSG_EXITED)
        return;
    successor = host_worker(world, host, msg->u.exited.slot);
    if (successor)
        msg->incarnation = successor->incarnation;
}

/* Rank 0's newest commit is resumed from, as if nobody could have a newer one. */
static void ask_rank_0(struct world *world, struct msg *msg)
{
    static uint64_t holder;
    const struct world_worker *first =
        world_worker_of(world, msg->u.round.members.items[0].incarnation);

    if (!first || !first->loop.held.count || msg->u.round.cause == CAUSE_SWITCH)
        return;
    holder = first->incarnation;
    msg->u.round.commit = first->loop.held.items[0].commit;
    msg->u.round.holders = (struct msg_ids){ &holder, 1 };
}

bool bug_down(struct world *world, struct msg *msg)
{
    if (world->shape.bug == BUG_LOST_NOTIFICATION &&
        (msg->type == MSG_ROUND || msg->type == MSG_REVOKE))
        return ++world->notifications % LOSE_EVERY != 0;
    if (world->shape.bug == BUG_WRONG_ROOT && msg->type == MSG_ROUND)
        ask_rank_0(world, msg);
    return true;
}
