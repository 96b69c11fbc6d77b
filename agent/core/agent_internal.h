/*
 * agent_internal.h: the state of an agent. Private to this folder, whose files call each other
 * downwards only, in the order of README.md. Every function below runs inside a step: agent->list
 * and agent->now_us are the list and the time of that step.
 */
#ifndef AGENT_CORE_AGENT_INTERNAL_H
#define AGENT_CORE_AGENT_INTERNAL_H

#include "agent/core/agent_roster.h"
#include "base/time.h"

/* agent_states.c says which state may follow which. */
enum agent_life { LIFE_NEW, LIFE_ALONE, LIFE_SERVING, LIFE_ENDING, LIFE_OVER, LIFE_COUNT };
enum driver_link { DRIVER_DOWN, DRIVER_DIALLING, DRIVER_GREETING, DRIVER_OPEN, DRIVER_COUNT };

extern const struct sm_type agent_life_machine;
extern const struct sm_type agent_link_machine, agent_process_machine;

#define AGENT_PERSIST_MINOR 3 /* a driver of a lower minor skips PERSIST */
#define AGENT_STORE_MINOR   4 /* a driver of a lower minor skips STORE */

/* The state of the connection to the driver, and of its messages. */
struct agent_link {
    uint32_t minor;    /* minor protocol version of the driver that last sent a welcome */
    uint64_t term;     /* the highest term that this agent has obeyed */
    uint64_t sequence; /* sequence number of the agent's last heartbeat */
    uint64_t heard;    /* the highest sequence number of a heartbeat of the driver */
    /* when to dial again (DRIVER_DOWN), when to give up waiting for the welcome (DRIVER_GREETING),
     * when the driver's lease ends (DRIVER_OPEN) */
    int64_t due_us;
    int64_t beat_at_us, beat_by_us; /* the next heartbeat is due; the latest time for it */
    int64_t redial_us;              /* the wait before the next dial */
};

/* A preemption notice. The agent repeats the notice to each driver until taken_at_us has passed. */
struct agent_notice {
    bool given;
    int64_t taken_at_us; /* when the machine will be taken away */
    char text[LIMIT_TEXT_BYTES + 1];
};

/* The newest attempt at a checkpoint that a driver has named. */
struct agent_checkpoint {
    uint64_t number; /* number of the attempt; 0: no driver has named one */
    bool asked;      /* the driver has sent HOLD or SAVE on the connection that is open now */
    bool over;       /* the driver has sent RELEASE for this attempt */
};

struct agent_exit {
    bool by_driver; /* the driver has said STOP, so the driver knows why the workers end */
    int code;
    char text[LIMIT_TEXT_BYTES + 1];
};

struct agent {
    struct agent_config config; /* values of the driver's welcome replace the defaults */
    struct trace *trace;
    struct sm life;
    struct sm driver;
    struct agent_action_list *list;
    int64_t now_us;

    struct agent_link link;
    struct agent_notice notice;
    struct agent_checkpoint checkpoint;
    struct agent_exit exit;
    int64_t grace_at_us; /* the agent ends if no driver has welcomed it by this time */
    int64_t wake_at_us;  /* no worker has a deadline before this time */

    size_t kept_bytes;                               /* bytes of output kept for all workers */
    size_t alive;                                    /* workers that are spawning or running */
    struct VEC(struct agent_worker *) workers;       /* sorted by incarnation */
    struct VEC(struct agent_connection) connections; /* sorted by number */
    struct agent_slot slots[LIMIT_SLOTS_PER_HOST];

    struct { /* used when no memory is left; the action list is then marked as failed */
        struct agent_action action;
        struct msg msg;
    } spare;
};

/* agent_action.c: both return zeroed memory. When no memory is left they return the spare action or
 * message, and the whole step fails. */
struct agent_action *agent_do(struct agent *agent, enum agent_action_kind kind);
struct msg *agent_msg(struct agent *agent, enum msg_type type, uint64_t incarnation);
const char *agent_text(struct agent *agent, const char *format, ...) PRINTF_LIKE(2, 3);

/* agent_link.c: the connection to the driver: its states and deadlines */
void agent_link_dial(struct agent *agent);
/* called when the connection to the driver is lost, or the dial has failed */
void agent_link_lost(struct agent *agent, const char *why);
void agent_link_hang_up(struct agent *agent, const char *why); /* closes the connection */
void agent_link_bye(struct agent *agent, const char *why);     /* sends BYE, then closes */
/* sends a message, in the handshake or after it (DRIVER_GREETING or DRIVER_OPEN) */
void agent_link_say(struct agent *agent, const struct msg *msg);
/* sends a message if the connection is DRIVER_OPEN, else drops the message */
void agent_link_send(struct agent *agent, const struct msg *msg);
/* renews the driver's lease, because a message of the driver has arrived */
void agent_link_renew(struct agent *agent);
/* Sets how long the agent waits for the welcome of its first driver. */
void agent_link_await_first(struct agent *agent);
bool agent_link_is_open(const struct agent *agent);

/* agent_words.c: keeps the last messages of workers until a newer message replaces them */
void agent_words_keep(struct agent *agent, struct agent_worker *worker, const struct msg *msg);
void agent_words_note_member(struct agent_worker *worker, uint64_t round);
void agent_words_note_down(struct agent_worker *worker, const struct msg *msg);
const struct msg *agent_words_entries(const struct agent_worker *worker);
void agent_words_say_again(struct agent *agent, const struct agent_worker *worker, bool entries);
void agent_words_release(struct agent_worker *worker);

/* agent_output.c: output of workers; it is sent before the end of its worker is reported */
void agent_output_take(struct agent *agent, struct agent_worker *worker, uint32_t stream,
                       struct msg_bytes data);
void agent_output_say_kept(struct agent *agent, struct agent_worker *worker);
void agent_output_release(struct agent *agent, struct agent_worker *worker);
/* agent_roster.c: notes that a worker has a deadline at at_us. */
void agent_wake_at(struct agent *agent, int64_t at_us);

#endif
