/*
 * annals.h: what a driver's events say about rounds, and whether that can be: numbers that only
 * rise, a commit that is never gone back behind, each member once, who stays in the order that was,
 * an incarnation that is launched once.
 *
 * It knows the job only from the lines of events.log, so it shares no code with what decides.
 */
#ifndef TESTS_CHAOS_ANNALS_H
#define TESTS_CHAOS_ANNALS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

#define ANNALS_NAME   64
#define ANNALS_RECENT 64 /* rounds that are remembered */

struct annals_seat {
    char name[ANNALS_NAME]; /* "127.0.0.2:1" */
    uint64_t incarnation;   /* the last that was launched there; 0: not known */
    uint64_t was_in;        /* its incarnation in the last round that it was in, */
    uint64_t round;         /* that round, */
    uint32_t rank;          /* and its rank there */
};

struct annals_round {
    uint64_t number; /* 0: of this place nothing is known */
    uint64_t first;  /* incarnation of its rank 0; 0: not known */
};

struct annals {
    char path[256];
    size_t read; /* bytes of the file */
    struct buf rest;
    struct VEC(struct annals_seat) seats;
    struct annals_round recent[ANNALS_RECENT]; /* by their number */
    uint64_t round;
    uint64_t launched;  /* the newest incarnation, */
    uint64_t lived;     /* and the newest of which more is known than that */
    uint64_t commit[2]; /* with which it begins: round and place, */
    uint64_t floor[2];  /* and the newest from which a round has trained */
    uint64_t trained;   /* that round */
    uint32_t size;      /* of the round; 0: its members are not known */
    uint64_t before;    /* the round before it whose members are known; 0: none */
    uint64_t missing;   /* lines, that a failing disk has cost */
};

void annals_init(struct annals *annals, const char *path);
void annals_release(struct annals *annals);

/* What is new in the file: HVD_E_MISMATCH names what cannot be. A file that has begun anew is read
 * from its beginning. */
int annals_read(struct annals *annals, struct hvd_err *err) MUST_CHECK;

/* Was rank 0 of both rounds the same process? False also where that is not known. */
bool annals_same_first(const struct annals *annals, uint64_t one, uint64_t other);

/* One line, without its newline. */
int annals_line(struct annals *annals, const char *line, struct hvd_err *err) MUST_CHECK;

#endif
