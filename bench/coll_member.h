/*
 * coll_member.h: a member of a crew as a member of rounds, on one of several hosts that are
 * pretended: all are this machine.
 */
#ifndef BENCH_COLL_MEMBER_H
#define BENCH_COLL_MEMBER_H

#include "bench/crew.h"
#include "collectives/coll.h"

struct coll_member_place {
    uint32_t hosts; /* members stand on them in rank order, as equally as can be */
    enum coll_carrier carrier;
    bool flat; /* over the link also inside a host */
};

struct coll_member {
    struct crew_seat *seat;
    struct coll_member_place place;
    struct coll_engine *engine;
    char hosts[CREW_MAX][16];
    struct coll_peer peers[CREW_MAX];
};

/* Whatever fails here ends the process. */
void coll_member_open(struct coll_member *member, struct crew_seat *seat,
                      const struct coll_member_place *place);
void coll_member_close(struct coll_member *member);

/* Learns from the others who they are. All call it together. */
void coll_member_meet(struct coll_member *member);

/* A round of all of them; it is connected by coll_member_connect. */
struct coll *coll_member_round(struct coll_member *member, uint64_t round);
void coll_member_connect(struct coll *coll);

#endif
