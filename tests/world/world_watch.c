/* world_watch.c: the library's watchdog in the simulated workers: what it reports of a training
 * loop that does not move. */
#include "tests/world/world_state.h"

static bool is_there(const struct world_worker *member, const struct world_worker *worker)
{
    return member && member->process.alive && member->loop.round == worker->loop.round &&
           member->loop.place >= LOOP_CONNECTING;
}

static void add(struct msg_stalled *stalled, uint64_t *missing, const struct world_worker *member)
{
    if (member && stalled->missing.count < WORLD_HOSTS_MAX)
        missing[stalled->missing.count++] = member->incarnation;
}

/* Adds the neighbour that this member of a ring waits for, which may be waiting itself. */
static void add_neighbour(struct msg_stalled *stalled, uint64_t *missing,
                          const struct world_worker *worker)
{
    const struct world_round *round = worker->loop.round;

    for (size_t i = 0; i < round->count; i++)
        if (round->members[i] == worker)
            add(stalled, missing, round->members[(i + round->count - 1) % round->count]);
}

static void add_absent(struct msg_stalled *stalled, uint64_t *missing,
                       const struct world_worker *worker)
{
    const struct world_round *round = worker->loop.round;

    for (size_t i = 0; i < round->count; i++)
        if (!is_there(round->members[i], worker))
            add(stalled, missing, round->members[i]);
}

/* Describes what the worker waits for; false: it waits for nothing that can be named. */
static bool describe(struct world_worker *worker, struct msg_stalled *stalled, uint64_t *missing)
{
    switch (worker->loop.place) {
    case LOOP_RESETTING:
        stalled->operation = "reset callback";
        add(stalled, missing, worker);
        return true;
    case LOOP_CONNECTING:
        stalled->operation = "connect";
        add_absent(stalled, missing, worker);
        return true;
    case LOOP_SYNCING: stalled->operation = "state"; return true;
    case LOOP_COMPUTING:
        stalled->operation = "step";
        add(stalled, missing, worker);
        return true;
    case LOOP_COLLECTIVE:
        stalled->operation = "allreduce";
        add_neighbour(stalled, missing, worker);
        return true;
    default: return false;
    }
}

/* Tells the session that the loop is stuck, if the loop has been at its place for longer than the
 * warning time. */
static void watch(struct world *world, struct world_worker *worker)
{
    int64_t warning_us = world->shape.config.stall_warning_us;
    uint64_t missing[WORLD_HOSTS_MAX];
    struct msg_stalled stalled = {
        .missing = {missing, 0}
    };
    struct session_event told = { .kind = SESSION_STUCK, .stalled = &stalled };
    struct world_loop *loop = &worker->loop;

    if (!worker->session || worker->process.frozen || !loop->round)
        return;
    stalled.waited_us = world->now_us - loop->since_us;
    if (stalled.waited_us < warning_us || world->now_us - loop->said_us < warning_us ||
        !describe(worker, &stalled, missing))
        return;
    loop->said_us = world->now_us;
    worker_tell(world, worker, &told);
}

static void on_watch(struct world *world, struct world_event *event)
{
    (void)event;
    for (size_t i = 0; i < world->workers.count; i++)
        if (world->workers.items[i]->process.alive)
            watch(world, world->workers.items[i]);
    if (!world->over)
        app_watch(world);
}

void app_watch(struct world *world)
{
    world_after(world, world->shape.config.stall_warning_us / 4, on_watch, world, NULL, 0);
}
