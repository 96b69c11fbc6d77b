/*
 * lane_crew.h: members of one lane as threads of this process, over links that are played
 * (fake_link.h) or real ones. What they do is an act that each of them plays.
 */
#ifndef TESTS_LIB_LANE_CREW_H
#define TESTS_LIB_LANE_CREW_H

#include "collectives/lane/lane.h"
#include "collectives/link/links.h"
#include "tests/lib/fake_link.h"

#include <pthread.h>

#define CREW_MAX 17

struct crew;
struct crew_member {
    struct crew *crew;
    uint32_t index;
    struct traffic traffic;
    struct lane lane;
    pthread_t thread;
    uint64_t number; /* of its operations so far */

    int rc;          /* what its act has come to; 0: all was right */
    char wrong[256]; /* what was not; "": nothing */
    uint64_t sum;    /* of all its results */
    uint32_t lost;   /* whom it has lost; TRAFFIC_NOBODY */
};

struct crew {
    uint32_t size;
    struct fake_net *net; /* NULL: real links */
    struct crew_links *real;
    struct crew_member members[CREW_MAX];
    uint32_t ranks[CREW_MAX];
    const void *arg; /* of the act */
};

/* The i-th member has rank i, or ranks[i] of so many. */
void crew_open(struct crew *crew, uint32_t size);
void crew_open_among(struct crew *crew, uint32_t size, const uint32_t *ranks, uint32_t rank_count);
void crew_open_links(struct crew *crew, uint32_t size, enum link_kind kind);
void crew_close(struct crew *crew); /* one of size 0 is closed */

void crew_run(struct crew *crew, void (*act)(struct crew_member *member), const void *arg);

/* The first thing that was wrong, or NULL. */
const char *crew_wrong(const struct crew *crew);

/* An operation of this member, the next one. */
struct accord crew_accord(struct crew_member *member, enum coll_kind kind, hvd_dtype type,
                          hvd_op op, uint64_t count);
/* Opens it; what the one before means must be the same: or HVD_E_MISMATCH, and all are cancelled.
 */
int crew_begin(struct crew_member *member, const struct accord *ours, const void *first,
               size_t length) MUST_CHECK;

#endif
