/*
 * test_core_random.c: random messages in every state of the driver's core, and a driver that dies
 * after any record. The core never breaks, and equal seeds give equal bytes. A digest is a checksum
 * of all actions.
 */
#include "base/rng.h"
#include "proto/catalog.h"
#include "proto/commit.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct core_tape tape;
static struct rng rng;
static struct msg_held held[] = {
    {COMMIT_FIRST_OF(1),      7},
    { COMMIT_FIRST_OF(1) + 3, 7}
};

/* Makes a message of this type, about the incarnation and the round. */
static void make(enum msg_type type, uint64_t incarnation, uint64_t round, struct msg *ret_msg)
{
    static const uint64_t missing[] = { 2, 4, 99 };
    uint64_t calls = tape.digest % 1000 + incarnation + round; /* the same for the same seed */
    struct msg msg = { .type = type, .incarnation = incarnation, .round = round };

    switch (type) {
    case MSG_HELLO_AGENT:
        msg.u.hello_agent = (struct msg_hello_agent){ .version = "", .job = "j", .host = "a" };
        break;
    case MSG_READY:
        msg.u.ready.manifest = 5;
        msg.u.ready.held = (struct msg_held_list){ held, ARRAY_SIZE(held) };
        break;
    case MSG_RECOVERING:
        msg.u.recovering.held = (struct msg_held_list){ held, ARRAY_SIZE(held) };
        break;
    case MSG_NEXT_CHECK:
        msg.u.next_check = (struct msg_next_check){ .next = round + 1, .check = 4 };
        break;
    case MSG_PREPARED: msg.u.prepared.text = ""; break;
    case MSG_UNUSABLE: msg.u.unusable.text = ""; break;
    case MSG_REMARK: msg.u.remark.text = ""; break;
    case MSG_PERSIST: msg.u.persist.commit = COMMIT_FIRST_OF(round); break;
    case MSG_STORE:
        msg.round = calls % 3 ? round : 0;
        msg.u.store = (struct msg_store){
            .number = calls / 2,
            .channel = (uint32_t)(calls % LIMIT_STORE_CALLS),
            .op = (uint32_t)(calls % STORE_OP_COUNT),
            .key = calls % 5 ? "k" : "l",
            .value = {(const uint8_t *)"1", 1}
        };
        break;
    case MSG_FINISHED: msg.u.finished.text = ""; break;
    case MSG_LAUNCH_FAILED:
        msg.u.launch_failed = (struct msg_launch_failed){ .code = HVD_E_BUSY, .text = "" };
        break;
    case MSG_EXITED: msg.u.exited.ended = ENDED_SIGNAL; break;
    case MSG_NOTICE:
        msg.u.notice = (struct msg_notice){ .left_us = 20 * TIME_S, .source = "" };
        break;
    case MSG_STALLED:
        msg.u.stalled = (struct msg_stalled){
            .waited_us = TIME_DAY, .operation = "", .missing = {missing, ARRAY_SIZE(missing)}
        };
        break;
    default: break;
    }
    *ret_msg = msg;
}

/* Scripts that bring the job, and its workers, into each of their states. */
static const char *const beginnings[] = {
    "start\n",
    "start\nhosts a:2,b:2\n",
    "start\nhosts a:2,b:2\nhello a\nhello b\n",
    TAPE_LAUNCHED "ready 1-3\n",
    TAPE_LAUNCHED "ready 1-4\nentered 1\n",
    TAPE_RUNNING,
    TAPE_RUNNING "hosts a:2\n",
    TAPE_RUNNING "hosts a:2\nprepared 1\n",
    TAPE_RUNNING "hosts a:2\nprepared 1,2\nat 1,3 2\n",
    TAPE_RUNNING "hosts a:2\nprepared 1,2\nat 1-4 2\n",
    TAPE_RUNNING "hosts a:2,b:2,c:1\nhello c\nlaunched 5\nready 5\n",
    TAPE_RUNNING "hosts a:2,b:2,c:1\nhello c\nlaunched 5\nready 5\nprepared 1-5\nat 1-4 2\n",
    TAPE_RUNNING "hosts a:2\nprepared 1,2\nat 1-4 2\nexited 3\nleft 4\nentered 1\n",
    TAPE_RUNNING "exited 3 exit1\n",
    TAPE_RUNNING "exited 3 exit1\nrecovering 1,2 held=1.0\n",
    TAPE_RUNNING "exited 1-3 exit1\nrecovering 4 held=1.0\n",
    TAPE_RUNNING "exited 3 exit1\nrecovering 1,2,4 held=1.0\n",
    TAPE_RUNNING "finished 1\n",
    TAPE_RUNNING "finished 1,2\nexited 1 exit0\nexited 3 exit1\n",
    TAPE_RUNNING "stop me\n",
    TAPE_RUNNING "closed a\n",
    TAPE_RUNNING "closed a\nexited 3 exit1\nkill\nstart\nhello b agent=7 #4:1\n",
    TAPE_RUNNING "kill\nstart\nhello a #1:0 #2:1\nhello b #3:0 #4:1\n",
    TAPE_RUNNING "finished 1\nkill\nstart\nhello a #1:0 #2:1\nhello b #3:0\n",
};

static int say(const struct msg_kind *kind, uint64_t incarnation, uint64_t round)
{
    struct msg msg;
    int rc = 0;

    if (((kind->keys & KEY_INCARNATION) && !incarnation) || ((kind->keys & KEY_ROUND) && !round))
        return 0; /* malformed: the codec refuses it */
    for (size_t i = 0; !rc && i < tape.host_count; i++) {
        make(kind->type, incarnation, round, &msg);
        if (tape.hosts[i].peer && !tape.over)
            rc = tape_msg(&tape, &tape.hosts[i], &msg);
    }
    return rc;
}

/* Gives the message, for each possible round, to the core, twice from every host; then the job goes
 * on for a while, and is stopped. */
static int trouble(const struct msg_kind *kind, uint64_t incarnation)
{
    int rc = 0;

    for (uint64_t round = 0; round < 5 && !rc; round++) {
        rc = say(kind, incarnation, round);
        if (!rc)
            rc = say(kind, incarnation, round);
    }
    if (!rc)
        rc = tape_wait(&tape, 5 * TIME_S);
    if (!rc && !tape.over)
        rc = tape_do(&tape, "stop me");
    return rc ? rc : tape_wait(&tape, TIME_MIN);
}

TEST_FLAGS(any_message_in_any_state, TEST_NO_TORTURE)
{
    static const uint64_t incarnations[] = { 0, 1, 2, 3, 4, 5, 99, UINT64_MAX };
    const struct msg_kind *kind;

    for (size_t b = 0; b < ARRAY_SIZE(beginnings); b++) {
        for (size_t k = 0; (kind = msg_kind_at(k)); k++) {
            for (size_t i = 0; i < ARRAY_SIZE(incarnations); i++) {
                CHECK_OK(t, tape_init(&tape));
                CHECK_TEXT(t, tape_play(&tape, beginnings[b]), NULL);
                CHECK_OK(t, trouble(kind, incarnations[i]));
                CHECK(t, tape.over);
                tape_release(&tape);
            }
        }
    }
    CHECK_OK(t, tape_init(&tape));
out:
    tape_release(&tape);
}

/* Returns an incarnation that runs or has run. */
static uint64_t pick_worker(const struct core_view *view)
{
    const struct view_host *host;

    if (view->host_count == 0 || !rng_below(&rng, 20))
        return 1 + rng_below(&rng, tape.journal.count + 3);
    host = &view->hosts[rng_below(&rng, view->host_count)];
    return host->worker_count ? host->workers[rng_below(&rng, host->worker_count)].incarnation : 1;
}

static const struct view_worker *find_worker(const struct core_view *view, uint64_t incarnation)
{
    for (size_t i = 0; i < view->host_count; i++)
        for (size_t k = 0; k < view->hosts[i].worker_count; k++)
            if (view->hosts[i].workers[k].incarnation == incarnation)
                return &view->hosts[i].workers[k];
    return NULL;
}

/* Returns the type of the message that a worker in this state would send next, most of the time. */
static enum msg_type likely_type(const struct core_view *view, uint64_t incarnation)
{
    static const enum msg_type often_ends[] = { MSG_EXITED,   MSG_EXITED,  MSG_STALLED, MSG_REMARK,
                                                MSG_UNUSABLE, MSG_PERSIST, MSG_STORE };
    const struct view_worker *worker = find_worker(view, incarnation);

    if (!rng_below(&rng, 2000))
        return MSG_FINISHED;
    if (!worker || !rng_below(&rng, 40))
        return (enum msg_type)(301 + rng_below(&rng, 14));
    if (!rng_below(&rng, 200))
        return often_ends[rng_below(&rng, ARRAY_SIZE(often_ends))];
    switch (worker->state) {
    case WORKER_LAUNCHING: return rng_below(&rng, 9) ? MSG_LAUNCHED : MSG_LAUNCH_FAILED;
    case WORKER_BOOTING: return MSG_READY;
    case WORKER_MEMBER:
        if (!worker->entered)
            return MSG_ENTERED;
        return view->job == JOB_PENDING ? MSG_NEXT_CHECK : MSG_PREPARED;
    case WORKER_READY: return MSG_PREPARED;
    case WORKER_REVOKED: return MSG_RECOVERING;
    case WORKER_LEAVING: return rng_below(&rng, 2) ? MSG_LEFT : MSG_EXITED;
    default: return MSG_EXITED;
    }
}

/* Sends the core a message that a random worker would probably send, sometimes with a random number
 * or code. 0, or a code. */
static int random_msg(void)
{
    struct core_view view;
    uint64_t incarnation;
    struct msg msg;
    uint8_t number;
    int rc;

    core_view_init(&view);
    rc = core_view(tape.core, &view);
    incarnation = pick_worker(&view);
    if (!rc) {
        if (rng_below(&rng, 8) && view.commit)
            held[1].commit = view.commit + rng_below(&rng, 3);
        make(likely_type(&view, incarnation), incarnation, view.round, &msg);
        if (msg.type == MSG_PREPARED && rng_below(&rng, 20))
            msg.round = view.next;
        if (msg.type == MSG_NEXT_CHECK)
            msg.u.next_check =
                (struct msg_next_check){ .next = view.next, .check = rng_below(&rng, 100) };
        if (msg.type == MSG_EXITED)
            msg.u.exited = (struct msg_exited){ .ended = (uint32_t)rng_below(&rng, ENDED_COUNT),
                                                .value = (int32_t)rng_below(&rng, 2) };
        number = tape.host_of[incarnation % TAPE_WORKERS];
        if (msg.type == MSG_PREPARED)
            msg.u.prepared.code = rng_below(&rng, 30) ? 0 : HVD_E_IO;
        if (!msg.round && (msg_kind(msg.type)->keys & KEY_ROUND))
            msg.round = 1;
        if (number && tape.hosts[number - 1].peer)
            rc = tape_msg(&tape, &tape.hosts[number - 1], &msg);
    }
    core_view_release(&view);
    return rc;
}

/* The agent's hello reports its workers, sometimes with an entry too many or with one too few. */
static int random_hello(struct tape_host *host)
{
    struct msg_slot_report reports[40] = { { .slot = 0 } };
    struct msg msg = { .type = MSG_HELLO_AGENT };
    size_t count = 0;

    if (!rng_below(&rng, 5) || !host->agent)
        host->agent++;
    for (uint64_t i = 1; i < 2000 && count < ARRAY_SIZE(reports); i++) {
        if (&tape.hosts[0] + tape.host_of[i] - 1 != host || !rng_below(&rng, 6))
            continue;
        reports[count++] = (struct msg_slot_report){ .incarnation = i,
                                                     .slot = (uint32_t)rng_below(&rng, 4),
                                                     .ended = (uint32_t)rng_below(&rng, 4) };
    }
    msg.u.hello_agent = (struct msg_hello_agent){
        .version = "", .job = "j", .host = host->name, .agent = host->agent
    };
    msg.u.hello_agent.slots = (struct msg_slot_report_list){ reports, count };
    return tape_hello(&tape, host, &msg);
}

/* The agent's hello reports the workers that the core believes in. */
static int honest_hello(struct tape_host *host)
{
    struct msg_slot_report reports[40] = { { .slot = 0 } };
    struct msg msg = { .type = MSG_HELLO_AGENT };
    struct core_view view;
    size_t count = 0;
    int rc;

    core_view_init(&view);
    rc = core_view(tape.core, &view);
    for (size_t i = 0; !rc && i < view.host_count; i++)
        for (size_t k = 0; k < view.hosts[i].worker_count && count < ARRAY_SIZE(reports); k++)
            if (!strcmp(view.hosts[i].name, host->name))
                reports[count++] =
                    (struct msg_slot_report){ .incarnation = view.hosts[i].workers[k].incarnation,
                                              .slot = view.hosts[i].workers[k].slot };
    core_view_release(&view);
    host->agent += !host->agent;
    msg.u.hello_agent = (struct msg_hello_agent){
        .version = "", .job = "j", .host = host->name, .agent = host->agent
    };
    msg.u.hello_agent.slots = (struct msg_slot_report_list){ reports, count };
    return rc ? rc : tape_hello(&tape, host, &msg);
}

/* Texts of records from which the journals are made. */
static const char *const stories[] = {
    TAPE_RUNNING "hosts a:2,b:2,c:1\nhello c\nlaunched 5\nready 5\nprepared 1-5\nat 1-4 2\n"
                 "entered 1-5\nfinished 1-5\nexited 1-5 exit0\n",
    TAPE_RUNNING "exited 3 exit1\nrecovering 1,2,4 held=1.1\nentered 1\nexited 1 sig9\n"
                 "recovering 2,4 held=1.2\nfinished 2\nexited 4 exit1\n",
    TAPE_RUNNING "drain b:1 5s\nprepared 1-3\nat 1-4 2\nleft 4\nexited 4\nclear b:1\n"
                 "hosts c:2\nhello c\nlaunched 5,6\nready 5,6\nstop me\n",
};

/* The next driver takes over; it finds the agents with all their workers, or without any. */
static int take_over(bool with_workers)
{
    static const char *const names[] = { "a", "b", "c" };
    int rc = tape_do(&tape, "start");

    for (size_t i = 0; i < ARRAY_SIZE(names) && !rc && !tape.over; i++) {
        struct tape_host *host = tape_host(&tape, names[i]);

        if (with_workers)
            rc = honest_hello(host);
        else if (i != 1)
            rc = tape_do(&tape, i ? "hello c agent=9" : "hello a agent=9");
    }
    if (!rc && !tape.over)
        rc = tape_do(&tape, "hosts a:2,b:2");
    if (!rc && !tape.over)
        rc = tape_wait(&tape, TIME_MIN);
    if (!rc && !tape.over)
        rc = tape_do(&tape, "stop me");
    return rc ? rc : tape_wait(&tape, TIME_MIN);
}

TEST_FLAGS(a_driver_may_die_after_any_record, TEST_NO_TORTURE)
{
    size_t lost = 0, written;

    for (size_t i = 0; i < 4 * ARRAY_SIZE(stories); i++) {
        for (lost = 0, written = 1; lost <= written; lost++) {
            CHECK_OK(t, tape_init(&tape));
            CHECK_TEXT(t, tape_play(&tape, stories[i / 4]), NULL);
            written = tape.journal.count;
            if (lost <= written) {
                CHECK_OK(t, tape_kill(&tape, lost, i % 2));
                CHECK_OK(t, take_over(i / 2 % 2));
                CHECK(t, tape.over);
            }
            tape_release(&tape);
        }
    }
    CHECK_OK(t, tape_init(&tape));
out:
    tape_release(&tape);
}

static int random_hosts(void)
{
    char line[128] = "hosts ";
    size_t used = strlen(line);

    for (unsigned i = 0; i < 5; i++)
        if (rng_below(&rng, 5))
            used += (size_t)snprintf(line + used, sizeof(line) - used, "%sh%u:%u",
                                     used > 6 ? "," : "", i, (unsigned)rng_below(&rng, 4));
    return used > 6 ? tape_do(&tape, line) : 0;
}

/* An operator's command or notice about the host, chosen at random. */
static int random_operator(const char *host)
{
    static const struct {
        const char *verb, *rest;
    } verbs[] = {
        {"drain",    " 5s"     },
        { "drain",   ":1 never"},
        { "clear",   ""        },
        { "clear",   ":0"      },
        { "undrain", ""        },
        { "undrain", ":1"      },
        { "failed",  " x"      },
        { "notice",  " 20s"    },
        { "rekey",   ""        },
        { "rekeyed", " 5"      },
    };
    unsigned verb = (unsigned)rng_below(&rng, ARRAY_SIZE(verbs));
    char line[64];

    if ((*verbs[verb].verb == 'n' || !strcmp(verbs[verb].verb, "rekeyed")) &&
        !tape_host(&tape, host)->peer)
        return 0;
    snprintf(line, sizeof(line), "%s %s%s", verbs[verb].verb, host, verbs[verb].rest);
    return tape_do(&tape, line);
}

static int random_connection(struct tape_host *host)
{
    char line[80];

    if (!host->peer || !rng_below(&rng, 10))
        return rng_below(&rng, 4) ? honest_hello(host) : random_hello(host);
    if (rng_below(&rng, 6))
        return 0;
    snprintf(line, sizeof(line), "closed %s", host->name);
    return tape_do(&tape, line);
}

static int next_driver(void)
{
    int rc = tape_kill(&tape, 0, rng_below(&rng, 2));

    return rc ? rc : tape_do(&tape, "start");
}

/* Starts a new job with random settings on three hosts; the digest goes on. */
static int next_job(uint64_t digest)
{
    int rc;

    tape_release(&tape);
    rc = tape_init(&tape);
    tape.digest = digest;
    tape.config.np = 1 + (uint32_t)rng_below(&rng, 4);
    tape.config.min_np = 0;
    tape.config.max_np = tape.config.np + (uint32_t)rng_below(&rng, 6);
    tape.config.blacklist.scope = rng_below(&rng, 2) ? SCOPE_HOST : SCOPE_SLOT;
    tape.config.blacklist.forever = !rng_below(&rng, 8);
    tape.config.min_np = 1 + (uint32_t)rng_below(&rng, tape.config.np);
    if (!rng_below(&rng, 8))
        tape.config.reset_limit = 5;
    rc = rc ? rc : tape_do(&tape, "start");
    return rc ? rc : tape_do(&tape, "hosts h0:2,h1:2,h2:1");
}

/* Gives the core one random event: hosts, a connection, an operator, time, a new driver, or
 * (mostly) a message. */
static int random_event(void)
{
    struct tape_host *host;
    char name[8];

    snprintf(name, sizeof(name), "h%u", (unsigned)rng_below(&rng, 5));
    host = tape_host(&tape, name);
    if (tape.over)
        return next_job(tape.digest);
    switch (rng_below(&rng, 80)) {
    case 0: return rng_below(&rng, 5) ? 0 : random_hosts();
    case 1: return random_connection(host);
    case 2: return rng_below(&rng, 5) ? 0 : random_operator(name);
    case 3: return rng_below(&rng, 3) ? 0 : tape_wait(&tape, (int64_t)rng_below(&rng, 20) * TIME_S);
    case 4: return tape_wait(&tape, (int64_t)rng_below(&rng, TIME_S));
    case 5: return rng_below(&rng, 15) ? 0 : next_driver();
    case 6: return rng_below(&rng, 100) ? 0 : tape_do(&tape, "stop me");
    default: return random_msg();
    }
}

#define STEPS 30000

/* Plays `steps` random events. *ret_rounds counts how often the job was seen running. */
static int play(uint64_t seed, unsigned steps, uint64_t *ret_digest, uint64_t *ret_rounds)
{
    struct core_view view;
    int rc;

    rng_seed(&rng, seed);
    held[1].commit = held[0].commit;
    rc = next_job(0);
    *ret_rounds = 0;
    for (unsigned i = 0; i < steps && !rc; i++) {
        buf_clear(&tape.did);
        rc = random_event();
        if (!rc && i % 64 == 0) {
            core_view_init(&view);
            rc = core_view(tape.core, &view);
            *ret_rounds += view.job == JOB_RUNNING;
            core_view_release(&view);
        }
    }
    *ret_digest = tape.digest;
    return rc;
}

TEST_FLAGS(the_same_seed_gives_the_same_bytes, TEST_NO_TORTURE)
{
    uint64_t first, second, other, rounds;

    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, play(1, STEPS, &first, &rounds));
    CHECK_INT(t, rounds, >, STEPS / 64 / 10); /* the job ran for a good part of the time */
    CHECK_OK(t, play(1, STEPS, &second, &rounds));
    CHECK(t, first == second);
    CHECK_OK(t, play(2, STEPS, &other, &rounds));
    CHECK(t, first != other);
out:
    tape_release(&tape);
}

TEST_FLAGS(many_seeds_break_nothing, TEST_NO_TORTURE)
{
    uint64_t digest, rounds;

    CHECK_OK(t, tape_init(&tape));
    for (uint64_t seed = 10; seed < 60; seed++)
        CHECK_OK(t, play(seed, 1000, &digest, &rounds));
out:
    tape_release(&tape);
}

/* Under torture each allocation of this job fails once. */
TEST(a_short_random_job)
{
    uint64_t digest, rounds;

    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, play(3, 60, &digest, &rounds));
out:
    tape_release(&tape);
}
