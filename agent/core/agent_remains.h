/*
 * agent_remains.h: what is known of a worker that has died, or is in a stall, besides its messages:
 * its page and the end of its output. The loop reads them for the event of the worker.
 */
#ifndef AGENT_CORE_AGENT_REMAINS_H
#define AGENT_CORE_AGENT_REMAINS_H

#include "proto/msg.h"
#include "proto/recorder.h"

/* A worker, dead or alive, as the agent's loop has read it. */
struct agent_remains {
    uint64_t pid;
    const struct recorded *recorded;
    struct msg_bytes output[STREAM_COUNT];
    bool dumped;              /* the kernel has written a core file */
    const char *core_pattern; /* of this host; "": not known */
};

#endif
