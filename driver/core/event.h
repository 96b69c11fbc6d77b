/*
 * event.h: everything that can happen to a driver, as the core is told it. What an event points to
 * is borrowed during the step.
 */
#ifndef DRIVER_CORE_EVENT_H
#define DRIVER_CORE_EVENT_H

#include "discovery/hosts.h"
#include "proto/msg.h"

enum event_kind {
    EVENT_START,        /* the first one, after the journal was replayed */
    EVENT_TIMER,        /* core_deadline() has come; may also come early */
    EVENT_HOSTS,        /* a discovery ended: hosts */
    EVENT_HOSTS_FAILED, /* a discovery failed: text */
    EVENT_AGENT_FAILED, /* an agent could not be started: host, text */
    EVENT_MSG,          /* a frame of a connected agent: peer, msg; the first is a HELLO_AGENT */
    EVENT_CLOSED,       /* its connection is gone: peer, text */
    EVENT_DRAIN,        /* an operator: host, slot or EVENT_WHOLE_HOST, left_us, ask */
    EVENT_UNDRAIN,      /* an operator takes it back: host (and its slots) or slot, ask */
    EVENT_CLEAR,        /* an operator forgives failures: host (and its slots) or slot, ask */
    EVENT_STOP,         /* end the job: text says who wants it; the second time, without grace */
    EVENT_COUNT
};

#define EVENT_WHOLE_HOST UINT32_MAX

/*
 * Peers are small numbers that the caller gives to connections. One may be used again once the core
 * was told CLOSED, or has itself asked for CLOSE: after that no event of the old one may come.
 */
struct event {
    enum event_kind kind;
    int64_t now_us;  /* monotonic; never falls from one event to the next */
    int64_t wall_us; /* for records that outlive the driver, and nothing else */
    uint32_t peer;
    const struct msg *msg;
    const struct hosts *hosts;
    const char *host;
    const char *text;
    uint32_t slot;
    int64_t left_us; /* TIME_NEVER: no deadline */
    uint64_t ask;    /* names the operator's question in ACTION_REPLY */
};

#endif
