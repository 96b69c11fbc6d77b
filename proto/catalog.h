/*
 * catalog.h: a table of all messages: name, sender and receiver, the moment when the message is
 * allowed, the keys that it must carry, and the most bytes of its body; and a table of each field's
 * kind and limit. generate.awk makes the tables of PROTOCOL.md and hvd.proto.
 */
#ifndef PROTO_CATALOG_H
#define PROTO_CATALOG_H

#include "base/limits.h"
#include "proto/msg.h"
#include "proto/recorder.h"

/* The protocol's version. A peer with another major number is refused; a new minor number only adds
 * messages and fields. */
#define PROTO_MAJOR 1
#define PROTO_MINOR 5

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
    /* a connection between two agents, over which one fetches a commit */
    LINK_PULLER_TO_HOLDER = 1 << 8,
    LINK_HOLDER_TO_PULLER = 1 << 9
};

/* LINK_UP: a worker's message that its agent passes on to the driver. LINK_DOWN: a driver's message
 * that the agent passes on to a worker. */
#define LINK_UP   (LINK_WORKER_TO_AGENT | LINK_AGENT_TO_DRIVER)
#define LINK_DOWN (LINK_DRIVER_TO_AGENT | LINK_AGENT_TO_WORKER)

/* The keys (term, incarnation, round) that must not be 0 in a message. */
enum msg_key { KEY_NONE = 0, KEY_TERM = 1, KEY_INCARNATION = 2, KEY_ROUND = 4 };

/* When a message may travel. A connection is in its greeting until both hellos have passed; then it
 * is open. */
enum msg_when { WHEN_GREETING = 1, WHEN_OPEN = 2, WHEN_ANY = 3 };

#define KIB(n) ((n)*1024u)
#define MIB(n) ((n)*1024u * 1024u)

/*
 * The code is generated from these macro tables, so that no use of a field can be forgotten:
 *
 *   MSG_CATALOG(M, EMPTY)  one row per message: M(NAME, name, Name, links, keys, when, body_max),
 *                          or EMPTY for a message that has only its keys
 *   MSG_PARTS(P)           one row per part of messages: P(name, Name)
 *   FIELDS_name(F)         one row per field: F(kind, name, a, b)
 *
 * The kinds of fields:
 *
 *   NUM     a number or a bool; a: the largest value
 *   SIGNED  a number of either sign, any value
 *   SPAN    a length of time in microseconds: 0 to LIMIT_DURATION_US, or TIME_NEVER
 *   TEXT    clean UTF-8; a: most bytes
 *   RAW     any bytes but NUL; a: most bytes
 *   BYTES   any bytes; a: most bytes
 *   TEXTS   a list of RAW; a: most entries, b: most bytes of one entry
 *   IDS     a list of numbers; a: most entries
 *   LIST    a list of parts; a: most entries, b: the name of the part
 */
#include "msg_fields.h"

struct msg_kind {
    enum msg_type type;
    const char *name;
    unsigned links; /* bits of enum link: in which directions the message may travel */
    unsigned keys;  /* bits of enum msg_key: which keys must not be 0 */
    unsigned when;  /* bits of enum msg_when: before or after the end of the greeting */
    uint32_t body_max;
};

/* Returns the row of a message; NULL: no message has that number. */
const struct msg_kind *msg_kind(unsigned type);
/* true: the message is newer than minor 0 of the protocol, and its frame says that a receiver that
 * does not know the message skips it. So a sender does not need to know the receiver's minor
 * number. */
bool msg_may_be_skipped(unsigned type);

/* The error text for a message that is not in the table; its argument is the number of the
 * message. */
#define MSG_UNKNOWN \
    "the message type %u is unknown; install the same version of hvd-elastic on both sides"

/* Returns the i-th message of the catalogue; NULL past the end. */
const struct msg_kind *msg_kind_at(size_t i);

/* Checks whether a message of this type may travel in this direction (`link`) at this moment
 * (`now`). 0, or HVD_E_PROTO with the reason. */
int msg_allowed(unsigned type, enum link link, enum msg_when now, struct hvd_err *err);

#endif
