/*
 * state_checkpoint.h: a commit out of a checkpoint's files into the snapshot of a worker. Each
 * reading has a thread of its own, because a disk may hang for any time. A reading has two holders:
 * the fetch, and its thread.
 */
#ifndef AGENT_COMMITS_STATE_CHECKPOINT_H
#define AGENT_COMMITS_STATE_CHECKPOINT_H

#include "agent/commits/snapshots.h"
#include "proto/msg.h"

/* In the addresses of a source, this goes before the folder of a checkpoint. */
#define CHECKPOINT_ADDRESS_KIND "checkpoint="

struct reading;

struct reading_result {
    int code;
    /* with code 0: the reason why the checkpoint has no entries of this rank, or "" */
    char text[ERR_TEXT_MAX];
    uint64_t bytes;
    bool per_rank;
};

/* Returns the folder that the sources of a FETCH name; NULL: they name no checkpoint. */
const char *reading_folder(const struct msg_fetch *fetch);

/* `wake` is a descriptor of an eventfd, which is written when the reading is over. HVD_E_NOMEM,
 * HVD_E_LIMIT. */
int reading_create(const struct msg *fetch, int wake, struct reading **ret_reading) MUST_CHECK;
void reading_put_down(struct reading *reading); /* NULL is allowed */

/* Starts the thread, which fills `into`, the open buffer of the snapshot. HVD_E_LIMIT. */
int reading_start(struct reading *reading, struct shared_snapshot *snapshot,
                  uint8_t *into) MUST_CHECK;

/* After the return no byte is written into the snapshot. Any thread may call it. */
void reading_cancel(struct reading *reading);

/* false: the reading goes on. */
bool reading_is_over(struct reading *reading, struct reading_result *ret_result);

#endif
