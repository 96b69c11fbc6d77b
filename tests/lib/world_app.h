/*
 * world_app.h: the training program that the workers run: a loop whose state is the number of its
 * steps and a hash of their history, so that two states can be told apart that should be one.
 */
#ifndef TESTS_LIB_WORLD_APP_H
#define TESTS_LIB_WORLD_APP_H

#include "tests/lib/world_queue.h"
#include "worker/core/session.h"

struct world_worker;
struct world_agent;

struct world_model {
    uint64_t step;
    uint64_t hash;
};

/* What an agent keeps for a slot: the newest commit and the one before. */
struct world_kept {
    size_t count;
    struct {
        uint64_t commit;
        struct world_model model;
    } items[2]; /* the newest first */
};

enum world_place {
    LOOP_OUTSIDE,    /* boots, builds, or waits for a round */
    LOOP_RESETTING,  /* in DO_ENTER: in its own callback */
    LOOP_CONNECTING, /* in DO_ENTER: with all members of the round */
    LOOP_SYNCING,    /* in DO_ENTER: fetches the commit */
    LOOP_COMPUTING,  /* in train, on its own */
    LOOP_COLLECTIVE, /* in train, waits for all members */
    LOOP_CHECKING,   /* in train, waits for DO_ANSWER */
    LOOP_RETURNED,   /* train has returned */
    LOOP_RESTORING,
    LOOP_OVER, /* hvd_elastic_run has returned */
    LOOP_STUCK /* in a call that never returns, of a device's driver */
};

/* A membership as its members were told it, and where they are in it. */
struct world_round {
    uint64_t number;
    uint64_t commit;
    struct msg_ids holders;
    struct msg_source_list sources;
    size_t count;
    struct world_worker **members;
    bool broken;    /* a member has gone: what waits for all waits in vain */
    bool connected; /* all members have met once */
    bool finishing; /* an event is under way that ends the wait */
    uint64_t steps;
    struct world_frame *frame; /* its ROUND */
};

struct world_loop {
    enum world_place place;
    uint64_t token; /* changes with the place: an event of an earlier one is for nobody */
    struct world_model model;
    struct world_round *round; /* NULL: none yet */
    uint64_t commit_place;     /* of the last commit, in this round */
    uint64_t checks;
    uint64_t cancelled; /* this round and those before it */
    uint64_t steps;     /* in this round */
    int code;           /* that train returns */
    int64_t stall_us;   /* the next computation takes so much longer */
    int64_t reset_us;   /* so does its next reset callback */
    int64_t since_us;   /* it has been at this place */
    int64_t entered_us, connected_us, synced_us;
    int64_t said_us; /* when its watchdog last said so */
    bool prepared;
    bool watched;
    bool settled; /* held says what the driver was told last */
    struct world_kept held;
};

void app_build(struct world *world, struct world_worker *worker); /* then: RUN */
void app_do(struct world *world, struct world_worker *worker, const struct session_action *action);
void app_stick(struct world *world, struct world_worker *worker); /* and says so, if it can */
void app_member_gone(struct world *world, struct world_worker *worker);
void app_stepped(struct world *world, struct world_worker *worker);
void app_connected(struct world *world, struct world_worker *worker);
void app_watch(struct world *world); /* world_watch.c */
void app_retry(struct world *world); /* a host can be reached again */
struct world_round *round_enter(struct world *world, const struct world_worker *worker,
                                const struct msg *msg);
void round_try(struct world *world, struct world_round *round);
void world_round_release(struct world_round *round);
void kept_put(struct world_kept *kept, uint64_t commit, struct world_model model);
uint64_t model_checksum(struct world_model model);
struct world_round *world_round_of(const struct world *world, uint64_t number);

#endif
