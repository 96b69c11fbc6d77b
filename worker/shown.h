/*
 * shown.h: what the loop of this worker does when, in the timeline (docs/timeline.md): its rounds,
 * its commits, and each change from one round to the next, cut into phases that leave no gap:
 *
 *     shown_returned ──agree──► shown_enters ──connect──► ──state──► shown_trains ──first step──►
 *     shown_stepped              each ended by shown_phase; a round that is given up on the way
 *                                begins them again
 *
 * Without HVD_TIMELINE there is none, and each call is a branch. All but shown_news are for the
 * loop: they may wait for a disk.
 */
#ifndef WORKER_SHOWN_H
#define WORKER_SHOWN_H

#include "proto/msg.h"
#include "proto/place.h"
#include "timeline/timeline.h"

#include <stdatomic.h>

#define SHOWN_NAME_MAX 320 /* a host's name, and numbers */

struct shown {
    struct timeline *timeline;
    char name[SHOWN_NAME_MAX]; /* without the rank */
    _Atomic int64_t news_us;   /* when it was known that the round is over; 0: it is not */

    uint64_t round;
    struct place place;
    int64_t round_us;  /* since when it trains in it */
    int64_t change_us; /* since when the change is under way; 0: none is */
    int64_t phase_us;  /* since when its phase is */
    int64_t free_us;   /* what changes showed before ends here */
    enum msg_cause cause;
    bool stepped;   /* in this round */
    bool has_begun; /* it has trained in some round */
};

/* As the environment says, or not at all; what is wrong with it is said on standard error. welcome
 * NULL: alone. */
void shown_open(struct shown *shown, const struct msg_welcome_worker *welcome,
                uint64_t incarnation);
void shown_close(struct shown *shown);

/* The round is over, or about to be. Any thread, never waits; the first time counts. */
void shown_news(struct shown *shown);

/* ---- the loop -------------------------------------------------------------------------------- */

void shown_enters(struct shown *shown, enum msg_cause cause);
void shown_phase(struct shown *shown, const char *name, int code); /* it has ended, so */
void shown_round(struct shown *shown, uint64_t round, const struct place *place);
void shown_trains(struct shown *shown);
void shown_stepped(struct shown *shown);
void shown_returned(struct shown *shown, int code);

/* A commit, a restore or a fetch. */
struct shown_copy {
    const char *what;
    uint64_t commit, bytes;
    int code;
    int64_t begun_us, ended_us;
};
void shown_copy(struct shown *shown, const struct shown_copy *copy);

#endif
