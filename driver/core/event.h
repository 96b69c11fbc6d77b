/*
 * event.h: everything that can happen to a driver, in the form in which the core gets it. Memory
 * that an event points to is borrowed during the step.
 */
#ifndef DRIVER_CORE_EVENT_H
#define DRIVER_CORE_EVENT_H

#include "discovery/hosts.h"
#include "proto/msg.h"

enum event_kind {
    EVENT_START,        /* the first event, after the journal was replayed */
    EVENT_TIMER,        /* the time of core_deadline() has come; the event may also come early */
    EVENT_HOSTS,        /* a discovery has found `hosts` */
    EVENT_HOSTS_FAILED, /* a discovery failed; `text` says why */
    EVENT_AGENT_FAILED, /* no agent could be started on `host`; `text` says why */
    /* The agent of connection `peer` has sent `msg`. The agent has proved by its key that it is the
     * agent of `host`, or by a token that it may join: then `host` is TOKEN_PEER and the token's
     * id. `text`: from which address the connection comes ("10.0.0.7:4321"); NULL: not known. The
     * first message of a connection is a HELLO_AGENT, or a JOIN. */
    EVENT_MSG,
    EVENT_CLOSED, /* the connection `peer` is gone; `text` says why */
    /* So many strangers (clients without a key of the job) dial the port for agents that agents may
     * come late, or not get in. The event comes about once a second as long as that lasts. */
    EVENT_CROWDED,
    /* An operator drains `host`, or one `slot` of it, within left_us; the core answers request
     * `ask`. */
    EVENT_DRAIN,
    /* An operator ends the drain of `host` and its slots, or of `slot`; the core answers `ask`. */
    EVENT_UNDRAIN,
    /* An operator forgives the failures of `host` and its slots, or of `slot`; the core answers
     * `ask`. */
    EVENT_CLEAR,
    /* A checkpoint is wanted now, before its time. The core answers `ask` when it is complete or
     * cannot be made; `code` 0: at once. */
    EVENT_WANT_CHECKPOINT,
    /* The manifest of the checkpoint attempt `ask` was written: `text` is the folder of the
     * checkpoint, `commit` its commit. Or it could not be written: `code`, and `text` says why. Or,
     * with `ask` 0, the answer to ACTION_CHECKPOINT_REJECT: the newest checkpoint that is left;
     * `commit` 0: none is left. */
    EVENT_CHECKPOINT,
    /* A token with which hosts may join is made or revoked; the core answers `ask` (0: no
     * operator). `code` TOKEN_MADE: `text` is its id, a blank and the digits of its key; `host` may
     * use it (NULL: any), for left_us and `slot` hosts (0: any number). TOKEN_REVOKED: `text` is
     * its id. */
    EVENT_TOKEN,
    EVENT_REKEY, /* an operator wants new keys for all hosts; the core answers `ask` */
    /* The job is to end; `text` says from where the request comes. `code` 1: after a checkpoint of
     * its state, if the job has a directory for checkpoints. A second STOP ends the job without a
     * checkpoint, and a third STOP kills the workers at once. */
    EVENT_STOP,
    EVENT_COUNT
};

/* the value of `slot` in a request about the whole host */
#define EVENT_WHOLE_HOST UINT32_MAX

/* The prefix of `host` in the events of a connection that has proved a token instead of a host's
 * key. No host has a name that begins with it. */
#define TOKEN_PEER "token:"

/*
 * `peer` is a small number that the caller gives to a connection. After EVENT_CLOSED, or after the
 * core's ACTION_CLOSE, the caller may give the number to another connection. From then on no event
 * of the old connection may come.
 */
struct event {
    enum event_kind kind;
    int64_t now_us;  /* monotonic; later events never have an earlier time */
    int64_t wall_us; /* the time of day, used only for records that outlive the driver */
    /* For how long the oldest action that the driver has not carried out yet has waited for the
     * journal records before it; 0: no action waits. */
    int64_t held_us;
    uint32_t peer;
    const struct msg *msg;
    const struct hosts *hosts;
    const char *host;
    /* HELLO_AGENT: the version of the host's key that the connection has proved; 0: not checked */
    uint64_t key_version;
    const char *text;
    uint32_t slot;
    /* the time until the deadline of a drain, or the end of a token; TIME_NEVER: none */
    int64_t left_us;
    uint64_t ask; /* the number of the operator's question; ACTION_REPLY names the same number */
    uint64_t commit;
    int code;
};

#endif
