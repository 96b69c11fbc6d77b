/*
 * world_state.h: what a simulated world is made of. Private to the world_*.c files; who writes
 * stories reads world.h.
 */
#ifndef TESTS_LIB_WORLD_STATE_H
#define TESTS_LIB_WORLD_STATE_H

#include "base/buf.h"
#include "base/rng.h"
#include "tests/lib/world.h"
#include "tests/lib/world_app.h"
#include "tests/lib/world_check.h"
#include "tests/lib/world_disk.h"
#include "tests/lib/world_driver.h"
#include "tests/lib/world_host.h"
#include "tests/lib/world_net.h"
#include "tests/lib/world_queue.h"

#define WORLD_HOSTS_MAX 64

/* What discovery would print at this moment, in this order. */
struct world_listed {
    struct world_host *host;
    uint32_t slots;
};

struct world_discovery {
    struct VEC(struct world_listed) listed;
    unsigned failures; /* so many of the next ones fail, */
    unsigned rubbish;  /* print what is no host list, */
    unsigned hangs;    /* or are ended by their time limit */
};

struct world_when {
    char text[80]; /* a part of a line of the driver's trace */
    struct world_deed deed;
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
    struct world_driver *driver;             /* the newest; it may be dead */
    struct VEC(struct world_agent *) agents; /* every one that there ever was */
    struct VEC(struct world_link *) links;
    struct VEC(struct world_worker *) workers; /* every process that there ever was */
    struct VEC(struct world_round *) rounds;
    struct world_disk disk;
    struct world_discovery discovery;
    struct world_check check;
    struct world_stats stats;

    uint64_t length;        /* steps after which train returns 0; UINT64_MAX: not yet decided */
    uint64_t agent_id;      /* of the next agent */
    uint64_t pid;           /* of the next process */
    uint64_t ask;           /* of the next question of an operator */
    uint64_t notifications; /* that went down, for a planted bug */
    bool begun;
    bool over; /* the newest driver has said EXIT */
    int exit_code;
    char exit_text[256];
    int64_t over_us;

    /* faults (world_faults.c) */
    uint32_t slots[WORLD_HOSTS_MAX]; /* of each host, when all is well */
    unsigned faults_left;
    bool calm; /* there will be no more */
    int64_t calm_us;
    int64_t prepare_trouble_us;
    int64_t driver_trouble_us; /* when the driver or its disk was last disturbed */

    /* stories (world_story.c) */
    bool told;                            /* somebody listens */
    uint64_t trained_round, trained_step; /* of the last step that was made */
    int64_t trained_us;
    struct buf story; /* the trace so far */
    struct VEC(struct world_when) whens;
    uint64_t digest; /* of every action of every driver */
    struct buf scratch;
};

/* Something happens to `who` after a while. The frame is given. */
void world_after(struct world *world, int64_t delay_us, world_run_fn *run, void *who,
                 struct world_frame *frame, uint64_t number);
void world_wake(struct world *world, struct world_process *process, int64_t deadline_us,
                world_run_fn *run, void *who);

int64_t world_between(struct world *world, struct world_span span);
bool world_coin(struct world *world, unsigned one_in);
int64_t world_wall(const struct world *world);

struct world_host *world_find_host(const struct world *world, const char *name);

void world_told(void *arg, const char *line);
/* Every text that the script waited for was said. */
void world_whens_end(struct world *world);
/* NULL, or why there can be nobody that it is done to. */
const char *deed_wrong(const struct world *world, const struct world_deed *deed);
bool world_state_elsewhere(const struct world *world, const struct world_host *but);
void faults_begin(struct world *world);
/* No more faults: everything that can be mended is. */
void faults_end(struct world *world);

/* A line of the story that the world itself tells. */
void world_mark(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
