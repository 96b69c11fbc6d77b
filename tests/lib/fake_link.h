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

/* Messages so far, and whether one went to a rank that is not at the distance of a power of two. */
uint64_t fake_net_messages(const struct fake_net *net);
bool fake_net_strayed(const struct fake_net *net);

#endif
