/*
 * fake_coll.h: collectives of one process in place of collectives/, for tests of the code that
 * calls them. An operation notes its number (the count of the call, or of all its pieces). If the
 * test asks for it, the operation does not return until it is released or cancelled.
 */
#ifndef TESTS_LIB_FAKE_COLL_H
#define TESTS_LIB_FAKE_COLL_H

#include "collectives/coll.h"

#define FAKE_RAN_MAX 64

struct fake_coll_seen {
    size_t ran[FAKE_RAN_MAX];   /* the counts, in the order of the calls */
    size_t fused[FAKE_RAN_MAX]; /* of how many requests each is made; 0: of one call */
    size_t ran_count;
    size_t group; /* of the last operation */
    uint32_t root;
    size_t group_count;  /* of the last roster */
    uint64_t opened_tag; /* of the last group that was opened by its members alone */
    unsigned opened, channels;
    size_t closed; /* number of the last group that was closed by all ranks */
    unsigned made, freed;
    char refused[ERR_TEXT_MAX];
};

void fake_coll_reset(void);
struct fake_coll_seen fake_coll_seen(void);

/* From here on the operation with this count does not return before fake_coll_go; 0: none waits. */
void fake_coll_hold(size_t count);
/* Waits until that operation was called. false: it was not called in time. */
bool fake_coll_await(size_t count);
void fake_coll_go(void);
/* The operation with this count returns this code. */
void fake_coll_fail(size_t count, int code);

#endif
