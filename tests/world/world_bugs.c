/* world_bugs.c: bugs that a test plants: a message between a driver's core and the world is changed
 * or lost, and the checks of the world must notice. */
#include "proto/commit.h"
#include "tests/world/world_state.h"

#define LOSE_EVERY 50

/* Takes the exit of one worker for that of its successor (BUG_STALE_EXIT). */
void bug_up(struct world *world, struct world_host *host, struct msg *msg)
{
    const struct world_worker *successor;

    if (world->shape.bug == BUG_FORGOTTEN_HOLDER && msg->type == MSG_HELLO_AGENT)
        msg->u.hello_agent.kept.count = 0;
    if (world->shape.bug == BUG_FORGOTTEN_HOLDER && msg->type == MSG_EXITED)
        msg->u.exited.commit = 0;
    if (world->shape.bug != BUG_STALE_EXIT || msg->type != MSG_EXITED)
        return;
    successor = host_worker(world, host, msg->u.exited.slot);
    if (successor)
        msg->incarnation = successor->incarnation;
}

/* Makes a round resume from rank 0's newest commit, as if no other member could have a newer one.
 */
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

void bug_lie(struct world *world, struct event *event)
{
    const struct world_worker *worker = world_worker_of(world, event->msg->incarnation);
    const struct world_link *link = worker ? worker->agent->link : NULL;

    if (world->shape.bug != BUG_LIE_BELIEVED || !link || link->driver != world->driver ||
        !link->ends[END_DRIVER].open)
        return;
    event->peer = link->peer;
    event->host = worker->host->name;
}
