/*
 * command_storage.h: checkpoints in any other store, through a program of the user's
 * (--checkpoint-command). docs/checkpoints.md, "A program of your own", is the contract.
 */
#ifndef STATE_REMOTE_COMMAND_STORAGE_H
#define STATE_REMOTE_COMMAND_STORAGE_H

#include "state/checkpoint/storage.h"

#define COMMAND_SCHEME "command://"

/* Opens "command:///opt/store WORD...". test: the program is run once for a list, which shows
 * whether the program works. False: the program is not run. */
int command_storage_open(const char *where, bool test, struct checkpoint_store **ret_store,
                         struct hvd_err *err) MUST_CHECK;

/* As command_storage_open, with another time limit for one run of the program; for tests. */
int command_storage_open_with(const char *where, bool test, int64_t limit_us,
                              struct checkpoint_store **ret_store, struct hvd_err *err) MUST_CHECK;

#endif
