/*
 * rogue_agent.c: a taken-over agent: it has the key of one host, and says all that an agent can say
 * for other hosts, and numbers that cannot be. Started by rogue_agent.sh beside a job that trains.
 * It looks for one harm itself: a lie that is welcomed; the script looks for the others. Invariant:
 * it ends after PATIENCE_S, and dials the loopback only.
 *
 *     rogue_agent STATE_DIR HOST OTHER_HOST OUTPUTS
 */
#include "base/arena.h"
#include "base/rng.h"
#include "driver/io/host_keys.h"
#include "driver/journal/job_file.h"
#include "proto/catalog.h"
#include "tests/lib/msg_random.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S    180
#define RANDOM_MSGS   4000
#define TERM_ABSURD   UINT64_C(0x7fffffffffffffff)
#define OUTPUT_FORGED "FORGED: this line was never printed\n"

/* One connection to the driver, and what it says there. */
enum act {
    ACT_SPEAK,     /* welcomed for its own host: says everything for others */
    ACT_NUMBERS,   /* welcomed: a number of its own worker that cannot be */
    ACT_TERM,      /* a hello with a term that no driver had */
    ACT_WORKERS,   /* a hello that reports the workers of another host */
    ACT_NO_WORKER, /* a hello that reports workers that never were */
    ACT_OTHER,     /* a hello as another host */
    ACT_COUNT
};

static const char *const act_names[] = { "words for others",  "numbers",        "term",
                                         "workers of others", "no such worker", "another host" };

struct rogue {
    struct event_base *base;
    struct tls *tls;
    struct conn *conn;
    const char *address;
    const char *job, *host, *other;
    uint64_t epoch;
    uint64_t outputs; /* OUTPUT messages of as many workers that never were */
    enum act act;
    bool welcomed, refused;
    uint64_t own;  /* the worker that the driver has launched here; 0: none yet */
    uint64_t sent; /* outputs so far */
    int wrong;
};

static void rogue_dial(struct rogue *rogue);

static void rogue_say(struct rogue *rogue, const struct msg *msg)
{
    struct hvd_err err;

    if (rogue->conn)
        (void)conn_send(rogue->conn, msg, &err); /* what cannot be encoded is not sent */
}

static void rogue_on_opened(void *arg)
{
    struct rogue *rogue = arg;
    struct msg_slot_report report = { .incarnation = 1, .pid = 1 };
    struct msg_kept kept = { .slot = 3, .commit = UINT64_MAX };
    struct msg hello = { .type = MSG_HELLO_AGENT };

    hello.u.hello_agent = (struct msg_hello_agent){
        .minor = PROTO_MINOR,
        .version = "rogue",
        .job = rogue->job,
        .host = rogue->host,
        .agent = 77,
        .kept = {&kept, 1}
    };
    if (rogue->act == ACT_TERM)
        hello.term = TERM_ABSURD;
    if (rogue->act == ACT_NO_WORKER)
        report.incarnation = UINT64_MAX;
    if (rogue->act == ACT_WORKERS || rogue->act == ACT_NO_WORKER)
        hello.u.hello_agent.slots = (struct msg_slot_report_list){ &report, 1 };
    if (rogue->act == ACT_OTHER)
        hello.u.hello_agent.host = rogue->other;
    rogue_say(rogue, &hello);
}

/* Says every message that an agent can say, with random fields, for workers that are not its own.
 */
static void rogue_lie(struct rogue *rogue)
{
    static const uint64_t others[] = { 1, 2, 3, 99999, UINT64_MAX, 0 };
    const struct msg_kind *kind;
    struct rng rng;
    struct arena arena;
    struct msg msg = { .type = MSG_OUTPUT, .incarnation = 1 };

    msg.u.output.data = (struct msg_bytes){ (const uint8_t *)OUTPUT_FORGED, strlen(OUTPUT_FORGED) };
    rogue_say(rogue, &msg);
    rng_seed(&rng, 7);
    for (size_t i = 0; i < RANDOM_MSGS; i++) {
        kind = msg_kind_at(rng_below(&rng, 64));
        /* An agent may say these of its own host; JOIN is refused by an end of the connection,
         * before the other lies are told. */
        if (!kind || !(kind->links & LINK_AGENT_TO_DRIVER) || kind->type == MSG_NOTICE ||
            kind->type == MSG_BYE || kind->type == MSG_HELLO_AGENT || kind->type == MSG_HOLDING ||
            kind->type == MSG_SAVED || kind->type == MSG_JOIN)
            continue;
        arena_init(&arena, (size_t)1 << 24);
        if (!msg_random(kind->type, &rng, 4, &arena, &msg)) {
            msg.incarnation = others[rng_below(&rng, ARRAY_SIZE(others))];
            if (msg.incarnation == rogue->own)
                msg.incarnation = UINT64_MAX;
            rogue_say(rogue, &msg);
        }
        arena_release(&arena);
    }
}

/* Sends output of workers that never were, as much as the connection takes. */
static void rogue_on_drained(void *arg)
{
    struct rogue *rogue = arg;
    static uint8_t text[4096];
    struct msg msg = { .type = MSG_OUTPUT };

    while (rogue->conn && rogue->sent < rogue->outputs &&
           conn_unsent(rogue->conn) < CONN_HIGH_BYTES) {
        bool forged = rogue->sent % 64 == 0;

        memset(text, 'x', sizeof(text)); /* a line without an end is kept */
        msg.incarnation = forged ? 1 : 1000 + rogue->sent;
        msg.u.output.data =
            forged ? (struct msg_bytes){ (const uint8_t *)OUTPUT_FORGED, strlen(OUTPUT_FORGED) }
                   : (struct msg_bytes){ text, sizeof(text) };
        rogue_say(rogue, &msg);
        rogue->sent++;
    }
    if (rogue->conn)
        conn_when_sent(rogue->conn);
    if (rogue->sent < rogue->outputs || !rogue->conn)
        return;
    printf("said %s: %d random messages, output of %" PRIu64 " workers\n", act_names[rogue->act],
           RANDOM_MSGS, rogue->sent);
    conn_close(rogue->conn);
    rogue->conn = NULL;
    rogue->act++;
    rogue_dial(rogue);
}

static void rogue_on_launch(struct rogue *rogue, const struct msg *launch)
{
    struct msg msg = { .type = MSG_LAUNCHED, .incarnation = launch->incarnation };

    rogue->own = launch->incarnation;
    msg.u.launched = (struct msg_launched){ .slot = launch->u.launch.slot, .pid = 1 };
    rogue_say(rogue, &msg);
    if (rogue->act == ACT_SPEAK) {
        rogue_lie(rogue);
        rogue_on_drained(rogue);
    } else if (rogue->act == ACT_NUMBERS) {
        msg = (struct msg){ .type = MSG_NEXT_CHECK, .incarnation = rogue->own, .round = 1 };
        msg.u.next_check = (struct msg_next_check){ .next = 2, .check = TERM_ABSURD };
        rogue_say(rogue, &msg);
    }
}

static void rogue_on_msg(void *arg, const struct msg *msg)
{
    struct rogue *rogue = arg;

    if (msg->type == MSG_WELCOME_AGENT) {
        rogue->welcomed = true;
        conn_greeted(rogue->conn);
        /* The driver launches a worker here, or repeats one of an earlier connection. */
        if (rogue->act == ACT_NUMBERS && rogue->own)
            rogue_on_launch(rogue, &(struct msg){ .incarnation = rogue->own });
    }
    if (msg->type == MSG_REFUSED) {
        rogue->refused = true;
        printf("refused, %s: %s\n", act_names[rogue->act], msg->u.refused.text);
    }
    if (msg->type == MSG_LAUNCH)
        rogue_on_launch(rogue, msg);
}

static void rogue_on_closed(void *arg, const char *why)
{
    struct rogue *rogue = arg;
    bool should = rogue->act == ACT_SPEAK || rogue->act == ACT_NUMBERS;

    rogue->conn = NULL;
    if (rogue->welcomed != should || (!should && !rogue->refused)) {
        printf("WRONG, %s: %s, then closed: %s\n", act_names[rogue->act],
               rogue->welcomed ? "welcomed" : "not welcomed", why);
        rogue->wrong++;
    }
    if (rogue->act == ACT_NUMBERS)
        printf("closed, %s: %s\n", act_names[rogue->act], why);
    if (++rogue->act == ACT_COUNT)
        event_base_loopbreak(rogue->base);
    else
        rogue_dial(rogue);
}

static void rogue_dial(struct rogue *rogue)
{
    static const struct conn_ops ops = { rogue_on_opened, rogue_on_msg, rogue_on_closed,
                                         rogue_on_drained };
    const struct msg_texts addresses = { &rogue->address, 1 };
    struct hvd_err err;

    rogue->welcomed = rogue->refused = false;
    if (conn_dial(rogue->base, &addresses, rogue->tls, &ops, rogue, &rogue->conn, &err)) {
        printf("WRONG: %s\n", err.text);
        rogue->wrong++;
        event_base_loopbreak(rogue->base);
    }
}

static int note_epoch(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct rogue *rogue = arg;

    (void)err;
    if (record->kind == JOURNAL_KEY && !strcmp(record->host, rogue->host))
        rogue->epoch = (uint64_t)record->value;
    return 0;
}

int main(int argc, char **argv)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    struct rogue rogue = { .act = ACT_SPEAK };
    struct job_facts facts = { .job = "none" };
    char path[LIMIT_PATH_BYTES], address[32];
    struct store *file;
    uint8_t key[TLS_KEY_BYTES];
    struct hvd_err err = { 0 };
    int rc;

    if (argc != 5) {
        fprintf(stderr, "usage: rogue_agent STATE_DIR HOST OTHER_HOST OUTPUTS\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(path, sizeof(path), "%s/job.db", argv[1]);
    if (job_file_open(path, &db_options_usual, &facts, &file, &err) ||
        store_facts(file, &facts, &err)) {
        fprintf(stderr, "rogue_agent: %s\n", err.text);
        return 2;
    }
    snprintf(address, sizeof(address), "127.0.0.1:%u", facts.port);
    rogue.address = address;
    rogue.job = facts.job;
    rogue.host = argv[2];
    rogue.other = argv[3];
    rogue.outputs = strtoull(argv[4], NULL, 10);
    rogue.base = event_base_new();
    /* The rogue agent has what the agent of its host was given: the host's key, not the job's. */
    rc = store_replay(file, note_epoch, &rogue, &err);
    store_close(file);
    if (!rc)
        rc = host_keys_derive(facts.key, rogue.host, rogue.epoch, key);
    if (!rc)
        rc = tls_create("rogue", key, &rogue.tls, &err);
    if (rc || !rogue.base) {
        fprintf(stderr, "rogue_agent: %s\n", err.text);
        return 2;
    }
    event_base_loopexit(rogue.base, &patience);
    rogue_dial(&rogue);
    event_base_dispatch(rogue.base);
    if (rogue.act != ACT_COUNT) {
        printf("WRONG: stopped at %s\n", act_names[rogue.act]);
        rogue.wrong++;
    }
    if (rogue.conn)
        conn_drop(rogue.conn);
    tls_free(rogue.tls);
    event_base_free(rogue.base);
    libevent_global_shutdown();
    return rogue.wrong ? 1 : 0;
}
