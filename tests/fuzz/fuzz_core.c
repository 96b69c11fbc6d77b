/*
 * fuzz_core.c: a driver's core among agents that lie. The first bytes are the config; the others
 * choose one event after the other: discovery results, HELLOs, any message that the codec accepts,
 * closed connections, time, operators, and a new driver from the journal.
 *
 * No assert may fail, each action must be encodable, and the journal must always be readable. In
 * the end all processes behave well, and the job must run or end.
 */
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "proto/commit.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/fuzz_input.h"

#include <stdio.h>
#include <string.h>

#define HOSTS       4
#define SLOTS       4
#define EVENTS_MAX  200
#define REPORTS_MAX 4
#define ROUNDS_MAX  200 /* iterations in which all processes behave well */
#define HELD_MAX    (LIMIT_COMMITS_HELD)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct core_tape tape;
static struct core_view view;
static const char *const names[HOSTS] = { "a", "b", "c", "d" };
static const char *const addresses[LIMIT_ADDRESSES] = { "1", "2", "3", "4", "5", "6", "7", "8",
                                                        "9", "a", "b", "c", "d", "e", "f", "g" };

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

/* A number that is likely to be valid, or to overflow. */
static uint64_t take_number(struct fuzz_input *in, uint64_t likely)
{
    uint8_t byte = fuzz_byte(in);

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

static int64_t take_span(struct fuzz_input *in)
{
    static const int64_t spans[] = { 0,        1,        TIME_S,     10 * TIME_S,
                                     TIME_MIN, TIME_DAY, TIME_NEVER, LIMIT_DURATION_US };

    return spans[fuzz_byte(in) % ARRAY_SIZE(spans)];
}

static void take_config(struct fuzz_input *in)
{

    uint8_t bits = fuzz_byte(in);
    uint8_t counts = fuzz_byte(in);
    struct core_config *config = &tape.config;

    config->min_np = 1 + counts % 4;
    config->np = config->min_np + (counts >> 2) % 4;
    config->max_np = config->np + (counts >> 4) % 4;
    config->join = (enum core_join)((counts >> 6) % 3);
    config->reset_limit = bits & 1 ? 3 : CORE_NO_RESET_LIMIT;
    config->gather_us = bits & 2 ? 0 : 3 * TIME_S;
    config->kill_grace_us = bits & 4 ? 0 : LIMIT_DURATION_US;
    config->elastic_timeout_us = bits & 8 ? 1 : 10 * TIME_MIN;
    config->stall_us = bits & 16 ? LIMIT_DURATION_US : 10 * TIME_MIN;
    config->beat_us = TIME_MIN;
    config->lease_us = 2 * TIME_MIN;
    config->discovery.pause_us = TIME_MIN;
    config->blacklist.scope = bits & 32 ? SCOPE_HOST : SCOPE_SLOT;
    config->blacklist.forever = (bits & 64) != 0;
    config->checkpoint_dir = bits & 128 ? "/c" : NULL;
    config->checkpoint_us = TIME_S;
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

static struct tape_host *take_host(struct fuzz_input *in)
{
    return tape_host(&tape, names[fuzz_byte(in) % HOSTS]);
}

static void list_hosts(struct fuzz_input *in)
{
    size_t used = 0;

    tape.listing[0] = '\0';
    for (size_t i = 0; i < HOSTS; i++) {
        uint8_t byte = fuzz_byte(in);

        if (byte & 1)
            used += (size_t)snprintf(tape.listing + used, sizeof(tape.listing) - used, "%s%s:%d",
                                     used ? "," : "", names[i], (byte >> 1) % (SLOTS + 1));
    }
    if (!*tape.listing)
        snprintf(tape.listing, sizeof(tape.listing), "e:0");
}

/* false: the codec would have refused this message, so it cannot arrive. */
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

static void take_hello(struct fuzz_input *in)
{
    struct msg_slot_report reports[REPORTS_MAX];
    struct msg_kept kept[1];
    struct tape_host *host = take_host(in);
    uint8_t bits = fuzz_byte(in);
    struct msg msg = { .type = MSG_HELLO_AGENT, .term = bits & 128 ? fuzz_byte(in) : 0 };

    for (size_t i = 0; i < REPORTS_MAX; i++)
        reports[i] = (struct msg_slot_report){ .incarnation = take_number(in, i + 1),
                                               .slot = (uint32_t)take_number(in, i) % 1024,
                                               .ended = fuzz_byte(in) % ENDED_COUNT };
    kept[0] = (struct msg_kept){ fuzz_byte(in) % SLOTS, take_number(in, COMMIT_FIRST_OF(1)) };
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

static struct msg_held_list take_held(struct fuzz_input *in, struct msg_held held[HELD_MAX])
{
    size_t count = fuzz_byte(in) % (HELD_MAX + 1);

    for (size_t i = 0; i < count; i++)
        held[i] = (struct msg_held){ take_number(in, view.commit), fuzz_byte(in) };
    return (struct msg_held_list){ held, count };
}

/* The report takes no byte of the input, so that old inputs keep their meaning. */
static void fill_beat(struct fuzz_input *in, struct msg_beat *beat)
{
    static struct msg_pulse pulses[1];
    static struct msg_reported reports[1];

    beat->sequence = take_number(in, 7);
    pulses[0] = (struct msg_pulse){ take_number(in, 3), take_number(in, view.commit), take_span(in),
                                    take_span(in) };
    beat->pulses = (struct msg_pulse_list){ pulses, 1 };
    reports[0] = (struct msg_reported){ .incarnation = pulses[0].incarnation,
                                        .name = pulses[0].commit % 2 ? "loss" : "acc",
                                        .bits = pulses[0].commit,
                                        .said = beat->sequence,
                                        .round = pulses[0].incarnation,
                                        .commit = pulses[0].commit,
                                        .age_us = pulses[0].silent_us };
    beat->reports = (struct msg_reported_list){ reports, 1 };
}

static void fill_body(struct fuzz_input *in, struct msg *msg)
{
    static struct msg_held held[HELD_MAX];
    static uint64_t missing[1];
    static struct msg_kept kept[1];

    switch (msg->type) {
    case MSG_READY:
        msg->u.ready.manifest = 5 + fuzz_byte(in) / 250;
        msg->u.ready.addresses = (struct msg_texts){ addresses, fuzz_byte(in) % 17 };
        msg->u.ready.held = take_held(in, held);
        break;
    case MSG_RECOVERING:
        /* the code takes no byte of the input, so that old inputs keep their meaning */
        msg->u.recovering = (struct msg_recovering){ .held = take_held(in, held),
                                                     .text = "no",
                                                     .code = -(int32_t)(msg->round % 20) };
        break;
    case MSG_PREPARED: msg->u.prepared = (struct msg_prepared){ fuzz_byte(in) / 200, "no" }; break;
    case MSG_FINISHED: msg->u.finished = (struct msg_finished){ fuzz_byte(in) / 200, "no" }; break;
    case MSG_NEXT_CHECK:
        msg->u.next_check.next = take_number(in, view.next);
        msg->u.next_check.check = take_number(in, 7);
        break;
    case MSG_LAUNCH_FAILED:
        msg->u.launch_failed.code = -(fuzz_byte(in) % 20);
        msg->u.launch_failed.text = "no";
        break;
    case MSG_EXITED:
        msg->u.exited.ended = fuzz_byte(in) % ENDED_COUNT;
        msg->u.exited.value = fuzz_byte(in) % 3;
        msg->u.exited.commit = take_number(in, view.commit);
        break;
    case MSG_NOTICE: msg->u.notice = (struct msg_notice){ take_span(in), "x" }; break;
    case MSG_REKEYED: msg->u.rekeyed.epoch = take_number(in, 3); break;
    case MSG_BEAT: fill_beat(in, &msg->u.beat); break;
    case MSG_STALLED:
        missing[0] = take_number(in, 1);
        msg->u.stalled = (struct msg_stalled){
            .waited_us = take_span(in), .operation = "x", .missing = {missing, 1}
        };
        break;
    case MSG_HOLDING: /* the number of an attempt is the driver's term, and a count */
        kept[0] = (struct msg_kept){ fuzz_byte(in) % 3, take_number(in, view.commit) };
        msg->u.holding = (struct msg_holding){
            .number = UINT64_C(1) << 32 | take_number(in, 1),
            .code = -(fuzz_byte(in) % 20),
            .text = "no",
            .kept = {kept, 1}
        };
        break;
    case MSG_SAVED:
        msg->u.saved = (struct msg_saved){
            .number = UINT64_C(1) << 32 | take_number(in, 1),
            .name = "part",
            .code = -(fuzz_byte(in) % 20),
            .text = "no",
            .bytes = fuzz_byte(in),
            .sums = {(const uint8_t *)"checksum", 8}
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

static void take_msg(struct fuzz_input *in)
{
    static const enum msg_type types[] = {
        MSG_READY,         MSG_RECOVERING, MSG_PREPARED, MSG_FINISHED, MSG_NEXT_CHECK,
        MSG_LAUNCH_FAILED, MSG_EXITED,     MSG_NOTICE,   MSG_BEAT,     MSG_STALLED,
        MSG_LAUNCHED,      MSG_ENTERED,    MSG_LEFT,     MSG_OUTPUT,   MSG_BYE,
        MSG_HELLO_AGENT,   MSG_UNUSABLE,   MSG_REMARK,   MSG_REKEYED,  MSG_PERSIST,
        MSG_STORE,         MSG_HOLDING,    MSG_SAVED,    MSG_AUTOPSY
    };
    struct msg msg = { .type = fuzz_type(in, types, ARRAY_SIZE(types)) };
    struct tape_host *host = take_host(in);

    look();
    msg.incarnation = take_number(in, 1 + fuzz_byte(in) % 16);
    msg.round = take_number(in, msg.type == MSG_PREPARED ? view.next : view.round);
    if (msg.type == MSG_BYE)
        msg.u.bye.reason = "";
    if (msg.type == MSG_UNUSABLE)
        msg.u.unusable.text = "no";
    if (msg.type == MSG_PERSIST)
        msg.u.persist.commit = COMMIT_FIRST_OF(msg.round) | take_number(in, 2);
    if (msg.type == MSG_STORE)
        msg.u.store = (struct msg_store){
            .number = 1 + fuzz_byte(in),
            .channel = fuzz_byte(in) % LIMIT_STORE_CALLS,
            .op = fuzz_byte(in) % STORE_OP_COUNT,
            .key = fuzz_byte(in) % 2 ? "k" : "l",
            .value = {(const uint8_t *)"17", 2},
            .absent = fuzz_byte(in) % 2
        };
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

/* The process of a host joins, or a token is made or revoked. */
static void take_join(struct fuzz_input *in, const char *host)
{
    static const char *const proved[] = { TOKEN_PEER "aaaaaaaa", TOKEN_PEER "bbbbbbbb",
                                          TOKEN_PEER "cccccccc", "a" };
    static char text[LIMIT_TOKEN_TEXT_BYTES + 1];
    uint8_t byte = fuzz_byte(in);
    struct msg msg = {
        .type = MSG_JOIN,
        .u.join = {.version = byte & 1 ? HVD_VERSION_TEXT : "0",
                   .host = host,
                   .join = (byte >> 1) & 3,
                   .slots = (byte >> 3) & 3}
    };
    struct tape_host *process;
    char name[64];

    if (byte & 128) {
        snprintf(text, sizeof(text), "%s%s", byte & 64 ? "bbbbbbbb" : "aaaaaaaa",
                 byte & 32 ? ""
                           : " 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        step((struct event){ .kind = EVENT_TOKEN,
                             .code = byte & 16 ? TOKEN_REVOKED : TOKEN_MADE,
                             .text = text,
                             .host = byte & 8 ? host : NULL,
                             .slot = byte & 3,
                             .left_us = take_span(in) });
        return;
    }
    snprintf(name, sizeof(name), "%.20s*%d", host, byte >> 6);
    process = tape_host(&tape, name);
    if (process->peer)
        close_host(process);
    if (tape.over || !can_arrive(&msg))
        return;
    tape.proved = proved[(byte >> 5) % ARRAY_SIZE(proved)];
    buf_clear(&tape.did);
    must(tape_hello(&tape, process, &msg));
    tape.proved = NULL;
    if (!(byte & 32))
        return;
    msg = (struct msg){ .type = byte & 64 ? MSG_NOT_STARTED : MSG_BYE };
    if (msg.type == MSG_BYE)
        msg.u.bye.reason = "";
    else
        msg.u.not_started.text = "no";
    say(process, &msg);
}

static void take_operator(struct fuzz_input *in)
{
    struct event event = { .host = take_host(in)->name, .text = "x" };
    uint8_t byte = fuzz_byte(in);

    event.slot = byte & 128 ? EVENT_WHOLE_HOST : (byte >> 3) & 7;
    switch (byte & 7) {
    case 4: take_join(in, event.host); return;
    case 0: event.kind = EVENT_AGENT_FAILED; break;
    case 1: event.kind = byte & 64 ? EVENT_UNDRAIN : EVENT_CLEAR; break;
    case 2:
        event.kind = EVENT_HOSTS_FAILED;
        tape.asked = false;
        break;
    case 3:
        byte = fuzz_byte(in);
        event.kind = byte > 250   ? EVENT_STOP
                     : byte > 200 ? EVENT_CROWDED
                     : byte > 150 ? EVENT_REKEY
                                  : EVENT_TIMER;
        break;
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

static void jump(struct fuzz_input *in)
{
    static const int64_t jumps[] = { TIME_S, TIME_MIN, 3 * TIME_MIN, TIME_HOUR };

    unsigned byte = fuzz_byte(in);

    if (byte & 64) /* from now on the journal cannot be written, or it can be again */
        tape.full_us = tape.full_us ? 0 : tape.now_us;
    tape.now_us += jumps[byte % ARRAY_SIZE(jumps)];
    step((struct event){ .kind = EVENT_TIMER });
}

/* Sends the message that a well-behaved worker would send now. */
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
        msg.type = view.job == JOB_PENDING ? MSG_NEXT_CHECK : MSG_PREPARED;
    if (view.job >= JOB_FINISHING)
        msg.type = worker->state == WORKER_MEMBER ? MSG_FINISHED : MSG_EXITED;
    if (msg.type == MSG_PREPARED) {
        msg.round = view.next;
        msg.u.prepared.text = "";
    } else if (msg.type == MSG_FINISHED) {
        msg.u.finished.text = "";
    } else if (msg.type == MSG_NEXT_CHECK) {
        msg.u.next_check = (struct msg_next_check){ .next = view.next, .check = 7 };
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

/* A host connects again, and reports each worker that the driver believes to be there. */
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

/* Lets every host connect again and every worker send the message that is right in its state. */
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

/* The job must end, or all its members must train, when all processes behave well. */
static void ends_or_runs(void)
{
    tape.full_us = 0; /* the disk behaves well, too */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };

    must(tape_init(&tape));
    core_view_init(&view);
    take_config(&in);
    list_hosts(&in);
    step((struct event){ .kind = EVENT_START });
    wait_for(0);
    for (int i = 0; i < EVENTS_MAX && in.left && !tape.over; i++) {
        uint8_t byte = fuzz_byte(&in);

        switch (byte % 16) {
        case 0: list_hosts(&in); break;
        case 1:
        case 2: take_hello(&in); break;
        case 3: close_host(take_host(&in)); break;
        case 4: take_operator(&in); break;
        case 5:
            tape.full_us = 0; /* the next driver has written its first record */
            must(tape_kill(&tape, 0, byte & 128));
            step((struct event){ .kind = EVENT_START });
            break;
        case 6: jump(&in); break;
        case 7: wait_for(fuzz_byte(&in) * TIME_S); break;
        case 8:
        case 9: everybody_behaves(); break;
        default: take_msg(&in); break;
        }
    }
    ends_or_runs();
    core_view_release(&view);
    tape_release(&tape);
    return 0;
}
