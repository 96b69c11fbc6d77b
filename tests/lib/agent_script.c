/*
 * agent_script.c: an agent's core in a test: feeds it messages, ends and time, and shows what it
 * does as lines of text that a case compares.
 */
#include "tests/lib/agent_script.h"

#include "proto/catalog.h"
#include "proto/codec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DESCRIBED_MAX 512

PRINTF_LIKE(2, 3) static void add(struct script *script, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(script->lines + script->length, sizeof(script->lines) - script->length,
                       format, args);
    va_end(args);
    if (length > 0)
        script->length += (size_t)length;
    ASSERT(script->length < sizeof(script->lines));
}

int64_t script_redial_first_us = SCRIPT_REDIAL_S * TIME_S;

int script_init(struct script *script)
{
    struct agent_config config = {
        .job = "job",
        .host = "host",
        .agent = 77,
        .cores = 8,
        .memory_bytes = 1024,
        .min_np = 1,
        .max_np = 9,
        .beat_us = SCRIPT_BEAT_S * TIME_S,
        .lease_us = SCRIPT_LEASE_S * TIME_S,
        .driver_grace_us = SCRIPT_GRACE_S * TIME_S,
        .redial_first_us = script_redial_first_us,
        .redial_us = SCRIPT_REDIAL_S * TIME_S,
        .kill_grace_us = SCRIPT_KILL_GRACE_S * TIME_S,
        .stall_warning_us = 30 * TIME_S,
        .stall_shutdown_us = TIME_NEVER,
    };
    int rc;

    *script = (struct script){ .length = 0 };
    agent_action_list_init(&script->list);
    rc = trace_init(&script->trace, "agent", 32);
    if (rc)
        return rc;
    script->agent = agent_create(&config, &script->trace);
    return script->agent ? 0 : HVD_E_NOMEM;
}

void script_release(struct script *script)
{
    agent_free(script->agent);
    agent_action_list_release(&script->list);
    trace_release(&script->trace);
    *script = (struct script){ .length = 0 };
}

void script_at(struct script *script, double seconds)
{
    script->now_us = (int64_t)(seconds * (double)TIME_S);
}

/* Adds a message as a line, and for HELLO_AGENT a line for each reported slot. */
static void add_msg(struct script *script, const struct msg *msg)
{
    char text[DESCRIBED_MAX];

    add(script, "%s\n", msg_describe(msg, text, sizeof(text)));
    if (msg->type == MSG_HELLO_AGENT) {
        static const char *const phases[PHASE_COUNT] = { "started",  "joining",    "ready",
                                                         "active",   "recovering", "left",
                                                         "finished", "ended" };

        for (size_t i = 0; i < msg->u.hello_agent.slots.count; i++) {
            const struct msg_slot_report *slot = &msg->u.hello_agent.slots.items[i];

            add(script, "  %" PRIu64 " slot %u pid %" PRIu64 " %s round %" PRIu64,
                slot->incarnation, slot->slot, slot->pid, phases[slot->phase], slot->round);
            if (slot->ended)
                add(script, " ended %u value %d witness %u ran %" PRId64, slot->ended, slot->value,
                    slot->witness, slot->ran_us / TIME_S);
            add(script, "\n");
        }
        for (size_t i = 0; i < msg->u.hello_agent.addresses.count; i++)
            add(script, "  serves %s\n", msg->u.hello_agent.addresses.items[i]);
    }
}

const char *script_step(struct script *script, const struct agent_event *event)
{
    struct agent_event timed = *event;
    int rc;

    timed.now_us = script->now_us;
    script->length = 0;
    script->lines[0] = '\0';
    agent_action_list_clear(&script->list);
    rc = agent_step(script->agent, &timed, &script->list);
    if (rc)
        add(script, "%s", err_name(rc));
    for (size_t i = 0; i < script->list.count; i++) {
        const struct agent_action *action = &script->list.items[i];

        switch (action->kind) {
        case AGENT_DO_DIAL: add(script, "dial\n"); break;
        case AGENT_DO_HANG_UP: add(script, "hang up: %s\n", action->text); break;
        case AGENT_DO_SEND_DRIVER:
            add(script, "driver: ");
            add_msg(script, action->msg);
            break;
        case AGENT_DO_SEND_WORKER:
            add(script, "worker %u: ", action->worker);
            add_msg(script, action->msg);
            break;
        case AGENT_DO_DROP: add(script, "drop %u: %s\n", action->worker, action->text); break;
        case AGENT_DO_SPAWN:
            ASSERT(action->msg->type == MSG_LAUNCH);
            add(script, "spawn %" PRIu64 "\n", action->incarnation);
            break;
        case AGENT_DO_TAKE_KEY:
            add(script, "take key %" PRIu64 "\n", action->msg->u.rekey.epoch);
            break;
        case AGENT_DO_HOLD: add(script, "hold %" PRIu64 "\n", action->msg->u.hold.number); break;
        case AGENT_DO_SAVE:
            add(script, "save %" PRIu64 " %s\n", action->msg->u.save.number,
                action->msg->u.save.name);
            break;
        case AGENT_DO_RELEASE:
            add(script, "release %" PRIu64 "\n", action->msg->u.release.number);
            break;
        case AGENT_DO_TERM: add(script, "term %" PRIu64 "\n", action->incarnation); break;
        case AGENT_DO_KILL: add(script, "kill %" PRIu64 "\n", action->incarnation); break;
        case AGENT_DO_EXIT: add(script, "exit %d: %s\n", action->code, action->text); break;
        case AGENT_DO_COUNT: PANIC("not an action");
        }
    }
    return script->lines;
}

const char *script_start(struct script *script)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_START });
}

const char *script_timer(struct script *script)
{
    int64_t deadline_us = agent_deadline(script->agent);

    if (deadline_us != TIME_NEVER && deadline_us > script->now_us)
        script->now_us = deadline_us;
    return script_step(script, &(struct agent_event){ .kind = AGENT_TIMER });
}

const char *script_up(struct script *script)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_DRIVER_UP });
}

const char *script_down(struct script *script)
{
    return script_step(script,
                       &(struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = "reset by peer" });
}

const char *script_driver(struct script *script, const struct msg *msg)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_DRIVER_MSG, .msg = msg });
}

const char *script_worker(struct script *script, uint32_t worker, const struct msg *msg)
{
    return script_step(
        script, &(struct agent_event){ .kind = AGENT_WORKER_MSG, .worker = worker, .msg = msg });
}

const char *script_gone(struct script *script, uint32_t worker)
{
    return script_step(script,
                       &(struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = worker });
}

const char *script_spawned(struct script *script, uint64_t incarnation, uint64_t pid)
{
    return script_step(script, &(struct agent_event){
                                   .kind = AGENT_SPAWNED, .incarnation = incarnation, .pid = pid });
}

const char *script_spawn_failed(struct script *script, uint64_t incarnation, int code,
                                const char *text)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_SPAWN_FAILED,
                                                      .incarnation = incarnation,
                                                      .code = code,
                                                      .text = text });
}

const char *script_ended(struct script *script, uint64_t incarnation, uint32_t ended, int32_t value,
                         uint32_t witness)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_ENDED,
                                                      .incarnation = incarnation,
                                                      .ended = ended,
                                                      .value = value,
                                                      .witness = witness });
}

const char *script_output(struct script *script, uint64_t incarnation, uint32_t stream,
                          const char *text, size_t length)
{
    return script_step(script, &(struct agent_event){
                                   .kind = AGENT_OUTPUT,
                                   .incarnation = incarnation,
                                   .stream = stream,
                                   .data = {(const uint8_t *)text, length}
    });
}

const char *script_notice(struct script *script, int64_t left_us, const char *text)
{
    return script_step(
        script, &(struct agent_event){ .kind = AGENT_NOTICE, .left_us = left_us, .text = text });
}

const char *script_moved(struct script *script, const char *text)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_DRIVER_MOVED, .text = text });
}

const char *script_stop(struct script *script, const char *text)
{
    return script_step(script, &(struct agent_event){ .kind = AGENT_STOP, .text = text });
}

struct msg script_welcome(uint64_t term)
{
    return (struct msg){ .type = MSG_WELCOME_AGENT,
                         .term = term,
                         .u.welcome_agent = { .minor = PROTO_MINOR } };
}

struct msg script_launch(uint64_t incarnation, uint32_t slot)
{
    return (struct msg){
        .type = MSG_LAUNCH,
        .term = 1,
        .incarnation = incarnation,
        .u.launch = {.slot = slot, .cwd = "/", .rank = slot, .size = 4}
    };
}

struct msg script_hello(uint64_t incarnation, uint64_t pid)
{
    return (struct msg){
        .type = MSG_HELLO_WORKER,
        .incarnation = incarnation,
        .u.hello_worker = {.version = "0.1.0", .pid = pid}
    };
}

/* true: the last step succeeded. */
static int result(const struct script *script)
{
    return script->list.failed ? HVD_E_NOMEM : 0;
}

int script_serve(struct script *script)
{
    struct msg welcome = script_welcome(1);

    script_start(script);
    if (!result(script))
        script_up(script);
    if (!result(script))
        script_driver(script, &welcome);
    return result(script);
}

int script_run(struct script *script, uint64_t incarnation, uint32_t slot)
{
    struct msg launch = script_launch(incarnation, slot);

    script_driver(script, &launch);
    if (!result(script))
        script_spawned(script, incarnation, 100 + incarnation);
    return result(script);
}

int script_join(struct script *script, uint64_t incarnation, uint32_t slot, uint32_t worker)
{
    struct msg hello = script_hello(incarnation, 100 + incarnation);
    int rc = script_run(script, incarnation, slot);

    if (!rc)
        script_worker(script, worker, &hello);
    return rc ? rc : result(script);
}

int script_lose(struct script *script)
{
    script_down(script);
    return result(script);
}

const char *script_return(struct script *script, uint64_t term)
{
    struct msg welcome = script_welcome(term);

    script->now_us += SCRIPT_REDIAL_S * TIME_S;
    script_step(script, &(struct agent_event){ .kind = AGENT_TIMER });
    if (!result(script))
        script_up(script);
    return result(script) ? script->lines : script_driver(script, &welcome);
}
