/*
 * start.h: how the agent goes into the background. The process that was started on the command line
 * reports the result to its caller by the exit status, one line on standard output, and text on
 * standard error.
 */
#ifndef AGENT_START_H
#define AGENT_START_H

#include "base/err.h"

struct start {
    /* pipe on which the agent reports its start; -1: the agent reports on its standard streams */
    int report;
    /* pipe from which the agent reads the key, so that the supervisor's memory does not hold it;
     * -1: no key is in a pipe */
    int secret;
};

/* start_keep_key puts the key into a pipe before the supervisor is forked; start_take_key reads the
 * key from the pipe, in the agent. 0, or why the key cannot be kept or read. */
int start_keep_key(struct start *start, const uint8_t *key, size_t length,
                   struct hvd_err *err) MUST_CHECK;
int start_take_key(struct start *start, uint8_t *ret_key, size_t length) MUST_CHECK;

/* start_succeeded reports that the agent with this pid runs; start_failed, that the agent could not
 * start and will end. One of the two is called, once. start_succeeded returns false when the
 * process that waits for the report has ended: then the agent must end, too. */
bool start_succeeded(struct start *start, int64_t pid);
void start_failed(struct start *start, const struct hvd_err *err);

struct start_ops {
    int (*agent)(void *arg); /* runs the agent; its result is the agent's exit status */
    /* Called in the supervisor (agent/processes/supervisor.h) when all processes of the agent have
     * ended. `code`: the exit status, or 128 plus the signal that killed the agent. `last_words`: a
     * file with the agent's standard error output. */
    void (*ended)(void *arg, int code, int last_words);
};

/* Runs the agent and its supervisor in the background. Waits for the agent's report, and returns
 * the exit status of the process that stays in the foreground. */
int start_in_background(struct start *start, const struct start_ops *ops, void *arg);

#endif
