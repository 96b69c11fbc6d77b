/*
 * catalog.h: of each message its name, who may send it to whom and when, the keys it must carry and
 * the most bytes of its body. PROTOCOL.md holds the same table for people; a test compares the two.
 */
#ifndef PROTO_CATALOG_H
#define PROTO_CATALOG_H

#include "base/limits.h"
#include "proto/msg.h"

/* The protocol's version. Another major is refused; a minor only ever adds. */
#define PROTO_MAJOR 1
#define PROTO_MINOR 1

/* One direction of one kind of connection. */
enum link {
    LINK_AGENT_TO_DRIVER = 1 << 0,
    LINK_DRIVER_TO_AGENT = 1 << 1,
    LINK_WORKER_TO_AGENT = 1 << 2,
    LINK_AGENT_TO_WORKER = 1 << 3,
    LINK_CLIENT_TO_DRIVER = 1 << 4,
    LINK_DRIVER_TO_CLIENT = 1 << 5,
    LINK_CLIENT_TO_AGENT = 1 << 6,
    LINK_AGENT_TO_CLIENT = 1 << 7,
    LINK_PULLER_TO_HOLDER = 1 << 8, /* between agents */
    LINK_HOLDER_TO_PULLER = 1 << 9
};

/* A worker's message that its agent passes on to the driver, and the reverse. */
#define LINK_UP   (LINK_WORKER_TO_AGENT | LINK_AGENT_TO_DRIVER)
#define LINK_DOWN (LINK_DRIVER_TO_AGENT | LINK_AGENT_TO_WORKER)

/* Keys that must not be 0. */
enum msg_key { KEY_NONE = 0, KEY_TERM = 1, KEY_INCARNATION = 2, KEY_ROUND = 4 };

/* A connection is greeting until both hellos have passed, then open. */
enum msg_when { WHEN_GREETING = 1, WHEN_OPEN = 2, WHEN_ANY = 3 };

#define KIB(n) ((n)*1024u)
#define MIB(n) ((n)*1024u * 1024u)

/* M(NAME, name, Name, links, keys, when, most bytes of the body) */
#define MSG_CATALOG(M, EMPTY)                                                                      \
    M(HELLO_AGENT, hello_agent, HelloAgent, LINK_AGENT_TO_DRIVER, KEY_NONE, WHEN_GREETING, MIB(4)) \
    M(WELCOME_AGENT, welcome_agent, WelcomeAgent, LINK_DRIVER_TO_AGENT, KEY_TERM, WHEN_GREETING,   \
      KIB(8))                                                                                      \
    M(HELLO_WORKER, hello_worker, HelloWorker, LINK_WORKER_TO_AGENT, KEY_INCARNATION,              \
      WHEN_GREETING, KIB(8))                                                                       \
    M(WELCOME_WORKER, welcome_worker, WelcomeWorker, LINK_AGENT_TO_WORKER, KEY_INCARNATION,        \
      WHEN_GREETING, KIB(8))                                                                       \
    M(REFUSED, refused, Refused,                                                                   \
      LINK_DRIVER_TO_AGENT | LINK_AGENT_TO_WORKER | LINK_DRIVER_TO_CLIENT, KEY_NONE,               \
      WHEN_GREETING, KIB(8))                                                                       \
    M(BYE, bye, Bye,                                                                               \
      LINK_AGENT_TO_DRIVER | LINK_DRIVER_TO_AGENT | LINK_WORKER_TO_AGENT | LINK_AGENT_TO_WORKER,   \
      KEY_NONE, WHEN_ANY, KIB(8))                                                                  \
    M(LAUNCH, launch, Launch, LINK_DRIVER_TO_AGENT, KEY_TERM | KEY_INCARNATION, WHEN_OPEN, MIB(4)) \
    M(LAUNCHED, launched, Launched, LINK_AGENT_TO_DRIVER, KEY_INCARNATION, WHEN_OPEN, KIB(8))      \
    M(LAUNCH_FAILED, launch_failed, LaunchFailed, LINK_AGENT_TO_DRIVER, KEY_INCARNATION,           \
      WHEN_OPEN, KIB(8))                                                                           \
    M(EXITED, exited, Exited, LINK_AGENT_TO_DRIVER, KEY_INCARNATION, WHEN_OPEN, KIB(8))            \
    EMPTY(FORGET, forget, Forget, LINK_DRIVER_TO_AGENT, KEY_TERM | KEY_INCARNATION, WHEN_OPEN,     \
          KIB(8))                                                                                  \
    M(KILL, kill, Kill, LINK_DRIVER_TO_AGENT, KEY_TERM | KEY_INCARNATION, WHEN_OPEN, KIB(8))       \
    M(STOP, stop, Stop, LINK_DRIVER_TO_AGENT, KEY_TERM, WHEN_OPEN, KIB(8))                         \
    M(BEAT, beat, Beat,                                                                            \
      LINK_AGENT_TO_DRIVER | LINK_DRIVER_TO_AGENT | LINK_WORKER_TO_AGENT | LINK_AGENT_TO_WORKER,   \
      KEY_NONE, WHEN_OPEN, KIB(8))                                                                 \
    M(NOTICE, notice, Notice, LINK_AGENT_TO_DRIVER, KEY_NONE, WHEN_OPEN, KIB(8))                   \
    M(OUTPUT, output, Output, LINK_AGENT_TO_DRIVER, KEY_INCARNATION, WHEN_OPEN, KIB(80))           \
    M(READY, ready, Ready, LINK_UP, KEY_INCARNATION, WHEN_OPEN, MIB(16))                           \
    M(ROUND, round, Round, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN, MIB(16))                    \
    M(PREPARE, prepare, Prepare, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN, MIB(16))              \
    M(PREPARED, prepared, Prepared, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, KIB(8))       \
    M(PENDING, pending, Pending, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN, KIB(8))               \
    M(AT, at, At, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, KIB(8))                         \
    M(SWITCH_AT, switch_at, SwitchAt, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN, KIB(8))          \
    M(ABANDON, abandon, Abandon, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN, KIB(8))               \
    M(REVOKE, revoke, Revoke, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN, MIB(1))                  \
    M(RECOVERING, recovering, Recovering, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, KIB(8)) \
    M(ENTERED, entered, Entered, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, KIB(8))          \
    M(HOSTS_UPDATED, hosts_updated, HostsUpdated, LINK_DOWN, KEY_TERM | KEY_ROUND, WHEN_OPEN,      \
      KIB(8))                                                                                      \
    M(DRAIN, drain, Drain, LINK_DOWN, KEY_TERM, WHEN_OPEN, KIB(8))                                 \
    EMPTY(LEFT, left, Left, LINK_UP, KEY_INCARNATION, WHEN_OPEN, KIB(8))                           \
    M(FINISHED, finished, Finished, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, KIB(8))       \
    EMPTY(DONE, done, Done, LINK_DOWN, KEY_TERM, WHEN_OPEN, KIB(8))                                \
    M(STALLED, stalled, Stalled, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, MIB(1))          \
    M(USELESS, useless, Useless, LINK_UP, KEY_INCARNATION, WHEN_OPEN, KIB(8))                      \
    M(REMARK, remark, Remark, LINK_UP, KEY_INCARNATION | KEY_ROUND, WHEN_OPEN, KIB(8))             \
    M(ASK, ask, Ask, LINK_CLIENT_TO_DRIVER | LINK_CLIENT_TO_AGENT, KEY_NONE, WHEN_OPEN, MIB(1))    \
    M(TELL, tell, Tell, LINK_DRIVER_TO_CLIENT | LINK_AGENT_TO_CLIENT, KEY_NONE, WHEN_OPEN, MIB(9)) \
    M(SNAPSHOT, snapshot, Snapshot, LINK_WORKER_TO_AGENT, KEY_INCARNATION, WHEN_OPEN, KIB(8))      \
    M(GRANTED, granted, Granted, LINK_AGENT_TO_WORKER, KEY_INCARNATION, WHEN_OPEN, KIB(8))         \
    M(FETCH, fetch, Fetch, LINK_WORKER_TO_AGENT, KEY_INCARNATION, WHEN_OPEN, MIB(16))              \
    M(FETCHED, fetched, Fetched, LINK_AGENT_TO_WORKER, KEY_INCARNATION, WHEN_OPEN, KIB(8))         \
    M(PULL, pull, Pull, LINK_PULLER_TO_HOLDER, KEY_INCARNATION, WHEN_OPEN, KIB(8))                 \
    M(CHUNK, chunk, Chunk, LINK_HOLDER_TO_PULLER, KEY_INCARNATION, WHEN_OPEN, KIB(1032))

struct msg_kind {
    enum msg_type type;
    const char *name;
    unsigned links; /* enum link */
    unsigned keys;  /* enum msg_key */
    unsigned when;  /* enum msg_when */
    uint32_t body_max;
};

/* NULL for a number that is no message. */
const struct msg_kind *msg_kind(unsigned type);
/* Newer than minor 0: who does not know it has to skip it, as nobody asks for the other's minor. */
bool msg_may_be_skipped(unsigned type);

/* The i-th message of the catalogue, NULL past the end. */
const struct msg_kind *msg_kind_at(size_t i);

/* May this travel on this link now? 0, or HVD_E_PROTO with the reason. */
int msg_allowed(unsigned type, enum link link, enum msg_when now, struct hvd_err *err);

#endif
