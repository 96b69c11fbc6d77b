/* world_round.c: what the members of a round do together: connect, and make steps. */
#include "base/mem.h"
#include "base/panic.h"
#include "tests/world/world_state.h"

#include <inttypes.h>

#define COLLECTIVE_US TIME_MS

uint64_t model_checksum(struct world_model model)
{
    return (model.hash ^ model.step) * UINT64_C(0xbf58476d1ce4e5b9) | 1;
}

/* Adds the commit as the newest of the slot; the commit before the previous one is forgotten. */
void kept_put(struct world_kept *kept, uint64_t commit, struct world_model model)
{
    if (kept->count && kept->items[0].commit == commit) {
        kept->items[0].model = model;
        return;
    }
    kept->items[1] = kept->items[0];
    kept->items[0].commit = commit;
    kept->items[0].model = model;
    if (kept->count < 2)
        kept->count++;
}

struct world_round *world_round_of(const struct world *world, uint64_t number)
{
    for (size_t i = world->rounds.count; i-- > 0;) {
        if (world->rounds.items[i]->number == number)
            return world->rounds.items[i];
    }
    return NULL;
}

static struct world_round *round_create(struct world *world, const struct msg *msg)
{
    const struct msg_round *said = &msg->u.round;
    struct world_round *round = world_alloc(sizeof(*round));

    round->number = msg->round;
    round->frame = frame_make(msg, false);
    round->commit = said->commit;
    round->holders = round->frame->msg.u.round.holders;
    round->sources = round->frame->msg.u.round.sources;
    round->count = said->members.count;
    round->members = world_alloc(round->count * sizeof(struct world_worker *) + 1);
    for (size_t i = 0; i < round->count; i++) {
        round->members[i] = world_worker_of(world, said->members.items[i].incarnation);
        if (!round->members[i] || !round->members[i]->process.alive)
            round->broken = true;
    }
    *WORLD_PUSH(&world->rounds) = round;
    return round;
}

struct world_round *round_enter(struct world *world, const struct world_worker *worker,
                                const struct msg *msg)
{
    struct world_round *round = world_round_of(world, msg->round);

    (void)worker;
    return round ? round : round_create(world, msg);
}

/* false: members of the round are cut off from each other, so they wait. */
static bool passable(const struct world_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        if (!host_reachable(round->members[i]->host))
            for (size_t k = 0; k < round->count; k++) {
                if (round->members[k]->host != round->members[i]->host)
                    return false;
            }
    }
    return true;
}

/* true: all members are at this place, and at the same step. */
static bool all_at(const struct world_round *round, enum world_place place)
{
    for (size_t i = 0; i < round->count; i++) {
        const struct world_worker *member = round->members[i];

        if (!member || member->loop.round != round || member->loop.place != place ||
            !member->process.alive)
            return false;
        if (place == LOOP_COLLECTIVE && member->loop.steps != round->members[0]->loop.steps)
            return false;
    }
    return round->count > 0;
}

static void on_frozen_stepped(struct world *world, struct world_event *event)
{
    struct world_worker *worker = event->who;

    if (process_takes(&worker->process, event) && worker->loop.token == event->number)
        app_stepped(world, worker);
}

/* Tells the story the cost of a change: for how long no member made a step, and how many steps are
 * repeated. */
static void tell_cost(struct world *world, const struct world_round *round)
{
    uint64_t step = 0;
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; i < round->count; i++)
        if (round->members[i]->loop.round == round &&
            round->members[i]->loop.place == LOOP_COLLECTIVE)
            step = round->members[i]->loop.model.step;
    if (round->number > world->trained_round && world->trained_round)
        world_mark(world,
                   "round %" PRIu64 " makes its first step, %s after the last one; %" PRIu64
                   " are made again",
                   round->number, time_format(world->now_us - world->trained_us, text),
                   world->trained_step > step ? world->trained_step - step : 0);
    if (round->number < world->trained_round)
        return;
    world->trained_round = round->number;
    world->trained_us = world->now_us;
    world->trained_step = step + 1;
}

/* The collective of a step ends. If a member dies in the middle of it, some members have the result
 * and some have no result. */
static void on_collective(struct world *world, struct world_event *event)
{
    struct world_round *round = event->who;
    bool whole = all_at(round, LOOP_COLLECTIVE);

    round->finishing = false;
    if (whole && !passable(round))
        return; /* app_retry repeats this step later */
    check_progress(world, round);
    if (world->told)
        tell_cost(world, round);
    round->steps++;
    for (size_t i = 0; i < round->count; i++) {
        struct world_worker *member = round->members[i];

        if (!member->process.alive || member->loop.round != round ||
            member->loop.place != LOOP_COLLECTIVE || member->loop.cancelled >= round->number ||
            member->loop.steps != event->number || (!whole && world_coin(world, 2)))
            continue;
        if (member->process.frozen)
            world_after(world, 0, on_frozen_stepped, member, NULL, member->loop.token);
        else
            app_stepped(world, member);
    }
}

/* Lets the members go on together, if all of them have come: from connecting, or from a
 * collective. */
void round_try(struct world *world, struct world_round *round)
{
    if (round->finishing)
        return;
    if (all_at(round, LOOP_COLLECTIVE) && passable(round)) {
        round->finishing = true;
        world_after(world, COLLECTIVE_US, on_collective, round, NULL,
                    round->members[0]->loop.steps);
    } else if (all_at(round, LOOP_CONNECTING) && passable(round) && !round->connected) {
        round->connected = true;
        for (size_t i = 0; i < round->count; i++)
            app_connected(world, round->members[i]);
    }
}

void app_retry(struct world *world)
{
    for (size_t i = world->rounds.count; i-- > 0;)
        round_try(world, world->rounds.items[i]);
}

void world_round_release(struct world_round *round)
{
    frame_drop(round->frame);
    mem_free(round->members);
    mem_free(round);
}
