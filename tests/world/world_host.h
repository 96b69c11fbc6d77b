/*
 * world_host.h: a machine, the process of its agent, and the processes of its workers.
 */
#ifndef TESTS_WORLD_WORLD_HOST_H
#define TESTS_WORLD_WORLD_HOST_H

#include "agent/core/agent.h"
#include "tests/world/world_app.h"
#include "tests/world/world_lie.h"
#include "tests/world/world_net.h"
#include "tests/world/world_queue.h"
#include "worker/core/session.h"

#define WORLD_SLOTS_MAX 16

/* The commits that an agent holds for a checkpoint. */
struct world_hold {
    uint64_t number; /* of the attempt; 0: none */
    uint64_t round, at;
    bool only; /* no other commit than `at` */
    size_t count;
    uint32_t slots[WORLD_SLOTS_MAX];
    uint64_t commits[WORLD_SLOTS_MAX]; /* 0: the slot's commit has not come yet */
    struct world_model models[WORLD_SLOTS_MAX];
    bool answered;
    int64_t saved_us; /* when the last file is durable */
};

struct world_agent {
    struct world_process process;
    struct world_host *host;
    uint64_t number;
    uint64_t epoch; /* of the key with which it dials */
    struct agent_config config;
    struct agent *core;
    struct agent_action_list actions;
    struct world_link *link; /* NULL: none */
    uint64_t dialling;       /* number of the attempt under way; 0: none */
    struct world_kept kept[WORLD_SLOTS_MAX];
    struct world_hold hold;
    /* the workers by the number of their connection; NULL: the number is free */
    struct VEC(struct world_worker *) workers;
};

struct world_host {
    char name[COMMAND_HOST_MAX];
    bool up;
    uint32_t most_slots; /* the most slots that discovery has ever listed */
    bool cut[END_COUNT]; /* true: nothing arrives at this end */
    /* true: the host's agent does not know the address of the next driver */
    bool astray;
    struct world_agent *agent; /* the newest agent, which may be dead; NULL: none yet */
    unsigned spawn_failures;   /* this many of the next spawns fail */
    enum world_boot boot;      /* how the next process starts */
    int boot_value;
    int64_t boot_us;
    int64_t trouble_us;       /* when the host was last disturbed; -1: never */
    char address[24];         /* where its agent serves commits, as workers say it */
    bool liar;                /* true: its agent has lied, and may end workers of its own */
    bool forges;              /* the next file of a checkpoint is said to be durable, and is not */
    bool claims;              /* the next RECOVERING of its workers claims a commit */
    enum world_lie hello_lie; /* in the agent's next hello; LIE_COUNT: none */
    int64_t drain_us; /* when an operator last drained the host or a slot of it; -1: never */
};

struct world_worker {
    struct world_process process;
    struct world_host *host;
    struct world_agent *agent;
    uint64_t incarnation;
    uint64_t pid;
    uint32_t slot;
    uint32_t number; /* number of the worker's connection at its agent */
    bool connected;
    bool greeted;
    int64_t up_us, down_us; /* when the last frame arrives, each way */
    struct session *session;
    struct session_action_list actions;
    struct world_loop loop;
    enum world_boot boot;
    int boot_value;
    int64_t boot_us;
    int64_t born_us;
    bool blamed;        /* true: something happened to the worker that may be charged to it */
    int64_t spawned_us; /* when its agent learns that the worker runs */
    bool told_to_end;   /* true: its agent has sent it a signal */
    enum msg_ended ended;
    int value;
    int64_t died_us;
};

void host_start_agent(struct world *world, struct world_driver *driver, const char *name);
void agent_begin(struct world *world, struct world_host *host);
void agent_tell(struct world *world, struct world_agent *agent, struct agent_event *event);
void agent_die(struct world *world, struct world_agent *agent, bool silently);
void agent_release(struct world_agent *agent);
bool host_reachable(const struct world_host *host);

/* world_checkpoint.c */
void world_hold(struct world *world, struct world_agent *agent, const struct msg *msg);
void world_hold_save(struct world *world, struct world_agent *agent, const struct msg *msg);
void world_hold_end(struct world_agent *agent, const struct msg *msg);
/* a slot has a new commit, or its worker has ended */
void world_hold_look(struct world *world, struct world_agent *agent);

void worker_spawn(struct world *world, struct world_agent *agent, const struct msg *launch);
void worker_die(struct world *world, struct world_worker *worker, enum msg_ended ended, int value);
void worker_tell(struct world *world, struct world_worker *worker, struct session_event *event);
void worker_terminate(struct world *world, struct world_worker *worker);
void worker_kill(struct world *world, struct world_worker *worker);
void worker_receive(struct world *world, struct world_worker *worker, const struct msg *msg);
void worker_orphaned(struct world *world, struct world_worker *worker, bool at_once);
void worker_disconnect(struct world *world, struct world_worker *worker);
void worker_release(struct world_worker *worker);
struct world_worker *world_worker_of(const struct world *world, uint64_t incarnation);
/* The live worker of this slot, or NULL. */
struct world_worker *host_worker(const struct world *world, const struct world_host *host,
                                 uint32_t slot);

#endif
