/*
 * view_parts.h: parts of the visible core that stand for themselves. view.h includes it.
 */
#ifndef DRIVER_CORE_VIEW_PARTS_H
#define DRIVER_CORE_VIEW_PARTS_H

#include "base/base.h"

/* A host or slot that is on the blacklist because of failures. */
struct view_held {
    const char *host;
    uint32_t slot; /* UINT32_MAX: the whole host */
    uint32_t failures;
    int64_t left_us; /* the time until the slot may be used; 0: now; TIME_NEVER: until a clear */
    const char *reason;
};

/* The notices of machines (see notice.h). `under_way`: their hosts still have workers. */
struct view_notices {
    uint32_t ended, honoured, under_way;
    /* the shortest lead time and margin of the honoured notices; TIME_NEVER: none of these had a
     * deadline */
    int64_t least_lead_us, least_margin_us;
};

/* How discovery has worked under this driver. A time of TIME_NEVER: this has never happened. */
struct view_discovery {
    int64_t worked_us;   /* when discovery last named hosts */
    int64_t failed_us;   /* when discovery last failed */
    int64_t asked_us;    /* when the present attempt began; TIME_NEVER: no attempt runs */
    uint32_t failures;   /* number of failures in a row up to now */
    const char *failure; /* why discovery last failed; "": it has never failed */
};

/* The newest complete checkpoint. `commit` 0: there is none. */
struct view_checkpoint {
    uint64_t commit;
    /* when this driver heard that the checkpoint is complete; TIME_NEVER: an earlier driver heard
     * it */
    int64_t made_us;
    uint64_t written; /* number of checkpoints that were completed under this driver */
    uint64_t failed;  /* number of attempts under this driver that failed */
};

/* How long changes of membership took under this driver, by phase (see struct view_change).
 * counts[i]: how many took at most pause_bounds_us[i], and more than the bound before; the last
 * count is of those that took longer than each bound. */
enum pause_phase {
    PAUSE_WHOLE,
    PAUSE_DETECT,
    PAUSE_AGREE,
    PAUSE_REBUILD,
    PAUSE_STATE,
    PAUSE_FIRST_STEP,
    PAUSE_PHASE_COUNT
};
#define PAUSE_BOUNDS 12
extern const int64_t pause_bounds_us[PAUSE_BOUNDS];
struct view_histogram {
    uint64_t counts[PAUSE_BOUNDS + 1];
    int64_t sum_us;
};

/* For what time is used (see goodput.h). */
enum goodput_use {
    GOODPUT_TRAINING,   /* all members train */
    GOODPUT_START,      /* workers start, and the first round is built */
    GOODPUT_RECOVERY,   /* a round is revoked: survivors stop, and the next round is agreed on */
    GOODPUT_REBUILD,    /* the next round is built: connections, state, first step */
    GOODPUT_SWITCH,     /* members change over to the next round; as they have measured it */
    GOODPUT_WAITING,    /* too few workers or hosts are there */
    GOODPUT_LOST_STEPS, /* training that was made again, because no commit of its round was left */
    GOODPUT_NO_DRIVER,  /* no driver lived, and the round has not been seen to train since */
    GOODPUT_ENDING,     /* a worker has finished, or the job was stopped */
    GOODPUT_COUNT
};
const char *goodput_use_name(enum goodput_use use);

/* A time, and the sum of this time over all workers for which it counts. */
struct goodput_part {
    int64_t time_us, worker_us;
};

/* How often workers of a host have failed during the job. */
struct view_failures {
    const char *host; /* "": all hosts that have no entry of their own */
    uint64_t count;
};

struct view_goodput {
    struct goodput_part sums[GOODPUT_COUNT];
    const struct view_failures *failures;
    size_t failure_count;
};

/* A token with which hosts may join. */
struct view_token {
    const char *id;
    const char *host;    /* the only host that may use it; "": any */
    uint32_t uses, used; /* hosts that may use the token (0: any); hosts that have used it */
    int64_t left_us;     /* time until the token expires; 0: expired; TIME_NEVER: never */
    bool revoked;
};

struct view_tokens {
    const struct view_token *items;
    size_t count;
};

/* How long the job has had too few workers; both times are TIME_NEVER when it has enough. */
struct view_shortage {
    int64_t since_us, fails_us; /* since when it has too few; when it fails, unless workers come */
    size_t kept; /* members that must leave and stay, as too few would be left without them */
};

#endif
