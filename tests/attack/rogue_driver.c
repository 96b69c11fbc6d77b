/*
 * rogue_driver.c: a process that listens where the driver of a job did, and takes its agents for
 * its own. Started by rogue_driver.sh while the job has no driver. It looks for one harm itself: an
 * agent that says hello although the rogue does not have its key, or obeys an older term; the
 * script looks for the others. Invariant: it ends after PATIENCE_S, and listens on the loopback
 * only.
 *
 *     rogue_driver STATE_DIR nokey|other|epoch|term|absurd [HOST]
 */
#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "driver/io/host_keys.h"
#include "driver/journal/job_file.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "tests/lib/msg_random.h"
#include "wire/listener.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_S  180
#define RANDOM_MSGS 4000
#define LAST_BEAT   777777
#define OTHER_HOST  "127.0.0.99" /* a host of which no agent is */
#define OTHER_EPOCH 1000         /* an epoch that no key has */

enum mode { MODE_NOKEY, MODE_OTHER, MODE_EPOCH, MODE_TERM, MODE_ABSURD, MODE_COUNT };

static const char *const mode_names[] = { "nokey", "other", "epoch", "term", "absurd" };

struct rogue {
    struct event_base *base;
    struct tls *tls;
    struct listener *listener;
    struct evconnlistener *plain; /* without TLS */
    struct job_facts facts;
    enum mode mode;
    const char *host; /* NULL: the agents of all hosts are to come */
    size_t helloed, byes;
    int wrong;
};

/* One agent that has come. */
struct guest {
    struct rogue *rogue;
    struct conn *conn;
    bool said; /* the rogue has said what it says */
};

static void rogue_say(struct guest *guest, const struct msg *msg)
{
    struct hvd_err err;

    if (guest->conn)
        (void)conn_send(guest->conn, msg, &err); /* what cannot be encoded is not sent */
}

static void rogue_welcome(struct guest *guest, uint64_t term)
{
    const struct msg msg = {
        .type = MSG_WELCOME_AGENT,
        .term = term,
        .u.welcome_agent = {.minor = PROTO_MINOR, .version = "rogue"}
    };

    rogue_say(guest, &msg);
}

/* Orders of a term that is over: each would be seen by the script. */
static void rogue_order(struct guest *guest, uint64_t term)
{
    static const char *const argv[] = { "/bin/sh", "-c", "touch rogue.was.here" };
    struct msg msg = { .type = MSG_REFUSED, .term = term };

    msg.u.refused = (struct msg_refused){ .code = HVD_E_DENIED, .text = "the rogue refuses" };
    rogue_welcome(guest, term);
    for (uint64_t incarnation = 1; incarnation < 10; incarnation++)
        rogue_say(guest,
                  &(struct msg){ .type = MSG_KILL, .term = term, .incarnation = incarnation });
    rogue_say(guest, &msg);
    msg = (struct msg){ .type = MSG_LAUNCH, .term = term, .incarnation = 1000 };
    msg.u.launch.slot = 7;
    msg.u.launch.argv = (struct msg_texts){ argv, ARRAY_SIZE(argv) };
    rogue_say(guest, &msg);
    msg = (struct msg){ .type = MSG_STOP, .term = term };
    msg.u.stop.reason = "the rogue stops the job";
    rogue_say(guest, &msg);
}

/* Every message that a driver can say, with random fields, and numbers that cannot be. A driver
 * with the key may end workers and the agent itself, and change its key, so it does not say that
 * here. */
static void rogue_rave(struct guest *guest, uint64_t term)
{
    const struct msg_kind *kind;
    struct rng rng;
    struct arena arena;
    struct msg msg;

    rogue_welcome(guest, term);
    rng_seed(&rng, 11);
    for (size_t i = 0; i < RANDOM_MSGS; i++) {
        kind = msg_kind_at(rng_below(&rng, 64));
        if (!kind || !(kind->links & LINK_DRIVER_TO_AGENT) || kind->type == MSG_STOP ||
            kind->type == MSG_BYE || kind->type == MSG_REFUSED || kind->type == MSG_WELCOME_AGENT ||
            kind->type == MSG_BEAT)
            continue;
        arena_init(&arena, (size_t)1 << 24);
        if (!msg_random(kind->type, &rng, 8, &arena, &msg)) {
            msg.term = term;
            /* a worker that never was: all that is for workers is dropped, or kept with a bound */
            msg.incarnation = UINT64_MAX - rng_below(&rng, 1000);
            if (kind->type == MSG_LAUNCH)
                msg.u.launch.slot = LIMIT_SLOTS_PER_HOST + (uint32_t)rng_below(&rng, 1000);
            if (kind->type == MSG_REKEY && msg.u.rekey.key.length == HOST_KEY_BYTES)
                msg.u.rekey.key.length--;
            rogue_say(guest, &msg);
        }
        arena_release(&arena);
    }
    msg = (struct msg){ .type = MSG_BEAT, .u.beat.sequence = LAST_BEAT };
    rogue_say(guest, &msg);
}

static void rogue_on_msg(void *arg, const struct msg *msg)
{
    struct guest *guest = arg;
    struct rogue *rogue = guest->rogue;

    if (msg->type == MSG_BYE)
        printf("bye %zu: %s\n", ++rogue->byes, msg->u.bye.reason);
    if (msg->type == MSG_HELLO_AGENT && !guest->said) {
        guest->said = true;
        printf("hello %zu: %s, term %" PRIu64 "\n", ++rogue->helloed, msg->u.hello_agent.host,
               msg->term);
        conn_greeted(guest->conn);
        if (rogue->mode == MODE_ABSURD) {
            rogue_rave(guest, msg->term);
            printf("raved\n");
        } else {
            rogue_order(guest, msg->term - 1);
        }
        if (rogue->mode < MODE_TERM) {
            printf("WRONG: an agent said hello to a driver without its key\n");
            rogue->wrong++;
        }
    } else if (msg->type == MSG_BEAT && msg->u.beat.answers == LAST_BEAT) {
        printf("heard to the end\n");
    } else if (rogue->mode == MODE_TERM && msg->type != MSG_BYE) {
        printf("WRONG: %s for an older term\n", msg_kind(msg->type)->name);
        rogue->wrong++;
    }
}

static void rogue_on_closed(void *arg, const char *why)
{
    struct guest *guest = arg;

    printf("closed: %s\n", why);
    mem_free(guest);
}

static void rogue_on_accepted(void *arg, struct conn *conn)
{
    static const struct conn_ops ops = { NULL, rogue_on_msg, rogue_on_closed, NULL };
    struct guest *guest = mem_zalloc(sizeof(*guest));

    if (!guest)
        abort();
    guest->rogue = arg;
    guest->conn = conn;
    conn_own(conn, &ops, guest);
}

static void rogue_on_plain_end(struct bufferevent *peer, short what, void *arg)
{
    (void)what;
    (void)arg;
    bufferevent_free(peer);
}

/* Answers a handshake with bytes that are none. */
static void rogue_on_plain(struct evconnlistener *listener, evutil_socket_t fd,
                           struct sockaddr *from, int length, void *arg)
{
    struct rogue *rogue = arg;
    struct bufferevent *peer = bufferevent_socket_new(rogue->base, fd, BEV_OPT_CLOSE_ON_FREE);
    static uint8_t rubbish[4096];

    (void)listener;
    (void)from;
    (void)length;
    if (!peer)
        abort();
    for (size_t i = 0; i < sizeof(rubbish); i++)
        rubbish[i] = (uint8_t)(i * 7 + 22);
    bufferevent_setcb(peer, NULL, NULL, rogue_on_plain_end, NULL);
    bufferevent_enable(peer, EV_READ | EV_WRITE);
    bufferevent_write(peer, rubbish, sizeof(rubbish));
    printf("answered\n");
}

/* Accepts what agents can prove, as far as this rogue knows their keys. */
static int rogue_on_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct rogue *rogue = arg;
    uint8_t key[TLS_KEY_BYTES];
    const char *host = rogue->mode == MODE_OTHER ? OTHER_HOST : record->host;
    uint64_t epoch = (uint64_t)record->value;
    int rc;

    (void)err;
    if (record->kind != JOURNAL_KEY || (rogue->host && strcmp(rogue->host, record->host) != 0))
        return 0;
    if (rogue->mode == MODE_EPOCH)
        epoch += OTHER_EPOCH;
    rc = host_keys_derive(rogue->facts.key, host, epoch, key);
    return rc ? rc : tls_accept_key(rogue->tls, record->host, epoch, key);
}

static int rogue_listen(struct rogue *rogue, const char *folder, struct hvd_err *err)
{
    struct sockaddr_in place = { .sin_family = AF_INET };
    char path[LIMIT_PATH_BYTES];
    struct store *file;
    int rc;

    snprintf(path, sizeof(path), "%s/job.db", folder);
    rc = job_file_open(path, &db_options_usual, &rogue->facts, &file, err);
    if (rc)
        return rc;
    rc = store_facts(file, &rogue->facts, err);
    if (!rc)
        rc = tls_create("rogue", NULL, &rogue->tls, err);
    if (!rc)
        rc = store_replay(file, rogue_on_record, rogue, err);
    store_close(file);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    place.sin_port = htons(rogue->facts.port);
    if (!rc && rogue->mode == MODE_NOKEY) {
        rogue->plain = evconnlistener_new_bind(rogue->base, rogue_on_plain, rogue,
                                               LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1,
                                               (const struct sockaddr *)&place, (int)sizeof(place));
        return rogue->plain ? 0 : err_set(err, HVD_E_IO, "the port cannot be taken");
    }
    if (!rc)
        rc = listener_tcp(rogue->base,
                          &(struct listener_place){ "127.0.0.1", rogue->facts.port, rogue->tls },
                          rogue_on_accepted, rogue, &rogue->listener, err);
    return rc;
}

static void rogue_on_term(evutil_socket_t number, short what, void *arg)
{
    struct rogue *rogue = arg;

    (void)number;
    (void)what;
    event_base_loopbreak(rogue->base);
}

static void rogue_log(void *arg, const char *line, size_t length)
{
    (void)arg;
    fwrite(line, 1, length, stdout);
}

int main(int argc, char **argv)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    const struct log_sink sink = { .write = rogue_log, .wall_us = clock_wall_us };
    struct rogue rogue = { .facts = { .job = "none" } };
    struct hvd_err err = { 0 };
    struct event *ending;

    while (argc > 2 && rogue.mode < MODE_COUNT && strcmp(argv[2], mode_names[rogue.mode]) != 0)
        rogue.mode++;
    if (argc < 3 || rogue.mode == MODE_COUNT) {
        fprintf(stderr, "usage: rogue_driver STATE_DIR nokey|other|epoch|term|absurd [HOST]\n");
        return 2;
    }
    rogue.host = argv[3];
    signal(SIGPIPE, SIG_IGN);
    log_open(&sink);
    setvbuf(stdout, NULL, _IOLBF, 0);
    rogue.base = event_base_new();
    if (!rogue.base || rogue_listen(&rogue, argv[1], &err)) {
        fprintf(stderr, "rogue_driver: %s\n", err.text);
        return 2;
    }
    ending = evsignal_new(rogue.base, SIGTERM, rogue_on_term, &rogue);
    evsignal_add(ending, NULL);
    event_base_loopexit(rogue.base, &patience);
    printf("listens\n");
    event_base_dispatch(rogue.base);
    fflush(NULL);
    _exit(rogue.wrong ? 1 : 0); /* connections are cut as they are */
}
