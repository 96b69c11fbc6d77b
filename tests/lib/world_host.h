/*
 * world_host.h: a machine, its agent's process, and the workers' processes on it.
 */
#ifndef TESTS_LIB_WORLD_HOST_H
#define TESTS_LIB_WORLD_HOST_H

#include "agent/core/agent.h"
#include "tests/lib/world_app.h"
#include "tests/lib/world_deeds.h"
#include "tests/lib/world_net.h"
#include "tests/lib/world_queue.h"
#include "worker/core/session.h"

#define WORLD_SLOTS_MAX 16

struct world_agent {
    struct world_process process;
    struct world_host *host;
    uint64_t number;
    struct agent_config config;
    struct agent *core;
    struct agent_action_list actions;
    struct world_link *link; /* NULL: none */
    uint64_t dialling;       /* names the attempt under way; 0: none */
    struct world_kept kept[WORLD_SLOTS_MAX];
    struct VEC(struct world_worker *) workers; /* by the number of their connection; NULL: free */
};

struct world_host {
    char name[DEED_HOST_MAX];
    bool up;
    uint32_t most_slots;       /* that discovery has ever listed */
    bool cut[END_COUNT];       /* nothing gets to that end */
    bool astray;               /* its agent does not know where a next driver is */
    struct world_agent *agent; /* the newest; may be dead; NULL */
    unsigned spawn_failures;   /* so many of the next spawns fail */
    enum world_boot boot;      /* of the next process */
    int boot_value;
    int64_t boot_us;
    int64_t trouble_us; /* when it was last disturbed; -1: never */
    int64_t drain_us;   /* when somebody last asked it or a slot of it to leave; -1 */
};

struct world_worker {
    struct world_process process;
    struct world_host *host;
    struct world_agent *agent;
    uint64_t incarnation;
    uint64_t pid;
    uint32_t slot;
    uint32_t number; /* of its connection */
    bool connected;
    bool greeted;
    int64_t up_us, down_us; /* when the last frame each way arrives */
    struct session *session;
    struct session_action_list actions;
    struct world_loop loop;
    enum world_boot boot;
    int boot_value;
    int64_t boot_us;
    int64_t born_us;
    bool blamed;        /* something happened to it that may be held against it */
    int64_t spawned_us; /* when its agent is told that it runs */
    bool told_to_end;   /* its agent has sent it a signal */
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
/* The live one of this slot, NULL. */
struct world_worker *host_worker(const struct world *world, const struct world_host *host,
                                 uint32_t slot);

#endif
