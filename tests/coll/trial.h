/*
 * trial.h: a round between processes that is broken off at a random moment. What is done to whom,
 * and how each of the others took it.
 */
#ifndef TESTS_COLL_TRIAL_H
#define TESTS_COLL_TRIAL_H

#include "base/time.h"
#include "tests/coll/crew.h"

#include <stdatomic.h>

#define TRIAL_BOUND_US (10 * TIME_S) /* whoever has not returned by then hangs */
#define TRIAL_LONG_US  (60 * TIME_S) /* for what is not measured */

enum trial_engine {
    ENGINE_SHM,
    ENGINE_HIERARCHY,
    ENGINE_FLAT,
    ENGINE_HIERARCHY_GLOO,
    ENGINE_FLAT_GLOO,
    ENGINE_COUNT
};

enum trial_deed {
    DEED_KILL,        /* and the others are told */
    DEED_KILL_SILENT, /* they see it by themselves */
    DEED_KILL_TWO,
    DEED_STOP,
    DEED_CANCEL,     /* nobody is hurt */
    DEED_CANCEL_ONE, /* the others see it by themselves */
    DEED_CONNECT,    /* a death while they connect */
    DEED_DROP,       /* packets between hosts vanish */
    DEED_COUNT
};

extern const char *const trial_engines[ENGINE_COUNT];
extern const char *const trial_deeds[DEED_COUNT];

struct trial {
    uint64_t seed, number;
    enum trial_engine engine;
    enum trial_deed deed;
    struct crew_layout layout;
    uint32_t hurt[2], hurt_count;
    int64_t after_us;            /* the members have begun to work */
    const char *const *networks; /* NULL: everything is on this machine's loopback */
};

void trial_make(struct trial *trial, uint64_t seed, uint64_t number, const char *const *networks);
bool trial_hurts(const struct trial *trial, uint32_t rank);
void trial_show(const struct trial *trial, char text[160]);

/* What all see. Written by a member, and by the test before it says the letter. */
struct trial_member {
    char contact[CREW_CONTACT_MAX];
    uint32_t team;      /* of the second round */
    uint32_t operation; /* COLL_ALLREDUCE...: in progress when it ended */
    int code;           /* what it ended with */
    int64_t told_us, returned_us;
    atomic_uint_fast64_t acts; /* operations done */
    char why[ERR_TEXT_MAX];    /* as it was told */
    char wrong[640];
};

struct trial_shared {
    struct trial_member members[CREW_MAX];
};

/* member.c. Letters from a member: c (it has an engine), r (it has returned), d (all done), w
 * (wrong). To it: g (here are the contacts), x (cancel), n (the next round, with the same team),
 * and q (no further round). */
struct trial_seat {
    const struct trial *trial;
    struct trial_shared *shared;
};
int trial_member(uint32_t rank, int talk, void *seat);

#endif
