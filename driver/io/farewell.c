/*
 * farewell.c: tells late agents that the job is over. A late agent is one that had no connection
 * when the job ended. loop.c notes the late agents, and run.c starts, as the last act of a driver,
 * a process that waits for them. Invariant: the process has no descriptor of the driver, and ends
 * when all missing agents were told and none has come again for FAREWELL_LINGER_S, or at until_us.
 */
#include "driver/io/farewell.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "driver/core/core.h"
#include "driver/io/host_keys.h"
#include "driver/io/server.h"
#include "driver/store/store.h"
#include "os/clock.h"
#include "proto/codec.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NO_PEER UINT32_MAX
/* An agent that was frozen may close its connection before it has read the answer, because a timer
 * of before is over. It dials again in half a second; this is how long the process waits for that.
 */
#define FAREWELL_LINGER_S 2

struct late_agent {
    char *host;
    /* the versions of the host's newest key and of the key before it; 0: there is no such key */
    uint32_t epoch, old;
    /* the connection on which this agent was refused; NO_PEER: it has not connected */
    uint32_t peer;
    bool told; /* the agent has heard that the job is over */
};

/* An address of this machine, and the port, at which agents dial the driver. */
struct late_place {
    char *source;
    uint16_t port;
};

struct farewell {
    uint8_t key[TLS_KEY_BYTES]; /* the key of the job */
    uint64_t term;
    int64_t until_us; /* when --driver-grace of the last agent is over */
    struct VEC(struct late_agent) agents;
    struct VEC(struct late_place) places;
    size_t left; /* number of agents that were not told yet */
    bool failed; /* no memory is left */
    struct event_base *base;
    struct event *over; /* the timer that ends the process after FAREWELL_LINGER_S */
    struct server *server;
};

void farewell_free(struct farewell *farewell)
{
    if (!farewell)
        return;
    while (farewell->agents.count)
        mem_free(farewell->agents.items[--farewell->agents.count].host);
    while (farewell->places.count)
        mem_free(farewell->places.items[--farewell->places.count].source);
    VEC_RELEASE(&farewell->agents);
    VEC_RELEASE(&farewell->places);
    explicit_bzero(farewell->key, sizeof(farewell->key));
    mem_free(farewell);
}

/* Copies what the process will need: the job's key, the agents that are missing, and the addresses
 * at which they dial. NULL: no agent is missing, the driver listens nowhere, or no memory is left.
 */
struct farewell *farewell_create(const struct core *core, const struct job_facts *facts,
                                 const struct server *server, int64_t now_us)
{
    struct farewell *farewell = mem_zalloc(sizeof(*farewell));
    struct core_missing missing;
    const char *source;
    uint16_t port;

    if (!farewell)
        return NULL;
    memcpy(farewell->key, facts->key, sizeof(farewell->key));
    for (size_t i = 0; core_missing(core, now_us, &i, &missing) && !farewell->failed;) {
        struct late_agent agent = { mem_strdup(missing.host), missing.epoch, missing.old, NO_PEER,
                                    false };

        farewell->term = missing.term;
        if (farewell->until_us < missing.until_us)
            farewell->until_us = missing.until_us;
        if (!agent.host || VEC_RESERVE(&farewell->agents, 1, LIMIT_HOSTS)) {
            mem_free(agent.host);
            farewell->failed = true;
            break;
        }
        farewell->agents.items[farewell->agents.count++] = agent;
    }
    for (size_t i = 0; (source = server_place(server, i, &port)); i++) {
        struct late_place place = { mem_strdup(source), port };

        if (!place.source || VEC_RESERVE(&farewell->places, 1, LIMIT_ADDRESSES)) {
            mem_free(place.source);
            farewell->failed = true;
            break;
        }
        farewell->places.items[farewell->places.count++] = place;
    }
    farewell->left = farewell->agents.count;
    if (!farewell->failed && farewell->left && farewell->places.count)
        return farewell;
    farewell_free(farewell);
    return NULL;
}

/* ---- the process ---------------------------------------------------------------------------- */

/* The first message of an agent, its HELLO_AGENT, has come: the agent is refused because the job is
 * over, and then ends with its workers. An agent that has obeyed no driver yet (term 0) is another
 * one than the missing agent of its host, for which the process waits on: the last driver has
 * started it while the missing one was silent. */
static void farewell_on_msg(void *arg, uint32_t number, const struct msg *msg)
{
    struct farewell *farewell = arg;
    const struct tls_peer *proved = server_proved(farewell->server, number);
    struct msg answer = { .type = MSG_REFUSED, .term = farewell->term };
    struct peer *peer = server_peer(farewell->server, number);
    struct buf frame;

    answer.u.refused = (struct msg_refused){ .code = HVD_E_MISMATCH, .text = "the job is over" };
    buf_init(&frame, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    if (msg->type == MSG_HELLO_AGENT && proved && peer && !msg_encode(&answer, &frame, NULL) &&
        !peer_send(peer, MSG_REFUSED, frame.data, frame.length))
        for (size_t i = 0; i < farewell->agents.count; i++) {
            struct late_agent *agent = &farewell->agents.items[i];

            if (!msg->term || strcmp(agent->host, proved->name) != 0)
                continue;
            agent->peer = number;
            farewell->left += agent->told; /* it had not read the answer */
            agent->told = false;
            (void)evtimer_del(farewell->over);
        }
    buf_release(&frame);
    peer_release(peer);
}

/* Called for events of connections. An agent that was refused and has closed its connection has
 * most likely read the refusal: it was told. When all were told the process ends soon. */
static void farewell_on_event(void *arg, struct event *event)
{
    static const struct timeval linger = { FAREWELL_LINGER_S, 0 };
    struct farewell *farewell = arg;

    for (size_t i = 0; event->kind == EVENT_CLOSED && i < farewell->agents.count; i++) {
        struct late_agent *agent = &farewell->agents.items[i];

        if (agent->peer != event->peer) /* another agent, or one that was not refused */
            continue;
        agent->peer = NO_PEER;
        farewell->left -= !agent->told;
        agent->told = true;
    }
    if (!farewell->left && !evtimer_pending(farewell->over, NULL))
        (void)evtimer_add(farewell->over, &linger);
}

/* Called when all were told, and none has come again. */
static void farewell_on_over(evutil_socket_t fd, short what, void *arg)
{
    struct farewell *farewell = arg;

    (void)fd;
    (void)what;
    event_base_loopbreak(farewell->base);
}

/* Runs in the process of its own: listens where the driver has listened, with the keys of the
 * missing agents, until all were told or until_us has come. */
void farewell_run(struct farewell *farewell)
{
    static const struct server_ops ops = { farewell_on_msg, farewell_on_event };
    int64_t left_us = farewell->until_us - clock_now_us();
    const struct timeval left = clock_timeval(left_us);
    struct host_keys *keys = NULL;
    struct tls *tls = NULL;
    bool moved, any = false;
    const char *address;
    struct hvd_err err;
    int rc = (farewell->base = event_base_new()) ? 0 : HVD_E_NOMEM;

    farewell->over = rc ? NULL : evtimer_new(farewell->base, farewell_on_over, farewell);
    if (!farewell->over)
        rc = HVD_E_NOMEM;
    if (!rc)
        rc = tls_create("", NULL /* no key of its own */, &tls, &err);
    if (!rc)
        rc = host_keys_create(farewell->key, tls, &keys);
    for (size_t i = 0; !rc && i < farewell->agents.count; i++) {
        const struct late_agent *agent = &farewell->agents.items[i];

        rc = host_keys_admit(keys, agent->host, agent->epoch);
        if (!rc && agent->old)
            rc = host_keys_admit(keys, agent->host, agent->old);
    }
    if (!rc)
        rc = server_create(farewell->base, tls, &ops, farewell, &farewell->server);
    /* If another process has taken the port meanwhile, a new port is of no use: agents dial only
     * the port that they know. */
    for (size_t i = 0; !rc && i < farewell->places.count; i++)
        any |= !server_listen(farewell->server, farewell->places.items[i].source,
                              farewell->places.items[i].port, &address, &moved, &err) &&
               !moved;
    if (any && left_us > 0) {
        (void)event_base_loopexit(farewell->base, &left);
        (void)event_base_dispatch(farewell->base);
    }
    server_free(farewell->server);
    host_keys_free(keys);
    tls_free(tls);
    if (farewell->over)
        event_free(farewell->over);
    if (farewell->base)
        event_base_free(farewell->base);
    farewell->server = NULL;
    farewell->over = NULL;
    farewell->base = NULL;
}

/* Forks the process that runs farewell_run. The process leaves the terminal's session, and ends at
 * SIGTERM or SIGINT like any program. The driver logs that it runs, or that it cannot be started.
 */
void farewell_start(struct farewell *farewell)
{
    char text[TIME_TEXT_MAX];
    sigset_t none;
    pid_t pid;

    if (!farewell)
        return;
    (void)fflush(NULL);
    sigemptyset(&none);
    pid = fork();
    if (pid == 0) {
        /* All descriptors are closed, also the one that locks the job's folder, so a new job can
         * begin there. */
        (void)setsid();
        (void)close_range(0, ~0U, 0);
        (void)open("/dev/null", O_RDWR);
        (void)!dup2(0, STDOUT_FILENO);
        (void)!dup2(0, STDERR_FILENO);
        (void)!chdir("/");
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        farewell_run(farewell);
        _exit(0);
    }
    if (pid < 0)
        log_warning(JOB,
                    "%zu agents could not be told that the job is over, and the process that would "
                    "tell them later cannot be started: %s; these agents end their workers after "
                    "--lease and --driver-grace; raise ulimit -u",
                    farewell->left, strerror(errno));
    else
        log_warning(
            JOB,
            "%zu agents could not be told that the job is over (%s%s): process %d of this machine "
            "tells them as soon as they connect, for at most %s",
            farewell->left, farewell->agents.items[0].host, farewell->left > 1 ? ", ..." : "",
            (int)pid, time_format((farewell->until_us - clock_now_us()) / TIME_S * TIME_S, text));
}
