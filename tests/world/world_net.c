/*
 * world_net.c: simulated connections between agents and drivers: frames in order, delays, cuts, and
 * ends that one side sees late or never.
 */
#include "tests/world/world_net.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "tests/world/world_liar.h"
#include "tests/world/world_state.h"

#define DIAL_TIMEOUT_US (3 * TIME_S)

/* ---- arrivals ------------------------------------------------------------------------------- */

static void forget(struct world_link *link)
{
    for (size_t i = 0; i < LINK_RECENT; i++) {
        frame_drop(link->recent[i]);
        link->recent[i] = NULL;
    }
    link->recent_count = 0;
}

/* Delivers a frame, or the end of the connection, to the driver; the last frames are kept for
 * link_repeat. */
static void at_driver(struct world *world, struct world_link *link, struct world_event *event)
{
    struct event told = { .peer = link->peer,
                          .kind = EVENT_MSG,
                          .host = link->agent->host->name,
                          .key_version = link->epoch };

    if (link->deaf || !link->ends[END_DRIVER].open)
        return;
    if (event->frame) {
        bug_up(world, link->agent->host, &event->frame->msg);
        told.msg = &event->frame->msg;
        link->heard = true;
        link->heard_us = world->now_us;
        if (!event->frame->lie &&
            msg_allowed(told.msg->type, LINK_AGENT_TO_DRIVER, WHEN_OPEN, NULL) == 0) {
            size_t at = link->recent_count++ % LINK_RECENT;

            frame_drop(link->recent[at]);
            link->recent[at] = frame_keep(event->frame);
        }
    } else {
        told.kind = EVENT_CLOSED;
        told.text = "connection closed";
        link->ends[END_DRIVER].open = false;
        link->driver->peers.items[link->peer] = NULL;
        forget(link);
        if (!link->heard)
            return;
    }
    if (event->frame && event->frame->lie)
        lie_arrives(world, link, &told);
    else
        driver_step(world, link->driver, &told);
}

static void at_agent(struct world *world, struct world_link *link, struct world_event *event)
{
    struct agent_event told = { .kind = AGENT_DRIVER_MSG };

    if (!link->ends[END_AGENT].open)
        return;
    if (event->frame) {
        told.msg = &event->frame->msg;
    } else {
        told.kind = AGENT_DRIVER_DOWN;
        told.text = "connection closed";
        link->ends[END_AGENT].open = false;
        link->agent->link = NULL;
    }
    agent_tell(world, link->agent, &told);
}

/* Something arrives at the end event->number: a frame; without a frame, the end of the connection.
 */
static void on_arrival(struct world *world, struct world_event *event)
{
    struct world_link *link = event->who;
    enum world_end to = (enum world_end)event->number;
    struct world_process *process =
        to == END_DRIVER ? &link->driver->process : &link->agent->process;

    if (link->broken && event->frame)
        return;
    if (link->agent->host->cut[to] || link->ends[to].cut.count) {
        *WORLD_PUSH(&link->ends[to].cut) = *event;
        event->frame = NULL;
        return;
    }
    if (!process_takes(process, event))
        return;
    if (to == END_DRIVER)
        at_driver(world, link, event);
    else
        at_agent(world, link, event);
}

static void push(struct world *world, struct world_link *link, enum world_end to,
                 struct world_frame *frame)
{
    int64_t at_us = world->now_us + world_between(world, world->shape.link);

    if (at_us < link->ends[to].last_us)
        at_us = link->ends[to].last_us;
    link->ends[to].last_us = at_us;
    world_after(world, at_us - world->now_us, on_arrival, link, frame, to);
}

/* ---- sending and closing --------------------------------------------------------------------- */

void link_send(struct world *world, struct world_link *link, enum world_end to,
               struct world_frame *frame)
{
    enum world_end from = to == END_DRIVER ? END_AGENT : END_DRIVER;

    if (link->ends[from].open && !link->broken)
        push(world, link, to, frame);
    else
        frame_drop(frame);
}

void link_close(struct world *world, struct world_link *link, enum world_end by)
{
    enum world_end other = by == END_DRIVER ? END_AGENT : END_DRIVER;

    if (!link->ends[by].open)
        return;
    link->ends[by].open = false;
    if (by == END_AGENT)
        link->agent->link = NULL;
    else if (link->driver->peers.items && link->driver->peers.items[link->peer] == link)
        link->driver->peers.items[link->peer] = NULL;
    forget(link);
    if (!link->broken && link->ends[other].open)
        push(world, link, other, NULL);
}

/* Breaks the connection without losing what was sent before: both ends learn of the end later. */
void link_break(struct world *world, struct world_link *link)
{
    if (link->broken)
        return;
    for (int end = 0; end < END_COUNT; end++) {
        if (link->ends[end].open)
            push(world, link, (enum world_end)end, NULL);
    }
    link->broken = true;
}

void link_repeat(struct world *world, struct world_link *link)
{
    size_t kept = link->recent_count < LINK_RECENT ? link->recent_count : LINK_RECENT;

    for (size_t i = 0; i < kept; i++) {
        if (world_coin(world, 3))
            push(world, link, END_DRIVER, frame_keep(link->recent[i]));
    }
}

void link_heal(struct world *world, struct world_link *link, bool reset)
{
    for (int end = 0; end < END_COUNT; end++) {
        struct world_events waited = link->ends[end].cut;

        link->ends[end].cut = (struct world_events){ .items = NULL };
        for (size_t i = 0; i < waited.count; i++) {
            if (!reset || !waited.items[i].frame)
                on_arrival(world, &waited.items[i]);
            frame_drop(waited.items[i].frame);
        }
        VEC_RELEASE(&waited);
    }
    if (reset)
        link_break(world, link);
}

void link_release(struct world_link *link)
{
    forget(link);
    for (int end = 0; end < END_COUNT; end++) {
        for (size_t i = 0; i < link->ends[end].cut.count; i++)
            frame_drop(link->ends[end].cut.items[i].frame);
        VEC_RELEASE(&link->ends[end].cut);
    }
    mem_free(link);
}

/* ---- dialling ------------------------------------------------------------------------------- */

static void tell_down(struct world *world, struct world_agent *agent, const char *why)
{
    struct agent_event told = { .kind = AGENT_DRIVER_DOWN, .text = why };

    agent_tell(world, agent, &told);
}

/* event->number says which attempt to dial this was. */
static void on_dialled(struct world *world, struct world_event *event)
{
    struct world_agent *agent = event->who;
    struct agent_event told = { .kind = AGENT_DRIVER_UP };
    const struct world_driver *driver = world->driver;
    struct world_link *link;

    if (!process_takes(&agent->process, event) || agent->dialling != event->number)
        return;
    agent->dialling = 0;
    if (!host_reachable(agent->host)) {
        tell_down(world, agent, "connection timed out");
        return;
    }
    if (agent->host->astray || !driver || !driver->process.alive || !driver->begun) {
        tell_down(world, agent, "connection refused");
        return;
    }
    if (!driver_accepts(driver, agent->host->name, agent->epoch)) {
        tell_down(world, agent, "the peer has another key, and refuses the key of this side");
        return;
    }
    link = world_alloc(sizeof(*link));
    link->epoch = agent->epoch;
    link->driver = world->driver;
    link->agent = agent;
    link->ends[END_DRIVER].open = true;
    link->ends[END_AGENT].open = true;
    *WORLD_PUSH(&world->links) = link;
    agent->link = link;
    agent->link->peer = driver_accept(world->driver, agent->link);
    agent_tell(world, agent, &told);
}

void link_dial(struct world *world, struct world_agent *agent)
{
    int64_t after_us =
        host_reachable(agent->host) ? world_between(world, world->shape.link) : DIAL_TIMEOUT_US;

    ASSERT(!agent->link);
    agent->dialling = ++world->ask;
    world_after(world, after_us, on_dialled, agent, NULL, agent->dialling);
}
