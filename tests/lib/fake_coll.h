/*
 * fake_coll.h: collectives of one process in place of collectives/, for tests of who calls them and
 * when. An operation notes its number (the count of the call) and, if it is asked to, stays inside
 * until it is let go or cancelled.
 */
#ifndef TESTS_LIB_FAKE_COLL_H
#define TESTS_LIB_FAKE_COLL_H

#include "collectives/coll.h"

#define FAKE_RAN_MAX 64

struct fake_coll_seen {
    size_t ran[FAKE_RAN_MAX]; /* the counts, in the order in which they came */
    size_t ran_count;
    size_t group; /* of the last */
    uint32_t root;
    size_t group_count; /* of the last roster */
    unsigned made, freed;
    char refused[ERR_TEXT_MAX];
};

void fake_coll_reset(void);
struct fake_coll_seen fake_coll_seen(void);

/* From here on the operation of this count stays inside; 0: none does. */
void fake_coll_hold(size_t count);
/* Until it is inside. false: it does not come. */
bool fake_coll_await(size_t count);
void fake_coll_go(void);
/* The operation of this count fails so. */
void fake_coll_fail(size_t count, int code);

#endif
