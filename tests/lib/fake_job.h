/*
 * fake_job.h: a training program in a test of the worker library, the messages that an agent may
 * play with it, and the run of both.
 *
 * The program counts steps up to its goal and commits each. At a step that is asked for it waits
 * for news, by checks, and lets the agent's script go on; what its calls have returned is noted.
 */
#ifndef TESTS_LIB_FAKE_JOB_H
#define TESTS_LIB_FAKE_JOB_H

#include "hvd/hvd.h"
#include "proto/commit.h"
#include "tests/lib/fake_agent.h"

struct fake_job {
    struct fake_agent agent;
    hvd_state *state;

    /* what it trains */
    int64_t step;
    int64_t mine; /* of this rank */

    /* what it is to do: 0 is never */
    int64_t goal;
    unsigned trains_max; /* this call of train returns 0 at once */
    int64_t wait_at;     /* this step waits for news, before it is committed */
    int64_t wait_after;  /* likewise, after it is committed */
    const char *await;   /* train, or the reset callback, waits until the agent has heard it */
    const char *reset_await;
    int64_t quit_at; /* this step returns quit */
    int quit;
    int reset; /* what the reset callback returns */
    /* before hvd_elastic_run; and first thing in each train, which returns what is not 0 */
    int (*ready)(struct fake_job *job);
    int (*first)(struct fake_job *job);
    int (*each)(struct fake_job *job);  /* a step, before it is committed; likewise */
    void (*told)(struct fake_job *job); /* the news that a step has waited for has come */

    /* what came of it */
    int initialised, code;
    int news; /* the last that train was told */
    unsigned trains, resets;
    int64_t began_at[8]; /* the step with which each train began */
    uint64_t rounds[8];
    int size, rank; /* in the last */
};

int fake_job_init(struct fake_job *job) MUST_CHECK;

/* hvd_init, the state, hvd_elastic_run, and hvd_shutdown; the agent plays this meanwhile. 0, or why
 * it did not come to the run. */
int fake_job_play(struct fake_job *job, const struct fake_step *script);
void fake_job_release(struct fake_job *job);

/* "commit 2.0" of the agent's snapshot: which step has it? -1: it is not there. */
int64_t fake_job_step_of(const struct fake_job *job, uint64_t commit);

#define COMMIT(round, place) (COMMIT_FIRST_OF(round) | (uint64_t)(place))

/* ---- messages for a job of one --------------------------------------------------------------- */

extern const struct msg round_first;     /* 1 */
extern const struct msg round_recovery;  /* 2, from 1.3 which it holds */
extern const struct msg round_switch;    /* 2, from 2.0 which it holds */
extern const struct msg prepare_next;    /* 2 */
extern const struct msg prepare_without; /* 2, without this worker */
extern const struct msg pending_next;
extern const struct msg switch_at_next;
extern const struct msg abandon_next;
extern const struct msg revoke_first; /* 1 */
extern const struct msg revoke_next;  /* 2 */
extern const struct msg drain;
extern const struct msg done;

#endif
