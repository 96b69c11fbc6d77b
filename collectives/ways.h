/*
 * ways.h: in which way an allreduce goes. Several come into question for most sizes: in the first
 * operations of a size in a round each is tried a few times, then all members take the one that was
 * the fastest. What they do depends on what all of them know alone.
 */
#ifndef COLLECTIVES_WAYS_H
#define COLLECTIVES_WAYS_H

#include "collectives/group.h"
#include "collectives/lane/lane.h"

struct way {
    bool alone;         /* on one host: each member reduces everything by itself */
    bool leader;        /* between hosts: of each one member talks to the others */
    size_t chunk_bytes; /* over a board */
    enum lane_way lane; /* without one */
};

#define WAYS_MAX 4

/* The likeliest first. bytes: of all numbers; work_bytes: in the type in which they are worked on.
 * Returns how many. */
size_t ways_for(const struct group *group, size_t bytes, size_t work_bytes,
                struct way ret_ways[WAYS_MAX]);

enum lane_way ways_along_lane(size_t work_bytes); /* the likeliest */
bool ways_at_once(size_t work_bytes); /* LANE_GATHER, whose numbers go along with the opening */

/* ---- trying them ---- */

#define TRIAL_CLASSES 48 /* powers of two */
#define TRIAL_RUNS    4  /* of each way */

struct trial {
    uint32_t runs; /* so far, of all ways */
    uint32_t choice;
    bool settled;
    float least_us[WAYS_MAX]; /* each way has taken */
};

struct trials {
    struct trial classes[TRIAL_CLASSES];
};

/* The way to take now, as an index; try: it is a trial, to be noted afterwards. */
uint32_t trial_way(const struct trials *trials, size_t bytes, size_t count, bool *ret_try);

/* true: all have been tried. Then their times are to be made the same on all members, by the least,
 * as who comes last waits for nobody; and it is settled. */
bool trial_note(struct trials *trials, size_t bytes, size_t count, uint32_t way, int64_t took_us);
float *trial_times(struct trials *trials, size_t bytes);
void trial_settle(struct trials *trials, size_t bytes, size_t count);

#endif
