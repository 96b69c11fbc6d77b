#include "bench/coll_member.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* CMake defines the file that it has built; without it the loader looks for the module. */
#ifndef BENCH_GLOO_MODULE
#define BENCH_GLOO_MODULE "libhvd-gloo.so"
#endif

#define CONNECT_US INT64_C(60000000)

static const uint8_t secret[LIMIT_ROUND_SECRET_BYTES] = "the secret of each round here";

void coll_member_open(struct coll_member *member, struct lockstep_self *seat,
                      const struct coll_member_place *place)
{
    const struct coll_options options = { .host = "127.0.0.1",
                                          .carrier = place->carrier,
                                          .flat = place->flat,
                                          .security = place->security };
    struct lockstep_member *own = &seat->board->members[seat->rank];
    struct hvd_err err = { .text = "" };

    *member = (struct coll_member){ .seat = seat, .place = *place };
    (void)setenv("HVD_GLOO_LIBRARY", BENCH_GLOO_MODULE, 0);
    lockstep_must(coll_engine_open(&options, &member->engine, &err), "an engine", &err);
    (void)snprintf(own->contact, sizeof(own->contact), "%s", coll_engine_contact(member->engine));
    own->incarnation = (uint64_t)getpid();
}

void coll_member_close(struct coll_member *member)
{
    coll_engine_close(member->engine);
}

void coll_member_meet(struct coll_member *member)
{
    struct lockstep_self *seat = member->seat;

    lockstep_gate(seat);
    for (uint32_t rank = 0; rank < seat->size; rank++) {
        const struct lockstep_member *other = &seat->board->members[rank];
        uint32_t host = rank * member->place.hosts / seat->size;

        (void)snprintf(member->hosts[rank], sizeof(member->hosts[rank]), "host%u", host);
        member->peers[rank] = (struct coll_peer){ .incarnation = other->incarnation,
                                                  .host = member->hosts[rank],
                                                  .contact = other->contact };
    }
}

struct coll *coll_member_round(struct coll_member *member, uint64_t round)
{
    const struct coll_roster roster = { .round = round,
                                        .rank = member->seat->rank,
                                        .size = member->seat->size,
                                        .peers = member->peers,
                                        .secret = secret,
                                        .secret_length = sizeof(secret) };
    struct hvd_err err = { .text = "" };
    struct coll *coll;

    lockstep_must(coll_create(member->engine, &roster, &coll, &err), "a round", &err);
    return coll;
}

void coll_member_connect(struct coll *coll)
{
    struct hvd_err err = { .text = "" };

    lockstep_must(coll_connect(coll, CONNECT_US, &err), "connecting", &err);
}
