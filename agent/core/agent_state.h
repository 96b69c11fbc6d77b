/*
 * agent_state.h: what an agent knows. Private to this folder.
 *
 *     driver:  down ──► dialling ──► greeting ──► open ──► down
 *
 * Every function below runs inside a step: agent->list and agent->now_us are those of the step.
 */
#ifndef AGENT_CORE_AGENT_STATE_H
#define AGENT_CORE_AGENT_STATE_H

#include "agent/core/agent_roster.h"
#include "base/time.h"

enum agent_life { LIFE_NEW, LIFE_ALONE, LIFE_SERVING, LIFE_ENDING, LIFE_OVER, LIFE_COUNT };
enum driver_link { DRIVER_DOWN, DRIVER_DIALLING, DRIVER_GREETING, DRIVER_OPEN, DRIVER_COUNT };

struct agent {
    struct agent_config config; /* with what the driver's welcome said */
    struct trace *trace;
    struct sm life;
    struct sm driver;
    struct agent_action_list *list;
    int64_t now_us;

    uint64_t term;
    uint64_t sequence;  /* of our last beat */
    uint64_t heard;     /* of the driver's */
    int64_t link_at_us; /* down: dial; greeting: too late for a welcome; open: the lease is out */
    int64_t beat_at_us;
    int64_t grace_at_us;
    int64_t wake_at_us; /* no worker has a deadline before this */

    bool noticed;
    int64_t taken_at_us; /* when the machine will be taken away */
    char notice[LIMIT_TEXT_BYTES + 1];

    bool stopped; /* a STOP of the driver's: it knows why our workers end */
    int exit_code;
    char exit_text[LIMIT_TEXT_BYTES + 1];

    size_t kept_bytes;                               /* of what all workers have printed */
    size_t alive;                                    /* spawning or running */
    struct VEC(struct agent_worker *) workers;       /* by incarnation */
    struct VEC(struct agent_connection) connections; /* by number: those that said hello */
    struct agent_slot slots[LIMIT_SLOTS_PER_HOST];

    struct { /* what is made when memory is out: nobody sees it */
        struct agent_action action;
        struct msg msg;
    } nowhere;
};

/* agent_action.c: what is added is zeroed, and a dummy once memory is out: list->failed says so. */
struct agent_action *agent_do(struct agent *agent, enum agent_action_kind kind);
struct msg *agent_msg(struct agent *agent, enum msg_type type, uint64_t incarnation);
const char *agent_text(struct agent *agent, const char *format, ...) PRINTF_LIKE(2, 3);

/* agent_driver.c */
void agent_driver_dial(struct agent *agent);
void agent_driver_up(struct agent *agent, const struct msg_kept_list *kept);
void agent_driver_down(struct agent *agent, const char *text);
void agent_driver_msg(struct agent *agent, const struct msg *msg);
void agent_driver_timer(struct agent *agent);
void agent_driver_bye(struct agent *agent, const char *why);        /* if it is there */
void agent_driver_send(struct agent *agent, const struct msg *msg); /* lost unless it is open */
bool agent_driver_is_open(const struct agent *agent);
void agent_driver_notice(struct agent *agent, int64_t left_us, const char *source);
void agent_driver_moved(struct agent *agent, const char *text);

/* agent_process.c: processes from LAUNCH to FORGET, and the agent's own end */
void agent_process_launch(struct agent *agent, const struct msg *msg);
void agent_process_spawned(struct agent *agent, uint64_t incarnation, uint64_t pid);
void agent_process_spawn_failed(struct agent *agent, const struct agent_event *event);
void agent_process_ended(struct agent *agent, const struct agent_event *event);
void agent_process_kill(struct agent *agent, uint64_t incarnation, int64_t grace_us);
void agent_process_forget(struct agent *agent, uint64_t incarnation);
void agent_process_report(struct agent *agent, const struct agent_worker *worker);
void agent_process_blame(struct agent *agent, struct agent_worker *worker,
                         enum msg_witness witness);
/* It says so itself: SIGKILL, with a driver or without. */
void agent_process_useless(struct agent *agent, struct agent_worker *worker);
void agent_process_timer(struct agent *agent, struct agent_worker *worker);
/* How long it waits for one that has never been there. */
void agent_first_driver(struct agent *agent);

void agent_end(struct agent *agent, int64_t grace_us, int code, const char *why);

/* agent_words.c: what workers have said, until it is outdated */
void agent_words_keep(struct agent *agent, struct agent_worker *worker, const struct msg *msg);
void agent_words_note_member(struct agent_worker *worker, uint64_t round);
void agent_words_note_down(struct agent_worker *worker, const struct msg *msg);
void agent_words_say_again(struct agent *agent, const struct agent_worker *worker);
void agent_words_release(struct agent_worker *worker);

/* agent_output.c: what workers print; what is kept is said before an end is */
void agent_output_init(struct agent_worker *worker);
void agent_output_take(struct agent *agent, const struct agent_event *event);
void agent_output_say_kept(struct agent *agent, struct agent_worker *worker);
void agent_output_release(struct agent *agent, struct agent_worker *worker);

/* agent_worker.c: their connections */
void agent_worker_msg(struct agent *agent, uint32_t connection, const struct msg *msg);
void agent_worker_down(struct agent *agent, uint32_t connection);
void agent_worker_pass_down(struct agent *agent, const struct msg *msg);
void agent_worker_timer(struct agent *agent, struct agent_worker *worker);

static inline void agent_wake_at(struct agent *agent, int64_t at_us)
{
    if (at_us < agent->wake_at_us)
        agent->wake_at_us = at_us;
}

#endif
