/*
 * agent_fixture.h: one real agent, and as much of a driver as it takes to have it start a worker
 * and report its end.
 */
#ifndef BENCH_AGENT_FIXTURE_H
#define BENCH_AGENT_FIXTURE_H

#include "proto/msg.h"

#include <sys/types.h>

struct agent_fixture_victim {
    uint64_t incarnation;
    pid_t pid;
    bool ready;
    int64_t known_us; /* EXITED has come; 0: not yet */
    int64_t eof_us;   /* its socket has ended */
    uint32_t witness; /* enum msg_witness */
};

struct agent_fixture {
    struct agent_fixture_victim victim;
    struct agent_fixture_inside *inside;
};

int agent_fixture_create(struct agent_fixture **ret_fixture, struct hvd_err *err) MUST_CHECK;
void agent_fixture_free(struct agent_fixture *fixture); /* ends the agent, and waits for it */

/* A worker that has touched its memory, holds a socket of ours, and is READY. */
int agent_fixture_begin_victim(struct agent_fixture *fixture, uint32_t mib,
                               struct hvd_err *err) MUST_CHECK;

/* Until both are known. */
int agent_fixture_await_end(struct agent_fixture *fixture, struct hvd_err *err) MUST_CHECK;

#endif
