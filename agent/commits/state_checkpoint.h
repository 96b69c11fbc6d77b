/*
 * state_checkpoint.h: reads the files of a checkpoint, and makes a commit of them in the snapshot
 * of a worker. One such reading has a thread of its own, because a disk may hang for any time. A
 * reading has two holders, the fetch that needs it and its thread: the last one to put it down
 * frees it.
 */
#ifndef AGENT_COMMITS_STATE_CHECKPOINT_H
#define AGENT_COMMITS_STATE_CHECKPOINT_H

#include "agent/commits/snapshots.h"
#include "proto/msg.h"

/* An address of a source that begins with this text is the folder of a checkpoint. */
#define CHECKPOINT_ADDRESS_KIND "checkpoint="

struct reading;

struct reading_result {
    int code;
    /* the error; with code 0: why the checkpoint has no entries of this rank, or "" */
    char text[ERR_TEXT_MAX];
    uint64_t bytes; /* bytes of entries that were read */
    bool per_rank;  /* the entries per rank were read, too */
};

/* Returns the folder that the sources of a FETCH name; NULL: they name no checkpoint. */
const char *reading_folder(const struct msg_fetch *fetch);

/* Prepares a reading for this FETCH, which is copied. `wake` is an eventfd, which is written when
 * the reading is over; its descriptor is duplicated. HVD_E_NOMEM; HVD_E_LIMIT: no descriptor is
 * left. */
int reading_create(const struct msg *fetch, int wake, struct reading **ret_reading) MUST_CHECK;
/* The caller uses the reading no longer; the last holder frees it. NULL is allowed. */
void reading_put_down(struct reading *reading);

/* Starts the thread, which fills `into`, the open buffer of the snapshot. The caller's hold on
 * `snapshot` passes to the reading, also on failure. HVD_E_LIMIT: no thread is left. */
int reading_start(struct reading *reading, struct shared_snapshot *snapshot,
                  uint8_t *into) MUST_CHECK;

/* Ends the reading early: after the return no byte is written into the snapshot. Any thread may
 * call this function. */
void reading_cancel(struct reading *reading);

/* true: the reading has ended, and *ret_result says how. false: the reading goes on. */
bool reading_is_over(struct reading *reading, struct reading_result *ret_result);

#endif
