/*
 * world_app.h: the training program that the workers run: a loop whose state (struct world_model)
 * is the number of its steps and a hash of the steps' history. So two members with different
 * histories have different states.
 */
#ifndef TESTS_WORLD_WORLD_APP_H
#define TESTS_WORLD_WORLD_APP_H

#include "tests/world/world_queue.h"
#include "worker/core/session.h"

struct world_worker;
struct world_agent;

struct world_model {
    uint64_t step;
    uint64_t hash;
};

/* The commits that an agent keeps for a slot: the newest commit and the one before. */
struct world_kept {
    size_t count;
    struct {
        uint64_t commit;
        struct world_model model;
    } items[2]; /* the newest commit first */
};

enum world_place {
    LOOP_OUTSIDE,    /* the program starts, builds its state, or waits for a round */
    LOOP_RESETTING,  /* in DO_ENTER: runs its own reset callback */
    LOOP_CONNECTING, /* in DO_ENTER: connects with all members of the round */
    LOOP_SYNCING,    /* in DO_ENTER: fetches the commit */
    LOOP_COMPUTING,  /* in train: computes alone */
    LOOP_COLLECTIVE, /* in train: waits for all members */
    LOOP_PERSISTING, /* in train: waits for a checkpoint */
    LOOP_CHECKING,   /* in train: waits for DO_ANSWER */
    LOOP_RETURNED,   /* train has returned */
    LOOP_RESTORING,
    LOOP_OVER, /* hvd_elastic_run has returned */
    LOOP_STUCK /* in a call of a device's driver that never returns */
};

/* A round as the driver told its members, and how far the members are. */
struct world_round {
    uint64_t number;
    uint64_t commit;
    struct msg_ids holders;
    struct msg_source_list sources;
    size_t count;
    struct world_worker **members;
    bool broken;    /* true: a member has gone, so a wait for all members does not end */
    bool connected; /* true: all members have connected */
    bool finishing; /* true: an event that ends the wait is under way */
    uint64_t steps;
    struct world_frame *frame; /* the message ROUND */
};

struct world_loop {
    enum world_place place;
    uint64_t token; /* changes with the place, so that an event for an earlier place is dropped */
    struct world_model model;
    struct world_round *round; /* NULL: no round yet */
    uint64_t commit_place;     /* place of the last commit of this round */
    uint64_t persist;          /* the commit that is wanted in a checkpoint; 0: none */
    uint64_t checks;
    uint64_t cancelled; /* this round and all rounds before it are cancelled */
    uint64_t steps;     /* steps of this round */
    int code;           /* the code that train returns */
    int64_t stall_us;   /* the next computation takes this much longer */
    int64_t reset_us;   /* the next reset callback takes this much longer */
    int64_t since_us;   /* when the loop came to its place */
    int64_t entered_us, connected_us, synced_us;
    int64_t said_us; /* when the watchdog last reported the loop */
    bool prepared;
    bool watched;
    bool settled; /* true: the driver was last told the commits in `held` */
    struct world_kept held;
};

/* builds the state; then the session gets RUN */
void app_build(struct world *world, struct world_worker *worker);
void app_do(struct world *world, struct world_worker *worker, const struct session_action *action);
/* The loop is stuck in a device call: reports that to the session, if the library can. */
void app_stick(struct world *world, struct world_worker *worker);
void app_member_gone(struct world *world, struct world_worker *worker);
void app_stepped(struct world *world, struct world_worker *worker);
void app_connected(struct world *world, struct world_worker *worker);
void app_watch(struct world *world); /* in world_watch.c */
void app_retry(struct world *world); /* after a host can be reached again */
struct world_round *round_enter(struct world *world, const struct world_worker *worker,
                                const struct msg *msg);
void round_try(struct world *world, struct world_round *round);
void world_round_release(struct world_round *round);
void kept_put(struct world_kept *kept, uint64_t commit, struct world_model model);
uint64_t model_checksum(struct world_model model);
struct world_round *world_round_of(const struct world *world, uint64_t number);

#endif
