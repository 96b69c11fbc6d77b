/*
 * coll_member.h: a process of a set as a member of rounds, on one of several hosts that are
 * pretended: all are this machine.
 */
#ifndef BENCH_COLL_MEMBER_H
#define BENCH_COLL_MEMBER_H

#include "bench/lockstep.h"
#include "collectives/coll.h"

struct coll_member_place {
    uint32_t hosts; /* members stand on them in rank order, as equally as can be */
    enum coll_carrier carrier;
    bool flat; /* over the link also inside a host */
    enum link_security security;
};

struct coll_member {
    struct lockstep_self *seat;
    struct coll_member_place place;
    struct coll_engine *engine;
    char hosts[LOCKSTEP_MAX][16];
    struct coll_peer peers[LOCKSTEP_MAX];
};

/* Every failure here ends the process. */
void coll_member_open(struct coll_member *member, struct lockstep_self *seat,
                      const struct coll_member_place *place);
void coll_member_close(struct coll_member *member);

/* Learns from the others who they are. All call it together. */
void coll_member_meet(struct coll_member *member);

/* A round of all of them; it is connected by coll_member_connect. */
struct coll *coll_member_round(struct coll_member *member, uint64_t round);
void coll_member_connect(struct coll *coll);

#endif
