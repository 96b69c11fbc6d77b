/*
 * world_state.h: the parts of a simulated world. Private to world_*.c; an author of stories reads
 * world.h.
 */
#ifndef TESTS_WORLD_WORLD_STATE_H
#define TESTS_WORLD_WORLD_STATE_H

#include "base/buf.h"
#include "base/rng.h"
#include "tests/world/world.h"
#include "tests/world/world_app.h"
#include "tests/world/world_check.h"
#include "tests/world/world_disk.h"
#include "tests/world/world_driver.h"
#include "tests/world/world_host.h"
#include "tests/world/world_net.h"
#include "tests/world/world_queue.h"
#include "tests/world/world_store.h"

#define WORLD_HOSTS_MAX 64

/* A host that discovery lists at this moment; the array is in the order of the listing. */
struct world_listed {
    struct world_host *host;
    uint32_t slots;
};

struct world_discovery {
    struct VEC(struct world_listed) listed;
    unsigned failures; /* this many of the next runs fail */
    unsigned rubbish;  /* this many of the next runs print text that is no host list */
    unsigned hangs;    /* this many of the next runs hang until their time limit ends them */
};

struct world_when {
    char text[80]; /* a part of a line of the driver's trace */
    struct world_command command;
    int64_t after_us;
    bool done;
};

struct world {
    struct world_shape shape;
    struct world_queue queue;
    struct rng rng;
    int64_t now_us;
    uint64_t events;
    uint64_t same_time; /* events since the clock last moved */
    bool codec;

    struct VEC(struct world_host *) hosts;
    struct VEC(struct world_driver *) drivers;
    struct world_driver *driver;             /* the newest driver; it may be dead */
    struct VEC(struct world_agent *) agents; /* all agents, dead ones too */
    struct VEC(struct world_link *) links;
    struct VEC(struct world_worker *) workers; /* all worker processes, dead ones too */
    struct VEC(struct world_round *) rounds;
    struct world_disk disk;
    struct world_etcd etcd;
    struct VEC(struct world_claim *) claims; /* dead ones too */
    struct world_store store;
    struct world_discovery discovery;
    struct world_check check;
    struct world_stats stats;

    uint64_t length;        /* steps after which train returns 0; UINT64_MAX: not decided yet */
    uint64_t agent_id;      /* number of the next agent */
    uint64_t pid;           /* pid of the next process */
    uint64_t ask;           /* number of an operator's next question */
    uint64_t notifications; /* that went down; for a planted bug */
    bool begun;
    bool over; /* true: the newest driver has said EXIT */
    int exit_code;
    char exit_text[256];
    int64_t over_us;

    /* used by world_faults.c */
    uint32_t slots[WORLD_HOSTS_MAX]; /* slots of each host when no fault has changed the listing */
    unsigned faults_left;
    unsigned lies_that_harm;
    bool calm; /* true: there will be no more faults */
    int64_t calm_us;
    int64_t prepare_trouble_us;
    int64_t driver_trouble_us; /* when the driver or its disk was last disturbed */

    bool told;                            /* true: the trace has a listener */
    uint64_t trained_round, trained_step; /* round and number of the last step that was made */
    int64_t trained_us;
    struct buf story; /* the trace so far */
    struct VEC(struct world_when) whens;
    uint64_t digest; /* a hash of every action of every driver */
    struct buf scratch;
};

/* Queues an event: it happens to `who` after delay_us. The frame is given away. */
void world_after(struct world *world, int64_t delay_us, world_run_fn *run, void *who,
                 struct world_frame *frame, uint64_t number);
void world_wake(struct world *world, struct world_process *process, int64_t deadline_us,
                world_run_fn *run, void *who);

int64_t world_between(struct world *world, struct world_span span);
bool world_coin(struct world *world, unsigned one_in);
int64_t world_wall(const struct world *world);

struct world_host *world_find_host(const struct world *world, const char *name);

void world_told(void *arg, const char *line);
/* Checks that each text for which the script waited was seen. */
void world_whens_end(struct world *world);
/* NULL: the command's target exists; else why it does not. */
const char *command_wrong(const struct world *world, const struct world_command *command);
bool world_state_elsewhere(const struct world *world, const struct world_host *but);
void faults_begin(struct world *world);
/* Ends the faults, and mends everything that can be mended. */
void faults_end(struct world *world);

/* Adds a line of the world itself to the story. */
void world_mark(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
