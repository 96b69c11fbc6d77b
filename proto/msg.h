/*
 * msg.h: every message as a plain C struct. The rest of the tree sees these structs, and never
 * those of protobuf-c. PROTOCOL.md says what each message means and who may send it when. The
 * numbers of the messages are declared in PROTOCOL.md, and their fields in hvd.proto; generate.awk
 * makes msg_structs.h of the two files.
 *
 * Texts are NUL-terminated and never NULL after decoding ("" when absent). A decoded message owns
 * its memory until msg_release; a message made for encoding borrows what it points to.
 */
#ifndef PROTO_MSG_H
#define PROTO_MSG_H

#include "base/arena.h"
#include "base/err.h"

/* The last phase of a worker that its agent knows; the agent reports it to a driver that has taken
 * over or has been away. */
enum msg_phase {
    PHASE_STARTED,    /* the process runs; it may never connect (for example a shell command) */
    PHASE_JOINING,    /* the worker has said hello */
    PHASE_READY,      /* the worker is ready and waits for its first round */
    PHASE_ACTIVE,     /* the worker is in a round */
    PHASE_RECOVERING, /* the worker's round was revoked; it waits for the next round */
    PHASE_LEFT,       /* the worker has left in order */
    PHASE_FINISHED,   /* the worker's training function has returned 0 */
    PHASE_ENDED,      /* the process is gone, and the worker had neither left nor finished */
    PHASE_COUNT
};

/* How a process ended; the field `value` of the same message is the exit code or the signal.
 * ENDED_SILENT: the process was taken for dead because it sent nothing. */
enum msg_ended { ENDED_NOT, ENDED_EXIT, ENDED_SIGNAL, ENDED_SILENT, ENDED_COUNT };

/* Which sign of a worker's end its agent saw first: the futex in the shared page, the kernel's
 * pidfd, the closed socket, or the lease that ran out. */
enum msg_witness {
    WITNESS_NONE,
    WITNESS_MUTEX,
    WITNESS_PIDFD,
    WITNESS_SOCKET,
    WITNESS_LEASE,
    WITNESS_COUNT
};

enum msg_stream { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* Why a round begins. */
enum msg_cause { CAUSE_FIRST, CAUSE_SWITCH, CAUSE_RECOVERY, CAUSE_COUNT };

/* The kind of an entry of the state: replicated (equal on all ranks after a step), or per rank (it
 * stays with its slot). */
enum msg_entry_kind { ENTRY_REPLICATED, ENTRY_PER_RANK, ENTRY_KIND_COUNT };

/* The calls that a STORE can make (value_table.h). */
enum msg_store_op {
    STORE_SET,
    STORE_GET,
    STORE_WAIT, /* does what STORE_GET does, but the answer waits until the key has a value */
    STORE_ADD,
    STORE_COMPARE_SET,
    STORE_DELETE,
    STORE_OP_COUNT
};

struct msg_texts {
    const char *const *items;
    size_t count;
};

struct msg_ids {
    const uint64_t *items;
    size_t count;
};

struct msg_bytes {
    const uint8_t *at;
    size_t length;
};

/* generated: enum msg_type; a struct for each message, and for each part of a message; and union
 * msg_body of all messages */
#include "msg_structs.h"

struct msg {
    enum msg_type type;
    uint64_t term; /* the number of the driver; 0 in a message that needs no term (catalog.h) */
    /* the number of the worker process; in a driver's message 0 means all workers of the agent */
    uint64_t incarnation;
    uint64_t round; /* the number of the round; 0: the message is about no round */
    union msg_body u;
    /* the memory to which a decoded message points; a message that is made for sending has none */
    struct arena memory;
};

/* Frees the memory to which a decoded message points; harmless on a zeroed message. */
void msg_release(struct msg *msg);

/* msg_copy makes a message that owns all its memory and is released with msg_release. msg_copy_into
 * makes a message whose parts lie in the arena and live as long as the arena. NULL texts become "".
 * 0 or HVD_E_NOMEM; ret_msg is untouched on failure. */
int msg_copy(const struct msg *msg, struct msg *ret_msg) MUST_CHECK;
int msg_copy_into(const struct msg *msg, struct arena *arena, struct msg *ret_msg) MUST_CHECK;

#endif
