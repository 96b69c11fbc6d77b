/*
 * fake_link.h: links between threads of one process. A message is copied only when its receiver
 * waits for it, from the sender's memory as it is then. So a test notices a sender that changes its
 * buffer too early.
 */
#ifndef TESTS_LIB_FAKE_LINK_H
#define TESTS_LIB_FAKE_LINK_H

#include "collectives/link/link.h"

struct fake_net;

struct fake_net *fake_net_create(uint32_t size);
void fake_net_free(struct fake_net *net);
struct link *fake_net_link(struct fake_net *net, uint32_t rank);

/* The fault that strikes a rank at its call number `call` (its sends, receives and waits, counted
 * from 1 from now on). */
enum fake_fault {
    FAKE_CANCEL_ALL, /* every link is cancelled */
    /* this rank's link dies; members that send to it or wait only for it find it lost */
    FAKE_DIES,
};
void fake_net_plan(struct fake_net *net, uint32_t rank, uint64_t call, enum fake_fault fault);
bool fake_net_faulted(const struct fake_net *net);

void fake_net_cancel(struct fake_net *net); /* cancels every link; any thread may call it */
/* requests that were neither waited for nor dropped */
uint64_t fake_net_left(const struct fake_net *net);

/* Messages so far; and whether a message went to a rank whose distance is not a power of two. */
uint64_t fake_net_messages(const struct fake_net *net);
bool fake_net_strayed(const struct fake_net *net);

#endif
