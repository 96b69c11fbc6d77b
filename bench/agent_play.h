/*
 * agent_play.h: one real agent, and as much of a driver as it takes to have it start a worker and
 * report its end.
 */
#ifndef BENCH_AGENT_PLAY_H
#define BENCH_AGENT_PLAY_H

#include "proto/msg.h"

#include <sys/types.h>

struct agent_play_victim {
    uint64_t incarnation;
    pid_t pid;
    bool ready;
    int64_t known_us; /* EXITED has come; 0: not yet */
    int64_t eof_us;   /* its socket has ended */
    uint32_t witness; /* enum msg_witness */
};

struct agent_play {
    struct agent_play_victim victim;
    struct agent_play_inside *inside;
};

int agent_play_create(struct agent_play **ret_play, struct hvd_err *err) MUST_CHECK;
void agent_play_free(struct agent_play *play); /* ends the agent, and waits for it */

/* A worker that has touched its memory, holds a socket of ours, and is READY. */
int agent_play_begin_victim(struct agent_play *play, uint32_t mib, struct hvd_err *err) MUST_CHECK;

/* Until both are known. */
int agent_play_await_end(struct agent_play *play, struct hvd_err *err) MUST_CHECK;

#endif
