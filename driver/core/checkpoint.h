/*
 * checkpoint.h: when a commit is written to the directory or bucket of --checkpoint-dir, and by
 * which hosts. PROTOCOL.md, "Checkpoints", has the messages.
 *
 *     IDLE ──HOLD──► HOLDING ──SAVE──► SAVING ──ACTION_CHECKPOINT──► WRITING ──► IDLE
 *
 * HOLDING: each agent of a member keeps one commit, and the core waits until all have said which.
 * SAVING: the agents write the files. WRITING: the driver writes the manifest, which makes the
 * checkpoint complete. The attempt fails when an agent fails or is lost; the training never waits.
 */
#ifndef DRIVER_CORE_CHECKPOINT_H
#define DRIVER_CORE_CHECKPOINT_H

#include "driver/core/core_internal.h"

/* Sets the newest checkpoint to the one of struct core_config (checkpoint_from).
 * Called once, when the core is made. */
void checkpoint_init(struct core *core);
void checkpoint_release(struct core *core);

/* Called at the end of each step: begins an attempt that is due, and gives up an attempt whose
 * round has ended before all members kept the same commit. */
void checkpoint_look(struct core *core);

/* These functions handle the messages HOLDING and SAVED of an agent, and EVENT_CHECKPOINT of the
 * driver's own writer of manifests. */
void checkpoint_on_holding(struct core *core, struct core_host *host, const struct msg *msg);
void checkpoint_on_saved(struct core *core, struct core_host *host, const struct msg *msg);
void checkpoint_on_written(struct core *core, const struct event *event);

/* The agent of this host is gone: an attempt for which this agent has not done its part yet is
 * given up. */
void checkpoint_on_lost(struct core *core, struct core_host *host);

/* The agent of this host has said hello: it may keep commits of an attempt that is over. */
void checkpoint_greet(struct core *core, struct core_host *host);

/* Members could not read the newest checkpoint, for the reason `why`: it is not used any more, and
 * the driver looks for the one before it. */
void checkpoint_reject(struct core *core, const char *why);

#endif
