/*
 * world.h: a simulated world: the core of one driver, the core of an agent on each host, and real
 * worker sessions, under a virtual clock, with faults of the processes, machines, disks and
 * connections around them. The same seed and the same script give the same world, byte for byte.
 *
 * How to write a story (tests/stories/): a function fills in a shape, lists hosts, says what
 * happens when, and states what is expected at the end (tests/stories/story.h).
 *
 *     STORY(a_worker_dies, "one is killed; ...")
 *     {
 *         world_host(w, "a", 2);
 *         world_host(w, "b", 2);
 *         world_host(w, "c", 0);                    the host runs, but is not listed yet
 *         world_np(w, 4, 2, 6);
 *         world_at(w, 9 * TIME_S, kill_worker("a", 1));
 *         world_when(w, "round 2", 5 * TIME_MS, list_host("c", 2));
 *         world_train(w, 100);
 *         world_run(w);
 *         world_expect_rounds(w, "4 3 5");
 *         world_expect_exit(w, 0);
 *     }
 *
 * The drivers' traces and the lines of the script are compared with tests/stories/golden/NAME.txt.
 */
#ifndef TESTS_WORLD_WORLD_H
#define TESTS_WORLD_WORLD_H

#include "base/time.h"
#include "driver/core/config.h"
#include "tests/world/world_in_etcd.h"

struct world;

struct world_span {
    int64_t low_us, high_us;
};

/* The settings of a world, set before it runs. */
struct world_shape {
    uint64_t seed;
    struct core_config config; /* the world fills in the rest */
    struct world_span link, local, disk, spawn, boot, build, ssh, step, connect, fetch, script;
    /* from a driver's death to its successor's start; TIME_NEVER: no successor starts */
    struct world_span restart;
    uint32_t commit_every, persist_every; /* in steps; in commits, see world_persists */
    bool always_check; /* true: the program tells its session of each check, also unasked */
    bool liar;         /* true: the agent of a random host lies */
    bool persist_all, persist_waits; /* see world_persists */
    bool plain;      /* true: the command does not use hvd-elastic: it runs, and exits */
    int plain_code;  /* with this code */
    bool quirks;     /* true: more random behaviour, see world_app.c and world_host.c */
    bool shadow;     /* true: a second core gets the same events and must give the same actions */
    unsigned faults; /* number of random faults */
    struct world_in_etcd etcd;
    enum world_bug bug;
    bool trace, tell;   /* drivers trace their decisions (slow); these and commands are kept */
    bool tells_goodput; /* true: the story ends with the sums of goodput.h */
    bool whole_journal; /* true: no driver compacts the journal; else every second one does */
    bool oom;           /* true: an allocation that fails within a step is a random fault */
    uint64_t torture;   /* the k-th allocation within a step fails; 0: none does */
};

/* Counts of events. Only uint64_t, because a summary adds the structs up as arrays. */
struct world_stats {
    uint64_t faults[COMMAND_COUNT];
    uint64_t rounds, recoveries, launches, steps, commits, drivers, worst_actions, checkpoints;
    uint64_t compacted, fallbacks, persists; /* journals; rounds back at a checkpoint; requests */
};

/* Fill in a shape: for a story, for four workers; for a random world, by the seed. */
void world_shape_story(struct world_shape *shape);
void world_shape_random(struct world_shape *shape, uint64_t seed, unsigned faults);

/* Makes the random hosts and sizes of a random world. */
void world_populate(struct world *world);

struct world *world_create(const struct world_shape *shape);
void world_free(struct world *world);

/* ---- the script ----------------------------------------------------------------------------- */

/* The shape, to be changed before the world runs. */
struct world_shape *world_shape(struct world *world);

/* Adds a host that runs. Discovery lists it from the beginning, unless slots is 0. */
void world_host(struct world *world, const char *name, uint32_t slots);
void world_np(struct world *world, uint32_t np, uint32_t min_np, uint32_t max_np);
void world_train(struct world *world, uint64_t steps); /* the number of steps of the training */

void world_at(struct world *world, int64_t at_us, struct world_command command);

/* Runs the command after_us after the first line of the driver's trace, or of the script, that
 * contains `part`. In a story such a line must come before the end, and the command's host and slot
 * must exist. */
void world_when(struct world *world, const char *part, int64_t after_us,
                struct world_command command);

/* Runs until the job is over and every process has ended, or until a violation. Then checks the
 * expectations. */
void world_run(struct world *world);
void world_run_for(struct world *world, int64_t us);

/* Expectations for the end. rounds: the sizes of the rounds that began, "4 3 4". The first
 * expectation that fails is kept. */
void world_expect_rounds(struct world *world, const char *sizes);
void world_expect_exit(struct world *world, int code);
void world_expect_told(struct world *world, const char *part);

/* ---- the outcome ---------------------------------------------------------------------------- */

/* NULL: nothing was violated; else the violation, in one paragraph. */
const char *world_wrong(const struct world *world);
const char *world_story(const struct world *world);
const struct world_stats *world_stats(const struct world *world);
const char *world_exit_text(const struct world *world);
int world_exit_code(const struct world *world);
uint64_t world_digest(const struct world *world);
int64_t world_now(const struct world *world);

#endif
