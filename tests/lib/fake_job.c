/*
 * fake_job.c: a training program on the worker library in a test, and messages of an agent for a
 * job of one worker. The program counts steps and stops where the test wants it to.
 */
#include "tests/lib/fake_job.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* ---- messages -------------------------------------------------------------------------------- */

static const uint64_t self = FAKE_INCARNATION;
static const struct msg_member members[] = {
    {.incarnation = FAKE_INCARNATION, .host = "a"}
};
static const struct msg_member others[] = {
    {.incarnation = FAKE_INCARNATION + 1, .host = "b"}
};

#define ROUND(number, why, from)                                    \
    {                                                               \
        .type = MSG_ROUND, .term = 1, .round = number, .u.round = { \
            .cause = why,                                           \
            .previous = (number)-1,                                 \
            .commit = from,                                         \
            .holders = {&self,    1},                                \
            .members = { members, 1}                               \
        }                                                           \
    }

const struct msg round_first = ROUND(1, CAUSE_FIRST, COMMIT(1, 0));
const struct msg round_recovery = ROUND(2, CAUSE_RECOVERY, COMMIT(1, 3));
const struct msg round_switch = ROUND(2, CAUSE_SWITCH, COMMIT(2, 0));
const struct msg prepare_next = {
    .type = MSG_PREPARE,
    .term = 1,
    .round = 2,
    .u.prepare = {.previous = 1, .members = { members, 1 }}
};
const struct msg prepare_without = {
    .type = MSG_PREPARE,
    .term = 1,
    .round = 2,
    .u.prepare = {.previous = 1, .members = { others, 1 }}
};
const struct msg pending_next = { .type = MSG_PENDING, .term = 1, .round = 1, .u.pending = { 2 } };
const struct msg switch_at_next = {
    .type = MSG_SWITCH_AT, .term = 1, .round = 1, .u.switch_at = { .next = 2 }
};
const struct msg abandon_next = {
    .type = MSG_ABANDON, .term = 1, .round = 1, .u.abandon = {2, "it is not wanted"}
};
const struct msg revoke_first = {
    .type = MSG_REVOKE, .term = 1, .round = 1, .u.revoke = { .reason = "a worker has died" }
};
const struct msg revoke_next = {
    .type = MSG_REVOKE, .term = 1, .round = 2, .u.revoke = { .reason = "a worker has died" }
};
const struct msg drain = { .type = MSG_DRAIN, .term = 1, .u.drain = { .reason = "shrinking" } };
const struct msg done = { .type = MSG_DONE, .term = 1 };

/* ---- the training program -------------------------------------------------------------------- */

static int wait_for_news(struct fake_job *job)
{
    fake_agent_go(&job->agent);
    while (!(job->news = hvd_state_check(job->state)))
        sched_yield();
    if (job->told)
        job->told(job);
    return job->news;
}

/* The train function: from the step up to the goal, with an allreduce and a commit in each step. */
static int train(hvd_state *state, void *arg)
{
    struct fake_job *job = arg;
    int64_t sum = 0;

    if (job->trains < 8) {
        job->began_at[job->trains] = job->step;
        job->rounds[job->trains] = hvd_round();
    }
    job->trains++;
    job->size = hvd_size();
    job->rank = hvd_rank();
    if (job->trains == job->trains_max)
        return 0;
    job->news = job->first ? job->first(job) : 0;
    if (job->news)
        return job->news;
    if (job->await && !fake_agent_await(&job->agent, job->await))
        return HVD_E_INTERNAL;
    while (job->step < job->goal) {
        const int64_t one = 1;

        job->news = hvd_allreduce(&one, &sum, 1, HVD_INT64, HVD_SUM);
        if (job->news)
            return job->news;
        job->step += sum;
        job->mine = 100 + job->step;
        job->news = job->each ? job->each(job) : 0;
        if (job->news)
            return job->news;
        if (job->step == job->quit_at)
            return job->quit;
        if (job->step == job->wait_at && job->trains == 1)
            return wait_for_news(job);
        job->news = hvd_state_commit(state);
        if (job->news)
            return job->news;
        if (job->step == job->wait_after && job->trains == 1)
            return wait_for_news(job);
    }
    return 0;
}

static int on_reset(hvd_state *state, void *arg)
{
    struct fake_job *job = arg;

    (void)state;
    job->resets++;
    if (job->reset_await && !fake_agent_await(&job->agent, job->reset_await))
        return HVD_E_INTERNAL;
    return job->reset;
}

/* ---- program and agent together -------------------------------------------------------------- */

int fake_job_init(struct fake_job *job)
{
    memset(job, 0, sizeof(*job));
    job->goal = 5;
    return fake_agent_init(&job->agent);
}

static int build(struct fake_job *job)
{
    int rc;

    job->state = hvd_state_create();
    if (!job->state)
        return HVD_E_NOMEM;
    rc = hvd_state_add(job->state, "step", &job->step, sizeof(job->step));
    if (!rc)
        rc = hvd_state_add_per_rank(job->state, "mine", &job->mine, sizeof(job->mine));
    return rc ? rc : hvd_state_on_reset(job->state, on_reset, job);
}

/* One turn of a loop of the program's own: the code of the last round is in job->code. */
static void *turn(void *arg)
{
    struct fake_job *job = arg;
    int rc = hvd_elastic_next(job->state, job->code);

    job->code = rc ? rc : train(job->state, job);
    job->over = rc != 0;
    if (rc < 0)
        snprintf(job->why, sizeof(job->why), "%s", hvd_last_error());
    return NULL;
}

/* Does what hvd_elastic_run does, with a new thread for each round. */
static int run_turned(struct fake_job *job)
{
    pthread_t thread;

    job->code = hvd_elastic_begin(job->state);
    if (job->code)
        return job->code;
    for (job->over = false; !job->over;) {
        if (pthread_create(&thread, NULL, turn, job))
            return HVD_E_LIMIT;
        pthread_join(thread, NULL);
    }
    return job->code == HVD_FINISHED ? 0 : job->code;
}

int fake_job_play(struct fake_job *job, const struct fake_step *script)
{
    int rc = fake_agent_start(&job->agent, script);

    if (!rc)
        rc = job->initialised = hvd_init();
    if (!rc)
        rc = build(job);
    if (!rc && job->ready)
        rc = job->ready(job);
    if (!rc)
        job->code = job->turned ? run_turned(job) : hvd_elastic_run(job->state, train, job);
    hvd_state_free(job->state);
    job->state = NULL;
    hvd_shutdown();
    return rc;
}

void fake_job_release(struct fake_job *job)
{
    fake_agent_release(&job->agent);
}

int64_t fake_job_step_of(const struct fake_job *job, uint64_t commit)
{
    const uint8_t *at = job->agent.snapshot ? snapshot_find(job->agent.snapshot, commit) : NULL;
    int64_t step = -1;

    if (at)
        memcpy(&step, at, sizeof(step));
    return step;
}
