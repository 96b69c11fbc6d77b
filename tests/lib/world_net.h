/*
 * world_net.h: a connection between an agent and a driver, as TCP would be: in order, nothing
 * doubled, nothing lost but what is on its way when it breaks. Where a host is cut off, frames
 * wait.
 */
#ifndef TESTS_LIB_WORLD_NET_H
#define TESTS_LIB_WORLD_NET_H

#include "tests/lib/world_queue.h"

enum world_end { END_DRIVER, END_AGENT, END_COUNT };

#define LINK_RECENT 16

struct world_link_end {
    bool open;               /* as seen from here */
    int64_t last_us;         /* when the last frame towards here arrives */
    struct world_events cut; /* what waits to get here until the host is healed */
};

struct world_link {
    struct world_driver *driver;
    struct world_agent *agent;
    uint32_t peer; /* the driver's number for it */
    bool heard;    /* the driver was told of it */
    bool deaf;     /* the driver has asked for its end, and is told nothing more */
    bool broken;   /* what is on its way is lost */
    int64_t heard_us;
    uint64_t told_round, told_revoke; /* the highest that went down */
    struct world_link_end ends[END_COUNT];
    struct world_frame *recent[LINK_RECENT]; /* the last that went up, for repetitions */
    size_t recent_count;
};

void link_dial(struct world *world, struct world_agent *agent);
void link_send(struct world *world, struct world_link *link, enum world_end to,
               struct world_frame *frame); /* given */
/* In order behind what was sent before; the other end is told. */
void link_close(struct world *world, struct world_link *link, enum world_end by);
void link_break(struct world *world, struct world_link *link);
void link_repeat(struct world *world, struct world_link *link);
/* The host can be reached again: what waited arrives now, or the connection is reset. */
void link_heal(struct world *world, struct world_link *link, bool reset);
void link_release(struct world_link *link);

#endif
