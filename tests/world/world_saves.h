/*
 * world_saves.h: checkpoints in the script of a world: how often they are taken, and the commands
 * that harm them or make them needed.
 */
#ifndef TESTS_WORLD_WORLD_SAVES_H
#define TESTS_WORLD_WORLD_SAVES_H

#include "tests/world/world.h"

/* Checkpoints are taken so often; 0: every `commits` commits. */
void world_checkpoints(struct world *world, int64_t every_us, uint32_t commits);
/* Rank 0, or all workers, ask for a checkpoint at each n-th commit, and wait for it or train on. */
void world_persists(struct world *world, uint32_t every, bool all, bool waits);
/* An earlier job has left a checkpoint: the commit `place` of `round`, made after this step. */
void world_earlier(struct world *world, uint64_t round, uint32_t place, uint64_t step);

/* all agents and workers; and the driver too */
struct world_command kill_all_agents(void);
struct world_command kill_everything(void);
struct world_command fail_store(int64_t us); /* no file and no manifest can be written, or read */
struct world_command damage_checkpoint(void), damage_every_checkpoint(void);
struct world_command damage_checkpoint_for_some(void); /* for workers with an odd incarnation */
struct world_command want_checkpoint(void);

#endif
