/*
 * fake_link.h: links between threads of one process. A message is copied only when its receiver
 * waits for it, from the sender's memory as it is then: who changes it too early is found out.
 */
#ifndef TESTS_LIB_FAKE_LINK_H
#define TESTS_LIB_FAKE_LINK_H

#include "collectives/link/link.h"

struct fake_net;

struct fake_net *fake_net_create(uint32_t size);
void fake_net_free(struct fake_net *net);
struct link *fake_net_link(struct fake_net *net, uint32_t rank);

/* At that call of its own (send, receive, wait; from now on, from 1), this happens to a rank. */
enum fake_fault {
    FAKE_CANCEL_ALL, /* every link is cancelled */
    FAKE_DIES,       /* this one is; who waits for it alone, or sends to it, finds it lost */
};
void fake_net_plan(struct fake_net *net, uint32_t rank, uint64_t call, enum fake_fault fault);
bool fake_net_faulted(const struct fake_net *net);

void fake_net_cancel(struct fake_net *net);         /* every link; any thread */
uint64_t fake_net_left(const struct fake_net *net); /* requests neither waited for nor dropped */

/* Messages so far, and whether one went to a rank that is not at the distance of a power of two. */
uint64_t fake_net_messages(const struct fake_net *net);
bool fake_net_strayed(const struct fake_net *net);

#endif
