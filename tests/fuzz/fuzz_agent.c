/*
 * fuzz_agent.c: an agent's core between a driver that has the key and lies, workers that lie, and
 * processes that end at any moment. Each byte of the input chooses an event (fuzz_byte takes the
 * next byte). A message is made of likely field values, or is decoded from the input's bytes.
 *
 * No assert may fail, and each message that the core sends must be encodable. In the end the agent
 * is told to stop and its processes end: then the core must be done.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "proto/commit.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/fuzz_input.h"

#include <string.h>

#define EVENTS_MAX   300
#define CONNECTIONS  4
#define INCARNATIONS 16
#define ROUNDS_MAX   64 /* iterations until all processes have ended */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct script script;
static bool over;
static bool dialling;
static uint32_t connections[CONNECTIONS]; /* numbers of connections; no number is used again */
static uint32_t newest;

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

/* Gives the agent's core one event, and carries out the actions that follow. */
static void step(struct agent_event event)
{
    if (over)
        return;
    event.now_us = script.now_us;
    agent_action_list_clear(&script.list);
    if (agent_step(script.agent, &event, &script.list))
        PANIC("memory is out");
    for (size_t i = 0; i < script.list.count; i++) {
        const struct agent_action *action = &script.list.items[i];

        switch (action->kind) {
        case AGENT_DO_SEND_DRIVER:
        case AGENT_DO_SEND_WORKER: check_sent(action->msg); break;
        case AGENT_DO_DROP: drop(action->worker); break;
        case AGENT_DO_DIAL: dialling = true; break;
        case AGENT_DO_EXIT: over = true; break;
        default: break;
        }
    }
}

static void say(bool driver, uint32_t connection, const struct msg *msg)
{
    step((struct agent_event){
        .kind = driver ? AGENT_DRIVER_MSG : AGENT_WORKER_MSG, .worker = connection, .msg = msg });
}

/* Sends any message that the codec accepts. */
static void say_bytes(struct fuzz_input *in, bool driver, uint32_t connection)
{
    struct hvd_err err = { 0 };
    struct msg msg = { 0 };
    struct frame frame;
    size_t length = fuzz_byte(in);
    uint16_t type = fuzz_number(in);

    if (!msg_kind(type))
        return;
    frame = (struct frame){ .type = type,
                            .body = in->at,
                            .length = length < in->left ? length : in->left };
    in->at += frame.length;
    in->left -= frame.length;
    if (!msg_decode(&frame, &msg, &err))
        say(driver, connection, &msg);
    msg_release(&msg);
}

static const char *const words[] = { "true" };

static struct msg take_driver_msg(struct fuzz_input *in)
{
    static const enum msg_type types[] = {
        MSG_LAUNCH,  MSG_KILL,          MSG_FORGET,    MSG_STOP,    MSG_BEAT,    MSG_REVOKE,
        MSG_DRAIN,   MSG_DONE,          MSG_BYE,       MSG_PENDING, MSG_REKEY,   MSG_HOLD,
        MSG_SAVE,    MSG_RELEASE,       MSG_REFUSED,   MSG_ROUND,   MSG_PREPARE, MSG_SWITCH_AT,
        MSG_ABANDON, MSG_HOSTS_UPDATED, MSG_PERSISTED, MSG_STORED,  MSG_EXAMINE
    };
    struct msg msg = { .type = fuzz_type(in, types, ARRAY_SIZE(types)),
                       .term = 1 + fuzz_byte(in) / 250,
                       .incarnation = 1 + fuzz_byte(in) % INCARNATIONS };

    if (msg.type == MSG_LAUNCH)
        msg.u.launch = (struct msg_launch){
            .slot = fuzz_byte(in), .argv = {words, 1},
                 .cwd = "/"
        };
    if (msg.type == MSG_KILL || msg.type == MSG_STOP)
        msg.u.kill = (struct msg_kill){ .grace_us = fuzz_byte(in) * TIME_S, .reason = "" };
    if (msg.type == MSG_REVOKE)
        msg.u.revoke.reason = "";
    if (msg.type == MSG_DRAIN)
        msg.u.drain.reason = "";
    if (msg.type == MSG_BYE)
        msg.u.bye.reason = "";
    msg.round = fuzz_byte(in) % 4 + 1;
    if (msg.type == MSG_REKEY)
        msg.u.rekey.epoch = msg.round;
    if (msg.type == MSG_HOLD)
        msg.u.hold.number = msg.round;
    if (msg.type == MSG_RELEASE)
        msg.u.release.number = msg.round;
    if (msg.type == MSG_SAVE)
        msg.u.save = (struct msg_save){ .number = msg.round, .folder = "/c", .name = "part" };
    if (msg.type == MSG_PENDING)
        msg.u.pending.next = msg.round + 1;
    if (msg.type == MSG_REFUSED)
        msg.u.refused = (struct msg_refused){ -(fuzz_byte(in) % 20), "no" };
    if (msg.type == MSG_SWITCH_AT)
        msg.u.switch_at = (struct msg_switch_at){ msg.round + 1, fuzz_byte(in) };
    if (msg.type == MSG_ABANDON)
        msg.u.abandon = (struct msg_abandon){ msg.round + 1, "" };
    if (msg.type == MSG_PERSISTED)
        msg.u.persisted = (struct msg_persisted){ COMMIT_FIRST_OF(msg.round), 0, "" };
    if (msg.type == MSG_STORED)
        msg.u.stored = (struct msg_stored){ .number = 1, .text = "" };
    return msg;
}

static struct msg take_worker_msg(struct fuzz_input *in)
{
    static const enum msg_type types[] = { MSG_HELLO_WORKER, MSG_READY,  MSG_NEXT_CHECK,
                                           MSG_RECOVERING,   MSG_LEFT,   MSG_FINISHED,
                                           MSG_ENTERED,      MSG_BEAT,   MSG_PREPARED,
                                           MSG_UNUSABLE,     MSG_REMARK, MSG_PERSIST,
                                           MSG_STORE,        MSG_STALLED };
    struct msg msg = { .type = fuzz_type(in, types, ARRAY_SIZE(types)),
                       .incarnation = 1 + fuzz_byte(in) % INCARNATIONS,
                       .round = 1 + fuzz_byte(in) % 4 };

    if (msg.type == MSG_UNUSABLE)
        msg.u.unusable.text = "";
    if (msg.type == MSG_PERSIST)
        msg.u.persist.commit = COMMIT_FIRST_OF(msg.round);
    if (msg.type == MSG_STORE)
        msg.u.store = (struct msg_store){ .number = 1 + fuzz_byte(in),
                                          .channel = fuzz_byte(in) % LIMIT_STORE_CALLS,
                                          .key = "k" };
    if (msg.type == MSG_REMARK)
        msg.u.remark.text = "";
    if (msg.type == MSG_STALLED)
        msg.u.stalled =
            (struct msg_stalled){ .waited_us = fuzz_byte(in) * TIME_S, .operation = "allreduce" };
    if (msg.type == MSG_HELLO_WORKER)
        msg.u.hello_worker = (struct msg_hello_worker){ PROTO_MINOR, "1", msg.incarnation };
    if (msg.type == MSG_NEXT_CHECK)
        msg.u.next_check.next = msg.round + 1;
    if (msg.type == MSG_RECOVERING)
        msg.u.recovering.text = "";
    if (msg.type == MSG_FINISHED)
        msg.u.finished.text = "";
    if (msg.type == MSG_PREPARED)
        msg.u.prepared.text = "";
    return msg;
}

/* The result of a HOLD or SAVE of any attempt. */
static void checkpoint_result(struct fuzz_input *in)
{
    struct msg msg = { .type = fuzz_byte(in) % 2 ? MSG_HOLDING : MSG_SAVED, .round = 1 };
    uint64_t number = fuzz_byte(in) % 5;

    if (msg.type == MSG_HOLDING)
        msg.u.holding = (struct msg_holding){ .number = number, .text = "" };
    else
        msg.u.saved = (struct msg_saved){ .number = number, .name = "part", .text = "" };
    step((struct agent_event){ .kind = AGENT_CHECKPOINT_RESULT, .msg = &msg });
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

static void one_event(struct fuzz_input *in)
{
    uint8_t kind = fuzz_byte(in);
    uint64_t incarnation = 1 + fuzz_byte(in) % INCARNATIONS;
    uint32_t connection = connections[kind / 16 % CONNECTIONS];
    struct msg msg;

    switch (kind % 14) {
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
    case 12: checkpoint_result(in); break;
    default:
        script.now_us += fuzz_byte(in) * (TIME_S / 4);
        step((struct agent_event){ .kind = AGENT_TIMER });
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };

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
    if (!over) {
        /* Tells the agent to stop and ends all processes; the core must then be done. */
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
    script_release(&script);
    return 0;
}
