/*
 * notes.h: what is written down so that it can be said: who waits for whom (stall.c), how often a
 * round has brought nothing (round.c), what changes cost (cost.c), and what a state has to be
 * (manifest.c). Private to this folder.
 */
#ifndef DRIVER_CORE_NOTES_H
#define DRIVER_CORE_NOTES_H

#include "driver/core/view.h"

#define WAIT_NAMES_MAX 8 /* of those that are missing: when these are gone, others are named */

/* What a worker has said of a wait. */
#define WAIT_OPERATION_MAX 64
#define WAIT_SAID_MAX      512

struct worker_wait {
    int64_t said_us;
    int64_t waited_us; /* by then; 0: nothing was said, or it is over */
    bool itself;       /* it waits for nobody: its own loop does not move */
    bool at_check;
    size_t count;
    uint64_t missing[WAIT_NAMES_MAX];
    char operation[WAIT_OPERATION_MAX];
};

struct stall_notes {
    int64_t look_us;          /* then what workers say of their waits is put together */
    int64_t warn_us;          /* then it is said who has not come, */
    int64_t since_us;         /* since then */
    int64_t said_us;          /* the last warning */
    char said[WAIT_SAID_MAX]; /* of whom, and in what */
};

struct vain_notes {
    uint32_t barren;       /* rounds in a row that brought nothing */
    uint32_t mismatches;   /* of those, the last ones, that ended as ranks do not do the same */
    uint64_t reached;      /* checksum of the newest commit when that was last looked at */
    int64_t not_before_us; /* the next round */
    char mismatch[LIMIT_REASON_BYTES + 1]; /* what the newest was about */
    char waited[WAIT_SAID_MAX]; /* for whom the last of them waited when it was revoked, or "" */
};

struct cost_notes {
    struct view_change now; /* of the change to the current round */
    int64_t since_us;       /* TIME_NEVER: from before this driver knew of it */
    int64_t lost_us;        /* since then nobody trains */
    int64_t prepare_us;     /* since then a switch is under way */
    size_t size_before;     /* of the last round in which all trained */
    struct view_change kept[VIEW_CHANGES_MAX];
    size_t count;
};

/* What a state has to be made of. */
struct manifest_notes {
    bool known;
    uint64_t digest;
    struct manifest *first; /* its entries, once somebody has said them */
    uint64_t rival;         /* that of those who were turned away last, before the first round, */
    size_t rivals;          /* and how many of them in a row */
};

#endif
