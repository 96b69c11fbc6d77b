/*
 * checkpoint_internal.h: the part of the core's data that is about checkpoints. Only
 * core_internal.h includes this file; the rules about owners and units stand in core_internal.h.
 */
#ifndef DRIVER_CORE_CHECKPOINT_INTERNAL_H
#define DRIVER_CORE_CHECKPOINT_INTERNAL_H

#include "base/vec.h"
#include "driver/core/core.h"

struct core_host;

enum checkpoint_state {
    CHECKPOINT_IDLE,
    CHECKPOINT_HOLDING, /* agents were told HOLD; not all have said HOLDING */
    CHECKPOINT_SAVING,  /* agents were told SAVE; not all files are SAVED */
    CHECKPOINT_WRITING  /* the driver writes the manifest */
};

/* A file of a checkpoint, and the host whose agent writes the file. */
struct checkpoint_part {
    struct core_host *host;
    bool saved;
    struct saved_file file; /* its name and checksums lie in core_checkpoint.memory */
};

/* The slot of a member of the round, whose agent keeps its commits; the member may have ended. */
struct checkpoint_place {
    struct core_host *host;
    uint32_t slot;
};

/* The PERSIST of a worker that has no answer yet. Owner: checkpoint_ask.c. */
struct worker_persist {
    /* the commit that the worker wants in a checkpoint; 0: no PERSIST of the worker waits for an
     * answer */
    uint64_t commit;
    int64_t since_us;
};

/* An operator who waits (request `ask`) for a checkpoint whose attempt begins after since_us. */
struct checkpoint_asker {
    uint64_t ask;
    int64_t since_us;
};

/* The requests for a checkpoint that have no answer yet. Owner: checkpoint_ask.c. */
struct checkpoint_waiting {
    bool workers; /* a worker may wait for the answer to its PERSIST (struct worker) */
    struct VEC(struct checkpoint_asker) operators;
};

/* Checkpoints of the state on disk. Owner: checkpoint.c. */
struct core_checkpoint {
    enum checkpoint_state state;
    /* When the request came to end the job after one more checkpoint; TIME_NEVER: there is no such
     * request. `last_by`: a text that says where the request came from. */
    int64_t last_us;
    char last_by[64];
    bool wanted;         /* an attempt was asked for: it begins as soon as all members train */
    uint32_t attempts;   /* number of attempts of this driver */
    uint32_t failures;   /* number of attempts in a row that failed */
    uint32_t mismatches; /* number of attempts in a row in which members kept different commits */
    uint64_t number;     /* the number of the newest attempt, made of the term and `attempts` */
    uint64_t round;      /* HOLDING: the round whose members keep a commit */
    uint64_t at;         /* HOLDING: the lowest commit that may be kept */
    /* HOLDING: the highest commit that workers have asked for by PERSIST when the attempt began; 0:
     * none. A member has this commit, so all other members have it soon. */
    uint64_t asked;
    bool only; /* HOLDING: no other commit than `at` may be kept */
    /* The attempt takes the commits that agents keep of members that do not train any more (the job
     * recovers). `stood`: the round whose last commit was written in this way; 0: none. */
    bool standing;
    uint64_t stood;
    /* its members have left this round by a switch: its commits are written no more */
    uint64_t passed;
    bool leaving;     /* all hosts with members are to leave */
    uint64_t commit;  /* the commit of the newest attempt; 0: not known yet */
    int64_t since_us; /* when the newest attempt began */
    int64_t due_us;   /* when the next attempt begins; TIME_NEVER: not by itself */
    /* HOLDING: when all agents must have answered; TIME_NEVER: no limit, because workers have not
     * made the commit yet. */
    int64_t answers_us;
    /* HOLDING: when the driver asks for the newest commit instead of a commit that is still to
     * come; TIME_NEVER: never */
    int64_t impatient_us;
    size_t missing; /* HOLDING: members without a commit. SAVING: files that are not saved */
    struct VEC(struct checkpoint_place) places; /* the slot of each member; the index is the rank */
    struct VEC(uint64_t) kept; /* HOLDING: the commit of each member, by rank; 0: not known yet */
    struct VEC(struct checkpoint_part) parts;
    struct checkpoint_waiting waiting;
    struct arena memory; /* memory for file names and checksums of the newest attempt */
    /* `newest`: the commit of the newest complete checkpoint (0: there is none), which is in
     * `folder`. `searching`: the newest checkpoint was found damaged, and the driver looks for an
     * older one. */
    bool searching;
    uint64_t newest;
    char folder[LIMIT_PATH_BYTES + 1];
};

#endif
