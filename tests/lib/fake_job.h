/*
 * fake_job.h: a training program in a test of the worker library, messages that a fake agent can
 * play with it, and a function that runs both.
 *
 * The program counts steps up to its goal and commits each step. At a given step it can wait for
 * news by checks, and let the agent's script continue. The results of its calls are noted.
 */
#ifndef TESTS_LIB_FAKE_JOB_H
#define TESTS_LIB_FAKE_JOB_H

#include "hvd/hvd.h"
#include "proto/commit.h"
#include "tests/lib/fake_agent.h"

/* the secret of each round that a script begins */
#define FAKE_SECRET                                                                  \
    {                                                                                \
        (const uint8_t *)"each round of a fake job, these", LIMIT_ROUND_SECRET_BYTES \
    }

struct fake_job {
    struct fake_agent agent;
    hvd_state *state;

    /* the training state */
    int64_t step;
    int64_t mine; /* belongs to this rank */

    /* what the program does; 0: never */
    int64_t goal;
    bool turned; /* hvd_elastic_next instead of hvd_elastic_run, each round in a new thread */
    unsigned trains_max; /* the number of the call of train that returns 0 at once */
    int64_t wait_at;     /* this step waits for news before its commit */
    int64_t wait_after;  /* this step waits for news after its commit */
    /* train waits until the agent has received a message with this part; reset_await: the reset
     * callback does */
    const char *await;
    const char *reset_await;
    int64_t quit_at; /* this step returns `quit` */
    int quit;
    int reset; /* the result of the reset callback */
    /* ready: called before hvd_elastic_run; first: called at the beginning of each train. Not 0:
     * returned. */
    int (*ready)(struct fake_job *job);
    int (*first)(struct fake_job *job);
    /* called in each step before its commit; not 0: returned */
    int (*each)(struct fake_job *job);
    void (*told)(struct fake_job *job); /* called when the news has come that a step waited for */

    /* the results */
    bool over;     /* turned: hvd_elastic_next has returned a code */
    char why[512]; /* turned: the error of the last thread */
    int initialised, code;
    int news; /* the last news that train was told */
    unsigned trains, resets;
    int64_t began_at[8]; /* the step with which each train began */
    uint64_t rounds[8];
    int size, rank; /* in the last round */
};

int fake_job_init(struct fake_job *job) MUST_CHECK;

/* Calls hvd_init, makes the state, calls hvd_elastic_run and hvd_shutdown, while the agent plays
 * the script. 0, or why hvd_elastic_run was not reached. */
int fake_job_play(struct fake_job *job, const struct fake_step *script);
void fake_job_release(struct fake_job *job);

/* The step that commit "2.0" of the agent's snapshot contains; -1: the snapshot does not have the
 * commit. */
int64_t fake_job_step_of(const struct fake_job *job, uint64_t commit);

#define COMMIT(round, place) (COMMIT_FIRST_OF(round) | (uint64_t)(place))

/* ---- scripts, and their run by the `job` of the test file ---- */

#define HELLO    HEAR(MSG_HELLO_WORKER), DO(FAKE_WELCOME), HEAR(MSG_SNAPSHOT)
#define JOIN     HELLO, DO(FAKE_GRANT), HEAR(MSG_READY)
#define END      HEAR(MSG_FINISHED), DO(FAKE_OVER)

#define BEGIN(t) CHECK_OK(t, fake_job_init(&job))

/* The agent plays this script to its end: PLAY(t, JOIN, SAY(&done), DO(FAKE_OVER)). The agent is
 * stopped before a CHECK can leave the case, because its thread reads the script. */
#define PLAY(t, ...)                                             \
    do {                                                         \
        const struct fake_step played_steps[] = { __VA_ARGS__ }; \
        int played_code = fake_job_play(&job, played_steps);     \
        fake_agent_stop(&job.agent);                             \
        CHECK_OK(t, played_code);                                \
        CHECK_TEXT(t, job.agent.why, "");                        \
    } while (0)

/* ---- messages for a job of one worker; the comments name the round ----------------------------
 */

extern const struct msg round_first;     /* round 1 */
extern const struct msg round_recovery;  /* round 2, from commit 1.3 which this worker holds */
extern const struct msg round_switch;    /* round 2, from commit 2.0 which this worker holds */
extern const struct msg prepare_next;    /* round 2 */
extern const struct msg prepare_without; /* round 2, without this worker */
extern const struct msg pending_next;
extern const struct msg switch_at_next;
extern const struct msg abandon_next;
extern const struct msg revoke_first; /* round 1 */
extern const struct msg revoke_next;  /* round 2 */
extern const struct msg drain;
extern const struct msg done;

#endif
