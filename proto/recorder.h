/*
 * recorder.h: the flight recorder: the last activities of a worker (collectives, commits, phases of
 * a round), in the page that the worker shares with its agent (page.h). The page outlives the
 * worker, so an agent can say what a dead worker was doing.
 *
 * The threads of a worker write without locks and never wait. A worker may die on any line,
 * and the agent may read at any moment: `turn` is odd as long as a slot is being written, so a
 * half-written slot is seen, and is not read. The worker's memory is foreign input for the agent.
 */
#ifndef PROTO_RECORDER_H
#define PROTO_RECORDER_H

#include "base/base.h"

#define RECORDER_SLOTS      48 /* activities that are kept */
#define RECORDER_NAME_BYTES 23 /* a longer name is cut */

struct activity {
    char name[RECORDER_NAME_BYTES + 1]; /* the bytes behind the name are 0 */
    uint64_t round;                     /* the round to which the activity belongs; 0: none */
    uint64_t number; /* of a collective or commit in that round; 0: the activity has no number */
    uint64_t bytes;
    int64_t began_us; /* on the monotonic clock of the host, some milliseconds late at most */
    int64_t ended_us; /* 0: the activity has not ended */
    int64_t code;     /* the result, an enum hvd_code; valid only if ended_us is not 0 */
};

#define ACTIVITY_WORDS (sizeof(struct activity) / sizeof(uint64_t))

struct recorder_slot {
    _Atomic uint64_t
        turn; /* twice the number of the activity; one less while it is being written */
    _Atomic uint64_t words[ACTIVITY_WORDS];
};

/* Zeroed memory is a recorder without activities. */
struct recorder {
    _Atomic uint64_t count; /* activities that have begun */
    _Atomic uint64_t place; /* the rank in the high 32 bits, below it the size; 0: no round yet */
    _Atomic uint64_t round; /* the number of that round */
    _Atomic uint64_t step;  /* the number of the running step in its round, from 1; 0: none */
    struct recorder_slot slots[RECORDER_SLOTS];
};

/* A recorder as an agent has read it. */
struct recorded {
    struct activity items[RECORDER_SLOTS]; /* in the order in which they began */
    size_t count;
    uint32_t rank, size; /* size 0: the worker was in no round */
    uint64_t round;
    uint64_t step;
};

/* Records that an activity has begun; ended_us and code are ignored. Returns its number for
 * recorder_end. 0: the activity is not recorded, because another thread still writes its slot, or
 * `recorder` is NULL. Any thread may call it. */
uint64_t recorder_begin(struct recorder *recorder, const struct activity *activity);

/* Records the end of an activity, unless later activities have taken its slot. number 0 or recorder
 * NULL: nothing happens. */
void recorder_end(struct recorder *recorder, uint64_t number, int64_t now_us, int code);

/* Record the round, the place of the worker in it, and the step that begins. recorder may be NULL.
 */
void recorder_set_place(struct recorder *recorder, uint64_t round, uint32_t rank, uint32_t size);
void recorder_set_step(struct recorder *recorder, uint64_t step);

/* Reads what the worker has recorded, at any moment. Slots that are being written, or that no
 * worker of ours can have written, are left out. */
void recorder_read(const struct recorder *recorder, struct recorded *ret_recorded);

#endif
