/*
 * join.c: the connection of a host that joins, from the first attempt to the end of the job. main.c
 * calls join_run. The states of the process:
 *
 *     DOWN ──► DIALLING ──► GREETING ──► IN        and from each of them, after SIGTERM or the
 *      ▲           │            │         │        STOP of the driver, to LEAVING, which ends when
 *      └───────────┴────────────┴─────────┘        the agent of this host has ended
 */
#include "agent/join/join_health.h"
#include "agent/join/join_internal.h"
#include "agent/join/join_places.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "proto/frame.h"
#include "seal/seal.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define REDIAL_US    TIME_S /* the wait between two attempts to connect, on average */
#define REFUSALS_MAX 4      /* the wait doubles with each refused token, but at most 4 times */
/* how long an agent that was told to end at once may take to end */
#define HASTE_US (5 * TIME_S)
#define STOP_MORE_US                                                            \
    (15 * TIME_S) /* how long an agent may take to end beyond the grace of STOP \
                   */
#define JOIN_SIGNALS 4

enum join_state { STATE_DOWN, STATE_DIALLING, STATE_GREETING, STATE_IN, STATE_LEAVING };

struct join {
    const struct join_config *config;
    struct event_base *base;
    struct tls *tls;
    struct conn *conn; /* the connection to the driver, dialled or open; NULL: none */
    struct event *timer, *signals[JOIN_SIGNALS];
    struct join_agent agent;
    struct join_health health;
    struct join_places places;
    enum join_state state;
    uint64_t number;                     /* random number of this process, sent with JOIN */
    uint64_t beats;                      /* how many heartbeats were sent */
    int64_t beat_us, lease_us, grace_us; /* intervals of the driver's welcome */
    int64_t dial_at_us;                  /* DOWN: when the next attempt begins */
    int64_t beat_at_us;                  /* IN: when the next heartbeat is due */
    int64_t heard_us;                    /* when the last message of the driver came */
    int64_t told_us;                     /* LEAVING: when the signal came; 0: there was none */
    int64_t give_up_at_us; /* no driver until this time: the process ends; TIME_NEVER: never */
    /* LEAVING: when the agent is ended at once; after that, when this process no longer waits */
    int64_t end_at_us;
    bool hasty;              /* LEAVING: the agent was ended at once */
    unsigned refusals;       /* handshakes in a row in which the driver refused the token */
    bool was_in;             /* a driver has let this host in before */
    int result;              /* enum join_exit */
    char said[ERR_TEXT_MAX]; /* why there is no connection, as it was logged last */
};

/* Sets the timer for the next deadline of the present state. Before STATE_IN the process also ends
 * at give_up_at_us. */
static void join_arm(struct join *join)
{
    int64_t now_us = clock_now_us(), due_us = TIME_NEVER;
    struct timeval wait;

    if (join->state == STATE_DOWN)
        due_us = join->dial_at_us;
    else if (join->state == STATE_IN)
        due_us = join->beat_at_us;
    else if (join->state == STATE_LEAVING)
        due_us = join->end_at_us;
    if (join->state < STATE_IN && join->give_up_at_us < due_us)
        due_us = join->give_up_at_us;
    if (due_us == TIME_NEVER) {
        evtimer_del(join->timer);
        return;
    }
    wait = clock_timeval(due_us > now_us ? due_us - now_us : 0);
    evtimer_add(join->timer, &wait);
}

/* Ends the event loop: join_run returns this enum join_exit. */
static void join_finish(struct join *join, int result)
{
    join->result = result;
    event_base_loopbreak(join->base);
}

/* The connection is lost, or an attempt has failed: sets the time of the next attempt. The reason
 * `why` is logged unless it was also the last one that was logged. */
static void join_down(struct join *join, const char *why)
{
    bool wrong_key = strstr(why, TLS_REFUSED) != NULL;
    uint64_t spread = 0;
    int64_t wait_us;

    if (join->state == STATE_LEAVING)
        return;
    /* A driver that refuses the token will hardly accept it later: each refusal doubles the wait.
     */
    join->refusals = wrong_key && join->refusals < REFUSALS_MAX ? join->refusals + 1
                     : wrong_key                                ? REFUSALS_MAX
                                                                : 0;
    wait_us = REDIAL_US << join->refusals;
    if (strncmp(join->said, why, sizeof(join->said) - 1) != 0)
        log_warning(NET, "%s; tried again until a driver lets this host in%s", why,
                    wrong_key ? " (the token is wrong, or that driver is one of another job)" : "");
    snprintf(join->said, sizeof(join->said), "%s", why);
    /* a random wait, so that many hosts do not dial at the same moment; without random bytes the
     * wait is the shortest one */
    (void)!seal_random(&spread, sizeof(spread));
    join->dial_at_us =
        time_add(clock_now_us(), wait_us / 2 + (int64_t)(spread % (uint64_t)wait_us));
    if (join->state == STATE_IN)
        join->give_up_at_us = time_add(clock_now_us(), join->grace_us);
    join->state = STATE_DOWN;
    join_arm(join);
}

/* The host leaves, or the job is over: this process ends when the agent of this host has ended, or
 * at once if there is no agent. After wait_us the agent is ended by a signal. */
static void join_leave(struct join *join, int64_t wait_us)
{
    join->state = STATE_LEAVING;
    join->end_at_us = time_add(clock_now_us(), wait_us);
    if (!join_agent_lives(&join->agent))
        join_finish(join, JOIN_DONE);
    else
        join_arm(join);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* No agent could be started on this host: tells the driver why (NOT_STARTED). Bytes that are not
 * printable ASCII become "?". Without a driver nothing is sent: the next driver starts an agent
 * anew. */
static void join_on_start_failed(void *arg, const char *why)
{
    struct join *join = arg;
    struct msg msg = { .type = MSG_NOT_STARTED };
    char text[LIMIT_REASON_BYTES + 1];

    if (join->state != STATE_IN)
        return;
    snprintf(text, sizeof(text), "%.*s", LIMIT_REASON_BYTES, why);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = '?';
    msg.u.not_started.text = text;
    (void)!conn_send(join->conn, &msg, NULL);
}

/* Handles START: starts an agent with the settings in this message. Two kinds of lines are added:
 * the addresses at which the agent dials the driver (that of this connection, then the other ones
 * of the option --join), and the options that the command line has for each agent. */
static void join_start_agent(struct join *join, const struct msg *msg)
{
    const struct msg_bytes *given = &msg->u.start.settings;
    const char *peer = conn_peer(join->conn);
    char why[ERR_TEXT_MAX];
    struct buf settings;
    int rc;

    buf_init(&settings, LIMIT_CONFIG_TEXT_BYTES);
    rc = buf_append(&settings, given->at, given->length);
    rc = rc ? rc : buf_printf(&settings, "\ndrivers = \"%s\"\n", peer);
    for (size_t i = 0, count = 1; !rc && i < join->places.count && count < LIMIT_ADDRESSES; i++)
        if (strcmp(join->places.text[i], peer) != 0) {
            rc = buf_printf(&settings, "drivers = \"%s\"\n", join->places.text[i]);
            count++;
        }
    rc = rc ? rc : buf_append_text(&settings, join->config->more);
    rc = rc ? rc : join_agent_start(&join->agent, &settings);
    buf_release(&settings); /* wipes the text, which has the host's key */
    if (rc) {
        snprintf(
            why, sizeof(why),
            "hvd-agent --join on %s could not run the program of the agent: %s; its log on that "
            "host says more",
            join->config->name, err_text(rc));
        join_on_start_failed(join, why);
    }
}

/* The driver lets this host in. An interval that the driver leaves out (0) gets its usual value. */
static void join_welcome(struct join *join, const struct msg_welcome_agent *welcome)
{
    conn_greeted(join->conn);
    join->beat_us = welcome->beat_us > 0 ? welcome->beat_us : TIME_S;
    join->lease_us = welcome->lease_us > 0 ? welcome->lease_us : 10 * TIME_S;
    join->grace_us = welcome->driver_grace_us > 0 ? welcome->driver_grace_us : 10 * TIME_MIN;
    join->state = STATE_IN;
    join->was_in = true;
    join->give_up_at_us = TIME_NEVER;
    join->beat_at_us = time_add(clock_now_us(), join->beat_us);
    join->said[0] = '\0';
    log_info(NET, "host %s has joined the job of the driver at %s", join->config->name,
             conn_peer(join->conn));
    join_arm(join);
}

/* Handles a message of the driver. A refused token and a driver of another version end the process;
 * a job that is over (STOP, or REFUSED with HVD_E_MISMATCH) lets it end in order; other refusals
 * are followed by another attempt. */
static void join_on_msg(void *arg, const struct msg *msg)
{
    struct join *join = arg;
    char why[ERR_TEXT_MAX];
    struct hvd_err err;
    int64_t wait_us;
    int code;

    if (msg_allowed(msg->type, LINK_DRIVER_TO_AGENT,
                    join->state == STATE_GREETING ? WHEN_GREETING : WHEN_OPEN, &err)) {
        conn_drop(join->conn);
        join->conn = NULL;
        join_down(join, err.text);
        return;
    }
    join->heard_us = clock_now_us();
    switch ((unsigned)msg->type) {
    case MSG_WELCOME_AGENT: join_welcome(join, &msg->u.welcome_agent); break;
    case MSG_START:
        if (join->state == STATE_IN)
            join_start_agent(join, msg);
        break;
    case MSG_REFUSED:
        code = msg->u.refused.code;
        snprintf(why, sizeof(why), "the driver at %s does not let this host join: %s",
                 conn_peer(join->conn), msg->u.refused.text);
        conn_close(join->conn);
        join->conn = NULL;
        if (code == HVD_E_MISMATCH) {
            log_info(NET, "the job is over");
            join_leave(join, STOP_MORE_US);
            break;
        }
        if (code == HVD_E_DENIED || code == HVD_E_VERSION) {
            log_error(NET, "%s", why);
            join_finish(join, JOIN_REFUSED);
        } else {
            join_down(join, why);
        }
        break;
    case MSG_STOP:
        log_info(NET, "the job is over: %s", msg->u.stop.reason);
        wait_us = time_add(msg->u.stop.grace_us, STOP_MORE_US);
        conn_close(join->conn);
        join->conn = NULL;
        join_leave(join, wait_us);
        break;
    default: break; /* BEAT renews the lease above; after BYE the driver closes the connection */
    }
}

/* The driver is connected, and both sides have proved the token: asks to be let in. The driver
 * compares the address of this end of the connection with the one that it sees; an address that the
 * operator has given is not compared. */
static void join_on_opened(void *arg)
{
    struct join *join = arg;
    char address[ADDRESS_TEXT_MAX] = "";
    const struct msg msg = {
        .type = MSG_JOIN,
        .u.join = {.minor = PROTO_MINOR,
                   .version = HVD_VERSION_TEXT,
                   .host = join->config->name,
                   .join = join->number,
                   .slots = join->config->slots,
                   .address = address}
    };

    if (join->config->address_given || conn_local_host(join->conn, address))
        address[0] = '\0';
    join->state = STATE_GREETING;
    (void)!conn_send(join->conn, &msg, NULL);
}

/* The connection to the driver is lost, or could not be made; it frees itself. A driver that has
 * proved the token and speaks another major version will not let this host in. */
static void join_on_closed(void *arg, const char *why)
{
    struct join *join = arg;

    if (join->state == STATE_GREETING && !join->was_in && strstr(why, FRAME_OTHER_MAJOR)) {
        log_error(NET, "the driver at %s does not let this host join: %s", conn_peer(join->conn),
                  why);
        join->conn = NULL;
        join_finish(join, JOIN_REFUSED);
        return;
    }
    join->conn = NULL;
    join_down(join, why);
}

/* ---- what is due ----------------------------------------------------------------------------- */

/* Looks up the names of --join, and dials the addresses that were found, one after the other. */
static void join_dial(struct join *join)
{
    static const struct conn_ops ops = { join_on_opened, join_on_msg, join_on_closed, NULL };
    const char *texts[LIMIT_ADDRESSES];
    struct msg_texts list = { texts, 0 };
    struct hvd_err err;
    int rc = join_places_find(join->config->places, &join->places, &err);

    for (size_t i = 0; !rc && i < join->places.count; i++)
        texts[list.count++] = join->places.text[i];
    join->state = STATE_DIALLING;
    if (!rc)
        rc = conn_dial(join->base, &list, join->tls, &ops, join, &join->conn, &err);
    if (rc) {
        join->conn = NULL;
        join_down(join, err.text);
    } else {
        join_arm(join);
    }
}

/* The host leaves, and its agent is ended at once; this process waits for that, but not long. */
static void join_end_hastily(struct join *join)
{
    join->hasty = true;
    join_agent_end(&join->agent);
    join->end_at_us = time_add(clock_now_us(), HASTE_US);
    join_arm(join);
}

/* The deadline that join_arm has set has come: does what is due in the present state. */
static void join_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct join *join = arg;
    struct msg beat = { .type = MSG_BEAT };
    int64_t now_us = clock_now_us();

    (void)fd;
    (void)what;
    if (join->state < STATE_IN && now_us >= join->give_up_at_us) {
        log_error(NET, "no driver has let this host in within %s: %s",
                  join->was_in ? "--driver-grace" : "--join-timeout", join->said);
        join_agent_end(&join->agent);
        join_finish(join, JOIN_LOST);
    } else if (join->state == STATE_DOWN && now_us >= join->dial_at_us) {
        join_dial(join);
    } else if (join->state == STATE_IN && now_us >= join->beat_at_us &&
               now_us >= time_add(join->heard_us, join->lease_us)) {
        conn_drop(join->conn);
        join->conn = NULL;
        join_down(join, "the driver is silent");
    } else if (join->state == STATE_IN && now_us >= join->beat_at_us) {
        beat.u.beat.sequence = ++join->beats;
        join->beat_at_us = time_add(now_us, join->beat_us);
        (void)!conn_send(join->conn, &beat, NULL);
        join_arm(join);
    } else if (join->state == STATE_LEAVING && now_us >= join->end_at_us && !join->hasty) {
        log_warning(AGENT, "the agent of this host has not ended in time, and is ended now");
        join_end_hastily(join);
    } else if (join->state == STATE_LEAVING && now_us >= join->end_at_us) {
        join_finish(join, JOIN_LOST);
    } else {
        join_arm(join);
    }
}

/* The agent of this host has ended. While the host is in the job, the driver decides whether it
 * starts another one; a process that is leaving has waited for this end. */
static void join_on_agent_ended(void *arg)
{
    struct join *join = arg;

    if (join->state == STATE_LEAVING)
        join_finish(join, JOIN_DONE);
}

/* SIGTERM or SIGINT: the host leaves the job in order. A second signal ends its workers at once;
 * but a program such as timeout sends the signal to this process and again to its group. */
static void join_on_signal(evutil_socket_t signal, short what, void *arg)
{
    struct join *join = arg;
    struct msg msg = { .type = MSG_BYE };

    (void)signal;
    (void)what;
    if (join->state == STATE_LEAVING) {
        if (clock_now_us() < time_add(join->told_us, LIMIT_SAME_SIGNAL_US))
            return;
        if (!join->hasty) {
            log_warning(AGENT, "a signal while this host leaves: its agent is ended at once");
            join_end_hastily(join);
        } else { /* one more signal: this process does not wait for its agent either */
            join->end_at_us = clock_now_us();
            join_arm(join);
        }
        return;
    }
    join->told_us = clock_now_us();
    log_info(AGENT, "this host leaves the job; its workers have %" PRId64 " s to leave in order",
             join->config->notice_us / TIME_S);
    msg.u.bye.reason = "the host was told to leave (SIGTERM)";
    if (join->conn && join->state == STATE_IN)
        (void)!conn_send(join->conn, &msg, NULL);
    if (join->conn)
        conn_close(join->conn); /* sends the BYE first */
    join->conn = NULL;
    join_leave(join, join->config->notice_us);
}

/* SIGUSR2 is the warning of a scheduler before its SIGTERM, and may come again. It is passed on to
 * the agent of this host, which knows how much time is left after it, and tells the driver. */
static void join_on_warning(evutil_socket_t signal, short what, void *arg)
{
    struct join *join = arg;

    (void)signal;
    (void)what;
    if (join_agent_warn(&join->agent))
        log_info(AGENT, "SIGUSR2 means that this host will go away: its agent tells the driver");
    else
        log_warning(AGENT, "SIGUSR2 means that this host will go away, but no agent runs here: the "
                           "signal does nothing; send SIGTERM to let this host leave");
}

/* A child has ended: the program that starts agents, or a process that has lost its parent. The
 * first process of a container becomes the parent of such processes. */
static void join_on_child(evutil_socket_t signal, short what, void *arg)
{
    const struct join *join = arg;

    (void)signal;
    (void)what;
    join_agent_reap(&join->agent);
}

/* Writes the line for `hvd-agent --healthy`. Every process that answers counts as well, also one
 * without a driver: each state of this process has a time limit, and ends by itself. */
void join_say_health(void *arg, char ret_text[ERR_TEXT_MAX])
{
    const struct join *join = arg;
    const char *agent = join_agent_lives(&join->agent) ? "its agent runs" : "no agent runs";

    if (join->state == STATE_LEAVING)
        snprintf(ret_text, ERR_TEXT_MAX, "host %s leaves its job; %s", join->config->name, agent);
    else if (join->state == STATE_IN)
        snprintf(ret_text, ERR_TEXT_MAX, "host %s is connected to the driver at %s; %s",
                 join->config->name, conn_peer(join->conn), agent);
    else
        snprintf(ret_text, ERR_TEXT_MAX, "host %s waits for a driver, within %s; %s%s%.300s",
                 join->config->name, join->was_in ? "--driver-grace" : "--join-timeout", agent,
                 join->said[0] ? ": " : "", join->said);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Makes what `join` consists of: TLS with the token as key, the random number of this process (0 is
 * no number, and is drawn again), the event loop with its signals, the start of the agent, the
 * socket for `hvd-agent --healthy`. On failure join_run frees what was made. */
static int join_create(struct join *join, struct hvd_err *err)
{
    static const struct {
        int number;
        event_callback_fn call;
    } signals[JOIN_SIGNALS] = {
        {SIGTERM,  join_on_signal },
        { SIGINT,  join_on_signal },
        { SIGUSR2, join_on_warning},
        { SIGCHLD, join_on_child  },
    };
    int rc = tls_create("", NULL, &join->tls, err);

    if (!rc)
        rc = tls_dial_with(join->tls, join->config->token->key);
    while (!rc && !join->number)
        rc = seal_random(&join->number, sizeof(join->number));
    join->base = rc ? NULL : event_base_new();
    join->timer = join->base ? evtimer_new(join->base, join_on_timer, join) : NULL;
    if (!join->timer)
        return err_set(err, HVD_E_NOMEM, "no memory to join a job; free memory on this host");
    for (size_t i = 0; i < JOIN_SIGNALS; i++) {
        join->signals[i] = evsignal_new(join->base, signals[i].number, signals[i].call, join);
        if (!join->signals[i] || event_add(join->signals[i], NULL))
            return err_set(err, HVD_E_NOMEM, "no memory to join a job; free memory on this host");
    }
    rc = join_agent_init(&join->agent, join->base, err);
    join->agent.failed = join_on_start_failed;
    join->agent.ended = join_on_agent_ended;
    join->agent.arg = join;
    join->health.arg = join;
    if (!rc)
        join_health_open(&join->health, join->base, join->config->name);
    return rc;
}

/* Joins a job, and returns when the job is over, this host has left, or no driver lets it in. */
int join_run(const struct join_config *config)
{
    struct join join = { .config = config,
                         .give_up_at_us = time_add(clock_now_us(), config->timeout_us),
                         .dial_at_us = clock_now_us(),
                         .agent.watch = -1 };
    struct hvd_err err;

    signal(SIGPIPE, SIG_IGN);
    if (join_create(&join, &err)) {
        log_error(AGENT, "%s", err.text);
        join.result = JOIN_LOST;
    } else {
        join_arm(&join);
        if (event_base_dispatch(join.base) < 0)
            join.result = JOIN_LOST;
    }
    if (join.conn)
        conn_drop(join.conn);
    join_health_close(&join.health);
    join_agent_release(&join.agent);
    for (size_t i = 0; i < ARRAY_SIZE(join.signals); i++)
        if (join.signals[i])
            event_free(join.signals[i]);
    if (join.timer)
        event_free(join.timer);
    if (join.base) {
        (void)event_base_dispatch(join.base); /* runs until the last messages are sent */
        event_base_free(join.base);
    }
    tls_free(join.tls);
    return join.result;
}
