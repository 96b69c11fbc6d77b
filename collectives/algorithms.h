/*
 * algorithms.h: the algorithms of an allreduce. For most sizes several algorithms may be the
 * fastest. The first operations of a size in a round try each algorithm a few times; then all
 * members settle on the fastest one. The choice depends only on values that are equal on all
 * members.
 */
#ifndef COLLECTIVES_ALGORITHMS_H
#define COLLECTIVES_ALGORITHMS_H

#include "collectives/group.h"
#include "collectives/lane/lane.h"

struct algorithm {
    /* true: all members are on one host, and each member reduces all numbers by itself */
    bool alone;
    /* several hosts: only one member of each host exchanges data with other hosts */
    bool leader;
    /* the bytes of one chunk, when members of one host exchange chunks over a board
     * (shm/board.h) */
    size_t chunk_bytes;
    /* the algorithm between hosts, when every member is alone on its host */
    enum lane_algorithm lane;
};

#define ALGORITHMS_MAX 4 /* the longest list of algorithms_for */

/* Lists the algorithms that may be the fastest, the most promising one first. bytes: the size of
 * all numbers in their own type; work_bytes: their size in the type in which the reduction
 * computes. Returns the length of the list. */
size_t algorithms_for(const struct group *group, size_t bytes, size_t work_bytes,
                      struct algorithm ret_algorithms[ALGORITHMS_MAX]);

/* Returns the most promising algorithm for a lane. work_bytes: the size of all numbers in the work
 * type. With LANE_GATHER the numbers are sent in the same message as the fingerprint. */
enum lane_algorithm algorithm_along_lane(size_t work_bytes);

/* ---- trials: an algorithm is run and timed ---- */

#define TRIAL_CLASSES 48 /* number of size classes: one class for each power of two */
#define TRIAL_RUNS    4  /* how many times each algorithm is tried */

struct trial {                      /* what is known about the algorithms for one size class */
    uint32_t runs;                  /* trials so far, of all algorithms together */
    uint32_t choice;                /* index of the chosen algorithm; valid if `settled` is true */
    bool settled;                   /* true: all algorithms were tried, and one is chosen */
    float least_us[ALGORITHMS_MAX]; /* the shortest time of each algorithm; 0: not tried yet */
};

struct trials {
    struct trial classes[TRIAL_CLASSES];
};

/* In these functions `bytes` is the size of all numbers, and `count` is what algorithms_for has
 * returned for it. Each call concerns the size class of `bytes`. */

/* Returns the index of the algorithm for the next operation. *ret_try: true: this operation is a
 * trial, and the caller reports its time with trial_note. */
uint32_t trial_choose(const struct trials *trials, size_t bytes, size_t count, bool *ret_try);

/* Notes the time of a trial. Returns true when each algorithm has now been tried TRIAL_RUNS times.
 * The members must then agree: they set each time to the least of all members' times (the member
 * that arrives last at an operation waits for no other member, so its time is the true one), and
 * settle the choice. trial_times returns the array of these times; trial_settle chooses the fastest
 * algorithm. */
bool trial_note(struct trials *trials, size_t bytes, size_t count, uint32_t algorithm,
                int64_t took_us);
float *trial_times(struct trials *trials, size_t bytes);
void trial_settle(struct trials *trials, size_t bytes, size_t count);

#endif
