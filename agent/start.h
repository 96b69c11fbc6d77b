/*
 * start.h: how the agent leaves the command line that started it. Whoever did so learns by the exit
 * status, one line on standard output and what stands on standard error how it went.
 */
#ifndef AGENT_START_H
#define AGENT_START_H

#include "base/err.h"

struct start {
    int report; /* where the agent says how its start went; -1: to its standard streams */
    int secret; /* where it finds the key: the keeper's memory does not hold that */
};

/* In the process that stays: 0 or why not. */
int start_keep_key(struct start *start, const uint8_t *key, size_t length,
                   struct hvd_err *err) MUST_CHECK;
int start_take_key(struct start *start, uint8_t *ret_key, size_t length) MUST_CHECK;

/* The agent is there, or is not and will end. Once. False: whoever wanted it is gone meanwhile, and
 * it ends too. */
bool start_succeeded(struct start *start, int64_t pid);
void start_failed(struct start *start, const struct hvd_err *err);

struct start_ops {
    int (*agent)(void *arg); /* runs in a session of its own; its result is the exit status */
    /* In its keeper (agent/io/keeper.h), when nothing of it is left: the exit status, or 128 and
     * the signal that killed it, and a file with what was written to standard error. */
    void (*ended)(void *arg, int code, int last_words);
};

/* Both run in the background. Waits for what the agent says of its start, and returns the exit
 * status of the process that stays in the foreground. */
int start_in_background(struct start *start, const struct start_ops *ops, void *arg);

#endif
