/*
 * agent_handlers.h: what the core does for each event: agent_worker.c, agent_driver.c,
 * agent_pulse.c, agent_checkpoint.c and agent_process.c. Private to this folder.
 */
#ifndef AGENT_CORE_AGENT_HANDLERS_H
#define AGENT_CORE_AGENT_HANDLERS_H

#include "agent/core/agent_internal.h"

/* agent_worker.c: the connections of workers */
void agent_worker_msg(struct agent *agent, uint32_t connection, const struct msg *msg);
void agent_worker_down(struct agent *agent, uint32_t connection);
void agent_worker_welcomed(struct agent *agent, struct agent_worker *worker);
void agent_worker_pass_down(struct agent *agent, const struct msg *msg);
void agent_worker_timer(struct agent *agent, struct agent_worker *worker);

/* agent_driver.c: messages from and to the driver */
void agent_driver_up(struct agent *agent, const struct msg_kept_list *kept, const char *address);
void agent_driver_down(struct agent *agent, const char *text);
void agent_driver_msg(struct agent *agent, const struct msg *msg);
void agent_driver_timer(struct agent *agent, const struct report_list *reports);
void agent_driver_notice(struct agent *agent, int64_t left_us, const char *source);
void agent_driver_key_taken(struct agent *agent, uint64_t epoch);
void agent_driver_moved(struct agent *agent, const char *text);

/* agent_pulse.c: what heartbeats say of workers. `kept` lists the commits that the snapshots hold
 * now; NULL: nothing is known of them. `reports` may be NULL. */
void agent_pulse_note(struct agent *agent, const struct msg_kept_list *kept);
void agent_pulse_beat(struct agent *agent, const struct report_list *reports);
/* Sends a heartbeat with these reports at once, if the driver does not have them. */
void agent_pulse_report(struct agent *agent, const struct report_list *reports);
/* The driver on a new connection has no report of this worker yet: the next heartbeat sends all. */
void agent_pulse_forget_told(struct agent_worker *worker);

/* agent_checkpoint.c: HOLD, SAVE and RELEASE; their results */
void agent_checkpoint_msg(struct agent *agent, const struct msg *msg);
void agent_checkpoint_result(struct agent *agent, const struct msg *result);

/* agent_autopsy.c: what a worker was doing. agent_autopsy_make keeps the message of a worker that
 * has its ending; agent_autopsy_say sends it, if there is one. agent_autopsy_of_living sends one,
 * and keeps nothing. */
void agent_autopsy_make(struct agent *agent, struct agent_worker *worker,
                        const struct agent_remains *remains);
void agent_autopsy_of_living(struct agent *agent, const struct agent_worker *worker,
                             const struct agent_remains *remains);
void agent_autopsy_say(struct agent *agent, const struct agent_worker *worker);

/* agent_process.c: processes from LAUNCH to FORGET, and the agent's own end */
void agent_process_launch(struct agent *agent, const struct msg *msg);
void agent_process_spawned(struct agent *agent, uint64_t incarnation, uint64_t pid);
void agent_process_spawn_failed(struct agent *agent, const struct agent_event *event);
void agent_process_ended(struct agent *agent, const struct agent_event *event);
void agent_process_kill(struct agent *agent, const struct msg *msg);
void agent_process_forget(struct agent *agent, uint64_t incarnation);
void agent_process_report(struct agent *agent, const struct agent_worker *worker);
/* The worker does not answer: sends SIGKILL, and the end will be reported as the end of a silent
 * worker. */
void agent_process_blame(struct agent *agent, struct agent_worker *worker,
                         enum msg_witness witness);
/* The worker has said UNUSABLE about itself: sends SIGKILL, also when no driver is connected. */
void agent_process_unusable(struct agent *agent, struct agent_worker *worker);
/* Sends the signals to the worker that have become due by now. */
void agent_process_signal(struct agent *agent, struct agent_worker *worker);
/* Begins the end of the agent: all workers get SIGTERM, after grace_us SIGKILL; `code` and `why` go
 * into the final action AGENT_DO_EXIT. */
void agent_end(struct agent *agent, int64_t grace_us, int code, const char *why);

#endif
