/*
 * coll_team.h: rounds between engines of this process: each member is a thread with an engine of
 * its own.
 */
#ifndef TESTS_LIB_COLL_TEAM_H
#define TESTS_LIB_COLL_TEAM_H

#include "collectives/coll.h"
#include "tests/lib/test.h"
#include "tests/lib/threads.h"

#define COLL_TEAM_MAX     9
#define COLL_TEAM_LONG_US (100 * INT64_C(1000000)) /* longer than any operation of a test takes */

extern const uint8_t coll_team_secret[LIMIT_ROUND_SECRET_BYTES]; /* the secret of all rounds */

struct team {
    uint32_t size;
    uint64_t round;
    const struct coll_ranks *groups; /* the groups of the rounds that are made from here on */
    size_t group_count;
    struct coll_engine *engines[COLL_TEAM_MAX];
    struct coll_peer peers[COLL_TEAM_MAX];
    struct coll *colls[COLL_TEAM_MAX];
    int rc[COLL_TEAM_MAX];
    struct hvd_err err[COLL_TEAM_MAX];
    int64_t timeout_us;
    bool away[COLL_TEAM_MAX]; /* true: this member does not act */
    int way;                  /* a number for the test's act, for example which variant to run */
    void (*act)(struct team *team, uint32_t rank);
    struct threads threads;
};

/* hosts names the host of each member by a letter: "aab". options may be NULL: the defaults. Opens
 * round 1. */
int team_open(struct team *team, const char *hosts, const struct coll_options *options);
/* The same, for a list of layouts that a test goes through: "aab" has the default options, "gloo
 * aab" and "tcp aab" have links of this carrier alone, without shared memory and without groups of
 * a host, and "ordered aab" has a fixed order. */
int team_open_layout(struct team *team, const char *layout);
void team_close(struct team *team); /* nothing happens when team->size is 0 */

/* Makes the objects of a round. A second call makes another round of the same members. */
int team_make(struct team *team, uint64_t round);
void team_part(struct team *team);

/* Each member that is not away runs act, and stores its result in rc. */
void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank));
void team_start(struct team *team, void (*act)(struct team *team, uint32_t rank));
void team_await(struct team *team);

void team_act_connect(struct team *team, uint32_t rank);

#endif
