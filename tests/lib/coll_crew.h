/*
 * coll_crew.h: rounds between engines of this process: each member is a thread with one of its own.
 */
#ifndef TESTS_LIB_COLL_CREW_H
#define TESTS_LIB_COLL_CREW_H

#include "collectives/coll.h"
#include "tests/lib/test.h"

#include <pthread.h>

#define COLL_CREW_MAX     9
#define COLL_CREW_LONG_US (30 * INT64_C(1000000)) /* nothing here takes that long */

struct crew;

struct crew_seat {
    struct crew *crew;
    uint32_t rank;
    pthread_t thread;
};

struct crew {
    uint32_t size;
    uint64_t round;
    const struct coll_ranks *groups; /* of the rounds made from here on */
    size_t group_count;
    struct coll_engine *engines[COLL_CREW_MAX];
    struct coll_peer peers[COLL_CREW_MAX];
    struct coll *colls[COLL_CREW_MAX];
    int rc[COLL_CREW_MAX];
    struct hvd_err err[COLL_CREW_MAX];
    int64_t timeout_us;
    bool away[COLL_CREW_MAX]; /* does not act */
    int way;                  /* for those who act */
    void (*act)(struct crew *crew, uint32_t rank);
    struct crew_seat seats[COLL_CREW_MAX];
};

/* On which host each is: "aab", one letter for each. options: NULL for the defaults. Round 1. */
int crew_open(struct crew *crew, const char *hosts, const struct coll_options *options);
void crew_close(struct crew *crew); /* crew->size 0: nothing is open */

/* The rounds' objects; making them again is another round of the same members. */
int crew_make(struct crew *crew, uint64_t round);
void crew_part(struct crew *crew);

/* Each that is not away acts, and notes in rc what it has come to. */
void crew_run(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank));
void crew_start(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank));
void crew_await(struct crew *crew);

void crew_act_connect(struct crew *crew, uint32_t rank);

#endif
