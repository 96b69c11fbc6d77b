/* A training loop that does as the session says, and an agent that may send any message at any
 * time. expect notes a rule that the session breaks. */
#include "base/rng.h"
#include "base/time.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "proto/commit.h"
#include "tests/lib/test.h"
#include "worker/core/session.h"

#define ME          7
#define EVENTS      20000
#define LIFE_EVENTS 100 /* after this many events the job is ended */

enum where { AWAY, WAITING, ENTERING, TRAINING, RESTORING };

static struct world {
    struct session *session;
    struct session_action_list list;
    struct buf frame;
    struct rng rng;
    int64_t now_us;
    uint64_t term;
    bool connected;

    enum where loop;
    bool asks; /* a check has no answer yet */
    uint64_t checks;
    int told; /* the result of the last check */
    bool watch;
    uint64_t preparing; /* the round of a DO_PREPARE without an end; 0: none */
    bool prepared;      /* ... and its result was 0 */
    uint64_t entered;   /* the round of the last DO_ENTER */
    bool recovering;    /* the last message about this round was RECOVERING */

    uint64_t next;  /* the next round of an orderly change */
    unsigned stage; /* how far this change is */

    unsigned seen[DO_COUNT];
    unsigned states[SESSION_STATE_COUNT];
    const char *wrong;
} world;

static uint64_t below(uint64_t bound)
{
    return rng_below(&world.rng, bound);
}

static void expect(bool right, const char *what)
{
    if (!right && !world.wrong)
        world.wrong = what;
}

static void take_sent(const struct msg *msg)
{
    const struct msg_kind *kind = msg_kind(msg->type);

    expect(world.connected, "a message without an agent");
    expect(!msg_allowed(msg->type, LINK_WORKER_TO_AGENT, WHEN_OPEN, NULL), "not for an agent");
    expect(msg->incarnation == ME, "in another's name");
    expect(!(kind->keys & KEY_ROUND) || msg->round, "without a round");
    expect(!msg_encode(msg, &world.frame, NULL), "a message that cannot be encoded");
    buf_clear(&world.frame);
    if (msg->type == MSG_RECOVERING)
        world.recovering = true;
}

/* Checks a DO_ENTER: the loop waits, the round is new and prepared, and this worker is in its
 * place. */
static void take_enter(const struct session_action *action)
{
    const struct msg_member_list *members = &action->msg->u.round.members;

    expect(world.loop == WAITING, "DO_ENTER while the loop is elsewhere");
    expect(action->round > world.entered, "back to an old round");
    expect(action->msg->round == action->round, "the ROUND of another round");
    expect(action->place.size == members->count &&
               members->items[action->place.rank].incarnation == ME,
           "in another's place");
    expect(!world.watch, "still watching");
    if (action->yes)
        expect(world.preparing == action->round && world.prepared,
               "enters a round that was not prepared");
    else
        expect(!world.preparing, "a prepared round stays");
    world.preparing = 0;
    world.entered = action->round;
    world.loop = ENTERING;
    world.checks = 0;
    world.recovering = false;
}

/* Notes an action of the session, and checks that the action is legal now. */
static void take(const struct session_action *action)
{
    world.seen[action->kind]++;
    switch (action->kind) {
    case DO_SEND: take_sent(action->msg); return;
    case DO_WATCH:
        expect(action->yes != world.watch, "DO_WATCH that changes nothing");
        world.watch = action->yes;
        return;
    case DO_PREPARE:
        expect(!world.preparing, "two preparations");
        world.preparing = action->round;
        world.prepared = false;
        return;
    case DO_ABANDON:
        expect(world.preparing == action->round, "DO_ABANDON of nothing");
        world.preparing = 0;
        return;
    case DO_STORED:
    case DO_PERSISTED: expect(world.connected, "an answer of an agent that is gone"); return;
    case DO_CANCEL: expect(action->round >= world.entered, "DO_CANCEL of an old round"); return;
    case DO_COMMIT:
        expect(world.asks && action->commit > COMMIT_FIRST_OF(world.entered), "an odd commit");
        return;
    case DO_ANSWER:
        expect(world.asks && world.loop == TRAINING, "an answer without a check");
        world.asks = false;
        world.told = action->code;
        return;
    case DO_RESTORE:
        expect(world.loop == WAITING, "DO_RESTORE while the loop is elsewhere");
        world.loop = RESTORING;
        return;
    case DO_ENTER: take_enter(action); return;
    case DO_RETURN:
        expect(world.loop == WAITING, "DO_RETURN while the loop is elsewhere");
        world.loop = AWAY;
        return;
    case DO_COUNT: break;
    }
    expect(false, "no such action");
}

static void step(struct session_event event)
{
    event.now_us = world.now_us;
    expect(!session_step(world.session, &event, &world.list), "out of memory");
    for (size_t i = 0; i < world.list.count; i++)
        take(&world.list.items[i]);
    session_action_list_clear(&world.list);
    world.states[session_state(world.session)]++;
    expect(session_deadline(world.session) > world.now_us || event.kind != SESSION_TIMER,
           "a timer that does not go away");
}

static void say(const struct msg *msg)
{
    step((struct session_event){ .kind = SESSION_MSG, .msg = msg, .counted = below(2) });
}

/* Makes a list of up to four members; this worker is mostly one of them. */
static struct msg_member_list some_members(struct msg_member items[4])
{
    size_t count = 1 + below(4);
    bool with_me = below(5) > 0;

    for (size_t i = 0; i < count; i++)
        items[i] = (struct msg_member){ .incarnation = ME + 1 + i,
                                        .host = i % 2 ? "a" : "b",
                                        .slot = (uint32_t)i };
    if (with_me)
        items[below(count)].incarnation = ME;
    return (struct msg_member_list){ items, count };
}

/* Sends the session a message of random type and rounds, sometimes twice. */
static void some_message(void)
{
    static const enum msg_type types[] = {
        MSG_ROUND,   MSG_ROUND,     MSG_ROUND,     MSG_PREPARE, MSG_PREPARE, MSG_PENDING,
        MSG_PENDING, MSG_SWITCH_AT, MSG_SWITCH_AT, MSG_ABANDON, MSG_REVOKE,  MSG_HOSTS_UPDATED,
        MSG_BEAT,    MSG_DRAIN,     MSG_PERSISTED, MSG_STORED
    };
    struct msg_member members[4];
    uint64_t round = session_round(world.session);
    uint64_t next = round + below(3);
    struct msg msg = { .type = types[below(ARRAY_SIZE(types))],
                       .term = world.term,
                       .round = round };

    if (below(50) == 0)
        world.term++;
    if (below(50) == 0)
        msg.term--;
    if (below(20) == 0)
        msg.incarnation = ME + below(2);
    if (below(10) == 0)
        msg.round = round + below(3);
    switch (msg.type) {
    case MSG_ROUND:
        msg.round = round + below(4);
        msg.u.round.members = some_members(members);
        break;
    case MSG_PREPARE:
        msg.round = round + below(4);
        msg.u.prepare.members = some_members(members);
        break;
    case MSG_PENDING: msg.u.pending.next = next; break;
    case MSG_SWITCH_AT:
        msg.u.switch_at = (struct msg_switch_at){ next, world.checks + below(3) };
        break;
    case MSG_ABANDON: msg.u.abandon = (struct msg_abandon){ next, "" }; break;
    case MSG_REVOKE: msg.u.revoke.reason = ""; break;
    case MSG_PERSISTED:
        msg.u.persisted = (struct msg_persisted){ COMMIT_FIRST_OF(round), 0, "" };
        break;
    case MSG_STORED: msg.u.stored.text = ""; break;
    /* a DRAIN ends most lives, so it is seldom */
    case MSG_DRAIN: msg.type = below(8) ? MSG_BEAT : MSG_DRAIN; break;
    default: break;
    }
    say(&msg);
    if (below(8) == 0)
        say(&msg);
}

/* Sends the next message of an orderly change, or the first message of a new change. */
static void some_order(void)
{
    struct msg_member members[4];
    struct msg msg = { .term = world.term, .round = session_round(world.session) };

    if (world.next <= msg.round) {
        world.next = msg.round + 1;
        world.stage = 0;
    }
    switch (world.stage++ % 5) {
    case 0:
        msg.type = MSG_PREPARE;
        msg.round = world.next;
        msg.u.prepare.members = some_members(members);
        break;
    case 1:
        msg.type = msg.round ? MSG_PENDING : MSG_BEAT;
        msg.u.pending.next = world.next;
        break;
    case 2: /* while the worker says NEXT_CHECK */ msg.type = MSG_BEAT; break;
    case 3:
        msg.type = msg.round ? MSG_SWITCH_AT : MSG_BEAT;
        msg.u.switch_at = (struct msg_switch_at){ world.next, world.checks + below(2) };
        break;
    default:
        msg.type = MSG_ROUND;
        msg.round = world.next++;
        msg.u.round.members = some_members(members);
        break;
    }
    say(&msg);
}

static void settle(void)
{
    struct msg_held held[LIMIT_COMMITS_HELD] = { { .commit = 1 } };
    struct msg_held_list list = { held, below(LIMIT_COMMITS_HELD + 1) };

    world.loop = WAITING;
    step((struct session_event){ .kind = SESSION_RESTORED, .held = &list });
}

static void come_back(int code)
{
    world.loop = WAITING;
    step((struct session_event){ .kind = SESSION_RETURNED, .code = code, .text = "some\ttext" });
}

static void run(void)
{
    static const struct msg_ready ready = { .manifest = 1 };

    world.loop = WAITING;
    step((struct session_event){ .kind = SESSION_RUN, .ready = &ready });
}

static void synced(int code)
{
    world.loop = code ? WAITING : TRAINING;
    world.told = 0;
    step((struct session_event){ .kind = SESSION_SYNCED, .code = code });
}

/* The loop comes back from train, steps, or asks for a check. */
static void train(void)
{
    static const int codes[] = { HVD_HOSTS_UPDATED, HVD_LEFT, HVD_DONE, HVD_E_REVOKED, 0, 42 };
    static const struct msg_entered entered = { .commit = 1 };

    if (world.asks)
        return;
    if (below(40) == 0)
        come_back(codes[below(ARRAY_SIZE(codes))]);
    else if (world.told && below(4))
        come_back(world.told);
    else if (below(4) == 0)
        step((struct session_event){ .kind = SESSION_STEPPED, .entered = &entered });
    else {
        world.asks = true;
        step((struct session_event){ .kind = SESSION_CHECK, .check = world.checks++ });
    }
}

static void something_of_the_loop(void)
{
    switch (world.loop) {
    case AWAY: run(); return;
    case WAITING: return;
    case ENTERING: synced(below(6) ? 0 : HVD_E_IO); return;
    case TRAINING: train(); return;
    case RESTORING: settle(); return;
    }
}

static void prepared(void)
{
    uint64_t round = world.preparing ? world.preparing : 1 + below(3);
    int code = below(4) ? 0 : HVD_E_IO;

    if (world.prepared)
        return;
    if (code)
        world.preparing = 0;
    else
        world.prepared = true;
    step((struct session_event){ .kind = SESSION_PREPARED, .round = round, .code = code });
}

static void something(void)
{
    static const struct msg_stalled stalled = { .waited_us = 1, .operation = "allreduce" };

    world.now_us += (int64_t)below(TIME_S);
    if (!below(200)) {
        step((struct session_event){ .kind = SESSION_UNUSABLE, .text = "stuck" });
        world.connected = false; /* the worker sends nothing more */
        return;
    }
    switch (below(14)) {
    case 0: step((struct session_event){ .kind = SESSION_TIMER }); return;
    case 1: prepared(); return;
    case 2: step((struct session_event){ .kind = SESSION_STUCK, .stalled = &stalled }); return;
    case 3: step((struct session_event){ .kind = SESSION_REMARK, .text = "slow" }); return;
    case 4: some_message(); return;
    case 5:
    case 6: some_order(); return;
    case 7:
        step((struct session_event){ .kind = SESSION_PERSIST,
                                     .commit = COMMIT_FIRST_OF(world.entered) | below(3) });
        return;
    default: something_of_the_loop(); return;
    }
}

/* Ends the job in any state of the session: no check may wait for ever. */
static void end_of_the_job(void)
{
    if (world.connected && below(2)) {
        say(&(struct msg){ .type = MSG_DONE, .term = world.term + 1 });
    } else {
        step((struct session_event){ .kind = SESSION_CLOSED });
        world.connected = false;
    }
    for (int i = 0; i < 4 && !world.wrong; i++) {
        expect(!world.asks && world.loop != WAITING, "the job is over, and the loop still waits");
        switch (world.loop) {
        case ENTERING: synced(below(2) ? 0 : HVD_E_REVOKED); break;
        case TRAINING: come_back(HVD_DONE); break;
        case RESTORING: settle(); break;
        default: run(); break;
        }
    }
    expect(world.loop == AWAY && !world.preparing, "the job is over, and the run does not end");
}

/* Ends the round in any state: the session must send RECOVERING and enter the next round. */
static void end_of_the_round(void)
{
    static const struct msg_member me = { .incarnation = ME, .host = "a" };
    uint64_t round = session_round(world.session) + 10;
    bool is_in = session_round(world.session) > 0;

    say(&(struct msg){
        .type = MSG_REVOKE, .term = world.term, .round = round, .u.revoke.reason = "" });
    for (int i = 0; i < 4 && !world.wrong && world.loop != WAITING; i++) {
        expect(!world.asks, "the round is dead, and a check still waits");
        switch (world.loop) {
        case ENTERING: synced(below(2) ? 0 : HVD_E_REVOKED); break;
        case TRAINING: come_back(HVD_E_REVOKED); break;
        case RESTORING: settle(); break;
        default: run(); break;
        }
    }
    if (session_state(world.session) >= SESSION_LEFT)
        return;
    expect(world.recovering || !is_in, "the round is dead, and the worker says nothing");
    say(&(struct msg){
        .type = MSG_ROUND,
        .term = world.term,
        .round = round + 1,
        .u.round = {.cause = CAUSE_RECOVERY, .members = { &me, 1 }}
    });
    expect(world.loop == ENTERING && world.entered == round + 1,
           "the worker does not enter the next round");
}

static bool begin(void)
{
    static const struct msg_welcome_worker welcome = { .minor = PROTO_MINOR,
                                                       .beat_us = TIME_S / 2,
                                                       .stall_warning_us = TIME_S };

    session_free(world.session);
    world.session = session_create(ME, &welcome, world.now_us, NULL);
    world.connected = true;
    world.loop = AWAY;
    world.asks = world.watch = world.prepared = world.recovering = false;
    world.preparing = world.entered = world.checks = world.next = 0;
    world.term = 2;
    world.told = 0;
    return world.session;
}

TEST_FLAGS(random_events_break_no_session, TEST_NO_TORTURE)
{
    rng_seed(&world.rng, 42);
    session_action_list_init(&world.list);
    buf_init(&world.frame, 1 << 20);
    for (unsigned event = 0; event < EVENTS; event += LIFE_EVENTS) {
        CHECK(t, begin());
        for (unsigned i = 0; i < LIFE_EVENTS && !world.wrong; i++)
            something();
        if (below(2) && session_state(world.session) < SESSION_LEFT)
            end_of_the_round();
        end_of_the_job();
        if (world.wrong)
            test_fail(t, __FILE__, __LINE__, "about event %u: %s", event, world.wrong);
        if (world.wrong)
            goto out;
    }
    for (unsigned i = 0; i < DO_COUNT; i++)
        CHECK_INT(t, world.seen[i], >, 10);
    for (unsigned i = 0; i < SESSION_STATE_COUNT; i++)
        CHECK_INT(t, world.states[i], >, 10);
out:
    session_free(world.session);
    session_action_list_release(&world.list);
    buf_release(&world.frame);
}
