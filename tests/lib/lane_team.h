/*
 * lane_team.h: the members of one lane (the chain of links between hosts) as threads of this
 * process, over links in memory (fake_link.h) or over real links. Each member runs the same
 * function, its act.
 */
#ifndef TESTS_LIB_LANE_TEAM_H
#define TESTS_LIB_LANE_TEAM_H

#include "collectives/lane/lane.h"
#include "collectives/link/links.h"
#include "tests/lib/fake_link.h"

#define TEAM_MAX 17

struct team;
struct team_member {
    struct team *team;
    uint32_t index;
    struct traffic traffic;
    struct lane lane;
    uint64_t number; /* operations so far */

    int rc;          /* the result of its act */
    char wrong[256]; /* the first thing that was wrong; "": nothing */
    uint64_t sum;    /* checksum of all its results */
    uint32_t lost;   /* the rank that this member has found lost; TRAFFIC_NOBODY: none */
};

struct team {
    uint32_t size;
    struct fake_net *net; /* NULL: the links are real */
    struct team_links *real;
    struct team_member members[TEAM_MAX];
    uint32_t ranks[TEAM_MAX];
    const void *arg; /* an argument for the act */
};

/* Member i has rank i; in team_open_among it has ranks[i] of rank_count. */
void team_open(struct team *team, uint32_t size);
void team_open_among(struct team *team, uint32_t size, const uint32_t *ranks, uint32_t rank_count);
void team_open_links(struct team *team, uint32_t size, enum link_kind kind);
void team_close(struct team *team); /* nothing happens when size is 0 */

void team_run(struct team *team, void (*act)(struct team_member *member), const void *arg);

/* The first thing that was wrong in any member; NULL: nothing. */
const char *team_wrong(const struct team *team);

/* Describes the next operation of this member. */
struct fingerprint team_fingerprint(struct team_member *member, enum coll_kind kind, hvd_dtype type,
                                    hvd_op op, uint64_t count);
/* Begins the operation. If the member before it in the lane has another fingerprint, the result is
 * HVD_E_MISMATCH and all links are cancelled. */
int team_begin(struct team_member *member, const struct fingerprint *ours, const void *first,
               size_t length) MUST_CHECK;

#endif
