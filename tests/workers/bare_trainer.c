/*
 * bare_trainer: a worker for tests. It speaks to its agent as the worker library does, but without
 * that library and without libevent: its session thread holds the life futex of its page and polls
 * the agent's socket. Its training (bare_training.h) computes nothing.
 */
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "tests/workers/bare_faults.h"
#include "tests/workers/bare_training.h"
#include "worker/io/life.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct worker {
    struct bare_trainer_options options;
    const char *agent;
    uint64_t incarnation;
    struct agent_link link;
    struct bare_training training;
    struct msg welcome;
    int status;
};

/* Waits until the deadline, or until the link can be read or written. */
static int wait_for_agent(struct agent_link *link, int64_t deadline_us)
{
    struct pollfd fd = { .fd = link->fd, .events = agent_link_events(link) };
    int64_t left_us = deadline_us - clock_now_us();
    struct timespec left = { .tv_sec = 3600 };

    if (deadline_us != TIME_NEVER) {
        left_us = left_us > 0 ? left_us : 0;
        left = (struct timespec){ left_us / TIME_S, (left_us % TIME_S) * 1000 };
    }
    return ppoll(&fd, 1, &left, NULL);
}

static int greet(struct worker *worker, struct hvd_err *err)
{
    struct msg hello = { .type = MSG_HELLO_WORKER, .incarnation = worker->incarnation };
    int64_t deadline_us = clock_now_us() + LIMIT_GREETING_US;
    int rc;

    hello.u.hello_worker = (struct msg_hello_worker){ PROTO_MINOR, "test", (uint64_t)getpid() };
    rc = agent_link_send(&worker->link, &hello, err);
    while (!rc) {
        rc = agent_link_receive(&worker->link, &worker->welcome, err);
        if (rc)
            break;
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT, "the agent does not answer");
        wait_for_agent(&worker->link, deadline_us);
    }
    if (rc < 0)
        return rc;
    if (worker->welcome.type == MSG_REFUSED)
        return err_set(err, worker->welcome.u.refused.code, "refused: %s",
                       worker->welcome.u.refused.text);
    if (worker->welcome.type != MSG_WELCOME_WORKER || worker->link.passed_fd < 0)
        return err_set(err, HVD_E_PROTO, "no welcome, or none with a page");
    return 0;
}

/* Called when the connection to the agent is lost: tells the training loop so. A loop that hangs
 * cannot be told: HVD_E_LOST, which ends the process. */
static int lose(struct worker *worker, struct hvd_err *err)
{
    struct session_event event = { .kind = SESSION_CLOSED };

    fprintf(stderr, "trainer: %s\n", err->text);
    agent_link_cut(&worker->link);
    if (worker->training.place == TRAINING_HANGING)
        return HVD_E_LOST;
    return bare_training_tell(&worker->training, &event, clock_now_us(), err);
}

/* Handles all messages that the agent has sent. */
static int hear(struct worker *worker, struct hvd_err *err)
{
    struct session_event event = { .kind = SESSION_MSG,
                                   .counted = true }; /* the session itself counts messages */
    struct msg msg = { 0 };
    int rc;

    while ((rc = agent_link_receive(&worker->link, &msg, err)) == 1) {
        event.msg = &msg;
        rc = bare_training_tell(&worker->training, &event, clock_now_us(), err);
        msg_release(&msg);
        if (rc || worker->training.place == TRAINING_OVER)
            return rc;
    }
    return rc < 0 ? lose(worker, err) : 0;
}

static int train(struct worker *worker, struct hvd_err *err)
{
    int rc = bare_training_wake(&worker->training, clock_now_us(), err);

    while (!rc && worker->training.place != TRAINING_OVER) {
        wait_for_agent(&worker->link, bare_training_deadline(&worker->training));
        rc = agent_link_flush(&worker->link, err);
        rc = rc ? lose(worker, err) : hear(worker, err);
        if (!rc && worker->training.place != TRAINING_OVER)
            rc = bare_training_wake(&worker->training, clock_now_us(), err);
    }
    if (!rc && worker->training.code < 0)
        rc = err_set(err, worker->training.code, "%s", err_text(worker->training.code));
    return rc;
}

/* Sends queued messages before the end, unless the agent does not read. */
static void say_the_rest(struct worker *worker)
{
    int64_t deadline_us = clock_now_us() + 5 * TIME_S;
    struct hvd_err err;

    while (worker->link.unsent.length && clock_now_us() < deadline_us) {
        if (agent_link_flush(&worker->link, &err))
            return;
        wait_for_agent(&worker->link, deadline_us);
    }
}

static int hold_life(struct worker *worker, struct page **ret_page, struct hvd_err *err)
{
    struct page *page =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, worker->link.passed_fd, 0);
    int rc;

    if (page == MAP_FAILED)
        return err_set(err, HVD_E_IO, "the page: %s", strerror(errno));
    if (page->magic != PAGE_MAGIC || page->version != PAGE_VERSION ||
        page->incarnation != worker->incarnation)
        rc = err_set(err, HVD_E_PROTO, "the page is not that of this worker");
    else
        rc = life_hold(page);
    if (rc) {
        munmap(page, PAGE_BYTES);
        return rc;
    }
    *ret_page = page;
    return 0;
}

/* The worker's life: connects to the agent, greets, holds the life futex, trains, and says goodbye.
 */
static int live(struct worker *worker, struct hvd_err *err)
{
    struct page *page = NULL;
    int rc = agent_link_open(&worker->link, worker->agent, err);

    if (rc)
        return rc;
    rc = greet(worker, err);
    if (!rc)
        rc = hold_life(worker, &page, err);
    if (!rc)
        rc = bare_training_init(&worker->training, &worker->options, &worker->link,
                                worker->incarnation, &worker->welcome.u.welcome_worker,
                                clock_now_us());
    if (!rc)
        rc = train(worker, err);
    say_the_rest(worker);
    bare_training_release(&worker->training);
    msg_release(&worker->welcome);
    agent_link_close(&worker->link);
    if (page) {
        life_release(page);
        munmap(page, PAGE_BYTES);
    }
    return rc;
}

static void *session_thread(void *arg)
{
    struct worker *worker = arg;
    struct hvd_err err = { 0 };
    int rc = live(worker, &err);

    if (rc)
        fprintf(stderr, "trainer: %s\n", err.text[0] ? err.text : err_text(rc));
    worker->status = rc ? 1 : 0;
    return NULL;
}

static int read_environment(struct worker *worker, struct hvd_err *err)
{
    const char *incarnation = getenv("HVD_INCARNATION");

    worker->agent = getenv("HVD_AGENT");
    if (!worker->agent || !incarnation)
        return err_set(err, HVD_E_STATE,
                       "HVD_AGENT and HVD_INCARNATION are not set; let hvd-elastic start it");
    return text_parse_u64((struct span){ incarnation, strlen(incarnation) }, 1, UINT64_MAX,
                          "HVD_INCARNATION", &worker->incarnation, err);
}

static int run(struct worker *worker)
{
    struct hvd_err err;
    pthread_t thread;
    int rc;

    if (read_environment(worker, &err) || bare_faults_begin(&worker->options, &err)) {
        fprintf(stderr, "trainer: %s\n", err.text);
        return 1;
    }
    rc = pthread_create(&thread, NULL, session_thread, worker);
    if (rc) {
        fprintf(stderr, "trainer: no thread: %s\n", strerror(rc));
        return 1;
    }
    pthread_join(thread, NULL);
    bare_faults_end();
    return worker->status;
}

int main(int argc, char **argv)
{
    static struct worker worker;
    int status;

    if (bare_trainer_options_read(&worker.options, argc, argv, &status))
        status = run(&worker);
    opt_release(&worker.options.set);
    return status;
}
