/*
 * joiners.c: processes that join a job, many in one: each has a connection of its own, proves the
 * token, sends JOIN and heartbeats, and starts no agent. Started by tests/attack/joiners.sh and
 * tests/integration/join_refusals.sh. Invariant: it ends at SIGTERM, after PATIENCE_S, or when the
 * act is over.
 *
 *     joiners crowd ADDRESS:PORT TOKEN_FILE COUNT    COUNT hosts dial at once, and stay until
 * SIGTERM joiners twice ADDRESS:PORT TOKEN_FILE NAME     joins as NAME, again, and with another
 * number joiners major ADDRESS:PORT TOKEN_FILE NAME     joins with another major version joiners
 * driver ADDRESS TOKEN_FILE              a driver of another major version
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "wire/listener.h"
#include "wire/token.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PATIENCE_S   300
#define MAJOR_AT     4 /* index of the major version in the header of a frame */
#define REDIAL_US    TIME_S
#define JOINERS_MOST 10000

struct joiner {
    struct joiners *all;
    struct conn *conn;
    struct event *redial;
    char name[LIMIT_HOST_NAME_BYTES + 1];
    uint64_t number;
    bool in;
};

struct joiners {
    struct event_base *base;
    struct tls *tls;
    const char *address, *act;
    struct joiner *items;
    size_t count, in, dials, closed;
    int64_t began_us, first_us, last_us;
};

/* Sends a message with another major version in its frame. */
static void joiners_send_major(struct conn *conn, const struct msg *msg)
{
    struct buf frame;

    buf_init(&frame, FRAME_HEADER_BYTES + LIMIT_FRAME_BODY_BYTES);
    if (!msg_encode(msg, &frame, NULL)) {
        frame.data[MAJOR_AT] = PROTO_MAJOR + 1;
        (void)conn_send_frame(conn, frame.data, frame.length);
    }
    buf_release(&frame);
}

static void joiner_say_join(struct joiner *joiner)
{
    const struct msg msg = {
        .type = MSG_JOIN,
        .u.join = {.minor = PROTO_MINOR,
                   .version = HVD_VERSION_TEXT,
                   .host = joiner->name,
                   .join = joiner->number,
                   .slots = 1,
                   .address = ""}
    };

    if (!strcmp(joiner->all->act, "major"))
        joiners_send_major(joiner->conn, &msg);
    else
        (void)conn_send(joiner->conn, &msg, NULL);
}

static void joiner_on_opened(void *arg)
{
    joiner_say_join(arg);
}

/* One more host is in: the last one prints how long all have taken. */
static void joiners_count(struct joiner *joiner)
{
    struct joiners *all = joiner->all;

    joiner->in = true;
    all->last_us = clock_now_us() - all->began_us;
    if (!all->in++)
        all->first_us = all->last_us;
    if (all->in == all->count)
        printf("%zu hosts have joined: the first after %" PRId64 " ms, the last after %" PRId64
               " ms; %zu dials, %zu closed\n",
               all->count, all->first_us / TIME_MS, all->last_us / TIME_MS, all->dials,
               all->closed);
}

static void joiner_dial(struct joiner *joiner);

static void joiner_on_msg(void *arg, const struct msg *msg)
{
    struct joiner *joiner = arg;
    struct joiners *all = joiner->all;
    bool twice = !strcmp(all->act, "twice");

    if (msg->type == MSG_REFUSED)
        printf("%s: refused, code %d: %s\n", joiner->name, msg->u.refused.code,
               msg->u.refused.text);
    /* The first connection, the second of the same process, one of another process of this name; at
     * last the second one says JOIN once more. */
    if (twice && msg->type == MSG_REFUSED && all->items[1].conn)
        joiner_say_join(&all->items[1]);
    if (msg->type != MSG_WELCOME_AGENT)
        return;
    conn_greeted(joiner->conn);
    joiners_count(joiner);
    if (!twice)
        return;
    printf("connection %zu is welcomed\n", (size_t)(joiner - all->items) + 1);
    if (joiner < &all->items[2])
        joiner_dial(joiner + 1);
}

static void joiner_on_closed(void *arg, const char *why)
{
    struct joiner *joiner = arg;
    struct joiners *all = joiner->all;
    struct timeval wait = clock_timeval(REDIAL_US / 2 + random() % REDIAL_US);
    bool left = false;

    joiner->conn = NULL;
    all->closed++;
    if (strcmp(all->act, "crowd") != 0) {
        printf("connection %zu is closed: %s\n", (size_t)(joiner - all->items) + 1, why);
        for (size_t i = 0; i < all->count; i++)
            left |= all->items[i].conn != NULL;
        if (!left)
            event_base_loopbreak(all->base);
    } else if (joiner->in) {
        printf("%s: closed after its welcome: %s\n", joiner->name, why);
        joiner->in = false;
        all->in--;
        evtimer_add(joiner->redial, &wait);
    } else {
        evtimer_add(joiner->redial, &wait);
    }
}

static void joiner_dial(struct joiner *joiner)
{
    static const struct conn_ops ops = { joiner_on_opened, joiner_on_msg, joiner_on_closed, NULL };
    struct joiners *all = joiner->all;
    const struct msg_texts addresses = { &all->address, 1 };
    struct hvd_err err;

    all->dials++;
    if (conn_dial(all->base, &addresses, all->tls, &ops, joiner, &joiner->conn, &err)) {
        fprintf(stderr, "joiners: %s\n", err.text);
        event_base_loopbreak(all->base);
    }
}

static void joiner_on_redial(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    joiner_dial(arg);
}

/* The heartbeats of all hosts. */
static void joiners_on_beat(evutil_socket_t fd, short what, void *arg)
{
    struct joiners *all = arg;
    const struct msg beat = { .type = MSG_BEAT };

    (void)fd;
    (void)what;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].conn && all->items[i].in)
            (void)conn_send(all->items[i].conn, &beat, NULL);
}

/* SIGTERM, or the end of the patience: all hosts leave. */
static void joiners_on_signal(evutil_socket_t signal, short what, void *arg)
{
    struct joiners *all = arg;
    const struct msg bye = { .type = MSG_BYE, .u.bye.reason = "the test is over" };

    (void)signal;
    (void)what;
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].redial)
            evtimer_del(all->items[i].redial);
        if (!all->items[i].conn)
            continue;
        if (all->items[i].in)
            (void)conn_send(all->items[i].conn, &bye, NULL);
        conn_close(all->items[i].conn);
        all->items[i].conn = NULL;
    }
    event_base_loopbreak(all->base);
}

/* ---- a driver of another version ------------------------------------------------------------- */

static void driver_on_msg(void *arg, const struct msg *msg)
{
    struct conn **conn = arg;
    const struct msg refused = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_VERSION, "this text is of another version"}
    };

    printf("%s joins\n", msg->type == MSG_JOIN ? msg->u.join.host : "?");
    joiners_send_major(*conn, &refused);
    conn_close(*conn);
    *conn = NULL;
}

static void driver_on_closed(void *arg, const char *why)
{
    struct conn **conn = arg;

    printf("closed: %s\n", why);
    *conn = NULL;
}

static void driver_on_accepted(void *arg, struct conn *accepted)
{
    static const struct conn_ops ops = { NULL, driver_on_msg, driver_on_closed, NULL };
    struct conn **conn = arg;

    if (*conn)
        conn_drop(*conn);
    *conn = accepted;
    conn_own(accepted, &ops, conn);
}

static int joiners_drive(struct joiners *all, const struct token *token, struct hvd_err *err)
{
    struct listener_place place = { .host = all->address, .tls = all->tls };
    struct listener *listener = NULL;
    struct conn *conn = NULL;
    int rc = tls_accept_key(all->tls, "token", 0, token->key);

    if (!rc)
        rc = listener_tcp(all->base, &place, driver_on_accepted, &conn, &listener, err);
    if (!rc) {
        printf("listens at %s\n", listener_address(listener));
        event_base_dispatch(all->base);
    }
    if (conn)
        conn_drop(conn);
    listener_free(listener);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Makes the hosts of the act, and dials: all of a crowd, or the first connection. */
static bool joiners_begin(struct joiners *all, const char *word)
{
    bool crowd = !strcmp(all->act, "crowd");

    all->count = crowd ? strtoull(word, NULL, 10) : !strcmp(all->act, "twice") ? 3 : 1;
    if (!all->count || all->count > JOINERS_MOST)
        return false;
    all->items = mem_zalloc_array(all->count, sizeof(*all->items));
    if (!all->items)
        return false;
    for (size_t i = 0; i < all->count; i++) {
        struct joiner *joiner = &all->items[i];

        joiner->all = all;
        joiner->number = crowd ? i + 1 : i < 2 ? 7 : 8;
        if (crowd)
            snprintf(joiner->name, sizeof(joiner->name), "c%zu", i + 1);
        else
            snprintf(joiner->name, sizeof(joiner->name), "%s", word);
        joiner->redial = evtimer_new(all->base, joiner_on_redial, joiner);
        if (!joiner->redial)
            return false;
    }
    all->began_us = clock_now_us();
    for (size_t i = 0; i < (crowd ? all->count : 1); i++)
        joiner_dial(&all->items[i]);
    return true;
}

static void joiners_end(struct joiners *all)
{
    for (size_t i = 0; all->items && i < all->count; i++) {
        if (all->items[i].conn)
            conn_drop(all->items[i].conn);
        if (all->items[i].redial)
            event_free(all->items[i].redial);
    }
    mem_free(all->items);
}

int main(int argc, char **argv)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S }, beat = { .tv_usec = 200000 };
    struct joiners all = { .act = argc > 1 ? argv[1] : "" };
    bool drives = !strcmp(all.act, "driver");
    struct event *signal_event, *beat_event, *patience_event;
    struct token token;
    struct hvd_err err = { .text = "no memory" };
    struct rlimit files;
    int rc;

    if (argc != (drives ? 4 : 5)) {
        fputs("usage: joiners crowd|twice|major ADDRESS:PORT TOKEN_FILE COUNT|NAME, or\n"
              "       joiners driver ADDRESS TOKEN_FILE\n",
              stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    all.address = argv[2];
    rc = token_read(argv[3], &token, &err);
    if (!rc)
        rc = tls_create("", NULL, &all.tls, &err);
    if (!rc)
        rc = tls_dial_with(all.tls, token.key);
    all.base = event_base_new();
    if (rc || !all.base) {
        fprintf(stderr, "joiners: %s\n", err.text);
        return 2;
    }
    signal_event = evsignal_new(all.base, SIGTERM, joiners_on_signal, &all);
    patience_event = evtimer_new(all.base, joiners_on_signal, &all);
    beat_event = event_new(all.base, -1, EV_PERSIST, joiners_on_beat, &all);
    event_add(signal_event, NULL);
    event_add(beat_event, &beat);
    evtimer_add(patience_event, &patience);
    if (drives)
        rc = joiners_drive(&all, &token, &err);
    else if (joiners_begin(&all, argv[4]))
        event_base_dispatch(all.base);
    else
        rc = 2;
    if (rc)
        fprintf(stderr, "joiners: %s\n", err.text);
    joiners_end(&all);
    event_free(signal_event);
    event_free(beat_event);
    event_free(patience_event);
    (void)event_base_dispatch(all.base); /* until the last BYE is sent */
    tls_free(all.tls);
    event_base_free(all.base);
    libevent_global_shutdown();
    return rc ? 2 : 0;
}
