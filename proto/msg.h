/*
 * msg.h: every message as a plain C struct. This, not the generated code, is what the rest of the
 * tree sees; PROTOCOL.md says what each one means and who may send it when.
 *
 * Texts are NUL-terminated and never NULL after decoding ("" when absent). A decoded message owns
 * its memory until msg_release; a message made for encoding borrows what it points to.
 */
#ifndef PROTO_MSG_H
#define PROTO_MSG_H

#include "base/arena.h"
#include "base/err.h"

/* Grouped by hundreds; a number is never reused. catalog.h knows who may send each. FORGET, LEFT
 * and DONE say everything with their keys and have no struct below. */
enum msg_type {
    MSG_HELLO_AGENT = 101,
    MSG_WELCOME_AGENT = 102,
    MSG_HELLO_WORKER = 103,
    MSG_WELCOME_WORKER = 104,
    MSG_REFUSED = 105,
    MSG_BYE = 106,

    MSG_LAUNCH = 201,
    MSG_LAUNCHED = 202,
    MSG_LAUNCH_FAILED = 203,
    MSG_EXITED = 204,
    MSG_FORGET = 205,
    MSG_KILL = 206,
    MSG_STOP = 207,
    MSG_BEAT = 208,
    MSG_NOTICE = 209,
    MSG_OUTPUT = 210,

    MSG_READY = 301,
    MSG_ROUND = 302,
    MSG_PREPARE = 303,
    MSG_PREPARED = 304,
    MSG_PENDING = 305,
    MSG_AT = 306,
    MSG_SWITCH_AT = 307,
    MSG_ABANDON = 308,
    MSG_REVOKE = 309,
    MSG_RECOVERING = 310,
    MSG_ENTERED = 311,
    MSG_HOSTS_UPDATED = 312,
    MSG_DRAIN = 313,
    MSG_LEFT = 314,
    MSG_FINISHED = 315,
    MSG_DONE = 316,
    MSG_STALLED = 317,
    MSG_USELESS = 318,
    MSG_REMARK = 319,

    MSG_ASK = 401,
    MSG_TELL = 402,

    MSG_SNAPSHOT = 501,
    MSG_GRANTED = 502,
    MSG_FETCH = 503,
    MSG_FETCHED = 504,
    MSG_PULL = 511,
    MSG_CHUNK = 512
};

/* What an agent last knew of a worker, for a driver that comes back. */
enum msg_phase {
    PHASE_STARTED,    /* the process runs; it may never speak to us (a shell command) */
    PHASE_JOINING,    /* it said hello */
    PHASE_READY,      /* it is built and waits for its first round */
    PHASE_ACTIVE,     /* in a round */
    PHASE_RECOVERING, /* its round was revoked; it waits for the next */
    PHASE_LEFT,       /* it left in order */
    PHASE_FINISHED,   /* its training returned 0 */
    PHASE_ENDED,      /* the process is gone, and had neither left nor finished */
    PHASE_COUNT
};

/* How a process ended; the value beside it is the exit code or the signal. */
enum msg_ended { ENDED_NOT, ENDED_EXIT, ENDED_SIGNAL, ENDED_SILENT, ENDED_COUNT };

/* Which witness saw the end first. */
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

/* A state entry is equal on all ranks after a step, or belongs to its slot. */
enum msg_entry_kind { ENTRY_REPLICATED, ENTRY_PER_RANK, ENTRY_KIND_COUNT };

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

struct msg_slot_report {
    uint64_t incarnation;
    uint32_t slot;
    uint64_t pid;
    uint32_t phase; /* enum msg_phase */
    uint64_t round;
    uint32_t ended; /* enum msg_ended */
    int32_t value;
    uint32_t witness; /* enum msg_witness */
    int64_t ran_us;
};

/* The newest commit that is kept for a slot, whoever runs there now. */
struct msg_kept {
    uint32_t slot;
    uint64_t commit;
};

struct msg_entry {
    const char *name;
    uint64_t bytes;
    uint32_t kind; /* enum msg_entry_kind */
};

struct msg_held {
    uint64_t commit;
    uint64_t checksum;
};

struct msg_member {
    uint64_t incarnation;
    const char *host;
    uint32_t slot;
    struct msg_texts addresses;
};

/* Where a commit is: its holder's line as a member, of whose addresses those of its agent count.
 * The incarnation is 0 when whoever made it is no more. */
struct msg_source {
    uint64_t incarnation;
    const char *host;
    uint32_t slot;
    struct msg_texts addresses;
};

#define MSG_LIST(name)                  \
    struct msg_##name##_list {          \
        const struct msg_##name *items; \
        size_t count;                   \
    }
MSG_LIST(slot_report);
MSG_LIST(kept);
MSG_LIST(entry);
MSG_LIST(held);
MSG_LIST(member);
MSG_LIST(source);

struct msg_hello_agent {
    uint32_t minor;
    const char *version;
    const char *job;
    const char *host;
    uint64_t agent; /* this start of the agent on this host */
    uint32_t cores;
    uint64_t memory_bytes;
    struct msg_slot_report_list slots;
    struct msg_kept_list kept;
};

struct msg_welcome_agent {
    uint32_t minor;
    const char *version;
    int64_t beat_us;
    int64_t lease_us;
    int64_t driver_grace_us;
};

struct msg_hello_worker {
    uint32_t minor;
    const char *version;
    uint64_t pid;
};

struct msg_welcome_worker {
    uint32_t minor;
    const char *version;
    const char *job;
    const char *host;
    uint32_t slot;
    uint32_t rank, size, local_rank, local_size, cross_rank, cross_size; /* provisional */
    uint32_t min_np, max_np;
    int64_t beat_us;
    int64_t stall_warning_us;
    int64_t stall_shutdown_us;
    struct msg_texts addresses; /* "state=10.0.0.7:4001": where this agent serves commits */
};

struct msg_refused {
    int32_t code; /* enum hvd_code */
    const char *text;
};

struct msg_bye {
    const char *reason;
};

struct msg_launch {
    uint32_t slot;
    struct msg_texts argv;
    struct msg_texts env; /* NAME=value */
    const char *cwd;
    uint32_t rank, size, local_rank, local_size, cross_rank, cross_size; /* provisional */
};

struct msg_launched {
    uint32_t slot;
    uint64_t pid;
};

struct msg_launch_failed {
    uint32_t slot;
    int32_t code;
    const char *text;
};

struct msg_exited {
    uint32_t slot;
    uint64_t pid;
    uint32_t ended; /* enum msg_ended */
    int32_t value;
    uint32_t witness; /* enum msg_witness */
    int64_t ran_us;
    uint64_t commit; /* the newest that is kept for its slot; 0: none */
};

struct msg_kill {
    int64_t grace_us; /* 0: SIGKILL at once */
    const char *reason;
};

struct msg_stop {
    int64_t grace_us;
    const char *reason;
};

struct msg_beat {
    uint64_t sequence;
    uint64_t answers; /* the highest sequence heard from the other side */
};

struct msg_notice {
    int64_t left_us; /* time left when it was sent: clocks are never compared */
    const char *source;
};

struct msg_output {
    uint32_t stream; /* enum msg_stream */
    struct msg_bytes data;
    uint64_t dropped_bytes; /* left out before this chunk */
};

struct msg_ready {
    uint64_t manifest; /* digest of the entries */
    struct msg_entry_list entries;
    struct msg_held_list held;
    struct msg_texts addresses;
};

struct msg_round {
    uint32_t cause; /* enum msg_cause */
    uint64_t previous;
    uint64_t commit;        /* resume from this one */
    struct msg_ids holders; /* members that hold it; none: it comes from the sources */
    struct msg_member_list members;
    struct msg_source_list sources; /* agents that keep it, when no member holds it */
};

struct msg_prepare {
    uint64_t previous;
    struct msg_member_list members;
};

struct msg_prepared {
    int32_t code;
    const char *text;
};

struct msg_pending {
    uint64_t next;
};

struct msg_at {
    uint64_t next; /* the PENDING it answers */
    uint64_t check;
};

struct msg_switch_at {
    uint64_t next;
    uint64_t check;
};

struct msg_abandon {
    uint64_t next;
    const char *reason;
};

struct msg_revoke {
    struct msg_ids lost;
    const char *reason;
};

struct msg_recovering {
    struct msg_held_list held;
    const char *text; /* unasked: what failed; may be "" */
    int32_t code;     /* unasked: with which code; 0: not said */
};

struct msg_entered {
    uint64_t commit;
    int64_t rebuild_us;
    int64_t state_us;
    int64_t first_step_us;
};

struct msg_hosts_updated {
    uint32_t added;
    uint32_t removed;
};

struct msg_drain {
    int64_t left_us;
    const char *reason;
};

struct msg_finished {
    int32_t code;
    const char *text;
};

struct msg_stalled {
    int64_t waited_us;
    const char *operation;
    struct msg_ids missing;
};

struct msg_useless {
    const char *text;
};

struct msg_remark {
    const char *text;
};

struct msg_ask {
    const char *verb;
    struct msg_texts args;
    bool json;
    bool follow;
};

struct msg_tell {
    int32_t code;
    struct msg_bytes text;
    bool last;
};

struct msg_snapshot {
    uint64_t manifest;
    uint64_t replicated_bytes; /* the part that is the same on all ranks */
    uint64_t bytes;            /* of one commit, that part included */
};

struct msg_granted {
    int32_t code; /* enum hvd_code; 0: the descriptor is beside it */
    const char *text;
};

struct msg_fetch {
    uint64_t number; /* of the worker's fetches, counted from 1 */
    uint64_t commit; /* 0: nothing, only end the one that runs */
    struct msg_source_list sources;
};

struct msg_fetched {
    uint64_t number;
    uint64_t commit;
    int32_t code;
    const char *text;
    uint64_t bytes; /* that came over a network */
    uint64_t local_bytes;
};

struct msg_pull {
    uint32_t slot;
    uint64_t manifest;
    uint64_t commit;
    uint64_t first; /* chunk */
    uint32_t count;
    struct msg_ids known; /* sums of what the puller has there: none, or one for each chunk */
};

struct msg_chunk {
    uint64_t commit;
    uint64_t index;
    uint64_t checksum;
    int32_t code; /* not 0: there is no such thing (any more) */
    struct msg_bytes data;
};

struct msg {
    enum msg_type type;
    uint64_t term;        /* which driver; 0 where it does not apply */
    uint64_t incarnation; /* which worker process; to a worker: 0 = all of the agent */
    uint64_t round;       /* which membership */
    union {
        struct msg_hello_agent hello_agent;
        struct msg_welcome_agent welcome_agent;
        struct msg_hello_worker hello_worker;
        struct msg_welcome_worker welcome_worker;
        struct msg_refused refused;
        struct msg_bye bye;
        struct msg_launch launch;
        struct msg_launched launched;
        struct msg_launch_failed launch_failed;
        struct msg_exited exited;
        struct msg_kill kill;
        struct msg_stop stop;
        struct msg_beat beat;
        struct msg_notice notice;
        struct msg_output output;
        struct msg_ready ready;
        struct msg_round round;
        struct msg_prepare prepare;
        struct msg_prepared prepared;
        struct msg_pending pending;
        struct msg_at at;
        struct msg_switch_at switch_at;
        struct msg_abandon abandon;
        struct msg_revoke revoke;
        struct msg_recovering recovering;
        struct msg_entered entered;
        struct msg_hosts_updated hosts_updated;
        struct msg_drain drain;
        struct msg_finished finished;
        struct msg_stalled stalled;
        struct msg_useless useless;
        struct msg_remark remark;
        struct msg_ask ask;
        struct msg_tell tell;
        struct msg_snapshot snapshot;
        struct msg_granted granted;
        struct msg_fetch fetch;
        struct msg_fetched fetched;
        struct msg_pull pull;
        struct msg_chunk chunk;
    } u;
    struct arena memory; /* what a decoded message points into; empty in one made to be sent */
};

/* Frees what a decoded message points to; harmless on a zeroed one. */
void msg_release(struct msg *msg);

/* A message that owns all that it points to, released with msg_release; or one whose parts lie in
 * the arena, and live as long as that. NULL texts become "". 0 or HVD_E_NOMEM; ret_msg is untouched
 * on failure. */
int msg_copy(const struct msg *msg, struct msg *ret_msg) MUST_CHECK;
int msg_copy_into(const struct msg *msg, struct arena *arena, struct msg *ret_msg) MUST_CHECK;

#endif
