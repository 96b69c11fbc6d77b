/*
 * trial.h: a round between processes that is broken off at a random moment: the harm, the ranks
 * that are hurt, and the outcome of each other rank.
 */
#ifndef TESTS_COLL_TRIAL_H
#define TESTS_COLL_TRIAL_H

#include "base/time.h"
#include "tests/coll/processes.h"

#include <stdatomic.h>

/* The bound of a hang, for each wait: a busy machine does not take so long. */
#define TRIAL_PATIENCE_US (180 * TIME_S)

enum trial_engine {
    ENGINE_SHM,
    ENGINE_HIERARCHY,
    ENGINE_FLAT,
    ENGINE_HIERARCHY_GLOO,
    ENGINE_FLAT_GLOO,
    ENGINE_COUNT
};

enum trial_harm {
    HARM_KILL,        /* killed, and the other members are told */
    HARM_KILL_SILENT, /* killed, and the other members notice it by themselves */
    HARM_KILL_TWO,
    HARM_STOP,
    HARM_CANCEL,     /* cancelled; no member is hurt */
    HARM_CANCEL_ONE, /* one member is cancelled; the others notice it by themselves */
    HARM_CONNECT,    /* a death while the members connect */
    HARM_DROP,       /* packets between hosts are lost */
    HARM_COUNT
};

extern const char *const trial_engines[ENGINE_COUNT];
extern const char *const trial_harms[HARM_COUNT];

struct trial {
    uint64_t seed, number;
    enum trial_engine engine;
    enum trial_harm harm;
    struct processes_layout layout;
    uint32_t hurt[2], hurt_count;
    int64_t after_us;            /* time of the harm, from when the members begin to work */
    const char *const *networks; /* NULL: all members are on this machine's loopback address */
};

void trial_make(struct trial *trial, uint64_t seed, uint64_t number, const char *const *networks);
bool trial_hurts(const struct trial *trial, uint32_t rank);
void trial_show(const struct trial *trial, char text[160]);

/* Shared by all processes. The member writes it, and the test writes only before it sends a letter.
 */
struct trial_member {
    char contact[PROCESSES_CONTACT_MAX];
    uint32_t team;      /* team number of the second round */
    uint32_t operation; /* the operation in progress when the round ended: COLL_ALLREDUCE... */
    int code;           /* the result of that operation */
    int64_t told_us, returned_us;
    atomic_uint_fast64_t acts; /* operations done */
    char why[ERR_TEXT_MAX];    /* the error text of the operation */
    char wrong[640];
};

struct trial_shared {
    struct trial_member members[PROCESSES_MAX];
};

/* The process of a member (member.c). Letters from a member: c (it has an engine), r (it has
 * returned), d (all done), w (wrong). Letters to a member: g (the contacts are written), x
 * (cancel), n (run the next round, with the same team), q (no further round). */
struct trial_seat {
    const struct trial *trial;
    struct trial_shared *shared;
};
int trial_member(uint32_t rank, int talk, void *seat);

#endif
