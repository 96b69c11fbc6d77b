/*
 * test_agent_random.c: an agent in a random world, in which each event is legal but may come at any
 * time: a driver that comes, goes, repeats its messages and is replaced; processes that end at any
 * time; workers that connect and break off. The rules are checked after every step, and a breach is
 * noted by fault.
 */
#include "proto/catalog.h"
#include "proto/codec.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/msg_random.h"
#include "tests/lib/test.h"

#include <string.h>

#define S         TIME_S
#define SLOTS     6
#define PROCESSES 4000  /* incarnations are numbered from 1 */
#define EVENTS    20000 /* events for each seed */
#define SEEDS     5

enum condition { UNBORN, SPAWNING, RUNNING, GONE, UNSPAWNED };

struct process {
    enum condition condition;
    uint32_t slot;
    /* FORGET came, or a newer incarnation: the agent must not report this process again */
    bool forgotten;
    bool killed;
    bool termed;
    uint32_t connection; /* 0: none */
    unsigned reports;    /* number of LAUNCHED, LAUNCH_FAILED and EXITED in this step */
};

static struct script s;
static struct process processes[PROCESSES + 1];
static uint64_t newest;
static uint64_t highest[SLOTS]; /* the highest incarnation that was ever spawned in the slot */
static uint32_t connections;
static enum { DOWN, DIALLED, GREETING, OPEN } link;
static uint64_t term;
static uint64_t attempt; /* the newest attempt at a checkpoint that the agent has heard of */
static bool released;    /* the driver has said RELEASE for that attempt */
static bool asked;       /* the driver has asked on this connection for that attempt */
static bool over;
static struct rng rng;
static struct buf wire;
static unsigned steps;
static const char *wrong; /* the first breach of a rule */

static void fault(const char *what)
{
    if (!wrong)
        wrong = what;
}

static uint64_t any(uint64_t bound)
{
    return rng_below(&rng, bound);
}

static bool is_alive(const struct process *process)
{
    return process->condition == SPAWNING || process->condition == RUNNING;
}

/* Returns the last worker of a random slot, or one of the newest incarnations; 0: there is none. */
static uint64_t any_worker(void)
{
    uint64_t back = any(2 * SLOTS);

    if (any(4))
        return highest[any(SLOTS)];
    return newest > back ? newest - back : newest;
}

/* ---- the actions of the agent ---- */

static void see_spawn(const struct agent_action *action)
{
    uint64_t incarnation = action->incarnation;
    struct process *process = &processes[incarnation];
    uint32_t slot = action->msg->u.launch.slot;

    if (process->condition != UNBORN)
        fault("spawns an incarnation twice");
    if (incarnation <= highest[slot])
        fault("spawns below the highest incarnation of the slot");
    if (highest[slot] && is_alive(&processes[highest[slot]]))
        fault("spawns in a slot that is taken");
    if (highest[slot] && processes[highest[slot]].condition == UNSPAWNED)
        processes[highest[slot]].forgotten = true;
    *process = (struct process){ .condition = SPAWNING, .slot = slot };
    highest[slot] = incarnation;
}

static void see_signal(const struct agent_action *action)
{
    struct process *process = &processes[action->incarnation];
    bool kill = action->kind == AGENT_DO_KILL;

    if (process->condition != RUNNING)
        fault("sends a signal to a process that does not run");
    if (process->killed || (!kill && process->termed))
        fault("sends a signal again");
    if (kill)
        process->killed = true;
    else
        process->termed = true;
}

static void see_report(const struct msg *msg)
{
    struct process *process = &processes[msg->incarnation];
    static const struct {
        enum msg_type type;
        enum condition condition;
    } fitting[] = {
        {MSG_LAUNCHED,       RUNNING  },
        { MSG_EXITED,        GONE     },
        { MSG_LAUNCH_FAILED, UNSPAWNED},
        { MSG_LAUNCH_FAILED, UNBORN   }
    };

    if (process->forgotten)
        fault("reports a forgotten process");
    process->reports++;
    for (size_t i = 0; i < ARRAY_SIZE(fitting); i++) {
        if (fitting[i].type == msg->type && fitting[i].condition == process->condition)
            return;
    }
    fault("reports a wrong condition");
}

static void see_send(const struct msg *msg)
{
    bool greets = msg->type == MSG_HELLO_AGENT || msg->type == MSG_BYE;
    struct hvd_err err;

    buf_clear(&wire);
    if (msg_encode(msg, &wire, &err))
        fault("sends a message that cannot be encoded");
    if (link != OPEN && !(link == GREETING && greets))
        fault("speaks without a connection");
    if (msg->type == MSG_HOLDING && (msg->u.holding.number != attempt || released || !asked))
        fault("says a result that no driver awaits");
    if (msg->type == MSG_LAUNCHED || msg->type == MSG_EXITED || msg->type == MSG_LAUNCH_FAILED)
        see_report(msg);
}

static struct process *connected(uint32_t connection)
{
    for (uint64_t i = 1; i <= newest; i++) {
        if (processes[i].connection == connection)
            return &processes[i];
    }
    return NULL;
}

static void see(const struct agent_action *action)
{
    struct process *process;

    if (over)
        fault("acts after its end");
    switch (action->kind) {
    case AGENT_DO_DIAL: link = DIALLED; break;
    case AGENT_DO_HANG_UP:
        link = DOWN;
        asked = false;
        break;
    case AGENT_DO_SEND_DRIVER: see_send(action->msg); break;
    case AGENT_DO_SEND_WORKER:
        buf_clear(&wire);
        if (msg_encode(action->msg, &wire, NULL))
            fault("sends a worker a message that cannot be encoded");
        break;
    case AGENT_DO_DROP:
        process = connected(action->worker);
        if (process)
            process->connection = 0;
        break;
    case AGENT_DO_SPAWN: see_spawn(action); break;
    case AGENT_DO_TERM:
    case AGENT_DO_KILL: see_signal(action); break;
    case AGENT_DO_EXIT: over = true; break;
    case AGENT_DO_TAKE_KEY: break;
    case AGENT_DO_HOLD:
        if (action->msg->u.hold.number < attempt)
            fault("holds for an attempt that is over");
        attempt = action->msg->u.hold.number;
        released = false;
        asked = true;
        break;
    case AGENT_DO_SAVE:
        if (action->msg->u.save.number != attempt || released)
            fault("saves for an attempt that it does not hold");
        asked = true;
        break;
    case AGENT_DO_RELEASE:
        if (action->msg->u.release.number < attempt)
            fault("releases an attempt again");
        attempt = action->msg->u.release.number;
        released = true;
        break;
    case AGENT_DO_COUNT: fault("does nothing known");
    }
}

static void step(struct agent_event event)
{
    steps++;
    event.now_us = s.now_us;
    for (uint64_t i = 1; i <= newest; i++)
        processes[i].reports = 0;
    agent_action_list_clear(&s.list);
    if (agent_step(s.agent, &event, &s.list))
        fault("fails");
    for (size_t i = 0; i < s.list.count; i++)
        see(&s.list.items[i]);
}

/* ---- the events for the agent ---- */

static void pass_time(void)
{
    int64_t deadline_us = agent_deadline(s.agent);

    if (deadline_us > s.now_us && deadline_us < s.now_us + (any(300) ? S : 100 * S))
        s.now_us = deadline_us;
    else
        s.now_us += (int64_t)any((uint64_t)S / 2);
    step((struct agent_event){ .kind = AGENT_TIMER });
}

static void say(struct msg msg)
{
    step((struct agent_event){ .kind = AGENT_DRIVER_MSG, .msg = &msg });
}

/* A driver's WELCOME: the agent must report each launched process once, until FORGET. */
static void welcome(void)
{
    link = OPEN;
    say(script_welcome(term));
    for (uint64_t i = 1; i <= newest; i++) {
        const struct process *process = &processes[i];
        bool wanted =
            process->condition != UNBORN && process->condition != SPAWNING && !process->forgotten;

        if (process->reports != (wanted ? 1 : 0))
            fault("does not report each process once to a new driver");
    }
}

static void greet(void)
{
    switch (any(8)) {
    case 0:
        say((struct msg){
            .type = MSG_REFUSED, .u.refused = {HVD_E_BUSY, "test"}
        });
        break;
    case 1: say((struct msg){ .type = MSG_BEAT }); break;
    case 2:
        if (term > 1)
            say(script_welcome(term - 1));
        break;
    case 3:
        term++;
        welcome();
        break;
    default: welcome();
    }
}

static void launch(void)
{
    struct msg msg;
    bool again = any(4) == 0 && newest > 0;
    uint32_t slot = (uint32_t)any(SLOTS);

    if (newest == PROCESSES || (!again && any(4) && is_alive(&processes[highest[slot]])))
        return;
    msg = script_launch(again ? any_worker() : ++newest, slot);
    /* an incarnation has one slot for its whole life */
    if (processes[msg.incarnation].condition != UNBORN)
        msg.u.launch.slot = processes[msg.incarnation].slot;
    msg.term = term;
    say(msg);
}

static void forget(void)
{
    uint64_t incarnation = any_worker();
    struct process *process = &processes[incarnation];

    if (!incarnation)
        return;
    say((struct msg){ .type = MSG_FORGET, .term = term, .incarnation = incarnation });
    if (process->condition == GONE || process->condition == UNSPAWNED)
        process->forgotten = true;
}

/* The driver says something about a checkpoint, or a result is ready. */
static void checkpoint(void)
{
    uint64_t number = attempt + any(4) - (attempt ? 1 : 0);
    struct msg result = {
        .type = MSG_HOLDING, .round = 1, .u.holding = {.number = number, .text = ""}
    };

    switch (any(4)) {
    case 0: say((struct msg){ .type = MSG_HOLD, .term = term, .u.hold.number = number }); break;
    case 1:
        say((struct msg){
            .type = MSG_SAVE,
            .term = term,
            .u.save = {.number = number, .name = "", .folder = ""}
        });
        break;
    case 2:
        if (any(3) == 0)
            say((struct msg){ .type = MSG_RELEASE, .term = term, .u.release.number = number });
        break;
    default: step((struct agent_event){ .kind = AGENT_CHECKPOINT_RESULT, .msg = &result });
    }
}

/* The driver sends a random message for the workers. */
static void pass_down(void)
{
    static const enum msg_type types[] = { MSG_ROUND,     MSG_PREPARE, MSG_PENDING,
                                           MSG_SWITCH_AT, MSG_ABANDON, MSG_REVOKE,
                                           MSG_DRAIN,     MSG_DONE,    MSG_HOSTS_UPDATED,
                                           MSG_PERSISTED, MSG_STORED,  MSG_EXAMINE };
    struct arena arena;
    struct msg msg;
    bool to_one;

    arena_init(&arena, 1u << 20);
    if (msg_random(types[any(ARRAY_SIZE(types))], &rng, 3, &arena, &msg)) {
        fault("cannot make a message");
    } else {
        msg.term = term;
        msg.round = 1 + any(9);
        to_one = msg.type == MSG_PERSISTED || msg.type == MSG_STORED;
        msg.incarnation = any(3) && !to_one ? 0 : any_worker();
        if (msg.incarnation || !to_one)
            say(msg);
    }
    arena_release(&arena);
}

static void hear_driver(void)
{
    switch (any(16)) {
    case 11:
    case 12: checkpoint(); break;
    case 0:
        say((struct msg){ .type = MSG_BEAT, .term = term, .u.beat = { .sequence = any(99) } });
        break;
    case 1:
    case 2:
    case 3:
    case 4: launch(); break;
    case 5:
    case 6: forget(); break;
    case 7:
        say((struct msg){
            .type = MSG_KILL,
            .term = term,
            .incarnation = any_worker(),
            .u.kill = {(int64_t)any(2) * 3 * S, "test"}
        });
        break;
    case 8:
        if (term > 1 && any(4) == 0)
            say((struct msg){
                .type = MSG_STOP, .term = term - 1, .u.stop = {0, "old"}
            });
        break;
    case 9:
        if (any(40) == 0)
            say((struct msg){
                .type = MSG_STOP, .term = term, .u.stop = {S, "test"}
            });
        break;
    case 10:
        say((struct msg){ .type = MSG_REKEY, .term = term, .u.rekey.epoch = any(9) });
        step((struct agent_event){ .kind = AGENT_KEY_TAKEN, .epoch = any(9) });
        break;
    default: pass_down();
    }
}

static void dial_or_break(void)
{
    if (link == DOWN || (link == OPEN && any(30)))
        return;
    if (link == DIALLED && any(3)) {
        link = GREETING;
        step((struct agent_event){ .kind = AGENT_DRIVER_UP });
    } else {
        link = DOWN;
        asked = false;
        step((struct agent_event){ .kind = AGENT_DRIVER_DOWN, .text = "test" });
    }
}

/* A process starts, fails to start or ends; the agent must report this once to a driver. */
static void process_event(uint64_t incarnation)
{
    struct process *process = &processes[incarnation];
    struct agent_event event = { .incarnation = incarnation, .pid = 100 + incarnation };

    if (!is_alive(process) || (process->condition == RUNNING && !process->killed && any(6)))
        return;
    if (process->condition == SPAWNING && any(4)) {
        event.kind = AGENT_SPAWNED;
        process->condition = RUNNING;
    } else if (process->condition == SPAWNING) {
        event.kind = AGENT_SPAWN_FAILED;
        event.code = HVD_E_IO;
        process->condition = UNSPAWNED;
    } else {
        event.kind = AGENT_ENDED;
        event.ended = ENDED_SIGNAL;
        event.witness = WITNESS_PIDFD;
        process->condition = GONE;
    }
    step(event);
    if (process->reports != (link == OPEN ? 1 : 0) && !over)
        fault("does not report an event exactly once");
}

/* A connected worker sends a random message, sometimes in the name of another worker. */
static void speak(uint64_t incarnation)
{
    static const enum msg_type types[] = {
        MSG_READY,    MSG_PREPARED, MSG_NEXT_CHECK, MSG_RECOVERING, MSG_ENTERED, MSG_LEFT,
        MSG_FINISHED, MSG_UNUSABLE, MSG_STALLED,    MSG_REMARK,     MSG_BEAT,    MSG_BEAT,
        MSG_BEAT,     MSG_ROUND,    MSG_PERSIST,    MSG_STORE
    };
    struct process *process = &processes[incarnation];
    struct arena arena;
    struct msg msg;

    arena_init(&arena, 1u << 20);
    if (msg_random(types[any(ARRAY_SIZE(types))], &rng, 3, &arena, &msg)) {
        fault("cannot make a message");
    } else {
        msg.incarnation = any(30) ? incarnation : any_worker();
        msg.round = 1 + any(9);
        step((struct agent_event){
            .kind = AGENT_WORKER_MSG, .worker = process->connection, .msg = &msg });
    }
    arena_release(&arena);
}

/* A running worker connects, speaks or breaks off. */
static void worker_event(uint64_t incarnation)
{
    struct process *process = &processes[incarnation];
    struct msg hello = script_hello(incarnation, 100 + incarnation);
    uint32_t connection = process->connection;

    if (!connection && process->condition == RUNNING) {
        process->connection = ++connections;
        step((struct agent_event){
            .kind = AGENT_WORKER_MSG, .worker = process->connection, .msg = &hello });
    } else if (connection && any(10)) {
        speak(incarnation);
    } else if (connection) {
        process->connection = 0;
        step((struct agent_event){ .kind = AGENT_WORKER_DOWN, .worker = connection });
    }
}

static void print_something(uint64_t incarnation)
{
    struct agent_event event = {
        .kind = AGENT_OUTPUT,
        .incarnation = incarnation,
        .stream = (uint32_t)any(STREAM_COUNT),
        .data = {(const uint8_t *)"text", any(5)}
    };

    step(event);
}

static void event(void)
{
    switch (any(10)) {
    case 0: pass_time(); break;
    case 1:
        if (any(200) == 0)
            step((struct agent_event){ .kind = AGENT_NOTICE, .left_us = S, .text = "test" });
        if (any(200) == 0)
            step((struct agent_event){ .kind = AGENT_DRIVER_MOVED, .text = "test" });
        if (any(2000) == 0)
            step((struct agent_event){ .kind = AGENT_STOP, .text = "test" });
        print_something(any_worker());
        break;
    case 2: dial_or_break(); break;
    case 3:
    case 4: process_event(any_worker()); break;
    case 5:
    case 6: worker_event(any_worker()); break;
    default:
        if (link == GREETING)
            greet();
        else if (link == OPEN)
            hear_driver();
    }
}

/* Starts a new agent, which knows nothing of the former one. */
static int reset(void)
{
    script_release(&s);
    memset(processes, 0, sizeof(processes));
    memset(highest, 0, sizeof(highest));
    newest = 0;
    link = DOWN;
    over = false;
    term = 1;
    attempt = 0;
    released = asked = false;
    return script_init(&s);
}

static int start(void)
{
    int rc = reset();

    if (!rc)
        step((struct agent_event){ .kind = AGENT_START });
    return rc;
}

TEST_FLAGS(anything_may_happen_at_any_time, TEST_NO_TORTURE)
{
    unsigned ends = 0;

    buf_init(&wire, 1u << 24);
    wrong = NULL;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        rng_seed(&rng, seed);
        CHECK_OK(t, start());
        for (steps = 0; steps < EVENTS;) {
            if (over) {
                ends++;
                CHECK_OK(t, start());
            }
            event();
            for (uint64_t i = 1; over && i <= newest; i++) {
                if (is_alive(&processes[i]))
                    fault("exits while a worker runs");
            }
            if (wrong) {
                test_fail(t, __FILE__, __LINE__,
                          "seed %u, event %u: the agent %s; the last trace: %s", seed, steps, wrong,
                          trace_line(&s.trace, 0));
                goto out;
            }
        }
    }
    CHECK_INT(t, ends, >, SEEDS);
out:
    buf_release(&wire);
    script_release(&s);
}
