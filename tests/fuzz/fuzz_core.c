/*
 * fuzz_core.c: a driver's core among agents that lie. The first bytes are the config, the others
 * choose one event after the other: discoveries, hellos, any message that the codec lets through,
 * closed connections, time, operators, and a new driver out of the journal.
 *
 * No assert fails, each action can be sent, and the journal can always be read back. In the end
 * everybody behaves, and the job has to run or to end.
 */
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "proto/commit.h"
#include "tests/lib/core_tape.h"

#include <stdio.h>
#include <string.h>

#define HOSTS       4
#define SLOTS       4
#define EVENTS_MAX  200
#define REPORTS_MAX 4
#define ROUNDS_MAX  200 /* of everybody doing what is expected */
#define HELD_MAX    (LIMIT_COMMITS_HELD)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

static struct core_tape tape;
static struct core_view view;
static const char *const names[HOSTS] = { "a", "b", "c", "d" };
static const char *const addresses[LIMIT_ADDRESSES] = { "1", "2", "3", "4", "5", "6", "7", "8",
                                                        "9", "a", "b", "c", "d", "e", "f", "g" };

static uint8_t take_byte(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->at++;
}

static void must(int rc)
{
    if (rc)
        PANIC("%s", err_name(rc));
}

static void look(void)
{
    core_view_release(&view);
    core_view_init(&view);
    must(core_view(tape.core, &view));
}

/* Numbers that are likely to mean something, or to overflow. */
static uint64_t take_number(struct input *in, uint64_t likely)
{
    uint8_t byte = take_byte(in);

    switch (byte >> 5) {
    case 0:
    case 1:
    case 2: return likely;
    case 3: return likely + 1;
    case 4: return likely - 1;
    case 5: return UINT64_MAX - (byte & 1);
    default: return byte & 31;
    }
}

static int64_t take_span(struct input *in)
{
    static const int64_t spans[] = { 0,        1,        TIME_S,     10 * TIME_S,
                                     TIME_MIN, TIME_DAY, TIME_NEVER, LIMIT_DURATION_US };

    return spans[take_byte(in) % ARRAY_SIZE(spans)];
}

static void take_config(struct input *in)
{

    uint8_t bits = take_byte(in);
    uint8_t counts = take_byte(in);
    struct core_config *config = &tape.config;

    config->min_np = 1 + counts % 4;
    config->np = config->min_np + (counts >> 2) % 4;
    config->max_np = config->np + (counts >> 4) % 4;
    config->reset_limit = bits & 1 ? 3 : CORE_NO_RESET_LIMIT;
    config->gather_us = bits & 2 ? 0 : 3 * TIME_S;
    config->kill_grace_us = bits & 4 ? 0 : LIMIT_DURATION_US;
    config->elastic_timeout_us = bits & 8 ? 1 : 10 * TIME_MIN;
    config->stall_us = bits & 16 ? LIMIT_DURATION_US : 10 * TIME_MIN;
    config->beat_us = TIME_MIN;
    config->lease_us = 2 * TIME_MIN;
    config->discovery_us = TIME_MIN;
    config->blacklist.scope = bits & 32 ? SCOPE_HOST : SCOPE_SLOT;
    config->blacklist.forever = (bits & 64) != 0;
    must(tape_core(&tape));
}

static void step(struct event event)
{
    if (tape.over)
        return;
    buf_clear(&tape.did);
    must(tape_step(&tape, &event));
    arena_release(&tape.memory);
}

static struct tape_host *take_host(struct input *in)
{
    return tape_host(&tape, names[take_byte(in) % HOSTS]);
}

static void list_hosts(struct input *in)
{
    size_t used = 0;

    tape.listing[0] = '\0';
    for (size_t i = 0; i < HOSTS; i++) {
        uint8_t byte = take_byte(in);

        if (byte & 1)
            used += (size_t)snprintf(tape.listing + used, sizeof(tape.listing) - used, "%s%s:%d",
                                     used ? "," : "", names[i], (byte >> 1) % (SLOTS + 1));
    }
    if (!*tape.listing)
        snprintf(tape.listing, sizeof(tape.listing), "e:0");
}

/* No message arrives that the codec would have refused. */
static bool can_arrive(const struct msg *msg)
{
    struct hvd_err err;
    struct buf wire;
    int rc;

    buf_init(&wire, LIMIT_FRAME_BODY_BYTES);
    rc = msg_encode(msg, &wire, &err);
    buf_release(&wire);
    return !rc;
}

static void say_hello(struct tape_host *host, struct msg *msg)
{
    if (tape.over || !can_arrive(msg))
        return;
    buf_clear(&tape.did);
    must(tape_hello(&tape, host, msg));
}

static void take_hello(struct input *in)
{
    struct msg_slot_report reports[REPORTS_MAX];
    struct msg_kept kept[1];
    struct tape_host *host = take_host(in);
    uint8_t bits = take_byte(in);
    struct msg msg = { .type = MSG_HELLO_AGENT, .term = bits & 128 ? take_byte(in) : 0 };

    for (size_t i = 0; i < REPORTS_MAX; i++)
        reports[i] = (struct msg_slot_report){ .incarnation = take_number(in, i + 1),
                                               .slot = (uint32_t)take_number(in, i) % 1024,
                                               .ended = take_byte(in) % ENDED_COUNT };
    kept[0] = (struct msg_kept){ take_byte(in) % SLOTS, take_number(in, COMMIT_FIRST_OF(1)) };
    msg.u.hello_agent = (struct msg_hello_agent){
        .version = "1",
        .job = "j",
        .host = host->name,
        .agent = 1 + (bits & 3),
        .slots = {reports, (size_t)(bits >> 2) % (REPORTS_MAX + 1)},
        .kept = { kept,   (bits >> 6) & 1                        }
    };
    say_hello(host, &msg);
}

static struct msg_held_list take_held(struct input *in, struct msg_held held[HELD_MAX])
{
    size_t count = take_byte(in) % (HELD_MAX + 1);

    for (size_t i = 0; i < count; i++)
        held[i] = (struct msg_held){ take_number(in, view.commit), take_byte(in) };
    return (struct msg_held_list){ held, count };
}

static void fill_body(struct input *in, struct msg *msg)
{
    static struct msg_held held[HELD_MAX];
    static uint64_t missing[1];

    switch (msg->type) {
    case MSG_READY:
        msg->u.ready.manifest = 5 + take_byte(in) / 250;
        msg->u.ready.addresses = (struct msg_texts){ addresses, take_byte(in) % 17 };
        msg->u.ready.held = take_held(in, held);
        break;
    case MSG_RECOVERING:
        /* The code takes nothing of the input: what is in the corpus means the same as before. */
        msg->u.recovering = (struct msg_recovering){ .held = take_held(in, held),
                                                     .text = "no",
                                                     .code = -(int32_t)(msg->round % 20) };
        break;
    case MSG_PREPARED: msg->u.prepared = (struct msg_prepared){ take_byte(in) / 200, "no" }; break;
    case MSG_FINISHED: msg->u.finished = (struct msg_finished){ take_byte(in) / 200, "no" }; break;
    case MSG_AT:
        msg->u.at.next = take_number(in, view.next);
        msg->u.at.check = take_number(in, 7);
        break;
    case MSG_LAUNCH_FAILED:
        msg->u.launch_failed.code = -(take_byte(in) % 20);
        msg->u.launch_failed.text = "no";
        break;
    case MSG_EXITED:
        msg->u.exited.ended = take_byte(in) % ENDED_COUNT;
        msg->u.exited.value = take_byte(in) % 3;
        msg->u.exited.commit = take_number(in, view.commit);
        break;
    case MSG_NOTICE: msg->u.notice = (struct msg_notice){ take_span(in), "x" }; break;
    case MSG_BEAT: msg->u.beat.sequence = take_number(in, 7); break;
    case MSG_STALLED:
        missing[0] = take_number(in, 1);
        msg->u.stalled = (struct msg_stalled){
            .waited_us = take_span(in), .operation = "x", .missing = {missing, 1}
        };
        break;
    default: break;
    }
}

static void say(struct tape_host *host, struct msg *msg)
{
    if (tape.over || !host->peer || !can_arrive(msg))
        return;
    buf_clear(&tape.did);
    must(tape_msg(&tape, host, msg));
}

static void take_msg(struct input *in)
{
    static const enum msg_type types[] = {
        MSG_READY,  MSG_RECOVERING, MSG_PREPARED, MSG_FINISHED,   MSG_AT,       MSG_LAUNCH_FAILED,
        MSG_EXITED, MSG_NOTICE,     MSG_BEAT,     MSG_STALLED,    MSG_LAUNCHED, MSG_ENTERED,
        MSG_LEFT,   MSG_OUTPUT,     MSG_BYE,      MSG_HELLO_AGENT
    };
    uint8_t type = take_byte(in);
    /* Not in the table: what is in the corpus means the same as before. */
    struct msg msg = { .type = type == UINT8_MAX       ? MSG_USELESS
                               : type == UINT8_MAX - 1 ? MSG_REMARK
                                                       : types[type % ARRAY_SIZE(types)] };
    struct tape_host *host = take_host(in);

    look();
    msg.incarnation = take_number(in, 1 + take_byte(in) % 16);
    msg.round = take_number(in, msg.type == MSG_PREPARED ? view.next : view.round);
    if (msg.type == MSG_BYE)
        msg.u.bye.reason = "";
    if (msg.type == MSG_USELESS)
        msg.u.useless.text = "no";
    if (msg.type == MSG_REMARK)
        msg.u.remark.text = "so";
    if (msg.type == MSG_HELLO_AGENT)
        msg.u.hello_agent = (struct msg_hello_agent){ .version = "", .job = "j", .host = "a" };
    fill_body(in, &msg);
    say(host, &msg);
}

static void close_host(struct tape_host *host)
{
    uint32_t peer = host->peer;

    if (!peer || tape.over)
        return;
    host->peer = 0;
    tape.by_peer[peer] = NULL;
    step((struct event){ .kind = EVENT_CLOSED, .peer = peer, .text = "reset" });
}

static void restart(bool twice)
{
    must(tape_kill(&tape, 0, twice));
    step((struct event){ .kind = EVENT_START });
}

static void take_operator(struct input *in)
{
    struct event event = { .host = take_host(in)->name, .text = "x" };
    uint8_t byte = take_byte(in);

    event.slot = byte & 128 ? EVENT_WHOLE_HOST : (byte >> 3) & 7;
    switch (byte & 7) {
    case 0: event.kind = EVENT_AGENT_FAILED; break;
    case 1: event.kind = byte & 64 ? EVENT_UNDRAIN : EVENT_CLEAR; break;
    case 2:
        event.kind = EVENT_HOSTS_FAILED;
        tape.asked = false;
        break;
    case 3: event.kind = take_byte(in) > 250 ? EVENT_STOP : EVENT_TIMER; break;
    default:
        event.kind = EVENT_DRAIN;
        event.left_us = take_span(in);
        break;
    }
    step(event);
}

static void wait_for(int64_t us)
{
    buf_clear(&tape.did);
    if (!tape.over)
        must(tape_wait(&tape, us));
}

static void jump(struct input *in)
{
    static const int64_t jumps[] = { TIME_S, TIME_MIN, 3 * TIME_MIN, TIME_HOUR };

    tape.now_us += jumps[take_byte(in) % ARRAY_SIZE(jumps)];
    step((struct event){ .kind = EVENT_TIMER });
}

/* What everybody would say who behaves. */
static void tell_state(struct tape_host *host, const struct view_worker *worker)
{
    static const enum msg_type types[WORKER_STATE_COUNT] = {
        [WORKER_LAUNCHING] = MSG_LAUNCHED, [WORKER_BOOTING] = MSG_READY,
        [WORKER_READY] = MSG_PREPARED,     [WORKER_MEMBER] = MSG_ENTERED,
        [WORKER_REVOKED] = MSG_RECOVERING, [WORKER_RECOVERED] = MSG_RECOVERING,
        [WORKER_LEAVING] = MSG_EXITED,     [WORKER_FINISHED] = MSG_EXITED,
        [WORKER_DOOMED] = MSG_EXITED,      [WORKER_ENDED] = MSG_BEAT,
    };
    struct msg_held held = { view.commit, 7 };
    struct msg msg = { .type = types[worker->state],
                       .incarnation = worker->incarnation,
                       .round = view.round };

    if (msg.type == MSG_ENTERED && worker->entered)
        msg.type = view.job == JOB_PENDING ? MSG_AT : MSG_PREPARED;
    if (view.job >= JOB_FINISHING)
        msg.type = worker->state == WORKER_MEMBER ? MSG_FINISHED : MSG_EXITED;
    if (msg.type == MSG_PREPARED) {
        msg.round = view.next;
        msg.u.prepared.text = "";
    } else if (msg.type == MSG_FINISHED) {
        msg.u.finished.text = "";
    } else if (msg.type == MSG_AT) {
        msg.u.at = (struct msg_at){ .next = view.next, .check = 7 };
    } else if (msg.type == MSG_READY) {
        msg.u.ready.manifest = 5;
        msg.u.ready.held = (struct msg_held_list){ &held, view.commit != 0 };
    } else if (msg.type == MSG_RECOVERING) {
        msg.u.recovering.text = "";
        msg.u.recovering.held = (struct msg_held_list){ &held, view.commit != 0 };
    } else if (msg.type == MSG_EXITED) {
        msg.u.exited.ended = worker->state == WORKER_DOOMED ? ENDED_SIGNAL : ENDED_EXIT;
    }
    say(host, &msg);
}

/* It says of each worker that it has it. */
static void come_back(const struct view_host *seen)
{
    struct tape_host *host = tape_host(&tape, seen->name);
    struct msg_slot_report *reports =
        arena_alloc_array(&tape.memory, seen->worker_count + 1, sizeof(*reports));
    struct msg msg = { .type = MSG_HELLO_AGENT };

    if (host->peer || seen->agent == AGENT_NONE || !reports)
        return;
    for (size_t i = 0; i < seen->worker_count; i++)
        reports[i] = (struct msg_slot_report){ .incarnation = seen->workers[i].incarnation,
                                               .slot = seen->workers[i].slot };
    msg.u.hello_agent = (struct msg_hello_agent){
        .version = "1",
        .job = "j",
        .host = host->name,
        .agent = 1,
        .slots = {reports, seen->worker_count}
    };
    say_hello(host, &msg);
}

static void everybody_behaves(void)
{
    if (tape.over)
        return;
    look();
    for (size_t i = 0; i < view.host_count; i++)
        come_back(&view.hosts[i]);
    for (size_t i = 0; i < view.host_count; i++)
        for (size_t k = 0; k < view.hosts[i].worker_count; k++)
            tell_state(tape_host(&tape, view.hosts[i].name), &view.hosts[i].workers[k]);
    for (size_t i = 0; i < HOSTS && view.job == JOB_STOPPING; i++)
        close_host(tape_host(&tape, names[i]));
    arena_release(&tape.memory);
}

static bool trains(const struct view_worker *worker)
{
    return worker->entered && worker->rank < view.member_count &&
           view.members[worker->rank] == worker->incarnation;
}

static bool all_train(void)
{
    size_t training = 0;

    look();
    for (size_t i = 0; i < view.host_count; i++)
        for (size_t k = 0; k < view.hosts[i].worker_count; k++)
            training += trains(&view.hosts[i].workers[k]);
    return view.job == JOB_RUNNING && training == view.member_count;
}

static void ends_or_runs(void)
{
    for (int i = 0; i < ROUNDS_MAX && !tape.over; i++) {
        everybody_behaves();
        if (!tape.over && all_train())
            return;
        wait_for(TIME_MIN);
    }
    if (tape.over)
        return;
    look();
    PANIC("the job is %s for ever: %s", job_state_name(view.job), view.waiting_for);
}

static void take_event(struct input *in)
{
    uint8_t byte = take_byte(in);

    switch (byte % 16) {
    case 0: list_hosts(in); break;
    case 1:
    case 2: take_hello(in); break;
    case 3: close_host(take_host(in)); break;
    case 4: take_operator(in); break;
    case 5: restart(byte & 128); break;
    case 6: jump(in); break;
    case 7: wait_for(take_byte(in) * TIME_S); break;
    case 8:
    case 9: everybody_behaves(); break;
    default: take_msg(in); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, size };

    must(tape_init(&tape));
    core_view_init(&view);
    take_config(&in);
    list_hosts(&in);
    step((struct event){ .kind = EVENT_START });
    wait_for(0);
    for (int i = 0; i < EVENTS_MAX && in.left && !tape.over; i++)
        take_event(&in);
    ends_or_runs();
    core_view_release(&view);
    tape_release(&tape);
    return 0;
}
