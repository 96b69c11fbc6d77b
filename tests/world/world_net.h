/*
 * world_net.h: a connection between an agent and a driver that behaves like TCP: frames arrive in
 * order and once, and only frames under way are lost when the connection breaks. While a host is
 * cut off, its frames wait.
 */
#ifndef TESTS_WORLD_WORLD_NET_H
#define TESTS_WORLD_WORLD_NET_H

#include "tests/world/world_queue.h"

enum world_end { END_DRIVER, END_AGENT, END_COUNT };

#define LINK_RECENT 16

struct world_link_end {
    bool open;               /* true: this end has not seen the end of the connection */
    int64_t last_us;         /* when the last frame to this end arrives */
    struct world_events cut; /* events that wait to arrive here until the host is healed */
};

struct world_link {
    struct world_driver *driver;
    struct world_agent *agent;
    uint32_t peer;  /* the number by which the driver knows the connection */
    uint64_t epoch; /* of the key that the agent has proved */
    bool heard;     /* true: the driver was told of the connection */
    bool deaf;      /* true: the driver has closed the connection and hears no more of its frames */
    bool broken;    /* true: frames under way are lost */
    int64_t heard_us;
    /* the highest rounds that a ROUND and a REVOKE sent down have named */
    uint64_t told_round, told_revoke;
    struct world_link_end ends[END_COUNT];
    /* the last frames that went up; link_repeat sends them again */
    struct world_frame *recent[LINK_RECENT];
    size_t recent_count;
};

void link_dial(struct world *world, struct world_agent *agent);
void link_send(struct world *world, struct world_link *link, enum world_end to,
               struct world_frame *frame); /* the frame is given away */
/* Closes the connection: after all frames sent before, the other end is told. */
void link_close(struct world *world, struct world_link *link, enum world_end by);
void link_break(struct world *world, struct world_link *link);
void link_repeat(struct world *world, struct world_link *link);
/* The host can be reached again: waiting frames arrive now, or (reset) the connection breaks. */
void link_heal(struct world *world, struct world_link *link, bool reset);
void link_release(struct world_link *link);

#endif
