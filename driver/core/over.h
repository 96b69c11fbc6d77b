/*
 * over.h: the end of the job: why the job ends, and when nothing is left to wait for. The phase
 * from the first FINISHED on is in finish.h.
 */
#ifndef DRIVER_CORE_OVER_H
#define DRIVER_CORE_OVER_H

#include "driver/core/core_internal.h"

/* Each of these functions ends the job: agents are told STOP, and the job is over when the agents
 * are gone. The exit code is CORE_FAILED after over_fail, and CORE_STOPPED after over_stop. */
void over_fail(struct core *core, const char *why);
void over_stop(struct core *core, const char *who);

/* Goes on with the end of a job that an earlier driver had begun to end, as the journal says.
 * Called only when the driver starts. */
void over_restart(struct core *core);

/* Checks whether the job has ended well or is hopeless. Called after each end of a worker or agent.
 */
void over_check_job(struct core *core);

/* True: the job waits for other workers than those that fail to start: members of the last round
 * have still to stop, or a worker that was launched less than --start-timeout ago may still join,
 * because its slot has not failed again and again. */
bool over_awaits_others(const struct core *core);

/* The deadline for agents that were told STOP has passed: the job is over. */
void over_expire(struct core *core);

/* over_note_untold: the silent agent of this host is given up; if the job is being stopped, the
 * host may not have been told. over_last_words: the text with which the driver ends; it names the
 * hosts that were not told. */
void over_note_untold(struct core *core, const struct core_host *host);
const char *over_last_words(struct core *core);

/* Sends STOP to the agent of this host. */
void over_tell_stop(struct core *core, struct core_host *host);

/* over_dismiss sends DONE to a worker that cannot go on because other workers have finished;
 * over_dismiss_all sends DONE to all unfinished workers, once. */
void over_dismiss(struct core *core, const struct worker *worker);
void over_dismiss_all(struct core *core);
bool over_is_unfinished(const struct worker *worker);

/* For the verdict on the job: a worker has finished (over_note_finished); a worker has ended
 * (over_note_end). */
struct over_ending {
    enum msg_ended ended;
    bool clean;      /* the worker ended with exit code 0 */
    bool unfinished; /* the worker was a member and had not finished, although others had */
    const char *why;
};
void over_note_finished(struct core *core);
void over_note_end(struct core *core, const struct worker *worker, const struct over_ending *end);

/* Ends a job that has had too few workers for --elastic-timeout, or that cannot get any worker.
 * Called at the end of each step. */
void over_judge_shortage(struct core *core);

/* Returns when the job fails, unless workers come; TIME_NEVER: the job has enough workers. */
int64_t over_fails_us(const struct core *core);

#endif
