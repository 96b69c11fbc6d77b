/*
 * fuzz_agent.c: an agent's core between a driver that has the key and lies, workers that lie, and
 * processes that end when they like. Each byte chooses an event; messages are made of fields that
 * are likely to mean something, or are decoded from the bytes as they are.
 *
 * No assert fails, and each message that it wants sent can be. In the end it is told to stop and
 * its processes end: then it is over.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "tests/lib/agent_script.h"

#include <string.h>

#define EVENTS_MAX   300
#define CONNECTIONS  4
#define INCARNATIONS 16
#define ROUNDS_MAX   64 /* of everybody ending */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

static struct script script;
static bool over;
static bool dialling;
static uint32_t connections[CONNECTIONS]; /* a number is not used again */
static uint32_t newest;

static uint8_t take_byte(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->at++;
}

static void check_sent(const struct msg *msg)
{
    struct hvd_err err = { 0 };
    struct buf wire;

    buf_init(&wire, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    if (msg_encode(msg, &wire, &err))
        PANIC("it wants to send what cannot be sent: %s", err.text);
    buf_release(&wire);
}

static void drop(uint32_t connection)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (connections[i] == connection)
            connections[i] = ++newest;
    }
}

static void look_at(const struct agent_action *action)
{
    switch (action->kind) {
    case AGENT_DO_SEND_DRIVER:
    case AGENT_DO_SEND_WORKER: check_sent(action->msg); break;
    case AGENT_DO_DROP: drop(action->worker); break;
    case AGENT_DO_DIAL: dialling = true; break;
    case AGENT_DO_EXIT: over = true; break;
    default: break;
    }
}

static void step(struct agent_event event)
{
    if (over)
        return;
    event.now_us = script.now_us;
    agent_action_list_clear(&script.list);
    if (agent_step(script.agent, &event, &script.list))
        PANIC("memory is out");
    for (size_t i = 0; i < script.list.count; i++)
        look_at(&script.list.items[i]);
}

static void say(bool driver, uint32_t connection, const struct msg *msg)
{
    step((struct agent_event){
        .kind = driver ? AGENT_DRIVER_MSG : AGENT_WORKER_MSG, .worker = connection, .msg = msg });
}

/* Whatever the codec lets through. */
static void say_bytes(struct input *in, bool driver, uint32_t connection)
{
    struct hvd_err err = { 0 };
    struct msg msg = { 0 };
    struct frame frame;
    size_t length = take_byte(in);
    size_t kinds = 0;

    while (msg_kind_at(kinds))
        kinds++;
    ASSERT(kinds > 0);
    frame = (struct frame){ .type = (uint16_t)msg_kind_at(take_byte(in) % kinds)->type,
                            .body = in->at,
                            .length = length < in->left ? length : in->left };
    in->at += frame.length;
    in->left -= frame.length;
    if (!msg_decode(&frame, &msg, &err))
        say(driver, connection, &msg);
    msg_release(&msg);
}

static const char *const words[] = { "true" };

static struct msg take_driver_msg(struct input *in)
{
    static const enum msg_type types[] = {
        MSG_LAUNCH, MSG_KILL,  MSG_FORGET, MSG_STOP, MSG_BEAT,
        MSG_REVOKE, MSG_DRAIN, MSG_DONE,   MSG_BYE,  MSG_PENDING
    };
    struct msg msg = { .type = types[take_byte(in) % ARRAY_SIZE(types)],
                       .term = 1 + take_byte(in) / 250,
                       .incarnation = 1 + take_byte(in) % INCARNATIONS };

    if (msg.type == MSG_LAUNCH)
        msg.u.launch = (struct msg_launch){
            .slot = take_byte(in), .argv = {words, 1},
                 .cwd = "/"
        };
    if (msg.type == MSG_KILL || msg.type == MSG_STOP)
        msg.u.kill = (struct msg_kill){ .grace_us = take_byte(in) * TIME_S, .reason = "" };
    if (msg.type == MSG_REVOKE)
        msg.u.revoke.reason = "";
    if (msg.type == MSG_DRAIN)
        msg.u.drain.reason = "";
    if (msg.type == MSG_BYE)
        msg.u.bye.reason = "";
    msg.round = take_byte(in) % 4 + 1;
    if (msg.type == MSG_PENDING)
        msg.u.pending.next = msg.round + 1;
    return msg;
}

static struct msg take_worker_msg(struct input *in)
{
    static const enum msg_type types[] = { MSG_HELLO_WORKER, MSG_READY, MSG_AT,
                                           MSG_RECOVERING,   MSG_LEFT,  MSG_FINISHED,
                                           MSG_ENTERED,      MSG_BEAT,  MSG_PREPARED };
    uint8_t type = take_byte(in);
    /* Not in the table: what is in the corpus means the same as before. */
    struct msg msg = { .type = type == UINT8_MAX       ? MSG_USELESS
                               : type == UINT8_MAX - 1 ? MSG_REMARK
                                                       : types[type % ARRAY_SIZE(types)],
                       .incarnation = 1 + take_byte(in) % INCARNATIONS,
                       .round = 1 + take_byte(in) % 4 };

    if (msg.type == MSG_USELESS)
        msg.u.useless.text = "";
    if (msg.type == MSG_REMARK)
        msg.u.remark.text = "";
    if (msg.type == MSG_HELLO_WORKER)
        msg.u.hello_worker = (struct msg_hello_worker){ PROTO_MINOR, "1", msg.incarnation };
    if (msg.type == MSG_AT)
        msg.u.at.next = msg.round + 1;
    if (msg.type == MSG_RECOVERING)
        msg.u.recovering.text = "";
    if (msg.type == MSG_FINISHED)
        msg.u.finished.text = "";
    if (msg.type == MSG_PREPARED)
        msg.u.prepared.text = "";
    return msg;
}

static void driver_up(void)
{
    struct msg welcome = script_welcome(1);

    if (!dialling)
        return;
    dialling = false;
    step((struct agent_event){ .kind = AGENT_DRIVER_UP });
    say(true, 0, &welcome);
}

static void one_event(struct input *in)
{
    uint8_t kind = take_byte(in);
    uint64_t incarnation = 1 + take_byte(in) % INCARNATIONS;
    uint32_t connection = connections[kind / 16 % CONNECTIONS];
    struct msg msg;

    switch (kind % 13) {
    case 0:
        msg = take_driver_msg(in);
        say(true, 0, &msg);
        break;
    case 1:
    case 2:
        msg = take_worker_msg(in);
        say(false, connection, &msg);
        break;
    case 3: say_bytes(in, true, 0); break;
    case 4: say_bytes(in, false, connection); break;
    case 5:
        step((struct agent_event){
            .kind = AGENT_SPAWNED, .incarnation = incarnation, .pid = incarnation });
        break;
    case 6:
        step((struct agent_event){ .kind = AGENT_SPAWN_FAILED,
                                   .incarnation = incarnation,
                                   .code = HVD_E_NOTFOUND,
                                   .text = "x" });
        break;
    case 7:
        step((struct agent_event){ .kind = AGENT_ENDED,
                                   .incarnation = incarnation,
                                   .ended = ENDED_SIGNAL,
                                   .value = 9,
                                   .witness = WITNESS_PIDFD });
        break;
    case 8:
        step((struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = connection });
        drop(connection);
        break;
    case 9: driver_up(); break;
    case 10: step((struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = "x" }); break;
    case 11:
        step((struct agent_event){
            .kind = AGENT_OUTPUT,
            .incarnation = incarnation,
            .stream = kind / 128u,
            .data = {in->at, in->left < 9 ? in->left : 9}
        });
        break;
    default:
        script.now_us += take_byte(in) * (TIME_S / 4);
        step((struct agent_event){ .kind = AGENT_TIMER });
        break;
    }
}

/* Told to stop, and everybody ends: it has to be over. */
static void come_to_an_end(void)
{
    step((struct agent_event){ .kind = AGENT_STOP, .text = "the end" });
    for (int i = 0; i < ROUNDS_MAX && !over; i++) {
        for (uint64_t incarnation = 1; incarnation <= INCARNATIONS; incarnation++) {
            step((struct agent_event){
                .kind = AGENT_SPAWNED, .incarnation = incarnation, .pid = incarnation });
            step((struct agent_event){ .kind = AGENT_ENDED,
                                       .incarnation = incarnation,
                                       .ended = ENDED_EXIT,
                                       .witness = WITNESS_PIDFD });
        }
        if (agent_deadline(script.agent) != TIME_NEVER &&
            agent_deadline(script.agent) > script.now_us)
            script.now_us = agent_deadline(script.agent);
        step((struct agent_event){ .kind = AGENT_TIMER });
    }
    ASSERT(over);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, size };

    if (script_init(&script))
        PANIC("memory is out");
    over = dialling = false;
    newest = CONNECTIONS;
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        connections[i] = i + 1;
    step((struct agent_event){ .kind = AGENT_START });
    driver_up();
    for (int i = 0; i < EVENTS_MAX && in.left && !over; i++)
        one_event(&in);
    if (!over)
        come_to_an_end();
    script_release(&script);
    return 0;
}
