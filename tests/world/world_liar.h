/*
 * world_liar.h: a host whose agent was taken over, and lies; and the judge of what the driver does
 * with the lies.
 */
#ifndef TESTS_WORLD_WORLD_LIAR_H
#define TESTS_WORLD_WORLD_LIAR_H

#include "driver/core/core.h"
#include "tests/world/world_lie.h"

struct world_frame;
struct world_host;
struct world_link;

const char *lie_name(enum world_lie lie);
/* The agent of the host lies now, if it is connected; the lies in a hello come with its next one.
 */
void host_lie(struct world *world, struct world_host *host, enum world_lie lie);
/* Returns a new frame for a message that the agent sends; the caller owns the frame. It has a lie
 * if a lie is due in this message (a hello, or the commits of a RECOVERING), otherwise the true
 * message. */
struct world_frame *lie_instead(struct world *world, struct world_host *host,
                                const struct msg *msg);
/* A frame that is marked as a lie arrives at the driver. */
void lie_arrives(struct world *world, struct world_link *link, struct event *event);
/* Judges the actions of the driver's step, if it is one of lie_arrives. */
void check_liar(struct world *world, const struct action_list *list);
/* From now on one random host lies now and then. */
void liar_begin(struct world *world);

#endif
