/*
 * remote.h: checkpoints in stores that are not directories: S3, and programs of users.
 */
#ifndef STATE_REMOTE_REMOTE_H
#define STATE_REMOTE_REMOTE_H

/* Adds the kinds of this folder to state/checkpoint/storage.h. Called once, at the start of a
 * program, before it has threads. */
void remote_storage_add(void);

#endif
