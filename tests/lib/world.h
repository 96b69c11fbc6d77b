/*
 * world.h: a simulated world: one driver's core, an agent's core on each host and real worker
 * sessions, under a virtual clock, with everything around them that can go wrong. The same seed and
 * the same script give the same world, byte for byte.
 *
 * How a story is written (tests/stories/): a function fills in a shape, lists hosts, says what
 * happens when, and what is expected at the end.
 *
 *     static void a_worker_dies(struct world *w)
 *     {
 *         world_host(w, "a", 2);
 *         world_host(w, "b", 2);
 *         world_host(w, "c", 0);                    there, and not listed yet
 *         world_np(w, 4, 2, 6);
 *         world_at(w, 9 * TIME_S, kill_worker("a", 1));
 *         world_when(w, "round 2", 5 * TIME_MS, list_host("c", 2));
 *         world_train(w, 100);
 *         world_run(w);
 *         world_expect_rounds(w, "4 3 5");
 *         world_expect_exit(w, 0);
 *     }
 *     STORIES(STORY(a_worker_dies, "one is killed; ..."))        see tests/stories/story.h
 *
 * What the drivers' traces and the script say is compared with tests/stories/golden/NAME.txt.
 */
#ifndef TESTS_LIB_WORLD_H
#define TESTS_LIB_WORLD_H

#include "base/time.h"
#include "driver/core/config.h"
#include "tests/lib/world_bug.h"
#include "tests/lib/world_deeds.h"

struct world;

struct world_span {
    int64_t low_us, high_us;
};

/* Everything that may be set before the world begins to run. */
struct world_shape {
    uint64_t seed;
    struct core_config config; /* finished by the world */
    struct world_span link, local, disk, spawn, boot, build, ssh, step, connect, fetch, script;
    struct world_span restart; /* from the death of a driver to its successor; never: none */
    uint32_t commit_every;     /* steps */
    bool always_check;         /* every check is brought to the session, watched or not */
    bool plain;                /* the command knows nothing of us: it runs, and exits */
    int plain_code;
    bool quirks;     /* what else goes by chance: see world_app.c, world_host.c */
    bool trace;      /* drivers trace; slow */
    bool shadow;     /* a second core is given the same events: the same actions */
    unsigned faults; /* random ones */
    enum world_bug bug;
    bool tell;        /* keep the story: trace lines and deeds */
    bool oom;         /* random faults, too, are allocations that fail within a step */
    uint64_t torture; /* the k-th allocation within a step fails; 0: none */
};

/* What has happened, for summaries, which add all of it up: uint64_t only. */
struct world_stats {
    uint64_t faults[DEED_COUNT];
    uint64_t rounds, recoveries, launches, steps, commits, drivers, worst_actions;
};

/* A story's shape: fixed times, four workers' defaults. A random one: everything drawn. */
void world_shape_story(struct world_shape *shape);
void world_shape_random(struct world_shape *shape, uint64_t seed, unsigned faults);

/* The hosts and sizes of a random world. */
void world_populate(struct world *world);

struct world *world_create(const struct world_shape *shape);
void world_free(struct world *world);

/* ---- the script ----------------------------------------------------------------------------- */

/* Before anything runs: a change of the shape. */
struct world_shape *world_shape(struct world *world);

/* A host that is there, and which discovery lists from the beginning unless slots is 0. */
void world_host(struct world *world, const char *name, uint32_t slots);
void world_np(struct world *world, uint32_t np, uint32_t min_np, uint32_t max_np);
void world_train(struct world *world, uint64_t steps); /* the length of the training */

void world_at(struct world *world, int64_t at_us, struct world_deed deed);

/* As soon as a line of the driver's trace or of the script has this part, and once only. In a story
 * it must be said before the end, and every deed's host and slot must be there. */
void world_when(struct world *world, const char *part, int64_t after_us, struct world_deed deed);

/* Until the job is over and everything has ended, or a violation; then everything is judged. */
void world_run(struct world *world);
void world_run_for(struct world *world, int64_t us);

/* "4 3 4": the sizes of the rounds that began. Each keeps the first complaint. */
void world_expect_rounds(struct world *world, const char *sizes);
void world_expect_exit(struct world *world, int code);
void world_expect_told(struct world *world, const char *part);

/* ---- the outcome ---------------------------------------------------------------------------- */

/* NULL, or what was violated, in one paragraph. */
const char *world_wrong(const struct world *world);
const char *world_story(const struct world *world);
const struct world_stats *world_stats(const struct world *world);
const char *world_exit_text(const struct world *world);
int world_exit_code(const struct world *world);
uint64_t world_digest(const struct world *world);
int64_t world_now(const struct world *world);

#endif
